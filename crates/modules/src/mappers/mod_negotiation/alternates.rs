//! The response's description of the variants: `Vary`, `TCN`, `Alternates`, and the HTML list.

use server::request::Request;

use super::accept::Terms;
use super::variant::Variant;

/// Sets `Alternates`, `Vary` and `TCN` (`set_neg_headers`).
pub(super) fn set_fields(request: &mut Request, terms: &Terms, variants: &[Variant], clear: bool) {
    let fields = &mut request.response.err_headers_out;
    if terms.alternates && !variants.is_empty() {
        let all: Vec<Vec<u8>> = variants.iter().map(alternate).collect();
        fields.merge(b"Alternates", &all.join(&b", "[..]));
    }
    let vary = vary(terms, variants);
    if !vary.is_empty() {
        fields.merge(b"Vary", &vary);
    }
    if terms.transparent {
        fields.set(b"TCN", if clear { b"choice" } else { b"list" });
    }
}

/// Lists the dimensions in which variants differ.
fn vary(terms: &Terms, variants: &[Variant]) -> Vec<u8> {
    let (first, others) = variants.split_first().unzip();
    let others = others.unwrap_or_default();
    let differ = |other: fn(&Variant, &Variant) -> bool| {
        first.is_some_and(|first| others.iter().any(|one| other(first, one)))
    };
    let parts: [(bool, &[u8]); 5] = [
        (terms.transparent, b"negotiate"),
        (differ(|a, b| a.media_type != b.media_type), b"accept"),
        (differ(|a, b| a.languages != b.languages), b"accept-language"),
        (differ(|a, b| a.charset != b.charset), b"accept-charset"),
        (differ(|a, b| encoding(a) != encoding(b)), b"accept-encoding"),
    ];
    let said: Vec<&[u8]> = parts.iter().filter(|(so, _)| *so).map(|(_, name)| *name).collect();
    said.join(&b", "[..])
}

fn encoding(variant: &Variant) -> &[u8] {
    variant.encoding.as_deref().unwrap_or_default()
}

/// Formats a variant as in RFC 2295 section 8.3.
fn alternate(variant: &Variant) -> Vec<u8> {
    let mut out = b"{\"".to_vec();
    wire::escape::path_segment(&mut out, &variant.file_name);
    out.extend_from_slice(b"\" ");
    out.extend_from_slice(quality(variant.source_quality).as_bytes());
    let mut attribute = |name: &str, value: &[u8]| {
        if !value.is_empty() {
            out.extend_from_slice(b" {");
            out.extend_from_slice(name.as_bytes());
            out.push(b' ');
            out.extend_from_slice(value);
            out.push(b'}');
        }
    };
    attribute("type", &variant.media_type);
    attribute("charset", &variant.charset);
    attribute("language", &variant.languages.join(&b","[..]));
    attribute("encoding", encoding(variant));
    // The length of a program is not that of its output.
    let is_program = variant.sub.as_ref().is_some_and(|sub| sub.handler.is_some());
    if let Some(bytes) = variant.bytes.filter(|_| !is_program) {
        attribute("length", bytes.to_string().as_bytes());
    }
    out.push(b'}');
    out
}

/// Formats a quality with up to three digits, without trailing zeros.
fn quality(value: f32) -> String {
    let text = format!("{value:.3}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "" => "0".to_owned(),
        short => short.to_owned(),
    }
}

/// The HTML list (`make_variant_list`).
pub(super) fn list(variants: &[Variant]) -> Vec<u8> {
    let mut out = b"Available variants:\n<ul>\n".to_vec();
    for variant in variants {
        let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
        let (mut link, mut name) = (Vec::new(), Vec::new());
        wire::escape::path_segment(&mut link, &variant.file_name);
        wire::escape::html(&mut name, &variant.file_name);
        let mut about = Vec::new();
        wire::escape::html(&mut about, &variant.description);
        put(&[b"<li><a href=\"", &link, b"\">", &name, b"</a> ", &about]);
        let languages = variant.languages.join(&b","[..]);
        let parts: [(&str, &[u8]); 4] = [
            (", type ", &variant.media_type),
            (", language ", &languages),
            (", charset ", &variant.charset),
            (", encoding ", encoding(variant)),
        ];
        for (label, value) in parts.iter().filter(|(_, value)| !value.is_empty()) {
            let mut shown = Vec::new();
            wire::escape::html(&mut shown, value);
            put(&[label.as_bytes(), &shown]);
        }
        put(&[b"</li>\n"]);
    }
    out.extend_from_slice(b"</ul>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(name: &str, media_type: &str) -> Variant {
        let mut variant = Variant { file_name: name.into(), bytes: Some(5), ..Variant::default() };
        variant.set_type(wire::accept::parse_one(media_type.as_bytes()).0);
        variant
    }

    #[test]
    fn alternates_are_written_as_apache_does() {
        let mut german = variant("a b.html", "text/html; qs=0.95");
        german.languages = vec![b"de".to_vec()];
        assert_eq!(
            alternate(&german),
            br#"{"a%20b.html" 0.95 {type text/html} {language de} {length 5}}"#
        );
    }

    #[test]
    fn qualities_are_short() {
        for (value, text) in [(1.0, "1"), (0.9, "0.9"), (0.125, "0.125"), (0.0, "0")] {
            assert_eq!(quality(value), text);
        }
    }

    #[test]
    fn vary_names_what_differs() {
        let both = [variant("a", "text/html"), variant("b", "text/plain")];
        assert_eq!(vary(&Terms::plain(true), &both), b"negotiate, accept");
        assert_eq!(vary(&Terms::plain(false), &both[..1]), b"");
    }

    #[test]
    fn file_names_are_text_in_the_list() {
        let page = list(&[variant("<x>", "text/html")]);
        assert!(!bstr::ByteSlice::contains_str(page.as_slice(), "<x>"));
        let page = list(&[variant("../x/a.html", "text/html")]);
        assert!(bstr::ByteSlice::contains_str(page.as_slice(), "\"..%2fx%2fa.html\""));
    }
}
