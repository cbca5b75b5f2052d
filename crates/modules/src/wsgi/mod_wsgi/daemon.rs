//! `WSGIDaemonProcess`: the processes of a group, and what they may do.

use std::ffi::CString;
use std::path::PathBuf;
use std::time::Duration;

use bstr::ByteSlice;
use conf::{Arg, Span};
use mpm::Identity;
use nix::unistd::{Gid, getgrouplist};
use server::directive::Fault;

use super::words;
use crate::arch::mod_unixd::{User, group_of, user_of};
use crate::atoi::atol;

/// The most processes of a group (each has a place in the shared memory) and threads of a process.
const PROCESSES_MAX: i64 = 1000;
const THREADS_MAX: i64 = 10_000;

/// The group `nogroup`.
const NO_GROUP: u32 = 65534;

/// A process group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DaemonGroup {
    /// Its name.
    pub name: Vec<u8>,
    /// Its position.
    pub span: Span,
    /// `processes`; if it is given, even as 1, the application may run in several processes.
    pub processes: Option<usize>,
    /// `threads`; 0 for a service script.
    pub threads: Option<usize>,
    /// `user`
    pub user: Option<User>,
    /// `group`
    pub group: Option<u32>,
    /// `supplementary-groups`
    pub groups: Vec<u32>,
    /// `umask`
    pub umask: Option<u32>,
    /// `home`
    pub home: Option<Vec<u8>>,
    /// `chroot`
    pub chroot: Option<Vec<u8>>,
    /// `cpu-priority`
    pub priority: Option<i32>,
    /// `script-user`, `script-group`
    pub script_owner: Option<ScriptOwner>,
    /// Texts by their option's name: those that the worker process uses.
    pub texts: Vec<(&'static str, Vec<u8>)>,
    /// Numbers by their option's name, zero if they are off.
    pub numbers: Vec<(&'static str, i64)>,
}

/// Who must own scripts and their folders; no other may write to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptOwner {
    /// This user.
    User(u32),
    /// This group.
    Group(u32),
}

/// Options with a text.
const TEXTS: [&str; 7] =
    ["display-name", "lang", "locale", "python-home", "python-path", "python-eggs", "socket-user"];

/// Options with a number: the least value, whether it may be 0 below that, and what it is in the
/// message.
#[rustfmt::skip]
const NUMBERS: [(&str, i64, &str); 22] = [
    ("maximum-requests", 0, "request count"),
    ("startup-timeout", 0, "startup timeout"),
    ("shutdown-timeout", 0, "shutdown timeout"),
    ("deadlock-timeout", 0, "deadlock timeout"),
    ("inactivity-timeout", 0, "inactivity timeout"),
    ("request-timeout", 0, "request timeout"),
    ("interrupt-timeout", 0, "interrupt timeout"),
    ("graceful-timeout", 0, "graceful timeout"),
    ("eviction-timeout", 0, "eviction timeout"),
    ("restart-interval", 0, "restart interval"),
    ("connect-timeout", 0, "connect timeout"),
    ("socket-timeout", 0, "socket timeout"),
    ("queue-timeout", 0, "queue timeout"),
    ("listen-backlog", 0, "listen backlog"),
    ("response-socket-timeout", 0, "response socket timeout"),
    ("response-flush-delay", 0, "response flush delay"),
    ("cpu-time-limit", 0, "CPU time limit"),
    ("memory-limit", 0, "memory limit"),
    ("virtual-memory-limit", 0, "virtual memory limit"),
    ("stack-size", 0, "stack size"),
    ("send-buffer-size", 512, "send buffer size"),
    ("receive-buffer-size", 512, "receive buffer size"),
];

/// Options that have no effect here, the values with which they ask for nothing, and the reason.
#[rustfmt::skip]
const IDLE: [(&str, &[i64], &str); 5] = [
    ("send-buffer-size", &[0], "processes share memory with the server"),
    ("receive-buffer-size", &[0], "processes share memory with the server"),
    ("response-buffer-size", &[0], "a response is read as the client takes it"),
    ("response-flush-delay", &[0, 5], "each piece of a response is sent at once"),
    ("server-metrics", &[0], "mod_status has the metrics of all groups"),
];

