//! mod_dir: redirects to the trailing slash of a folder, index files, and FallbackResource.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_dir.html>

use std::borrow::Cow;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict, always};
use server::merge::Setting;
use server::module::Module;
use server::request::{FileKind, Request};
use server::subrequest;
use wire::Method;

/// `mod_dir.c`
pub struct Dir;

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `DirectoryIndex`; empty for `disabled`.
        pub index_names: Setting<Vec<Vec<u8>>>,
        /// `DirectorySlash`
        pub slash: Setting<bool>,
        /// `DirectoryCheckHandler`
        pub check_handler: Setting<bool>,
        /// `DirectoryIndexRedirect`: the status; `None` for off.
        pub index_redirect: Setting<Option<u16>>,
        /// `FallbackResource`; `None` for disabled.
        pub fallback: Setting<Option<Vec<u8>>>,
    }
}

impl Module for Dir {
    const NAME: &'static str = "dir_module";
    const FILE: &'static str = "mod_dir.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Dir>] = &[
        row(
            "DirectoryIndex",
            Takes::Some { least: 0, most: usize::MAX, set: directory_index },
            "disabled | local-url [local-url] ...",
            "index.html",
            "Sets the index files of a folder; the first that exists is served.",
        ),
        row(
            "DirectorySlash",
            Takes::Flag(|cx, on| {
                cx.dir().slash.set(on);
                Ok(())
            }),
            "On|Off",
            "On",
            "Redirects requests for a folder without a trailing slash to its URL with one.",
        ),
        row(
            "DirectoryCheckHandler",
            Takes::Flag(|cx, on| {
                cx.dir().check_handler.set(on);
                Ok(())
            }),
            "On|Off",
            "Off",
            "Leaves folders with a handler of their own alone.",
        ),
        row(
            "DirectoryIndexRedirect",
            Takes::One(directory_index_redirect),
            "on | off | permanent | temp | seeother | 3xx-code",
            "off",
            "Redirects to a folder's index file instead of serving it.",
        ),
        row(
            "FallbackResource",
            Takes::One(fallback_resource),
            "disabled | local-url",
            "disabled",
            "Sets the resource that is served if there is no file.",
        ),
    ];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.on(Phase::Fixups, Rank::LAST, always, fixup).pure();
    }
}

const fn row(
    name: &'static str,
    takes: Takes<Dir>,
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Row<Dir> {
    Row::new(name, takes, syntax, doc).standing(Places::ALL, Override::INDEXES).default(default)
}

type Here<'a, 't> = Cx<'a, 't, Dir>;

/// Several lines in a section accumulate; `disabled` applies only alone on its line.
fn directory_index(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let names = &mut cx.dir().index_names;
    let mut all = names.get().cloned().unwrap_or_default();
    match args {
        [only] if only.is("disabled") => all.clear(),
        // An empty name ends the line.
        _ => {
            all.extend(args.iter().map(|arg| arg.text.to_vec()).take_while(|name| !name.is_empty()))
        }
    }
    names.set(all);
    Ok(())
}

fn directory_index_redirect(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    const WORDS: [(&str, u16); 4] =
        [("on", 302), ("permanent", 301), ("temp", 302), ("seeother", 303)];
    if arg.is("off") {
        cx.dir().index_redirect.set(None);
        return Ok(());
    }
    let word = WORDS.iter().find(|(word, _)| arg.is(word)).map(|(_, status)| *status);
    let status = match word {
        Some(status) => status,
        None if arg.text.first().is_some_and(u8::is_ascii_digit) => super::number(&arg.text),
        None => {
            let usage = "DirectoryIndexRedirect ON|OFF|permanent|temp|seeother|3xx";
            return Err(Fault::new(usage).at(arg));
        }
    };
    if !wire::status::is_redirect(status) {
        let range = "DirectoryIndexRedirect only accepts values between 300 and 399";
        return Err(Fault::new(range).at(arg));
    }
    cx.dir().index_redirect.set(Some(status));
    Ok(())
}

fn fallback_resource(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let target = (!arg.is("disabled")).then(|| arg.text.to_vec());
    cx.dir().fallback.set(target);
    Ok(())
}

/// The handler of mod_rewrite's internal redirects (`REWRITE_REDIRECT_HANDLER_NAME`).
const REWRITTEN: &[u8] = super::mod_rewrite::HANDLER.as_bytes();

/// The handler name of a folder without a handler (`DIR_MAGIC_TYPE`).
const DIRECTORY_TYPE: &[u8] = b"httpd/unix-directory";

/// The default of `DirectoryIndex`.
const DEFAULT_INDEX: &[u8] = b"index.html";

/// Source: `dir_fixups`
fn fixup<'r>(dir: Bound<'r, Dir>, request: &'r mut Request) -> Step<'r> {
    match request.resource.file.kind {
        FileKind::Directory => folder(dir.dir, request),
        FileKind::None if request.handler.is_none() => match dir.dir.fallback.get() {
            Some(Some(target)) => Step::Pending(Box::pin(fall_back(request, target))),
            _ => Step::DECLINED,
        },
        _ => Step::DECLINED,
    }
}

/// Source: `fixup_dir`
fn folder<'r>(dir: &'r Directory, request: &'r mut Request) -> Step<'r> {
    if request.handler.is_none() {
        request.handler = Some(Cow::Borrowed(DIRECTORY_TYPE));
    }
    if !request.resource.path_info.is_empty() {
        return Step::DECLINED;
    }
    if request.resource.uri.last() != Some(&b'/') {
        return add_slash(dir, request);
    }
    let taken = request.handler.as_deref() != Some(DIRECTORY_TYPE);
    let is_rewritten = request.handler.as_deref() == Some(REWRITTEN);
    if is_rewritten || (taken && dir.check_handler.or(false)) {
        // The folder's type must not appear in the response of its handler.
        if request.response.content_type.as_deref() == Some(DIRECTORY_TYPE) {
            request.response.content_type = None;
        }
        return Step::DECLINED;
    }
    Step::Pending(Box::pin(find_index(dir, request)))
}

fn add_slash(dir: &Directory, request: &mut Request) -> Step<'static> {
    if !dir.slash.or(true) {
        return Step::DECLINED;
    }
    if request.head.method != Method::GET && request.env.contains(b"redirect-carefully") {
        return Step::DECLINED;
    }
    let mut path = Vec::with_capacity(request.resource.uri.len() + 1);
    wire::escape::path(&mut path, &request.resource.uri);
    path.push(b'/');
    if let Some(query) = request.query() {
        path.push(b'?');
        path.extend_from_slice(query);
    }
    let url = request.construct_url(&path);
    request.response.headers_out.set(b"Location", &url);
    Step::status(301)
}

