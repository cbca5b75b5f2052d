//! mod_imagemap: redirects by the position of a click on an image, or shows a menu.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_imagemap.html>

mod coordinates;
pub(crate) use coordinates::number;
mod menu;
mod respond;
mod shape;
mod url;

use rt::Work;
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, Takes};
use server::discard::finish_printed;
use server::hooks::{Bound, Hooks, Step, Verdict};
use server::merge::Setting;
use server::module::Module;
use server::request::Request;
use wire::Method;

/// `mod_imagemap.c`
pub struct Imagemap;

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `ImapMenu`
        menu: Setting<Vec<u8>>,
        /// `ImapDefault`
        default: Setting<Vec<u8>>,
        /// `ImapBase`
        base: Setting<Vec<u8>>,
    }
}

impl Module for Imagemap {
    const NAME: &'static str = "imagemap_module";
    const FILE: &'static str = "mod_imagemap.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Imagemap>] = &[
        row(
            "ImapMenu",
            |cx, word| set(&mut cx.dir().menu, word),
            "none|formatted|semiformatted|unformatted",
            "Sets the menu for a request without coordinates.",
        )
        .default("formatted"),
        row(
            "ImapDefault",
            |cx, word| set(&mut cx.dir().default, word),
            "error|nocontent|map|referer|URL",
            "Sets the response to coordinates outside all areas, if the map has no default.",
        )
        .default("nocontent"),
        row(
            "ImapBase",
            |cx, word| set(&mut cx.dir().base, word),
            "map|referer|URL",
            "Sets the base of relative URLs, if the map has none.",
        )
        .default("map"),
    ];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.handler("imap-file", handle);
        hooks.handler("application/x-httpd-imap", handle);
    }
}

const fn row(
    name: &'static str,
    set: fn(&mut Cx<'_, '_, Imagemap>, &conf::Arg) -> Set,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Imagemap> {
    Row::new(name, Takes::One(set), syntax, doc).standing(Places::ALL, Override::INDEXES)
}

fn set(setting: &mut Setting<Vec<u8>>, word: &conf::Arg) -> Set {
    setting.set(word.text.to_vec());
    Ok(())
}

/// The maximum size of a map, in bytes.
const MAP_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Source: `imap_handler`.
fn handle<'r>(bound: Bound<'r, Imagemap>, request: &'r mut Request) -> Step<'r> {
    if request.head.method != Method::GET {
        return Step::DECLINED;
    }
    Step::Pending(Box::pin(async move {
        let path = server::path::as_path(&request.resource.filename).to_owned();
        let read = move || regular::read(path, MAP_BYTES_MAX);
        let pool = request.engine.handle.blocking().clone();
        match pool.run(Work::File, read).await {
            Ok(Ok(text)) => match respond::respond(bound.dir, request, &text) {
                Verdict::Ok => finish_printed(request).verdict().await,
                other => other,
            },
            Ok(Err(_)) => Verdict::Status(404),
            Err(_) => Verdict::Status(503),
        }
    }))
}
