//! The pair of servers: Apache and Tamarack with the same files and requests.

use std::path::{Path, PathBuf};

use blackbox::client::Client;
use blackbox::place::Place;
use blackbox::program::{Program, Server};
use blackbox::testfile::TestFile;
use blackbox::tls::Tls;

use crate::site::{Case, Node, Seat};
use crate::talk::talk_all;

/// Most attempts to start, while other programs take the ports.
const STARTS_MAX: usize = 5;

/// The servers: real ones, or those of a test of the shrinker.
pub trait Servers {
    /// Serves all cases at once, sends all requests, and returns the results. All cases have the
    /// same global nodes.
    fn ask(&mut self, cases: &[Case]) -> Vec<Verdict>;
}

/// The result of a case.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// Whether Apache and Tamarack accepted the configuration, if one of them did not.
    pub refused: Option<(bool, bool)>,
    /// The message of the first that refused it.
    pub reason: String,
    /// One exchange for each request.
    pub exchanges: Vec<Exchange>,
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
        None => "body".to_owned(),
    }
}

impl Verdict {
    /// The difference at a request; one at the start or end counts for each.
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
        here.or_else(|| {
            self.end.is_some().then(|| Signature {
                apache: "ends in order".to_owned(),
                tamarack: "dies".to_owned(),
                parts: vec!["end".to_owned()],
            })
        })
    }
}

/// The installed Apache, and optionally Tamarack.
#[derive(Clone)]
pub struct Pair {
    apache: Program,
    /// The server under test; `None` uses Apache alone.
    pub tamarack: Option<Program>,
    modules: Vec<String>,
    certificates: PathBuf,
}

/// A start that failed.
struct Refusal {
    took: (bool, bool),
    reason: String,
}

/// A running server.
pub struct Side {
    // Dropped before its folder.
    /// The process.
    pub server: Server,
    /// Its folder and its ports.
    pub place: Place,
}

impl Pair {
    /// Uses the same Tamarack as `blackbox`.
    pub fn new(tests: &Path, modules: &[&str]) -> Result<Pair, String> {
        Ok(Pair {
            apache: Program::Apache,
            tamarack: Some(Program::tamarack(tests)?),
            modules: modules.iter().map(|&module| module.to_owned()).collect(),
            certificates: tests.join("tls"),
        })
    }

    /// The same Apache without Tamarack.
    pub fn apache_alone(&self) -> Pair {
        Pair { tamarack: None, ..self.clone() }
    }

    fn file(&self, cases: &[Case]) -> TestFile {
        let mut file = TestFile { modules: self.modules.clone(), ports: 1, ..TestFile::default() };
        if let Some(first) = cases.first() {
            file.config = Node::text(&first.site.global, 0);
        }
        for (number, case) in cases.iter().enumerate() {
            file.config.push_str(&case.site.config(Seat::Host(number)));
            file.tree.extend(case.site.tree(Seat::Host(number)));
        }
        file
    }

    /// Starts a server. The second has no tree: its configuration refers to the first one's.
    fn start(&self, program: &Program, file: &TestFile) -> Result<Side, String> {
        let mut failure = String::new();
        for _ in 0..STARTS_MAX {
            let place = Place::build(file, &self.certificates)?;
            match program.serve(&place) {
                Ok(server) => return Ok(Side { server, place }),
                Err(error) => failure = error,
            }
            if !failure.contains("Address already in use") {
                break;
            }
        }
        Err(failure)
    }

    fn ask_all(&self, cases: &[Case]) -> Result<Vec<Verdict>, Refusal> {
        let mut file = self.file(cases);
        let apache = self.start(&self.apache, &file);
        let Some(program) = &self.tamarack else {
            let apache = apache.map_err(|reason| Refusal { took: (false, false), reason })?;
            return Ok(talk_all(cases, &apache, None));
        };
        if let Ok(apache) = &apache {
            file.tree.clear();
            let root = apache.place.root.display().to_string();
            file.config = file.config.replace("@ROOT@", &root);
        }
        let tamarack = self.start(program, &file);
        let (apache, tamarack) = match (apache, tamarack) {
            (Ok(apache), Ok(tamarack)) => (apache, tamarack),
            (apache, tamarack) => {
                let took = (apache.is_ok(), tamarack.is_ok());
                let reason = apache.err().or(tamarack.err()).unwrap_or_default();
                return Err(Refusal { took, reason });
            }
        };
        let mut verdicts = talk_all(cases, &apache, Some(&tamarack));
        // A request that crashes Apache, together with all others, is no evidence about Tamarack.
        if Client::connect(&[], &apache.place, &Tls::new(Path::new(""))).is_err() {
            let reason = "\nApache died".to_owned();
            return Err(Refusal { took: (false, false), reason });
        }
        // Apache is killed when it is dropped: an orderly stop takes long.
        if let Err(failure) = tamarack.server.stop() {
            for verdict in &mut verdicts {
                verdict.end = Some(failure.clone());
            }
        }
        Ok(verdicts)
    }
}

impl Servers for Pair {
    fn ask(&mut self, cases: &[Case]) -> Vec<Verdict> {
        match self.ask_all(cases) {
            Ok(verdicts) => verdicts,
            Err(Refusal { took, reason }) if cases.len() <= 1 => {
                let verdict = Verdict { refused: Some(took), reason, ..Verdict::default() };
                vec![verdict; cases.len()]
            }
            // One of them is refused: bisection finds it.
            Err(_) => {
                let (one, other) = cases.split_at(cases.len() / 2);
                let mut verdicts = self.ask(one);
                verdicts.extend(self.ask(other));
                verdicts
            }
        }
    }
}
