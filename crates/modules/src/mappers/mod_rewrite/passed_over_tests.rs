//! Whole passes through lists of rules, with and without passing over those whose prefix is another
//! than the path's: both have to end with the same request.
//!
//! The lists are random and read as configuration. Each is asked about many paths, which its own
//! patterns suggest, bytes that are no text among them.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::{Cell, OnceCell};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bstr::{BStr, BString};
use server::build::Build;
use server::connection_info::{ConnectionInfo, KeepAlive};
use server::engine::Engine;
use server::host::Server;
use server::plan::Place;
use server::registry::Registry;
use server::request::Request;
use wire::Table;

use super::Rewrite;
use super::pass::{Ended, Outcome, Pass};
use super::rule_set::{self, RuleSet};
use super::settings::{Common, Directory, Settings};

/// The paths of a run.
const SUBJECTS: usize = 1_000_000;
/// The paths of a list.
const OF_LIST: usize = 1_000;
/// Of so many paths, one goes through whole passes: for the others, it is seen that no rule that is
/// passed over would have matched.
const OF_PASS: usize = 4;
/// The loops that share a run.
const LOOPS: usize = 2;
/// The folder of the rules of a directory.
const FOLDER: &[u8] = b"/srv/";

/// Pieces of patterns, each with a text that it may match.
const PIECES: &[(&[u8], &[u8])] = &[
    (b"/", b"/"),
    (b"/", b"/"),
    (b"/", b"/"),
    (b"a", b"a"),
    (b"a", b"a"),
    (b"b", b"b"),
    (b"shop", b"shop"),
    (b"shop/", b"shop/"),
    (b"B", b"B"),
    (b"-", b"-"),
    (b"\\.", b"."),
    (b"\\.php", b".php"),
    (b"\\/", b"/"),
    (b"\xff", b"\xff"),
    (b"\xc3\xa9", b"\xc3\xa9"),
    (b"a?", b"a"),
    (b"b*", b""),
    (b"b+", b"bb"),
    (b"a{2}", b"aa"),
    (b"b{0}", b""),
    (b"a{0,1}", b""),
    (b"\xc3\xa9?", b"\xc3"),
    (b".", b"\xfe"),
    (b".*", b"a/b"),
    (b"(.*)", b"\xe9/x"),
    (b"([^/]+)", b"name"),
    (b"[ab]", b"b"),
    (b"[^a]", b"\x80"),
    (b"\\d+", b"17"),
    (b"\\w", b"w"),
    (b"\\W", b"\xa0"),
    (b"(a|b)", b"b"),
    (b"(a|/b)?", b""),
    (b"(?:a/)?", b""),
    (b"(b)?", b"b"),
    (b"(?>a+)", b"aa"),
    (b"(?=a)", b"a"),
    (b"(?!b)", b""),
    (b"(?<=/)", b""),
    (b"(?<!a)", b""),
    (b"|", b""),
    (b"|^/a", b""),
    (b"$", b""),
    (b"\\z", b""),
    (b"^", b""),
    (b"\\b", b""),
    (b"\\B", b""),
    (b"\\K", b""),
    (b"\\Qa.\\E", b"a."),
    (b"\\Qa\\E*", b""),
    (b"\\E", b""),
    (b"\\x61", b"a"),
    (b"\\1", b"b"),
    (b"(?#x)", b""),
    (b"(?i)", b""),
    (b"(?-i)", b""),
    (b"(?i:a)", b"A"),
    (b"(?m)", b""),
    (b"(?s)", b""),
    (b"(?x)", b""),
    (b"(?|(a)|(b))", b"b"),
    (b"(?(1)a|b)", b"a"),
];

