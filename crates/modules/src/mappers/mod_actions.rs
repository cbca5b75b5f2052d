//! mod_actions: passes requests to the program at a URL path, by media type, handler or method.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_actions.html>

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::errorlog::Verbatim;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::log::Level;
use server::merge::Overlay;
use server::module::Module;
use server::redirect;
use server::request::{FileKind, Request};
use wire::Method;

/// `mod_actions.c`
pub struct Actions;

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `Action`, by the media type or handler in lower case.
        actions: Overlay<Vec<u8>, Target>,
        /// `Script`: the URL path, by the number of the method.
        scripts: Overlay<u8, Vec<u8>>,
    }
}

/// The target of an `Action`.
#[derive(Clone, Debug)]
struct Target {
    /// The URL path.
    path: Vec<u8>,
    /// Whether the requested file need not exist.
    is_virtual: bool,
}

impl Module for Actions {
    const NAME: &'static str = "actions_module";
    const FILE: &'static str = "mod_actions.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Actions>] = &[
        Row::new(
            "Action",
            Takes::Some { least: 2, most: 3, set: action },
            "action-type cgi-script [virtual]",
            "Passes requests for files of a media type or handler to the program at a URL path.",
        )
        .standing(Places::ALL, Override::FILE_INFO),
        Row::new(
            "Script",
            Takes::Two(script),
            "method cgi-script",
            "Passes requests with a method (GET only with a query) to the program at a URL path.",
        )
        .standing(Places::NOT_HTACCESS, Override::NONE),
    ];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks
            .on(
                Phase::Handler,
                Rank::LAST,
                |bound| !bound.dir.actions.is_empty() || !bound.dir.scripts.is_empty(),
                handle,
            )
            .pure();
    }
}

/// Source: `add_action`
fn action(cx: &mut Cx<'_, '_, Actions>, args: &[Arg]) -> Set {
    let [media_type, path, option @ ..] = args else { return Ok(()) };
    if let Some(option) = option.first().filter(|option| !option.is("virtual")) {
        return Err(Fault::new(format!("unrecognized option '{}'", option.text)).at(option));
    }
    let target = Target { path: path.text.to_vec(), is_virtual: !option.is_empty() };
    let name = media_type.text.to_ascii_lowercase();
    cx.build().passed_on.insert(name.clone());
    cx.dir().actions.insert(name, target);
    Ok(())
}

/// Source: `set_script`
fn script(cx: &mut Cx<'_, '_, Actions>, method: &Arg, path: &Arg) -> Set {
    let known = cx.build().methods.register(&method.text);
    if known == Ok(Method::TRACE) {
        return Err(Fault::new("TRACE not allowed for Script").at(method));
    }
    let Ok(known) = known else {
        let fault = format!("Could not register method '{}' for Script", method.text);
        return Err(Fault::new(fault).at(method));
    };
    cx.dir().scripts.insert(known.number(), path.text.to_vec());
    Ok(())
}

/// Source: `action_handler`
fn handle<'r>(bound: Bound<'r, Actions>, request: &'r mut Request) -> Step<'r> {
    let dir = bound.dir;
    let mut path = script_of(dir, request);
    if path.is_some() && request.prev.as_ref().is_some_and(|prev| prev.prev.is_some()) {
        // The target is left to itself.
        return Step::DECLINED;
    }
    if let Some(handler) = &request.handler
        && let Some(target) = dir.actions.get(handler.as_ref())
    {
        if !target.is_virtual && request.resource.file.kind == FileKind::None {
            let file = Verbatim::new(&request.resource.filename);
            let message = format_args!("File does not exist: {file}");
            request.log::<Actions>(Level::Info, 652, message);
            return Step::status(404);
        }
        path = Some(&target.path);
        let handler = handler.to_vec();
        request.env.set(b"HANDLER", &handler);
    }
    match path {
        Some(path) => Step::Pending(Box::pin(redirect(request, path))),
        None => Step::DECLINED,
    }
}

fn script_of<'d>(dir: &'d Directory, request: &Request) -> Option<&'d Vec<u8>> {
    let path = dir.scripts.get(&request.head.method.number())?;
    (request.head.method != Method::GET || request.query().is_some()).then_some(path)
}

async fn redirect(request: &mut Request, path: &[u8]) -> Verdict {
    request.depends.pure = false;
    if path.first() != Some(&b'/') && path.windows(3).any(|found| found == b"://") {
        // A URL with a host can't be the target of an internal redirect.
        return Verdict::Status(500);
    }
    let mut target = path.to_vec();
    wire::escape::path(&mut target, &request.resource.uri);
    let target = request.with_query(target);
    redirect::internal_redirect_handler(request, &target).await
}