impl DaemonGroup {
    /// The options that were given and have no effect, with the reasons.
    pub fn idle_options(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let is_asked = |(name, idle): (&str, &[i64])| {
            let given = self.numbers.iter().rev().find(|(known, _)| *known == name);
            given.is_some_and(|(_, value)| !idle.contains(value))
        };
        let socket = self.text("socket-user").is_some();
        let socket =
            socket.then_some(("socket-user", "no socket has a name that a user could open"));
        let numbers = IDLE.iter().filter(move |(name, idle, _)| is_asked((name, idle)));
        numbers.map(|(name, _, reason)| (*name, *reason)).chain(socket)
    }

    /// Parses the text of the directive.
    pub fn parse(arg: &Arg, span: Span) -> Result<DaemonGroup, Fault> {
        let mut text: &[u8] = &arg.text;
        let name = words::word(&mut text);
        if name.is_empty() {
            return Err("Name of WSGI daemon process not supplied.".into());
        }
        let mut group = DaemonGroup { name, span, ..DaemonGroup::default() };
        while !text.is_empty() {
            let Some((name, value)) = words::option(&mut text) else {
                return Err("Invalid option to WSGI daemon process definition.".into());
            };
            let name = name.to_str_lossy();
            if !(group.set_number(&name, &value)?
                || group.set_text(&name, &value)
                || group.set_owner(&name, &value, arg)?
                || group.set_place(&name, &value)?)
            {
                let text = "Invalid option to WSGI daemon process definition.";
                return Err(Fault::new(text).help(format!("'{name}' is no option")));
            }
        }
        Ok(group)
    }

    /// A number of an option; `None` if it is not given or 0.
    pub fn number(&self, name: &str) -> Option<u64> {
        let found = self.numbers.iter().rev().find(|(known, _)| *known == name)?;
        u64::try_from(found.1).ok().filter(|number| *number > 0)
    }

    /// The same in seconds.
    pub fn seconds(&self, name: &str) -> Option<Duration> {
        self.number(name).map(Duration::from_secs)
    }

    /// A text of an option.
    pub fn text(&self, name: &str) -> Option<&[u8]> {
        let found = self.texts.iter().rev().find(|(known, _)| *known == name)?;
        Some(&found.1)
    }

    /// The identity of its processes; `server` is that of the children.
    pub fn identity(&self, server: Option<&Identity>) -> Option<Identity> {
        if self.user.is_none() && self.group.is_none() && self.groups.is_empty() {
            return server.cloned();
        }
        if !mpm::privileges::is_root() {
            return None;
        }
        let own = self.user.as_ref().map(|user| user.id);
        let user = own.or_else(|| server.map(|server| server.user)).unwrap_or(0);
        let primary = || {
            let user = nix::unistd::User::from_uid(user.into()).ok().flatten();
            user.map(|user| user.gid.as_raw())
        };
        let of_server = || server.map(|server| server.group).filter(|_| self.user.is_none());
        // A number need not be a user that the system knows: its processes are never root's.
        let any = || server.map_or(NO_GROUP, |server| server.group);
        let group = self.group.or_else(of_server).or_else(primary).unwrap_or_else(any);
        let name = self.user.as_ref().and_then(|user| user.name.as_deref());
        let name = name.and_then(|name| CString::new(name).ok());
        let known = name.and_then(|name| getgrouplist(&name, Gid::from_raw(group)).ok());
        let known = known.map(|groups| groups.iter().map(|group| group.as_raw()).collect());
        let groups = match self.groups.is_empty() {
            false => self.groups.clone(),
            true => known.unwrap_or_else(|| vec![group]),
        };
        Some(Identity { user, group, groups })
    }

