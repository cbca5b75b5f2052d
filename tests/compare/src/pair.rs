//! The pair of servers: Apache and Tamarack on the same files, asked the same.

use std::path::{Path, PathBuf};

use blackbox::client::Client;
use blackbox::place::Place;
use blackbox::program::{Program, Server};
use blackbox::testfile::TestFile;
use blackbox::tls::Tls;

use crate::site::{Case, Node, Seat};
use crate::talk::talk_all;

/// How often a start is tried again, while other programs take the ports.
const STARTS_MAX: usize = 5;

/// What is asked: real servers, or those of a test of the shrinker.
pub trait Servers {
    /// Serves all cases at once, sends all requests, and says what came. All cases have the same
    /// global nodes.
    fn ask(&mut self, cases: &[Case]) -> Vec<Verdict>;
}

/// What came of one case.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// Whether Apache and Tamarack took the configuration, where one of them did not.
    pub refused: Option<(bool, bool)>,
    /// What the first that refused it said.
    pub reason: String,
    /// One for each request.
    pub exchanges: Vec<Exchange>,
    /// A server that died or panicked.
    pub end: Option<String>,
}

/// One request's responses, as lines of a test file.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    /// What Apache sent.
    pub apache: Vec<String>,
    /// What Tamarack sent.
    pub tamarack: Vec<String>,
    /// Where they differ and no rule wants it.
    pub signature: Option<Signature>,
}

/// What kind a difference is: a smaller case has to show the same kind.
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
    /// Where two responses differ.
    pub fn new(apache: &[String], tamarack: &[String]) -> Signature {
        let first = |lines: &[String]| lines.first().cloned().unwrap_or_default();
        if first(apache) != first(tamarack) {
            // Two statuses say enough: all else differs with them.
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

/// The field's name, or what else the line of a response is about.
fn part(line: &str) -> String {
    match line.strip_prefix("< ") {
        Some(field) => field.split(':').next().unwrap_or_default().to_ascii_lowercase(),
        None if line.starts_with('=') => "connection".to_owned(),
        None => "body".to_owned(),
    }
}

impl Verdict {
    /// The difference at one request; that of the start or the end counts for each.
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

/// The installed Apache, and Tamarack or nothing.
#[derive(Clone)]
pub struct Pair {
    apache: Program,
    /// The server under test; `None` asks Apache alone.
    pub tamarack: Option<Program>,
    modules: Vec<String>,
    certificates: PathBuf,
}

/// A start that failed.
struct Refusal {
    took: (bool, bool),
    reason: String,
}

/// A server that runs.
pub struct Side {
    // It is dropped before its folder is.
    /// The process.
    pub server: Server,
    /// Its folder and its ports.
    pub place: Place,
}

impl Pair {
    /// Tamarack as `blackbox` finds it.
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

    /// Starts a server. The second has no tree: its configuration names the first one's.
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
        // A request that ends Apache, with all others, says nothing about Tamarack.
        if Client::connect(&[], &apache.place, &Tls::new(Path::new(""))).is_err() {
            let reason = "\nApache died".to_owned();
            return Err(Refusal { took: (false, false), reason });
        }
        // Apache is killed when it is dropped: its way to an orderly end takes long.
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
            // One of them is refused: which, is found by halves.
            Err(_) => {
                let (one, other) = cases.split_at(cases.len() / 2);
                let mut verdicts = self.ask(one);
                verdicts.extend(self.ask(other));
                verdicts
            }
        }
    }
}