const STARTS: &[(&[u8], &[u8])] = &[
    (b"^/", b"/"),
    (b"^/", b"/"),
    (b"^", b""),
    (b"^", b""),
    (b"^/shop", b"/shop"),
    (b"^/a/", b"/a/"),
    (b"^/\xff", b"/\xff"),
    (b"", b""),
    (b"(?i)^/a", b"/A"),
    (b"^(?i)/a", b"/A"),
    (b"^(?i:/a)", b"/A"),
    (b"(?m)^/", b"x\n/"),
    (b"(?:^/a)?", b""),
    (b"^(/a)?", b""),
    (b"^/?", b""),
    (b"^(?=/)", b"/"),
    (b"^(?!/a)", b""),
    (b"(*UTF)^/", b"/"),
    (b"\\A/a", b"/a"),
    (b"^^/a", b"/a"),
    (b"^*/a", b"/a"),
];

const TARGETS: &[&str] = &[
    "-",
    "-",
    "-",
    "/a",
    "/a/$1",
    "/shop/$1",
    "/b$1",
    "a$0",
    "$1",
    "/%1",
    "/$1/%2?x=$2",
    "/a?y",
    "/a?",
    "b",
    "//a",
    "http://localhost/a$1",
    "http://other.test/$1?%1",
    "/shop/%{QUERY_STRING}",
    "/\\$1",
    "/${lower:$0}",
];

const FLAGS: &[&str] = &[
    "C",
    "C",
    "C",
    "NC",
    "NC",
    "NC",
    "S=1",
    "S=2",
    "L",
    "L",
    "N=3",
    "N=8",
    "END",
    "PT",
    "F",
    "G",
    "R",
    "R=301",
    "R=404",
    "P",
    "QSA",
    "QSD",
    "QSL",
    "NE",
    "B",
    "UNC",
    "NS",
    "DPI",
    "E=v:$1",
    "E=v:%1",
    "E=w",
    "E=!v",
    "T=text/a",
    "H=h$1",
    "CO=n:$0:other.test",
    "UnsafeAllow3F",
];

const INPUTS: &[&str] = &[
    "%{REQUEST_URI}",
    "%{REQUEST_FILENAME}",
    "$0",
    "$1",
    "%1",
    "%{ENV:v}",
    "%{QUERY_STRING}",
    "%{HTTP:X-A}",
    "%{HTTP_COOKIE}",
    "a",
    "",
];

const TESTS: &[&str] =
    &["=a", "!=a", "=\"\"", ">b", "<b", ">=a", "<=a", "-eq", "!-lt5", "-f", "!-d", "!-s", "."];