/// Serves the first name that exists. Other results are reported only if there is none: the listing
/// of a folder whose index is broken would disclose too much.
async fn find_index(dir: &Directory, request: &mut Request) -> Verdict {
    let names: Vec<&[u8]> = match dir.index_names.get() {
        Some(names) => names.iter().map(Vec::as_slice).collect(),
        None => vec![DEFAULT_INDEX],
    };
    let mut worst = None;
    for (at, name) in names.iter().enumerate() {
        let target = request.with_query(name.to_vec());
        let sub = subrequest::lookup_response(request, &target).await;
        if is_servable(&sub) {
            return match subrequest::may_look_up(request) {
                true => take(dir, request, sub),
                false => Verdict::Status(500),
            };
        }
        let is_last = at + 1 == names.len();
        let status = sub.response.status;
        if wire::status::is_redirect(status) || (is_last && matches!(status, 401 | 406)) {
            overlay(request, &sub);
            return Verdict::Status(status);
        }
        if !matches!(status, 404 | 200) {
            worst = Some(status);
        }
    }
    if let Some(status) = worst {
        return Verdict::Status(status);
    }
    // A folder has no FallbackResource of its own: it is the index file's, which is not there.
    request.notes.set(b"dir-index-names", &names.join(&b","[..]));
    Verdict::Declined
}

fn is_servable(sub: &Request) -> bool {
    let is_proxied = sub.handler.as_deref() == Some(b"proxy-server");
    sub.response.status == 200 && (is_proxied || sub.resource.file.kind == FileKind::Regular)
}

fn take(dir: &Directory, request: &mut Request, sub: Request) -> Verdict {
    if let Some(Some(status)) = dir.index_redirect.get() {
        // Like Apache, this does not escape the path.
        let url = request.construct_url(&sub.resource.uri);
        request.response.headers_out.set(b"Location", &url);
        return Verdict::Status(*status);
    }
    subrequest::fast_redirect(request, sub);
    Verdict::Ok
}

/// Puts the fields that a subrequest set for the client behind the request's own, even those of the
/// same names (`apr_table_overlay`).
fn overlay(request: &mut Request, sub: &Request) {
    request.fork_error_fields();
    request.notes.extend(&sub.notes);
    request.response.headers_out.extend(&sub.response.headers_out);
    request.response.err_headers_out.extend(&sub.response.err_headers_out);
}

/// Source: `fixup_dflt`
async fn fall_back(request: &mut Request, target: &[u8]) -> Verdict {
    let target = request.with_query(target.to_vec());
    let sub = subrequest::lookup_response(request, &target).await;
    if is_servable(&sub) {
        if !subrequest::may_look_up(request) {
            return Verdict::Status(500);
        }
        subrequest::fast_redirect(request, sub);
        return Verdict::Ok;
    }
    match sub.response.status {
        200 | 404 => Verdict::Declined,
        status => {
            if wire::status::is_redirect(status) {
                overlay(request, &sub);
            }
            Verdict::Status(status)
        }
    }
}
