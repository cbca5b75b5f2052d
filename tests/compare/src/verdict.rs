//! The outcome of a case: responses, logs, and where the servers differ.

use blackbox::compare::{Rule, difference};

/// The result of a case.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// Whether Apache and Tamarack accepted the configuration, if one of them did not.
    pub refused: Option<(bool, bool)>,
    /// The message of the first that refused it.
    pub reason: String,
    /// One exchange for each request.
    pub exchanges: Vec<Exchange>,
    /// What the logs say of the site, Apache's and Tamarack's, where they differ.
    pub logs: Option<Vec<Vec<String>>>,
    /// A server that died or panicked.
    pub end: Option<String>,
}

/// The responses to a request, as lines of a test file.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    /// Apache's response.
    pub apache: Vec<String>,
    /// Tamarack's response.
    pub tamarack: Vec<String>,
    /// The difference, if no rule allows it.
    pub signature: Option<Signature>,
    /// What Tamarack's error logs say of a difference.
    pub errors: String,
}

/// The kind of a difference: a smaller case must show the same kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signature {
    /// Apache's status line, or what it did instead.
    pub apache: String,
    /// Tamarack's.
    pub tamarack: String,
    /// Names of the fields that differ, `body` and `connection`.
    pub parts: Vec<String>,
}

impl Signature {
    /// The difference of two responses.
    pub fn new(apache: &[String], tamarack: &[String]) -> Signature {
        let first = |lines: &[String]| lines.first().cloned().unwrap_or_default();
        if first(apache) != first(tamarack) {
            // Different statuses suffice: everything else differs with them.
            let parts = vec!["status".to_owned()];
            return Signature { apache: first(apache), tamarack: first(tamarack), parts };
        }
        let mut parts: Vec<String> = apache
            .iter()
            .filter(|line| !tamarack.contains(line))
            .chain(tamarack.iter().filter(|line| !apache.contains(line)))
            .map(|line| part(line))
            .collect();
        parts.sort();
        parts.dedup();
        Signature { apache: first(apache), tamarack: first(tamarack), parts }
    }

    /// Whether a smaller case shows the same difference, or a part of it.
    pub fn covers(&self, smaller: &Signature) -> bool {
        self.apache == smaller.apache
            && self.tamarack == smaller.tamarack
            && smaller.parts.iter().all(|part| self.parts.contains(part))
    }
}

impl std::fmt::Display for Signature {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plain = |line: &str| line.trim_start_matches("< HTTP/1.1 ").to_owned();
        let (apache, tamarack) = (plain(&self.apache), plain(&self.tamarack));
        write!(out, "Apache {apache}, Tamarack {tamarack}: {}", self.parts.join(", "))
    }
}

/// The field's name, or the part of the response that the line belongs to.
fn part(line: &str) -> String {
    match line.strip_prefix("< ") {
        Some(field) => field.split(':').next().unwrap_or_default().to_ascii_lowercase(),
        None if line.starts_with('=') => "connection".to_owned(),
        None if is_of_backend(line) => "request".to_owned(),
        None => "body".to_owned(),
    }
}

/// Whether it is a line of what a backend received.
fn is_of_backend(line: &str) -> bool {
    let name = line.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
    name.len() < line.len() && name.starts_with(['>', '|', '='])
}

impl Verdict {
    /// What differs in the logs.
    pub fn difference_of_logs(&self) -> Option<String> {
        let [apache, tamarack] = self.logs.as_deref()? else { return None };
        difference(apache, tamarack, Rule::Log)
    }

    /// The difference at one request; that of the start or the end counts for each, that of the
    /// logs for the last.
    pub fn at(&self, request: usize) -> Option<Signature> {
        let word = |ok: bool| if ok { "accepts" } else { "refuses" }.to_owned();
        if let Some((apache, tamarack)) = self.refused {
            return (apache != tamarack).then(|| Signature {
                apache: word(apache),
                tamarack: word(tamarack),
                parts: vec!["configuration".to_owned()],
            });
        }
        let here = self.exchanges.get(request).and_then(|exchange| exchange.signature.clone());
        let of = |apache: &str, tamarack: &str, part: &str| Signature {
            apache: apache.to_owned(),
            tamarack: tamarack.to_owned(),
            parts: vec![part.to_owned()],
        };
        let is_last = request + 1 == self.exchanges.len();
        here.or_else(|| self.end.is_some().then(|| of("ends in order", "dies", "end")))
            .or_else(|| (is_last && self.logs.is_some()).then(|| of("logs", "otherwise", "log")))
    }
}
