//! mod_allowmethods: restricts the methods of requests.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_allowmethods.html>

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::errorlog::Verbatim;
use server::hooks::{Bound, Hooks, Phase, Rank, Step};
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;
use wire::{Method, MethodSet};

/// `mod_allowmethods.c`
pub struct Allowmethods;

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `AllowMethods`; empty for `reset`.
        allowed: Setting<MethodSet>,
    }
}

impl Module for Allowmethods {
    const NAME: &'static str = "allowmethods_module";
    const FILE: &'static str = "mod_allowmethods.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Allowmethods>] = &[Row::new(
        "AllowMethods",
        Takes::Some { least: 0, most: usize::MAX, set: allow_methods },
        "reset|HTTP-method [HTTP-method]...",
        "Restricts the methods of requests; `reset` allows all of them again.",
    )
    .standing(Places::DIRECTORY, Override::NONE)
    .default("reset")];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        let restricts = |bound: Bound<'_, Self>| !bound.dir.allowed.or(MethodSet::EMPTY).is_empty();
        hooks.on(Phase::AccessChecker, Rank::REALLY_FIRST, restricts, check).pure();
        // Apache's module is one of the old kind: where it is loaded, access is checked again for
        // each other URI.
        hooks.merges_by_uri();
    }
}

/// Source: `am_allowmethods`
fn allow_methods(cx: &mut Cx<'_, '_, Allowmethods>, args: &[Arg]) -> Set {
    // Apache takes an empty word at the end for the end.
    let args = match args {
        [args @ .., last] if last.text.is_empty() => args,
        _ => args,
    };
    match args {
        [] => return Err("AllowMethods: No method or 'reset' keyword given".into()),
        [only] if only.is("reset") => {
            cx.dir().allowed.set(MethodSet::EMPTY);
            return Ok(());
        }
        _ => {}
    }
    // Several lines in a section accumulate.
    let mut allowed = cx.dir().allowed.or(MethodSet::EMPTY);
    for arg in args {
        let method = Method::of(&arg.text, &cx.build().methods);
        if !method.is_known() {
            let fault = format!("AllowMethods: Invalid Method '{}'", arg.text);
            return Err(Fault::new(fault).at(arg));
        }
        allowed.insert(method);
    }
    cx.dir().allowed.set(allowed);
    Ok(())
}

/// Source: `am_check_access`
fn check<'r>(bound: Bound<'r, Allowmethods>, request: &'r mut Request) -> Step<'r> {
    let allowed = bound.dir.allowed.or(MethodSet::EMPTY);
    if allowed.contains(request.head.method) {
        return Step::DECLINED;
    }
    let (method, file) =
        (Verbatim::new(&request.head.method_name), Verbatim::new(&request.resource.filename));
    request.log::<Allowmethods>(
        Level::Error,
        1623,
        format_args!("client method denied by server configuration: '{method}' to {file}"),
    );
    Step::status(405)
}