/// A sequence of numbers that is the same in each run (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).unwrap()
    }

    /// Whether one of so many chances came true.
    fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A pattern that compiles, and a text that it may match.
    fn pattern(&mut self) -> (Vec<u8>, Vec<u8>) {
        loop {
            let (start, text) = self.of(STARTS);
            let (mut pattern, mut text) = (start.to_vec(), text.to_vec());
            for _ in 0..self.below(6) {
                let (piece, part) = self.of(PIECES);
                pattern.extend_from_slice(piece);
                text.extend_from_slice(part);
            }
            let is_word = !pattern.is_empty() && !pattern.contains(&b' ');
            if is_word && pcre::Regex::new(&pattern, pcre::Flags::default()).is_ok() {
                return (pattern, text);
            }
        }
    }

    /// The lines of a rule, and a text that its pattern may match.
    fn rule(&mut self, out: &mut Vec<u8>) -> Vec<u8> {
        let conditions = if self.once_in(3) { 1 + self.below(3) } else { 0 };
        for _ in 0..conditions {
            self.condition(out);
        }
        let negation: &[u8] = if self.once_in(8) { b"!" } else { b"" };
        let (pattern, text) = self.pattern();
        let target = self.of(TARGETS).as_bytes();
        let flags: Vec<&str> = (0..self.below(4)).map(|_| self.of(FLAGS)).collect();
        let words = [&b"RewriteRule "[..], negation, &pattern, b" ", target, b" "];
        out.extend_from_slice(&words.concat());
        if !flags.is_empty() {
            out.extend_from_slice(format!("[{}]", flags.join(",")).as_bytes());
        }
        out.push(b'\n');
        text
    }

    fn condition(&mut self, out: &mut Vec<u8>) {
        if self.once_in(10) {
            out.extend_from_slice(b"RewriteCond expr \"%{REQUEST_URI} =~ m#^/(a|shop)#\"");
        } else {
            let test = match self.once_in(3) {
                true => self.of(TESTS).as_bytes().to_vec(),
                false => {
                    let negation: &[u8] = if self.once_in(4) { b"!" } else { b"" };
                    [negation, &self.pattern().0].concat()
                }
            };
            let input = self.of(INPUTS).as_bytes();
            out.extend_from_slice(&[b"RewriteCond \"", input, b"\" ", &test[..]].concat());
        }
        let flags: &str = self.of(&["", "", " [OR]", " [NV]", " [NC]", " [OR,NC]"]);
        out.extend_from_slice(flags.as_bytes());
        out.push(b'\n');
    }

    /// A path that may match some rules: one of the texts, mostly with a change.
    fn subject(&mut self, texts: &[Vec<u8>], out: &mut Vec<u8>) {
        const NOISE: &[&[u8]] = &[
            b"/",
            b"a",
            b"b",
            b"A",
            b"shop",
            b".php",
            b"\xff",
            b"\x80",
            b"\xc3\xa9",
            b"\xc3",
            b"\n",
            b"(",
            b"?",
            b"%",
            b"17",
            b"\x01",
        ];
        out.clear();
        out.extend_from_slice(&texts[self.below(texts.len())]);
        match self.below(8) {
            0 => out.truncate(self.below(out.len() + 1)),
            1 => out.make_ascii_uppercase(),
            2 if !out.is_empty() => {
                let at = self.below(out.len());
                out[at] = self.next().to_le_bytes()[0].max(1);
            }
            3 => drop(out.splice(..0, self.of(NOISE).iter().copied())),
            4 => out.extend_from_slice(&texts[self.below(texts.len())]),
            _ => {}
        }
        for _ in 0..self.below(4) {
            out.extend_from_slice(self.of(NOISE));
        }
    }
}

/// A host with every module active.
struct Everything(Arc<Registry>);

impl conf::Host for Everything {
    fn module_active(&self, name: &BStr) -> bool {
        self.0.is_active(&name.to_string())
    }
    fn directive_known(&self, name: &BStr) -> bool {
        self.0.row(&name.to_string()).is_some()
    }
    fn load_module(&mut self, _: &conf::Arg, _: &Path) -> Result<(), Box<conf::Diagnostic>> {
        Ok(())
    }
}

/// A file that is removed at the end.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A server with a host for each list of rules, and texts that their patterns may match.
fn server(numbers: &mut Numbers, hosts: usize) -> (Arc<Server>, Vec<Vec<Vec<u8>>>) {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let (made, process) = (MADE.fetch_add(1, Ordering::Relaxed), std::process::id());
    let file = Removed(std::env::temp_dir().join(format!("passed-over-{process}-{made}.conf")));
    let mut text = b"ServerRoot /\nServerName localhost\nListen 127.0.0.1:1\nDocumentRoot /\n\
        ErrorLog /dev/null\nLogLevel emerg\n"
        .to_vec();
    let mut texts = Vec::new();
    for _ in 0..hosts {
        text.extend_from_slice(
            b"<VirtualHost *:1>\nRewriteEngine On\nRewriteMap lower int:tolower\n",
        );
        texts.push((0..=numbers.below(10)).map(|_| numbers.rule(&mut text)).collect());
        text.extend_from_slice(b"</VirtualHost>\n");
    }
    std::fs::write(&file.0, &text).unwrap();
    let registry = Arc::new(Registry::new(crate::unnamed()));
    let options = conf::Options::default();
    let (tree, found) = conf::read_config(&file.0, &options, &mut Everything(registry.clone()));
    let (server, more, _) = Build::new(registry, &tree, false).finish(&tree.nodes);
    let wrong = found.iter().chain(&more).find(|found| found.severity == conf::Severity::Error);
    assert!(wrong.is_none(), "{wrong:?}\n{}", BStr::new(&text));
    (Arc::new(server.unwrap()), texts)
}

