//! Generates sites of a proxy: what maps to the servers behind it, in all places and forms, and
//! what changes requests and responses on their way.
//!
//! The servers answer what they received, or what a script says ([`answers`]). None of them closes
//! a kept connection before it answers: there, Tamarack asks again, as docs/refused.md says.

use crate::changes::CHANGES;
use crate::random::Random;
use crate::site::{Case, Content, Node, Site};
use crate::tree::made;

/// The modules of these sites.
pub const MODULES: [&str; 21] = [
    "alias",
    "authz_core",
    "authz_host",
    "deflate",
    "dir",
    "env",
    "filter",
    "headers",
    "lbmethod_bybusyness",
    "lbmethod_byrequests",
    "lbmethod_bytraffic",
    "mime",
    "proxy",
    "proxy_ajp",
    "proxy_balancer",
    "proxy_fcgi",
    "proxy_http",
    "proxy_scgi",
    "rewrite",
    "setenvif",
    "slotmem_shm",
];

/// The servers behind all sites.
pub const BACKENDS: [&str; 7] =
    ["one", "two", "sock unix", "gone refuses", "php fcgi", "scg scgi", "tom ajp"];

/// Sites that are served at once.
const SITES: u64 = 5;

/// Paths that are mapped.
const PATHS: [&str; 14] = [
    "/", "/p", "/p", "/p/", "/p/", "/p/deep/", "/q", "/q/", "/app/", "/d/", "/e f/", "/p/x",
    "/base/", "/P",
];

/// What follows a server's address.
const BASES: [&str; 14] = [
    "",
    "/",
    "/",
    "/",
    "/base/",
    "/base/",
    "/base",
    "/b%20se/",
    "/base/?q=1",
    "/base;v=1/",
    "//x/",
    "/base/%2f/",
    "/p/",
    "/base/../x/",
];

/// Words behind the URL of a ProxyPass.
const OPTIONS: [&str; 26] = [
    "nocanon",
    "nocanon",
    "noquery",
    "mapping=encoded",
    "mapping=encoded",
    "mapping=servlet",
    "interpolate",
    "retry=0",
    "timeout=5",
    "disablereuse=on",
    "enablereuse=on",
    "enablereuse=off",
    "keepalive=on",
    "max=2",
    "smax=1 ttl=5",
    "acquire=500",
    "connectiontimeout=2",
    "flushpackets=on",
    "flushpackets=auto flushwait=5",
    "iobuffersize=4096",
    "responsefieldsize=200",
    "upgrade=websocket",
    "upgrade=ANY",
    "upgrade=NONE",
    "status=+I",
    "route=r",
];

/// All cases of one start of the servers. A seed and a number determine them.
pub fn batch(seed: u64, number: u64) -> Vec<Case> {
    (0..SITES).map(|site| case(Random::part(seed, (number << 8) + site + (1 << 52)))).collect()
}

fn case(mut random: Random) -> Case {
    let random = &mut random;
    let mut maker = Maker { random, prefixes: Vec::new(), is_forward: false };
    let files = vec![
        made("htdocs/a.txt".to_owned(), Content::Text("a\n".to_owned())),
        made("htdocs/d/a.txt".to_owned(), Content::Text("d\n".to_owned())),
        made("htdocs/p/x/file.app".to_owned(), Content::Text("file\n".to_owned())),
    ];
    let mut config = maker.balancer();
    for _ in 0..1 + maker.random.below(4) {
        config.extend(maker.mapping());
    }
    config.extend(maker.changes());
    if maker.random.percent(6) {
        config.extend(maker.forward());
    }
    let requests = maker.requests();
    Case { site: Site { config, files, ..Site::default() }, requests }
}

/// A site in progress.
pub struct Maker<'a> {
    /// The source of randomness.
    pub random: &'a mut Random,
    /// Where requests lead to servers.
    pub prefixes: Vec<String>,
    /// It is a forward proxy, too.
    pub is_forward: bool,
}

