//! The variables of pages, which are those of the request.
//!
//! Source: `add_include_vars`, `get_include_var`

use std::cell::RefCell;
use std::rc::Rc;

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;
use wire::Table;

use super::captured::Missing;
use super::page::Page;
use super::{Include, clock, coding};
use crate::util_script::shell_escaped;
use crate::util_script::variables::{add_cgi, add_common};

/// The variables that get their values when they are read.
const LAZY: [&[u8]; 4] = [b"DATE_LOCAL", b"DATE_GMT", b"LAST_MODIFIED", b"USER_NAME"];

/// What is known of the variables besides their values.
#[derive(Debug, Default)]
pub struct Known {
    /// Which of [`LAZY`] have no value yet.
    lazy: [bool; LAZY.len()],
    /// The names of those that a page has set.
    set: Vec<Vec<u8>>,
}

impl Known {
    fn index(name: &[u8]) -> Option<usize> {
        LAZY.iter().position(|known| known.eq_ignore_ascii_case(name))
    }

    /// Takes the mark of a lazy variable, as it gets a value; whether it had one.
    fn take(&mut self, name: &[u8]) -> bool {
        let mark = Known::index(name).and_then(|index| self.lazy.get_mut(index));
        mark.is_some_and(std::mem::take)
    }

    /// Whether a page has set it.
    pub fn is_set(&self, name: &[u8]) -> bool {
        self.set.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// The variables of a page that includes another, which share them.
pub struct Shared {
    /// The variables.
    pub env: Table,
    /// What is known of them.
    pub known: Known,
    /// The modification time of the outermost page's file.
    pub mtime_us: u64,
}

/// Kept in a subrequest: the variables are taken by the page in it, and returned.
#[derive(Clone)]
pub struct Handover {
    /// The variables.
    pub shared: Rc<RefCell<Option<Shared>>>,
    /// Whether the page around may wait for the variables.
    pub may_pause: bool,
}

/// Sets the variables of a page. Those of a page within another are the other's. What they depend
/// on is noted when an element reads them.
pub async fn prepare(request: &mut Request) -> Known {
    request.depends.pure &= !request.engine.server.registry.names_variables.get();
    request.reads_unnoted(set_all).await
}

async fn set_all(request: &mut Request) -> Known {
    let handed = request.kept::<Handover>().cloned();
    let shared = handed.and_then(|handover| handover.shared.borrow_mut().take());
    let known = match shared {
        Some(shared) => {
            request.env = shared.env;
            request.resource.file.mtime_us = shared.mtime_us;
            shared.known
        }
        None => {
            add_common::<Include>(request).await;
            add_cgi(request).await;
            add(request);
            Known { lazy: [true; LAZY.len()], set: Vec::new() }
        }
    };
    add_query(request);
    known
}

/// The request's query, if it has one: an included page has left its own.
pub fn add_query(request: &mut Request) {
    let Some(query) = request.query().map(<[u8]>::to_vec) else { return };
    request.env.set(b"QUERY_STRING", &query);
    let unescaped = shell_escaped(&coding::unescaped(query));
    request.env.set(b"QUERY_STRING_UNESCAPED", &unescaped);
}

/// Returns the variables to the page around. Without one, a pure response keeps those of `before`
/// and those that the page has set: the others differ with the request, and nothing reads them.
pub fn give_back(request: &mut Request, known: Known, before: Table) {
    let Some(Handover { shared, .. }) = request.kept::<Handover>().cloned() else {
        if request.depends.pure {
            let all = std::mem::replace(&mut request.env, before);
            for name in &known.set {
                if let Some(value) = all.get(name) {
                    request.env.set(name, value);
                }
            }
        }
        return;
    };
    let env = std::mem::take(&mut request.env);
    let mtime_us = request.resource.file.mtime_us;
    *shared.borrow_mut() = Some(Shared { env, known, mtime_us });
}

fn add(request: &mut Request) {
    let query = request.query().unwrap_or_default().to_vec();
    let Request { env, resource, .. } = request;
    for name in [b"DATE_LOCAL".as_slice(), b"DATE_GMT", b"LAST_MODIFIED"] {
        env.set(name, b"");
    }
    env.set(b"DOCUMENT_URI", &resource.uri);
    env.set(b"DOCUMENT_ARGS", &query);
    if !resource.path_info.is_empty() {
        env.set(b"DOCUMENT_PATH_INFO", &resource.path_info);
    }
    env.set(b"USER_NAME", b"");
    let name = match resource.filename.contains(&b'/') {
        true => resource.filename.rsplit(|byte| *byte == b'/').next().unwrap_or_default(),
        false => &resource.uri,
    };
    env.set(b"DOCUMENT_NAME", name);
}

impl Page<'_> {
    /// The value of a variable, or of `0`–`9`.
    pub fn variable(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        if let [digit @ b'0'..=b'9'] = name {
            return self.group(usize::from(digit - b'0'));
        }
        self.depends_on_variable(name);
        if self.known.take(name) {
            let value = self.lazy_value(name);
            self.request.env.set(name, &value);
        }
        self.request.env.get(name).map(<[u8]>::to_vec)
    }

    /// Sets a variable.
    pub fn set_variable(&mut self, name: &[u8], value: &[u8]) {
        self.known.take(name);
        if !self.known.is_set(name) {
            self.known.set.push(name.to_vec());
        }
        self.request.env.set(name, value);
    }

    /// Gives all variables their values.
    pub fn set_lazy(&mut self) {
        for name in LAZY {
            if self.known.take(name) {
                let value = self.lazy_value(name);
                self.request.env.set(name, &value);
            }
        }
    }

    /// Sets the variables that depend on `timefmt`.
    pub fn set_times(&mut self) {
        for name in [b"DATE_LOCAL".as_slice(), b"DATE_GMT", b"LAST_MODIFIED"] {
            let value = self.lazy_value(name);
            self.known.take(name);
            self.known.set.retain(|set| !set.eq_ignore_ascii_case(name));
            self.request.env.set(name, &value);
        }
    }

    /// Makes `$0` a variable for a condition, whose functions know variables only. Returns the
    /// variable that was there.
    pub fn lend_group(&mut self) -> Option<Vec<u8>> {
        let before = self.request.env.get(b"0").map(<[u8]>::to_vec);
        match self.captured.get(0) {
            Ok(text) => self.request.env.set(b"0", text),
            Err(_) => {
                self.request.env.unset(b"0");
            }
        }
        before
    }

    /// Undoes [`Page::lend_group`].
    pub fn take_group(&mut self, before: Option<Vec<u8>>) {
        match before {
            Some(before) => self.request.env.set(b"0", &before),
            None => {
                self.request.env.unset(b"0");
            }
        }
    }

    fn lazy_value(&self, name: &[u8]) -> Vec<u8> {
        let (format, file) = (&self.time_format, &self.request.resource.file);
        match Known::index(name) {
            Some(0) => clock::format(self.request.time_us, format, false),
            Some(1) => clock::format(self.request.time_us, format, true),
            Some(2) => clock::format(file.mtime_us, format, false),
            _ => {
                let user = nix::unistd::User::from_uid(file.uid.into()).ok().flatten();
                user.map_or_else(|| b"<unknown>".to_vec(), |user| user.name.into_bytes())
            }
        }
    }

    fn group(&self, index: usize) -> Option<Vec<u8>> {
        let missing = match self.captured.get(index) {
            Ok(text) => return Some(text.to_vec()),
            Err(missing) => missing,
        };
        let file = self.file();
        match missing {
            Missing::NoMatch => {
                let text = format_args!("regex capture ${index} refers to no regex in {file}");
                self.log(Level::Warn, 1329, text);
            }
            Missing::OutOfRange => {
                let pattern = Verbatim::new(self.captured.pattern.as_deref().unwrap_or(b"(null)"));
                let why = format_args!("is out of range (last regex was: '{pattern}') in {file}");
                self.log(Level::Warn, 1330, format_args!("regex capture ${index} {why}"));
            }
            Missing::Unused => {}
        }
        None
    }
}