    fn set_number(&mut self, name: &str, value: &[u8]) -> Result<bool, Fault> {
        let number = atol(value);
        let invalid = |what: &str| Fault::new(format!("Invalid {what} for WSGI daemon process."));
        let count = |least: i64, most: i64, what: &str| {
            let count = Some(number).filter(|number| (least..=most).contains(number));
            count.and_then(|count| usize::try_from(count).ok()).ok_or_else(|| invalid(what))
        };
        match name {
            "processes" => self.processes = Some(count(1, PROCESSES_MAX, "process count")?),
            "threads" => self.threads = Some(count(0, THREADS_MAX, "thread count")?),
            "cpu-priority" => self.priority = Some(number as i32),
            "umask" => {
                let mask = value.to_str().ok().and_then(|text| u32::from_str_radix(text, 8).ok());
                self.umask = Some(mask.ok_or_else(|| invalid("umask"))?);
            }
            "header-buffer-size" => self.set_size("header-buffer-size", "Header", number, 8192)?,
            "response-buffer-size" => {
                self.set_size("response-buffer-size", "Response", number, 65536)?;
            }
            "server-metrics" => {
                let flag = [(&b"on"[..], 1), (b"off", 0)];
                let flag = flag.iter().find(|(word, _)| value.eq_ignore_ascii_case(word));
                let on = flag.ok_or_else(|| invalid("server metrics flag"))?.1;
                self.numbers.push(("server-metrics", on));
            }
            "switch-interval" => {
                let seconds = value.to_str().ok().and_then(|text| text.parse::<f64>().ok());
                seconds
                    .filter(|seconds| *seconds > 0.0)
                    .ok_or_else(|| invalid("switch interval"))?;
                self.texts.push(("switch-interval", value.to_vec()));
            }
            name => {
                let known = NUMBERS.iter().find(|(known, ..)| *known == name);
                let Some((name, least, what)) = known else { return Ok(false) };
                if number < 0 {
                    return Err(invalid(what));
                }
                if number < *least && number != 0 {
                    let (first, rest) = what.split_at(1);
                    let what = first.to_uppercase() + rest;
                    return Err(Fault::new(format!(
                        "{what} must be >= {least} bytes, or 0 for system default."
                    )));
                }
                self.numbers.push((name, number));
            }
        }
        Ok(true)
    }

    fn set_size(
        &mut self,
        name: &'static str,
        what: &str,
        number: i64,
        least: i64,
    ) -> Result<(), Fault> {
        if number < least && number != 0 {
            let text = format!("{what} buffer size must be >= {least} bytes, or 0 for default.");
            return Err(text.into());
        }
        self.numbers.push((name, number));
        Ok(())
    }

    fn set_text(&mut self, name: &str, value: &[u8]) -> bool {
        let Some(name) = TEXTS.iter().find(|known| **known == name) else { return false };
        self.texts.push((name, value.to_vec()));
        true
    }