fn connection(server: &Server) -> Rc<ConnectionInfo> {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    Rc::new(ConnectionInfo {
        id: 1,
        peer: address,
        local: address,
        base_host: server.main().clone(),
        tls: None,
        keepalives: Cell::new(0),
        bytes_sent: Cell::new(0),
        aborted: Cell::new(false),
        keepalive: Cell::new(KeepAlive::Unknown),
        names: OnceCell::new(),
        logname: OnceCell::new(),
        log_id: Cell::new(None),
        stream: None,
        proxied: None,
        interim: Cell::default(),
        pushing: Cell::default(),
    })
}

/// What a pass leaves behind, besides its request.
#[derive(Debug, PartialEq)]
struct Left {
    outcome: Result<Outcome, u16>,
    own_file: Option<BString>,
    last: Option<conf::Span>,
}

/// A list of rules, all of them and without a prefix.
struct List {
    asked: [(Settings, Directory); 2],
}

impl List {
    fn new(settings: &Settings) -> List {
        let with = |rules| {
            let common = Common { rules, ..settings.common.clone() };
            let directory = Directory {
                common: common.clone(),
                path: Some(FOLDER.into()),
                ..Directory::default()
            };
            (Settings { common, ..settings.clone() }, directory)
        };
        let rules = &settings.common.rules;
        List { asked: [with(rules.clone()), with(rule_set::without_prefixes(rules))] }
    }
}

/// Whether two passes leave the same in their requests.
fn are_alike(one: &Request, other: &Request) -> bool {
    let tables = |request: &Request| -> [Table; 4] {
        let response = &request.response;
        [&request.env, &request.notes, &response.headers_out, &response.err_headers_out]
            .map(Table::clone)
    };
    one.resource.filename == other.resource.filename
        && one.resource.path_info == other.resource.path_info
        && one.query() == other.query()
        && one.response.status == other.response.status
        && one.kept::<Ended>().is_some() == other.kept::<Ended>().is_some()
        && tables(one).iter().zip(&tables(other)).all(|(one, other)| one.iter().eq(other.iter()))
}

/// Makes passes, with requests that are used again.
struct Asker {
    connection: Rc<ConnectionInfo>,
    place: Place,
    requests: [Box<Request>; 2],
}

impl Asker {
    fn new(engine: &Rc<Engine>, server: &Server) -> Asker {
        let (connection, place) = (connection(server), engine.plans.place(server.main()));
        let request =
            || Box::new(Request::blank(engine.clone(), connection.clone(), place.clone()));
        Asker { requests: [request(), request()], connection, place }
    }

    /// Asks for the results of both passes.
    async fn compare(&mut self, list: &List, asked: &Asked) -> Left {
        let [with, without] = &list.asked;
        let (with, without) = (self.ask(0, with, asked).await, self.ask(1, without, asked).await);
        let [one, other] = &self.requests;
        if with != without || !are_alike(one, other) {
            let shown = |request: &Request| request.resource.filename.clone();
            let files = [shown(one), shown(other)].map(BString::from);
            panic!("{:?}: {files:?} {with:?} {without:?}", BStr::new(&asked.subject));
        }
        with
    }

    async fn ask(
        &mut self,
        which: usize,
        (settings, directory): &(Settings, Directory),
        asked: &Asked,
    ) -> Left {
        let request = &mut self.requests[which];
        request.renew();
        request.begin(&self.connection, &self.place);
        request.resource.uri.clone_from(&asked.subject);
        request.set_query(asked.query.map(<[u8]>::to_vec));
        request.head.headers_in.add(b"X-A", b"/a");
        let directory = asked.in_directory.then_some(directory);
        if directory.is_some() {
            request.resource.filename.extend_from_slice(FOLDER);
        }
        request.resource.filename.extend_from_slice(&asked.subject);
        let mut pass = Pass::new(request, settings, directory);
        let found = pass.seek();
        let outcome = pass.run(found).await;
        let last = pass.last.map(|rule| rule.span);
        Left { outcome, own_file: pass.own_file.take().map(BString::from), last }
    }
}

