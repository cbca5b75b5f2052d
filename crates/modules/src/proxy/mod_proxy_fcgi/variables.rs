//! The variables that a FastCGI server gets.
//!
//! Source: `send_environment`, `fix_cgivars`.

use conf::expr::Backrefs;
use server::errorlog::Verbatim;
use server::expr;
use server::log::Level;
use server::request::{FileKind, Request};

use super::canonical::NeedsWalk;
use super::{BackendType, Configured, ProxyFcgi, SetEnvIf, backend_type};
use crate::util_script::variables::{add_cgi, add_common};

/// Adds the variables to those of the request.
///
/// # Errors
/// The status of the response, if a condition can't be evaluated.
pub(super) async fn add(request: &mut Request) -> Result<(), u16> {
    if request.kept::<NeedsWalk>().is_some() {
        find_path_info(request);
    }
    if let Some(name) = bare_filename(request) {
        request.resource.filename = name;
    }
    add_common::<ProxyFcgi>(request).await;
    add_cgi(request).await;
    adjust(request)
}

/// The file name without scheme and authority. PHP-FPM removes them itself, and finds out by them
/// that `PATH_TRANSLATED` is not the program.
fn bare_filename(request: &Request) -> Option<Vec<u8>> {
    let name = request.resource.filename.as_slice();
    let mut rest = name.strip_prefix(b"proxy:balancer://");
    if backend_type(request) == BackendType::Generic {
        if let Some(url) = name.strip_prefix(b"proxy:fcgi://") {
            rest = Some(url);
        }
        let query = request.query().filter(|query| !query.is_empty());
        let without = query.and_then(|query| rest?.strip_suffix(query)?.strip_suffix(b"?"));
        rest = without.or(rest);
    }
    let rest = rest?;
    let slash = rest.iter().position(|byte| *byte == b'/')?;
    Some(rest.get(slash..).unwrap_or_default().to_vec())
}

/// Walks along the request's path, taken for one of the file system, to the first file.
fn find_path_info(request: &mut Request) {
    let uri = request.resource.uri.clone();
    let ends = uri.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/');
    for (end, _) in ends {
        let (name, rest) = uri.split_at(end);
        let stat = request.engine.stat(name);
        match stat.map(|stat| stat.kind) {
            Ok(FileKind::Directory) => {}
            Ok(FileKind::Regular) => {
                request.resource.path_info = rest.to_vec();
                return;
            }
            _ => return,
        }
    }
}

/// Applies `ProxyFCGISetEnvIf`; of a value that can't be evaluated, nothing is set.
fn adjust(request: &mut Request) -> Result<(), u16> {
    let configured = Configured::of(request);
    let Some(own) = configured.directory(request) else { return Ok(()) };
    for SetEnvIf { condition, name, value } in own.variables.iter() {
        // The value may refer to what the condition's expression has captured.
        let mut captures = Backrefs::new();
        match expr::condition(condition, request, &mut captures) {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => continue,
            Ok(Err(why)) => return Err(undecided(request, &why.to_string())),
            Err(_) => return Err(undecided(request, "a regular expression took too long")),
        }
        match value.as_ref().map(|value| expr::string_with(value, request, &mut captures)) {
            None => {
                request.env.unset(name);
            }
            Some(Ok(value)) => request.env.set(name, &value),
            Some(Err(why)) => {
                let name = Verbatim::new(name);
                let what = "Error evaluating expression for replacement of";
                request.log::<ProxyFcgi>(Level::Info, 3514, format_args!("{what} {name}: '{why}'"));
            }
        }
    }
    Ok(())
}

/// Logs why a condition can't be evaluated; returns the status of the response.
fn undecided(request: &Request, why: &str) -> u16 {
    let text = format_args!("fix_cgivars: Condition eval returned -1: {why}");
    request.log::<ProxyFcgi>(Level::Error, 10241, text);
    request.log::<ProxyFcgi>(Level::Error, 1074, format_args!("Failed writing Environment to :"));
    503
}