    fn set_owner(&mut self, name: &str, value: &[u8], arg: &Arg) -> Result<bool, Fault> {
        let word = Arg { text: value.into(), span: arg.span };
        let user = |what: &str| {
            let text = format!("Invalid {what} for WSGI daemon process.");
            if value.is_empty() { Err(Fault::new(text)) } else { user_of(&word) }
        };
        let group = |what: &str, word: &Arg| {
            let text = format!("Invalid {what} for WSGI daemon process.");
            if word.text.is_empty() { Err(Fault::new(text)) } else { group_of(word) }
        };
        match name {
            "user" => {
                let user = user("user")?;
                if user.id == 0 {
                    return Err("WSGI process blocked from running as root.".into());
                }
                self.user = Some(user);
            }
            "group" => self.group = Some(group("group", &word)?),
            "supplementary-groups" => {
                let names = value.split(|byte| *byte == b',').filter(|name| !name.is_empty());
                for name in names {
                    let word = Arg { text: name.into(), span: arg.span };
                    self.groups.push(group("supplementary group", &word)?);
                }
            }
            "script-user" | "script-group" if self.script_owner.is_some() => {
                return Err("Only one of script-user and script-group allowed.".into());
            }
            "script-user" => self.script_owner = Some(ScriptOwner::User(user("script user")?.id)),
            "script-group" => {
                self.script_owner = Some(ScriptOwner::Group(group("script group", &word)?));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_place(&mut self, name: &str, value: &[u8]) -> Result<bool, Fault> {
        let is_path = value.first() == Some(&b'/');
        match name {
            "home" if !is_path => Err("Invalid home directory for WSGI daemon process.".into()),
            "home" => {
                self.home = Some(value.to_vec());
                Ok(true)
            }
            "chroot" if !mpm::privileges::is_root() => {
                Err("Cannot chroot WSGI daemon process when not root.".into())
            }
            "chroot" if !is_path => Err("Invalid chroot directory for WSGI daemon process.".into()),
            "chroot" => {
                self.chroot = Some(value.to_vec());
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// Finds the interpreter of a prefix; `None` if there is none.
pub(super) fn interpreter_of(prefix: &[u8]) -> Option<PathBuf> {
    let prefix = server::path::as_path(prefix);
    ["bin/python3", "bin/python"].iter().map(|name| prefix.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DaemonGroup, String> {
        let arg = Arg { text: text.as_bytes().into(), span: Span::default() };
        DaemonGroup::parse(&arg, Span::default()).map_err(|fault| fault.message)
    }

    #[test]
    fn options_are_parsed() {
        let group = parse(
            "site processes=2 threads=0 display-name=%{GROUP} home=/tmp umask=022 \
             request-timeout=7 queue-timeout=0 header-buffer-size=65536 python-path='/a b:/c'",
        )
        .unwrap();
        assert_eq!((group.processes, group.threads, group.umask), (Some(2), Some(0), Some(0o22)));
        assert_eq!(group.seconds("request-timeout"), Some(Duration::from_secs(7)));
        assert_eq!(group.seconds("queue-timeout"), None);
        assert_eq!(group.number("header-buffer-size"), Some(65536));
        assert_eq!(group.text("python-path"), Some(&b"/a b:/c"[..]));
    }

    #[test]
    fn options_without_effect_are_known() {
        let idle = |text: &str| -> Vec<&'static str> {
            parse(text).unwrap().idle_options().map(|(name, _)| name).collect()
        };
        let usual = "a send-buffer-size=0 response-flush-delay=5 server-metrics=Off";
        assert!(idle(usual).is_empty());
        let asked = "a response-flush-delay=7 socket-user=#1 server-metrics=On";
        assert_eq!(idle(asked), ["response-flush-delay", "server-metrics", "socket-user"]);
    }

    #[test]
    fn errors_are_mod_wsgis() {
        for (text, error) in [
            ("", "Name of WSGI daemon process not supplied."),
            ("a b", "Invalid option to WSGI daemon process definition."),
            ("a b=c", "Invalid option to WSGI daemon process definition."),
            ("a processes=0", "Invalid process count for WSGI daemon process."),
            ("a threads=-1", "Invalid thread count for WSGI daemon process."),
            ("a user=unknown-name", "AH00543: bad user name unknown-name"),
            ("a user=root", "WSGI process blocked from running as root."),
            ("a group=unknown-name", "AH00544: bad group name unknown-name"),
            ("a umask=9", "Invalid umask for WSGI daemon process."),
            ("a home=x", "Invalid home directory for WSGI daemon process."),
            ("a maximum-requests=-1", "Invalid request count for WSGI daemon process."),
            ("a listen-backlog=-1", "Invalid listen backlog for WSGI daemon process."),
            ("a cpu-time-limit=-1", "Invalid CPU time limit for WSGI daemon process."),
            (
                "a send-buffer-size=1",
                "Send buffer size must be >= 512 bytes, or 0 for system default.",
            ),
            (
                "a header-buffer-size=1",
                "Header buffer size must be >= 8192 bytes, or 0 for default.",
            ),
            (
                "a response-buffer-size=1",
                "Response buffer size must be >= 65536 bytes, or 0 for default.",
            ),
            (
                "a script-user=#1 script-group=#1",
                "Only one of script-user and script-group allowed.",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), error, "{text}");
        }
    }
}
