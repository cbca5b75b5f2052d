//! The pair of servers: Apache and Tamarack with the same files and requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use blackbox::backend::player::Player;
use blackbox::backend::script::Declared;
use blackbox::client::Client;
use blackbox::place::Place;
use blackbox::program::{Program, Server};
use blackbox::testfile::TestFile;
use blackbox::tls::Tls;

use crate::rows::BY_URI;
use crate::site::{Case, Node, Seat};
use crate::talk::talk_all;
use crate::verdict::Verdict;

/// Most attempts to start, while other programs take the ports.
const STARTS_MAX: usize = 5;
/// The file that the sites' configurations stand in.
const FILE: &str = "conf/test.conf";
/// One server may take longer with a request than the other keeps a quiet connection by default: it
/// would then be seen to close it, or to be asked twice.
const PATIENT: &str = "KeepAliveTimeout 600\n";

/// The servers: real ones, or those of a test of the shrinker.
pub trait Servers {
    /// Serves all cases at once, sends all requests, and returns the results. All cases have the
    /// same global nodes.
    fn ask(&mut self, cases: &[Case]) -> Vec<Verdict>;
}

/// The installed Apache, and optionally Tamarack.
#[derive(Clone)]
pub struct Pair {
    apache: Program,
    /// The server under test; `None` uses Apache alone.
    pub tamarack: Option<Program>,
    modules: Vec<String>,
    backends: Vec<Declared>,
    certificates: PathBuf,
    tls: Arc<Tls>,
}

/// A running server.
pub struct Side {
    // Dropped before its folder.
    /// The process.
    pub server: Server,
    /// The servers behind it: each side has its own, which answer alike.
    pub player: Player,
    /// Its folder and its ports.
    pub place: Place,
}

/// One configuration for some cases, each with its number among all.
struct Setup {
    file: TestFile,
    /// Each case's first line in [`FILE`]; what stands before the first is global.
    lines: Vec<(usize, usize)>,
}

impl Setup {
    fn new(modules: &[String], backends: &[Declared], cases: &[(usize, &Case)]) -> Setup {
        let (modules, backends) = (modules.to_vec(), backends.to_vec());
        let mut file = TestFile { modules, backends, ports: 1, ..TestFile::default() };
        if cases.iter().any(|(_, case)| case.site.is_tls) {
            file.modules.push("ssl".to_owned());
            file.ports = 2;
        }
        PATIENT.clone_into(&mut file.config);
        if let Some((number, first)) = cases.first() {
            file.config.push_str(&Seat::Host(*number).fill(&Node::text(&first.site.global, 0)));
        }
        let mut lines = Vec::new();
        for &(number, case) in cases {
            lines.push((number, file.config.lines().count() + 1));
            file.config.push_str(&case.site.config(Seat::Host(number)));
            file.tree.extend(case.site.tree(Seat::Host(number)));
        }
        for (module, directive) in BY_URI {
            if !file.config.contains(directive) {
                file.modules.retain(|other| other != module);
            }
        }
        Setup { file, lines }
    }

    /// Which case an error at the start is about.
    fn blames(&self, error: &str) -> Option<usize> {
        let at = line(error)?;
        self.lines.iter().rev().find(|(_, first)| *first <= at).map(|&(case, _)| case)
    }

    /// Whether it is about what all cases have.
    fn is_global(&self, error: &str) -> bool {
        line(error).is_some() && self.blames(error).is_none()
    }
}

/// Whether a path under a server's root is in a folder for what it writes.
fn is_own(path: &str) -> bool {
    let below = path.split_once('/').filter(|(site, _)| site.starts_with('s'));
    below.map_or(path, |(_, below)| below).starts_with("own/")
}

/// The configuration with Apache's root, except for what each server writes.
fn shared(config: &str, root: &str) -> String {
    let mut parts = config.split("@ROOT@");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_own = part.strip_prefix('/').is_some_and(is_own);
        text.push_str(if is_own { "@ROOT@" } else { root });
        text.push_str(part);
    }
    text
}

/// The line of [`FILE`] that an error names.
fn line(error: &str) -> Option<usize> {
    let (_, rest) = error.split_once("yntax error on line ")?;
    let (number, rest) = rest.split_once(' ')?;
    let is_ours = rest.lines().next().unwrap_or_default().contains(FILE);
    number.parse().ok().filter(|_| is_ours)
}

impl Pair {
    /// Uses the same Tamarack as `blackbox`.
    pub fn new(tests: &Path, modules: &[&str], backends: &[&str]) -> Result<Pair, String> {
        let backends = backends.iter().map(|line| Declared::parse(line));
        Ok(Pair {
            backends: backends.collect::<Result<_, _>>()?,
            apache: Program::Apache,
            tamarack: Some(Program::tamarack(tests)?),
            modules: modules.iter().map(|&module| module.to_owned()).collect(),
            certificates: tests.join("tls"),
            tls: Arc::new(Tls::new(&tests.join("tls"))),
        })
    }

    /// The same Apache without Tamarack.
    pub fn apache_alone(&self) -> Pair {
        Pair { tamarack: None, ..self.clone() }
    }

