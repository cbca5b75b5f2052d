//! mod_ssl's directives by topic, and helpers of their setters.

mod backends;
mod certificates;
mod clients;
mod connection;
mod ocsp;
mod requests;
mod sessions;
mod unavailable;

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes, count_rows, join_rows};
use server::merge::Setting;
use tls::ciphers::{self, Target};
use tls::protocols::{self, Protocols};
use tls::{Finding, Severity};

use super::config::Server;
use super::{Ssl, local};
use crate::atoi::atoi;

/// The context of the setters.
type Here<'a, 't> = Cx<'a, 't, Ssl>;

const GROUPS: [&[Row<Ssl>]; 9] = [
    backends::ROWS,
    certificates::ROWS,
    clients::ROWS,
    connection::ROWS,
    ocsp::ROWS,
    requests::ROWS,
    sessions::ROWS,
    unavailable::ROWS,
    unavailable::OLD,
];

/// All rows.
pub(super) const ALL: &[Row<Ssl>] = &join_rows::<Ssl, { count_rows(&GROUPS) }>(&GROUPS);

/// A row for the context "server config, virtual host".
const fn host(
    name: &'static str,
    takes: Takes<Ssl>,
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Row<Ssl> {
    Row::<Ssl>::new(name, takes, syntax, doc).default(default)
}

/// A row for the context "server config" alone.
const fn global(
    name: &'static str,
    takes: Takes<Ssl>,
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Row<Ssl> {
    host(name, takes, syntax, default, doc).standing(Places::SERVER, Override::NONE)
}

/// A row for all contexts, under `AllowOverride AuthConfig` in `.htaccess`.
const fn anywhere(
    name: &'static str,
    takes: Takes<Ssl>,
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Row<Ssl> {
    host(name, takes, syntax, default, doc).standing(Places::ALL, Override::AUTH_CONFIG)
}

/// Sets a field, and records the location of its directive.
fn put<T>(cx: &mut Here<'_, '_>, field: fn(&mut Server) -> &mut Setting<T>, value: T) -> Set {
    note(cx);
    field(cx.server()).set(value);
    Ok(())
}

/// Records the location of the directive, for later findings.
fn note(cx: &mut Here<'_, '_>) {
    let (name, span) = (cx.target.directive, cx.span());
    cx.server().places.insert(name, span);
}

fn text(arg: &Arg) -> Result<&str, Fault> {
    let text = std::str::from_utf8(&arg.text);
    text.map_err(|_| Fault::new("the argument is not UTF-8").at(arg))
}

fn words(args: &[Arg]) -> Result<Vec<&str>, Fault> {
    args.iter().map(text).collect()
}

/// Converts a finding to a setter's error, after the current directive's name: a finding of a
/// parser that several directives use has the name of one of them.
fn fault(cx: &Here<'_, '_>, finding: Finding) -> Fault {
    Fault::new(format!("{}: {}", cx.target.directive, finding.message))
}

/// Reports a setter's findings; an error fails the directive.
fn tell(cx: &mut Here<'_, '_>, findings: Vec<Finding>) -> Set {
    for finding in findings {
        match finding.severity {
            Severity::Error => return Err(fault(cx, finding)),
            Severity::Warning => {
                let span = cx.span();
                let (file, line) = cx.build().sources.place(span);
                let (name, what) = (cx.target.directive, finding.message);
                cx.warn(format!("{name} on line {line} of {file}: {what}"));
            }
            Severity::Info => {}
        }
    }
    Ok(())
}

/// Parses versions of TLS, and reports those that are not available.
fn protocols(cx: &mut Here<'_, '_>, args: &[Arg]) -> Result<Protocols, Fault> {
    let parsed = protocols::parse(words(args)?);
    let (chosen, findings) =
        parsed.map_err(|finding| match finding.message.starts_with("SSLv3") {
            true => Fault::new(finding.message),
            false => fault(cx, finding),
        })?;
    tell(cx, findings)?;
    Ok(chosen)
}

/// The versions that a list of suites is for, and the list.
fn cipher_spec(args: &[Arg]) -> Result<(Target, String), Fault> {
    let (target, spec) = match args {
        [target, spec] => {
            let target = Target::parse(text(target)?);
            (target.map_err(|finding| Fault::new(finding.message))?, text(spec)?)
        }
        _ => (Target::Tls12, args.first().map_or(Ok(""), text)?),
    };
    Ok((target, spec.to_owned()))
}

/// Reports the suites of a list that are not available.
fn tell_suites(cx: &mut Here<'_, '_>, target: Target, spec: &str) -> Set {
    let choice = match target {
        Target::Tls12 => ciphers::tls12(spec),
        Target::Tls13 => ciphers::tls13(spec).map_err(|finding| fault(cx, finding))?,
    };
    tell(cx, choice.findings)
}

/// The path of a file that must exist (`ssl_cmd_check_file`).
fn file(cx: &mut Here<'_, '_>, arg: &Arg) -> Result<Vec<u8>, Fault> {
    let path = cx.build().path(&arg.text);
    let is_there = std::fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() > 0);
    if !is_there && !local::is_ours(cx.build(), &path) {
        let (name, path) = (cx.target.directive, path.display());
        let message = format!("{name}: file '{path}' does not exist or is empty");
        return Err(Fault::new(message).at(arg));
    }
    Ok(bytes(path))
}

/// The path of a folder that must exist (`ssl_cmd_check_dir`).
fn folder(cx: &mut Here<'_, '_>, arg: &Arg) -> Result<Vec<u8>, Fault> {
    let path = cx.build().path(&arg.text);
    if !path.is_dir() {
        let (name, path) = (cx.target.directive, path.display());
        let message = format!("{name}: directory '{path}' does not exist");
        return Err(Fault::new(message).at(arg));
    }
    Ok(bytes(path))
}

fn bytes(path: PathBuf) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// Parses a depth as Apache does: a word without digits is 0 (`ssl_cmd_verify_depth_parse`).
fn depth(cx: &Here<'_, '_>, arg: &Arg) -> Result<usize, Fault> {
    usize::try_from(atoi(&arg.text)).map_err(|_| {
        let (name, word) = (cx.target.directive, &arg.text);
        Fault::new(format!("{name}: Invalid argument '{word}'")).at(arg)
    })
}

/// Parses a number, which is not negative if the type does not allow it.
fn number<T: std::str::FromStr>(cx: &Here<'_, '_>, arg: &Arg) -> Result<T, Fault> {
    let word = text(arg)?;
    word.parse::<T>().map_err(|_| {
        Fault::new(format!("{}: Invalid argument '{word}'", cx.target.directive)).at(arg)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directive_of_the_manual_is_there_once() {
        let mut names: Vec<&str> = ALL.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        let old = unavailable::OLD.len();
        assert_eq!((names.len() - old, ALL.len() - old), (72, 72));
    }
}
