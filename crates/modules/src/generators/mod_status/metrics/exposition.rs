//! Prometheus' text format 0.0.4, and OpenMetrics 1.0 if the client accepts it.
//!
//! Sources: <https://prometheus.io/docs/instrumenting/exposition_formats/>,
//! <https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md>.

use std::fmt::{Display, Write};

/// The two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The format that an `Accept` field prefers; Prometheus by default and at equal quality.
    pub(super) fn negotiate(accept: Option<&[u8]>) -> Format {
        let entries = accept.map(wire::accept::parse).unwrap_or_default();
        let quality = |names: &[&[u8]]| {
            let named = entries.iter().filter(|entry| names.contains(&entry.name.as_slice()));
            named.map(|entry| entry.quality_milli).max().unwrap_or(0)
        };
        let open_metrics = quality(&[b"application/openmetrics-text"]);
        if open_metrics > quality(&[b"text/plain"]) {
            Format::OpenMetrics
        } else {
            Format::Prometheus
        }
    }

    /// The format's media type.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The type of a family of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only increases; its samples end in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Buckets, a sum and a count.
    Histogram,
}

/// Labels of a sample, in order.
pub type Labels<'l> = [(&'l str, &'l str)];

/// A page of metrics that is being written.
pub struct Exposition {
    out: String,
    format: Format,
    family: &'static str,
    kind: Kind,
}

impl Exposition {
    /// Returns an empty page.
    pub(super) fn new(format: Format) -> Exposition {
        Exposition { out: String::with_capacity(16 * 1024), format, family: "", kind: Kind::Gauge }
    }

    /// Begins a family. `name` is without `_total`; `help` is one line without a backslash.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        (self.family, self.kind) = (name, kind);
        let suffix = match (self.format, kind) {
            (Format::Prometheus, Kind::Counter) => "_total",
            _ => "",
        };
        let word = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        // Writing to a String can't fail, here and below.
        let _ = writeln!(self.out, "# HELP {name}{suffix} {help}");
        let _ = writeln!(self.out, "# TYPE {name}{suffix} {word}");
    }

    /// Writes a sample of the family.
    pub fn sample(&mut self, labels: &Labels<'_>, value: impl Display) {
        let suffix = if self.kind == Kind::Counter { "_total" } else { "" };
        self.write(suffix, labels, value);
    }

    /// Writes a family with one sample and no labels.
    pub fn single(&mut self, name: &'static str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(&[], value);
    }

    /// Writes a histogram of the family. `buckets` are not cumulative and have one more element
    /// than `bounds_us`. Times are shown in seconds.
    pub(super) fn histogram(
        &mut self,
        label: (&str, &str),
        bounds_us: &[u64],
        buckets: &[u64],
        sum_us: u64,
    ) {
        let mut count = 0;
        for (index, bucket) in buckets.iter().enumerate() {
            count += bucket;
            let bound = bounds_us.get(index).map_or("+Inf".to_owned(), |us| seconds(*us));
            self.write("_bucket", &[label, ("le", &bound)], count);
        }
        self.write("_sum", &[label], seconds(sum_us));
        self.write("_count", &[label], count);
    }

    /// The whole page.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.format == Format::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out.into_bytes()
    }

    fn write(&mut self, suffix: &str, labels: &Labels<'_>, value: impl Display) {
        self.out.push_str(self.family);
        self.out.push_str(suffix);
        for (index, (name, text)) in labels.iter().enumerate() {
            self.out.push(if index == 0 { '{' } else { ',' });
            self.out.push_str(name);
            self.out.push_str("=\"");
            escape(text, &mut self.out);
            self.out.push('"');
        }
        if !labels.is_empty() {
            self.out.push('}');
        }
        let _ = writeln!(self.out, " {value}");
    }
}

/// Converts microseconds to seconds without loss.
pub fn seconds(us: u64) -> String {
    let (whole, part) = (us / 1_000_000, us % 1_000_000);
    let text = format!("{whole}.{part:06}");
    let text = text.trim_end_matches('0');
    if text.ends_with('.') { format!("{text}0") } else { text.to_owned() }
}

/// Escapes a label's value: backslash, quote and line feed.
fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_what_the_client_likes_better() {
        let of = |accept: &str| Format::negotiate(Some(accept.as_bytes()));
        assert_eq!(Format::negotiate(None), Format::Prometheus);
        assert_eq!(of("*/*"), Format::Prometheus);
        assert_eq!(of("text/plain"), Format::Prometheus);
        assert_eq!(of("application/openmetrics-text; version=1.0.0"), Format::OpenMetrics);
        let scraper = "application/openmetrics-text;version=1.0.0;q=0.5,\
                       text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        assert_eq!(of(scraper), Format::OpenMetrics);
        assert_eq!(of("application/openmetrics-text;q=0"), Format::Prometheus);
        assert_eq!(of("application/openmetrics-text;q=0.2,text/plain"), Format::Prometheus);
    }

    #[test]
    fn times_are_in_seconds_without_loss() {
        for (us, shown) in [(0, "0.0"), (25, "0.000025"), (2_500_000, "2.5"), (10_000_000, "10.0")]
        {
            assert_eq!(seconds(us), shown);
        }
    }

    #[test]
    fn labels_are_escaped_and_families_end_as_their_format_wants() {
        let write = |format| {
            let mut page = Exposition::new(format);
            page.family("a_lines", Kind::Counter, "Lines.");
            page.sample(&[("host", "a\"b\\c\nd"), ("class", "2xx")], 7);
            page.single("b", Kind::Gauge, "B.", 1.5);
            String::from_utf8(page.finish()).unwrap()
        };
        let sample = "a_lines_total{host=\"a\\\"b\\\\c\\nd\",class=\"2xx\"} 7\n";
        let rest = "# HELP b B.\n# TYPE b gauge\nb 1.5\n";
        assert_eq!(
            write(Format::Prometheus),
            format!("# HELP a_lines_total Lines.\n# TYPE a_lines_total counter\n{sample}{rest}")
        );
        assert_eq!(
            write(Format::OpenMetrics),
            format!("# HELP a_lines Lines.\n# TYPE a_lines counter\n{sample}{rest}# EOF\n")
        );
    }

    #[test]
    fn histograms_are_cumulative() {
        let mut page = Exposition::new(Format::Prometheus);
        page.family("t", Kind::Histogram, "T.");
        page.histogram(("h", "x"), &[1000, 1_000_000], &[2, 0, 3], 1_500_000);
        let page = String::from_utf8(page.finish()).unwrap();
        let lines: Vec<&str> = page.lines().skip(2).collect();
        let expected = [
            "t_bucket{h=\"x\",le=\"0.001\"} 2",
            "t_bucket{h=\"x\",le=\"1.0\"} 2",
            "t_bucket{h=\"x\",le=\"+Inf\"} 5",
            "t_sum{h=\"x\"} 1.5",
            "t_count{h=\"x\"} 5",
        ];
        assert_eq!(lines, expected);
    }
}