    /// Starts a server, in a place of its own or in that of a start before.
    fn start(
        &self,
        program: &Program,
        file: &TestFile,
        kept: &mut Option<Place>,
    ) -> Result<Side, String> {
        let mut failure = String::new();
        for _ in 0..STARTS_MAX {
            let place = match kept.take() {
                Some(place) => {
                    place.configure(file)?;
                    place
                }
                None => Place::build(file, &self.certificates)?,
            };
            let player = Player::start(&place)?;
            match program.serve(&place) {
                Ok(server) => return Ok(Side { server, player, place }),
                Err(error) => failure = error,
            }
            if !failure.contains("Address already in use") {
                // The sockets of backends that were played end with them.
                *kept = place.backends.is_empty().then_some(place);
                break;
            }
        }
        Err(failure)
    }

    /// Asks about the cases, each with its number, and puts what came at their places.
    fn fill(&self, mut cases: Vec<(usize, &Case)>, verdicts: &mut [Verdict]) {
        let mut place = None;
        while !cases.is_empty() {
            let setup = Setup::new(&self.modules, &self.backends, &cases);
            let apache = self.start(&self.apache, &setup.file, &mut place);
            let tamarack = self.second(&setup.file, apache.as_ref().ok());
            let (apache, tamarack) = match (apache, tamarack) {
                (Ok(apache), None) => (apache, None),
                (Ok(apache), Some(Ok(tamarack))) => (apache, Some(tamarack)),
                (apache, tamarack) => {
                    let errors = [apache.err(), tamarack.and_then(Result::err)];
                    self.refused(&mut cases, &setup, errors, verdicts);
                    continue;
                }
            };
            return self.ask_running(&cases, apache, tamarack, verdicts);
        }
    }

    /// Starts Tamarack, if it is asked. Its configuration names Apache's tree; it has of its own
    /// only what servers write.
    fn second(&self, file: &TestFile, apache: Option<&Side>) -> Option<Result<Side, String>> {
        let program = self.tamarack.as_ref()?;
        let mut file = file.clone();
        file.tree.retain(|entry| is_own(&entry.path));
        if let Some(apache) = apache {
            file.config = shared(&file.config, &apache.place.root.display().to_string());
        }
        Some(self.start(program, &file, &mut None))
    }

    /// Takes the case out that an error is about, and writes down who refuses it.
    fn refused(
        &self,
        cases: &mut Vec<(usize, &Case)>,
        setup: &Setup,
        errors: [Option<String>; 2],
        verdicts: &mut [Verdict],
    ) {
        let blamed = errors.each_ref().map(|error| setup.blames(error.as_deref()?));
        let is_agreed = self.tamarack.is_none() || errors.iter().all(Option::is_some);
        let took = errors.each_ref().map(Option::is_none);
        let reason = errors.iter().flatten().next().cloned().unwrap_or_default();
        let refused = Verdict { refused: Some((took[0], took[1])), reason, ..Verdict::default() };
        let mut write = |number: usize, verdict: Verdict| {
            if let Some(place) = verdicts.get_mut(number) {
                *place = verdict;
            }
        };
        let one = blamed.iter().flatten().next().copied();
        let is_global =
            |error: &Option<String>| error.as_deref().is_some_and(|error| setup.is_global(error));
        let is_of_all = is_agreed && errors.iter().any(is_global);
        match one {
            _ if cases.len() <= 1 || is_of_all => {
                cases.drain(..).for_each(|(number, _)| write(number, refused.clone()));
            }
            Some(one) if is_agreed && blamed.iter().flatten().all(|&other| other == one) => {
                write(one, refused);
                cases.retain(|&(number, _)| number != one);
            }
            Some(one) => {
                // One refuses it alone, or the other would refuse another: it is asked about alone.
                let (alone, rest) = cases.iter().partition(|&&(number, _)| number == one);
                *cases = rest;
                self.fill(alone, verdicts);
            }
            None => {
                let other = cases.split_off(cases.len() / 2);
                self.fill(other, verdicts);
            }
        }
    }

    fn ask_running(
        &self,
        cases: &[(usize, &Case)],
        apache: Side,
        tamarack: Option<Side>,
        verdicts: &mut [Verdict],
    ) {
        let mut said = talk_all(cases, &self.tls, &apache, tamarack.as_ref());
        // A request that crashes Apache, together with all others, is no evidence about Tamarack.
        if tamarack.is_some() && Client::connect(&[], &apache.place, &self.tls).is_err() {
            drop((apache, tamarack));
            if let [(number, _)] = cases {
                let reason = "\nApache died".to_owned();
                let refused = Some((false, false));
                let verdict = Verdict { refused, reason, ..Verdict::default() };
                return verdicts.get_mut(*number).into_iter().for_each(|at| *at = verdict.clone());
            }
            let (one, other) = cases.split_at(cases.len() / 2);
            self.fill(one.to_vec(), verdicts);
            return self.fill(other.to_vec(), verdicts);
        }
        // Apache is killed when it is dropped: an orderly stop takes long.
        if let Some(Err(failure)) = tamarack.map(|tamarack| tamarack.server.stop()) {
            for verdict in &mut said {
                verdict.end = Some(failure.clone());
            }
        }
        for ((number, _), verdict) in cases.iter().zip(said) {
            if let Some(place) = verdicts.get_mut(*number) {
                *place = verdict;
            }
        }
    }
}

impl Servers for Pair {
    fn ask(&mut self, cases: &[Case]) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::default(); cases.len()];
        self.fill(cases.iter().enumerate().collect(), &mut verdicts);
        verdicts
    }
}
