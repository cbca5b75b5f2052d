//! mod_env: environment variables for programs and server-side includes.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_env.html>

use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, Takes};
use server::hooks::{Bound, Hooks, Phase, Rank, Step};
use server::merge::Merge;
use server::module::Module;
use server::request::Request;
use wire::Table;

/// `mod_env.c`
pub struct Env;

impl Module for Env {
    const NAME: &'static str = "env_module";
    const FILE: &'static str = "mod_env.c";
    type Server = ();
    type Dir = Variables;
    const DIRECTIVES: &'static [Row<Env>] = &[
        row(
            "SetEnv",
            Takes::Some { least: 1, most: 2, set: set_env },
            "env-variable [value]",
            "Sets a variable, by default to an empty value.",
        ),
        row(
            "PassEnv",
            Takes::Each(pass_env),
            "env-variable [env-variable] ...",
            "Passes variables of the server's own environment on.",
        ),
        row(
            "UnsetEnv",
            Takes::Each(unset_env),
            "env-variable [env-variable] ...",
            "Removes variables that SetEnv or PassEnv set in this or an outer section.",
        ),
    ];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.on(Phase::Fixups, Rank::MIDDLE, |env| !env.dir.set.is_empty(), fixup);
    }
}

/// Per-directory configuration.
#[derive(Clone, Default)]
pub struct Variables {
    /// `SetEnv`, `PassEnv`
    set: Table,
    /// `UnsetEnv`: variables of outer sections to remove.
    unset: Vec<Vec<u8>>,
}

impl Merge for Variables {
    /// Source: `merge_env_dir_configs`
    fn merge(outer: &Self, inner: &Self) -> Self {
        let mut set = outer.set.clone();
        for name in &inner.unset {
            set.unset(name);
        }
        for (name, value) in inner.set.iter() {
            set.set(name, value);
        }
        Variables { set, unset: Vec::new() }
    }
}

const fn row(
    name: &'static str,
    takes: Takes<Env>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Env> {
    Row::new(name, takes, syntax, doc).standing(Places::ALL, Override::FILE_INFO)
}

type Here<'a, 't> = Cx<'a, 't, Env>;

fn set_env(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let [name, value @ ..] = args else { return Ok(()) };
    if name.text.contains(&b'=') {
        let text = name.text.trim_start_with(|char| char == '=');
        let (named, value) = text.split_once_str("=").unwrap_or((text, b""));
        cx.warn(format!(
            "AH10032: Spurious usage of '=' in an environment variable name. '{} {} {}' expected \
             instead?",
            cx.target.directive,
            named.as_bstr(),
            value.as_bstr()
        ));
    }
    let value = value.first().map(|arg| arg.text.as_slice()).unwrap_or_default();
    cx.dir().set.set(&name.text, value);
    Ok(())
}

fn pass_env(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let name = std::ffi::OsStr::from_bytes(&arg.text);
    // A name that is invalid for the system can't be looked up.
    let can_be = !arg.text.is_empty() && !arg.text.iter().any(|byte| matches!(byte, b'=' | 0));
    match std::env::var_os(name).filter(|_| can_be) {
        Some(value) => cx.dir().set.set(&arg.text, value.as_bytes()),
        None => cx.warn(format!("AH01506: PassEnv variable {} was undefined", arg.text)),
    }
    Ok(())
}

fn unset_env(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let here = cx.dir();
    here.set.unset(&arg.text);
    here.unset.push(arg.text.to_vec());
    Ok(())
}

/// Variables that exist already (SetEnvIf) precede those set here, and take precedence.
fn fixup<'r>(env: Bound<'r, Env>, request: &'r mut Request) -> Step<'r> {
    request.env.extend(&env.dir.set);
    Step::OK
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(set: &[(&str, &str)], unset: &[&str]) -> Variables {
        let mut variables = Variables::default();
        for (name, value) in set {
            variables.set.set(name.as_bytes(), value.as_bytes());
        }
        variables.unset = unset.iter().map(|name| name.as_bytes().to_vec()).collect();
        variables
    }

    #[test]
    fn inner_places_take_away_and_override() {
        let outer = variables(&[("A", "1"), ("B", "1"), ("C", "1")], &[]);
        let inner = variables(&[("B", "2")], &["A", "B"]);
        let merged = Variables::merge(&outer, &inner);
        assert_eq!(merged.set.get(b"A"), None);
        assert_eq!(merged.set.get(b"B"), Some(&b"2"[..]));
        assert_eq!(merged.set.get(b"C"), Some(&b"1"[..]));
    }

    #[test]
    fn what_was_taken_away_further_out_can_come_back() {
        let outer = Variables::merge(&variables(&[("A", "1")], &[]), &variables(&[], &["A"]));
        let merged = Variables::merge(&outer, &variables(&[("A", "3")], &[]));
        assert_eq!(merged.set.get(b"A"), Some(&b"3"[..]));
    }
}