/// A path to ask about.
struct Asked {
    subject: Vec<u8>,
    query: Option<&'static [u8]>,
    in_directory: bool,
}

/// What became of the paths.
#[derive(Debug, Default)]
struct Counts {
    /// Those that were asked about.
    subjects: usize,
    /// Those with a rule that was passed over.
    passed_over: usize,
    /// Those that a whole pass was made with, and what it came to.
    passes: usize,
    changed: usize,
    ended: usize,
}

impl Counts {
    fn add(&mut self, left: &Left) {
        self.passes += 1;
        match left.outcome {
            Ok(Outcome::Unchanged) => {}
            Ok(Outcome::Changed { .. }) => self.changed += 1,
            Ok(Outcome::Status(_)) | Err(_) => self.ended += 1,
        }
    }
}

/// Whether a rule is passed over. None of those would have matched.
fn has_passed_over(rules: &RuleSet, subject: &[u8]) -> bool {
    let candidates = rules.candidates(subject);
    let (mut found, mut next) = (false, candidates.from(0));
    for (at, rule) in rules.iter().enumerate() {
        if at < next {
            let matched = rule.regex.glance(subject, None);
            assert_ne!(matched, Ok(true), "{:?} {:?}", rule.regex, BStr::new(subject));
            found = true;
        } else {
            next = candidates.from(at + 1);
        }
    }
    found
}

async fn ask_all(
    numbers: &mut Numbers,
    asker: &mut Asker,
    server: &Server,
    texts: &[Vec<Vec<u8>>],
) -> Counts {
    let slot = server.registry.slot_of::<Rewrite>().unwrap();
    let mut counts = Counts::default();
    let mut asked = Asked { subject: Vec::new(), query: None, in_directory: false };
    for (host, texts) in server.hosts.iter().skip(1).zip(texts) {
        let list = List::new(host.server.get(slot).unwrap());
        for count in 0..OF_LIST {
            numbers.subject(texts, &mut asked.subject);
            let rules = &list.asked[0].0.common.rules;
            counts.subjects += 1;
            counts.passed_over += usize::from(has_passed_over(rules, &asked.subject));
            if count % OF_PASS == 0 {
                asked.query = numbers.once_in(4).then_some(b"q=\xff&a");
                asked.in_directory = numbers.once_in(3);
                counts.add(&asker.compare(&list, &asked).await);
            }
        }
    }
    counts
}

fn run(seed: u64) -> Counts {
    let mut numbers = Numbers(seed);
    let (server, texts) = server(&mut numbers, SUBJECTS / OF_LIST / LOOPS);
    let (board, slot) = mpm::Scoreboard::of_one_loop().unwrap();
    rt::Loop::new("test")
        .start(async move |handle| {
            let engine = Engine::new(server.clone(), handle, slot, board);
            let mut asker = Asker::new(&engine, &server);
            ask_all(&mut numbers, &mut asker, &server, &texts).await
        })
        .unwrap()
}

/// A million paths, and a quarter of a million passes each way.
#[test]
fn a_pass_ends_as_if_each_rule_had_been_asked() {
    let loops: Vec<_> =
        (1..=LOOPS as u64).map(|seed| std::thread::spawn(move || run(seed))).collect();
    for one in loops {
        let counts = one.join().unwrap();
        assert!(counts.passed_over > counts.subjects / 4, "{counts:?}");
        assert!(counts.changed > counts.passes / 5, "{counts:?}");
        assert!(counts.ended > counts.passes / 10, "{counts:?}");
    }
}
