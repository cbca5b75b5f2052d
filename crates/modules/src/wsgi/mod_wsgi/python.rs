//! How Python runs: the directives of the whole server, and the sections that change them for
//! certain interpreters.

use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use conf::{Arg, Node};
use server::directive::{Cx, Fault, Set};

use super::daemon::{DaemonGroup, interpreter_of};
use super::{Wsgi, words};
use crate::atoi::atol;

/// The interpreter of the distribution.
const USUAL: &str = "/usr/bin/python3";

/// How Python runs. Unset fields of a section leave what is outside of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Python {
    /// `WSGIPythonHome`
    pub home: Option<Vec<u8>>,
    /// `WSGIPythonPath`
    pub path: Option<Vec<u8>>,
    /// `WSGIPythonEggs`
    pub eggs: Option<Vec<u8>>,
    /// `WSGIPythonOptimize`
    pub optimize: Option<u8>,
    /// `WSGIDontWriteBytecode`
    pub no_bytecode: Option<bool>,
    /// `WSGIPythonWarnings`
    pub warnings: Vec<Vec<u8>>,
    /// `WSGIPythonHashSeed`
    pub hash_seed: Option<Vec<u8>>,
    /// `WSGISwitchInterval`
    pub switch_interval: Option<Vec<u8>>,
    /// `WSGIRestrictEmbedded`
    pub no_embedded: Option<bool>,
    /// `WSGIRestrictStdin`
    pub no_stdin: Option<bool>,
    /// `WSGIRestrictStdout`
    pub no_stdout: Option<bool>,
    /// `WSGIRestrictSignal`
    pub no_signal: Option<bool>,
    /// `WSGIDestroyInterpreter`
    pub destroy: Option<bool>,
    /// `WSGIPerInterpreterGIL`
    pub own_lock: Option<bool>,
    /// `WSGIFreeThreading`
    pub free_threading: Option<bool>,
    /// `WSGISlowRequests`
    pub slow_requests: Option<Vec<u8>>,
    /// `WSGIServerMetrics`
    pub metrics: Option<bool>,
}

/// `<WSGIInterpreterOptions>`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InterpreterSection {
    process_group: Option<Vec<u8>>,
    application_group: Option<Vec<u8>>,
    python: Python,
}

impl Python {
    /// What is in force for an interpreter.
    pub fn of(&self, sections: &[InterpreterSection], group: &[u8], application: &[u8]) -> Python {
        let mut found = self.clone();
        let matches = |name: &Option<Vec<u8>>, of: &[u8]| match name {
            Some(name) => name == of,
            None => true,
        };
        let mut found_sections: Vec<&InterpreterSection> = sections
            .iter()
            .filter(|section| {
                matches(&section.process_group, group)
                    && matches(&section.application_group, application)
            })
            .collect();
        // The most specific one comes last, and wins.
        found_sections.sort_by_key(|section| {
            (section.process_group.is_some(), section.application_group.is_some())
        });
        for section in found_sections {
            found.take(&section.python);
        }
        found
    }

    fn take(&mut self, inner: &Python) {
        let path = [inner.path.as_deref(), self.path.as_deref()];
        let path: Vec<&[u8]> = path.into_iter().flatten().collect();
        self.path = (!path.is_empty()).then(|| path.join(&b':'));
        let interval = inner.switch_interval.clone();
        self.switch_interval = interval.or_else(|| self.switch_interval.take());
        self.no_stdin = inner.no_stdin.or(self.no_stdin);
        self.no_stdout = inner.no_stdout.or(self.no_stdout);
        self.no_signal = inner.no_signal.or(self.no_signal);
        self.own_lock = inner.own_lock.or(self.own_lock);
        self.free_threading = inner.free_threading.or(self.free_threading);
    }

    /// The interpreter of a group, or of embedded mode.
    pub fn executable(&self, group: Option<&DaemonGroup>) -> PathBuf {
        let home = group.and_then(|group| group.text("python-home")).or(self.home.as_deref());
        home.and_then(|home| interpreter_of(prefix(home))).unwrap_or_else(|| PathBuf::from(USUAL))
    }
}

/// The first of `prefix:exec-prefix`.
fn prefix(home: &[u8]) -> &[u8] {
    home.split(|byte| *byte == b':').next().unwrap_or_default()
}

/// Checks that a prefix has an interpreter.
pub(super) fn check_home(directive: &str, home: &[u8]) -> Result<(), Fault> {
    if interpreter_of(prefix(home)).is_some() {
        return Ok(());
    }
    let home = prefix(home).to_str_lossy();
    let help = match Path::new(&*home).is_dir() {
        true => format!("create a virtual environment there: python3 -m venv {home}"),
        false => "the folder does not exist, or can't be read".to_owned(),
    };
    Err(Fault::new(format!("{directive}: no Python in {home}: bin/python3 is missing")).help(help))
}

type Here<'a, 't> = Cx<'a, 't, Wsgi>;

fn python<'c>(cx: &'c mut Here<'_, '_>) -> &'c mut Python {
    &mut cx.server().python.0
}