impl Maker<'_> {
    /// One of the words.
    pub fn one(&mut self, words: &[&'static str]) -> &'static str {
        self.random.pick(words)
    }

    /// The address of a server.
    fn server(&mut self) -> &'static str {
        self.one(&[
            "http://@one@",
            "http://@one@",
            "http://@one@",
            "http://@one@",
            "http://@one@",
            "http://@one@",
            "http://@two@",
            "http://@two@",
            "unix:@sock@|http://inner.test",
            "unix:@sock@|http://inner.test",
            "http://@gone@",
            "fcgi://@php@",
            "scgi://@scg@",
            "ajp://@tom@",
            "balancer://b",
            "balancer://b",
            "balancer://b",
        ])
    }

    /// A URL that fits the path: mostly, both end in a slash or none does.
    fn url(&mut self, path: &str) -> String {
        let server = self.server();
        let mut base = self.one(&BASES).to_owned();
        if !base.contains('?') && self.random.percent(75) {
            base = base.trim_end_matches('/').to_owned();
            if path.ends_with('/') {
                base.push('/');
            }
        }
        format!("{server}{base}")
    }

    fn options(&mut self, url: &str) -> String {
        let mut text = String::new();
        // Those of a balancer are others.
        while !url.starts_with("balancer:") && self.random.percent(25) {
            text.push(' ');
            text.push_str(self.one(&OPTIONS));
        }
        text
    }

    fn balancer(&mut self) -> Vec<Node> {
        let mut inner = Vec::new();
        for (server, route) in [("@one@", "a"), ("@two@", "b"), ("@one@/base", "c")] {
            let mut words = format!("http://{server} route={route}");
            for word in [
                "loadfactor=2",
                "loadfactor=1.5",
                "status=+H",
                "status=+R",
                "status=+D",
                "status=+N",
                "lbset=1",
                "redirect=b",
                "retry=0",
            ] {
                if self.random.percent(7) {
                    words = format!("{words} {word}");
                }
            }
            if self.random.percent(70) {
                inner.push(Node::directive("BalancerMember", words));
            }
        }
        if self.random.percent(15) {
            let retry = self.one(&["retry=0", "retry=600", "retry=600 status=+I"]);
            inner.push(Node::directive("BalancerMember", format!("http://@gone@ {retry}")));
        }
        for word in [
            "lbmethod=bytraffic",
            "lbmethod=bybusyness",
            "lbmethod=byrequests",
            "stickysession=SID|sid",
            "stickysession=SID",
            "nofailover=On",
            "maxattempts=1",
            "failonstatus=503,404",
            "scolonpathdelim=On",
            "forcerecovery=Off",
            "stickysessionsep=-",
            "timeout=2",
        ] {
            if self.random.percent(9) {
                inner.push(Node::directive("ProxySet", word));
            }
        }
        vec![Node::section("Proxy", "\"balancer://b\"", inner)]
    }

    /// What leads some requests to a server, with the mapping of its responses.
    fn mapping(&mut self) -> Vec<Node> {
        let path = self.one(&PATHS);
        let url = self.url(path);
        let quoted = |path: &str| format!("\"{path}\"");
        self.prefixes.push(path.to_owned());
        let mut nodes = match self.random.below(20) {
            0..=7 => {
                let words = format!("{} {url}{}", quoted(path), self.options(&url));
                vec![Node::directive("ProxyPass", words)]
            }
            8 | 9 => {
                let inner =
                    vec![Node::directive("ProxyPass", format!("{url}{}", self.options(&url)))];
                vec![Node::section("Location", quoted(path), inner)]
            }
            10 | 11 => {
                let (pattern, end) = self.pattern();
                let base = url.trim_end_matches('/');
                let words = format!("{pattern} {base}{end}{}", self.options(&url));
                vec![Node::directive("ProxyPassMatch", words)]
            }
            12 | 13 => self.rewriting("^/?(.*)$", path, &url),
            14 => {
                let nodes = self.rewriting("^(.*)$", path, &url);
                self.prefixes.push("/d/".to_owned());
                vec![Node::section("Directory", "\"@SITE@/htdocs/d\"", nodes)]
            }
            15 | 16 => {
                let handler = vec![Node::directive("SetHandler", format!("\"proxy:{url}\""))];
                self.prefixes.push("/p/x/file.app".to_owned());
                match self.random.below(2) {
                    0 => vec![Node::section("Location", quoted(path), handler)],
                    _ => vec![Node::section("FilesMatch", "\"\\.app$\"", handler)],
                }
            }
            17 => {
                let inner = vec![Node::directive("ProxyPassMatch", format!("{url}$1"))];
                vec![Node::section("LocationMatch", "\"^/m(/.*)$\"", inner)]
            }
            _ => {
                let excluded = self.one(&["/p/x", "/p/", "/a.txt", "/d", "/p/deep/x"]);
                self.prefixes.push(excluded.to_owned());
                let words = format!("{excluded} !");
                vec![
                    Node::directive("ProxyPass", words),
                    Node::directive("ProxyPass", format!("{} {url}", quoted(path))),
                ]
            }
        };
        if self.random.percent(60) {
            nodes.push(Node::directive("ProxyPassReverse", format!("{} {url}", quoted(path))));
        }
        nodes
    }

    fn pattern(&mut self) -> (&'static str, &'static str) {
        self.prefixes.push("/m/".to_owned());
        self.random.pick(&[
            ("^/m(/.*)$", "$1"),
            ("\"^/m/([^/]+)/(.*)$\"", "/$2?v=$1"),
            ("^/m/", "/"),
            ("(?i)^/M(.*)\\.txt$", "$1"),
            ("^(/p/.*)$", "$1"),
            ("^/m(/(.*))?$", "/$2"),
        ])
    }

    fn rewriting(&mut self, pattern: &str, path: &str, url: &str) -> Vec<Node> {
        let flags =
            self.one(&["P", "P", "P,QSA", "P,NE", "P,NC", "P,QSD", "P,B", "P,E=V:$1", "proxy,L"]);
        let end =
            self.one(&["$1", "$1", "x", "$1?v=1", "x?", "%{REQUEST_URI}", "$1?%{QUERY_STRING}"]);
        let pattern = match self.random.below(3) {
            0 => pattern.to_owned(),
            _ => format!("^/?{}(.*)$", path.trim_matches('/').replace(' ', "\\ ")),
        };
        let mut nodes = vec![Node::directive("RewriteEngine", "On")];
        if self.random.percent(20) {
            let of = self.one(&["%{QUERY_STRING} !x", "%{REQUEST_METHOD} GET", "%{HTTP:X-A} ^$"]);
            nodes.push(Node::directive("RewriteCond", of));
        }
        let slash = if url.ends_with('/') { "" } else { "/" };
        nodes
            .push(Node::directive("RewriteRule", format!("{pattern} {url}{slash}{end} [{flags}]")));
        nodes
    }

    /// What changes requests and responses, in the host or a part of it.
    fn changes(&mut self) -> Vec<Node> {
        let mut nodes = Vec::new();
        for (name, words) in CHANGES {
            if self.random.percent(7) {
                let node = Node::directive(name, *words);
                let is_of_host = matches!(
                    *name,
                    "CustomLog"
                        | "Alias"
                        | "ProxyBadHeader"
                        | "ProxyPassInherit"
                        | "ProxyPassReverse"
                        | "MergeSlashes"
                        | "AllowEncodedSlashes"
                        | "ProxyVia"
                        | "ProxyMaxForwards"
                        | "ProxyTimeout"
                        | "ProxyIOBufferSize"
                        | "ProxyReceiveBufferSize"
                        | "RequestReadTimeout"
                );
                nodes.push(match self.random.below(5) {
                    _ if *name == "Require" => Node::section("Location", "\"/p\"", vec![node]),
                    0 if !is_of_host => Node::section("Location", "\"/p\"", vec![node]),
                    1 if !is_of_host => {
                        Node::section("Proxy", self.one(&["*", "http://@one@/base/*"]), vec![node])
                    }
                    _ => node,
                });
            }
        }
        nodes
    }

    fn forward(&mut self) -> Vec<Node> {
        self.is_forward = true;
        let mut nodes = vec![Node::directive("ProxyRequests", "On")];
        for (name, words) in [
            ("ProxyBlock", "inner.test"),
            ("ProxyDomain", ".example.test"),
            ("ProxyRemote", "http://@one@/base http://@two@"),
            ("NoProxy", "127.0.0.1"),
        ] {
            if self.random.percent(25) {
                nodes.push(Node::directive(name, words));
            }
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{CHANGES, batch};

    #[test]
    fn a_seed_and_a_number_fix_a_batch() {
        assert_eq!(batch(3, 4), batch(3, 4));
        assert_ne!(batch(3, 4), batch(3, 5));
    }

    #[test]
    fn every_change_and_way_to_map_comes_up() {
        let mut seen = BTreeSet::new();
        for number in 0..200 {
            for case in batch(1, number) {
                case.site.walk(&mut |node| {
                    seen.insert((node.name.clone(), node.words.clone()));
                });
            }
        }
        for (name, words) in CHANGES {
            assert!(seen.contains(&((*name).to_owned(), (*words).to_owned())), "{name} {words}");
        }
        for name in ["ProxyPass", "ProxyPassMatch", "SetHandler", "RewriteRule", "ProxyRequests"] {
            assert!(seen.iter().any(|(seen, _)| seen == name), "{name}");
        }
    }
}