pub(super) fn home(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    check_home("WSGIPythonHome", &arg.text).map_err(|fault| fault.at(arg))?;
    python(cx).home = Some(arg.text.to_vec());
    Ok(())
}

pub(super) fn text(
    cx: &mut Here<'_, '_>,
    arg: &Arg,
    field: fn(&mut Python) -> &mut Option<Vec<u8>>,
) -> Set {
    *field(python(cx)) = Some(arg.text.to_vec());
    Ok(())
}

pub(super) fn flag(
    cx: &mut Here<'_, '_>,
    arg: &Arg,
    field: fn(&mut Python) -> &mut Option<bool>,
) -> Set {
    let on = super::setters::on_or_off(cx.target.directive, arg)?;
    *field(python(cx)) = Some(on);
    Ok(())
}

pub(super) fn optimize(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    // As in mod_wsgi, any text is a number; beyond 2 there are no levels.
    let level = match () {
        () if arg.is("On") => 1,
        () => u8::try_from(atol(&arg.text).clamp(0, 2)).unwrap_or(0),
    };
    python(cx).optimize = Some(level);
    Ok(())
}

pub(super) fn warnings(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    python(cx).warnings.push(arg.text.to_vec());
    Ok(())
}

pub(super) fn hash_seed(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let is_number = arg.text.to_str().is_ok_and(|text| text.parse::<u32>().is_ok());
    if arg.text != b"random".as_slice() && !is_number {
        let text = "WSGIPythonHashSeed must be \"random\" or an integer in range [0; 4294967295]";
        return Err(Fault::new(text).at(arg));
    }
    python(cx).hash_seed = Some(arg.text.to_vec());
    Ok(())
}

fn positive(directive: &str, arg: &Arg) -> Result<Vec<u8>, Fault> {
    let seconds = arg.text.to_str().ok().and_then(|text| text.parse::<f64>().ok());
    match seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0) {
        Some(_) => Ok(arg.text.to_vec()),
        None => Err(Fault::new(format!("{directive} must be a positive number")).at(arg)),
    }
}

pub(super) fn switch_interval(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let seconds = positive("WSGISwitchInterval", arg)?;
    python(cx).switch_interval = Some(seconds);
    Ok(())
}

pub(super) fn slow_requests(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let seconds = positive("WSGISlowRequests", arg)?;
    python(cx).slow_requests = Some(seconds);
    Ok(())
}

/// `<WSGIInterpreterOptions>`: the directives inside change only what is in force there.
pub(super) fn section(cx: &mut Here<'_, '_>, arg: &Arg, nodes: &[Node]) -> Set {
    const ALLOWED: [&str; 7] = [
        "WSGIPerInterpreterGIL",
        "WSGIFreeThreading",
        "WSGISwitchInterval",
        "WSGIPythonPath",
        "WSGIRestrictStdin",
        "WSGIRestrictStdout",
        "WSGIRestrictSignal",
    ];
    let (mut process_group, mut application_group) = (None, None);
    let mut text: &[u8] = &arg.text;
    while !text.is_empty() {
        let invalid = "Invalid option to WSGI interpreter options.";
        let (name, value) = words::option(&mut text).ok_or(invalid)?;
        let value = if value == b"%{GLOBAL}" { Vec::new() } else { value };
        match name.as_slice() {
            b"process-group" => process_group = Some(value),
            b"application-group" => application_group = Some(value),
            _ => return Err(invalid.into()),
        }
    }
    for node in nodes {
        if !ALLOWED.iter().any(|name| node.is(name)) {
            let text = format!("{} not allowed within <WSGIInterpreterOptions>", node.name);
            return Err(text.into());
        }
    }
    let outer = std::mem::take(python(cx));
    cx.apply(nodes);
    let inner = std::mem::replace(python(cx), outer);
    let section = InterpreterSection { process_group, application_group, python: inner };
    cx.server().interpreters.0.push(section);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_section_wins_and_paths_add_up() {
        let section = |group: Option<&str>, path: &str, stdin| InterpreterSection {
            process_group: group.map(|name| name.as_bytes().to_vec()),
            application_group: None,
            python: Python { path: Some(path.into()), no_stdin: Some(stdin), ..Python::default() },
        };
        let outer = Python { path: Some(b"/main".to_vec()), ..Python::default() };
        let sections = [section(Some("one"), "/one", true), section(None, "/all", false)];
        let one = outer.of(&sections, b"one", b"");
        assert_eq!(
            (one.path.as_deref(), one.no_stdin),
            (Some(&b"/one:/all:/main"[..]), Some(true))
        );
        let other = outer.of(&sections, b"other", b"");
        assert_eq!(
            (other.path.as_deref(), other.no_stdin),
            (Some(&b"/all:/main"[..]), Some(false))
        );
    }

    #[test]
    fn a_prefix_needs_an_interpreter() {
        assert!(check_home("WSGIPythonHome", b"/usr").is_ok());
        let fault = check_home("WSGIPythonHome", b"/none").unwrap_err();
        assert!(fault.message.contains("/none") && fault.help.is_some());
    }
}
