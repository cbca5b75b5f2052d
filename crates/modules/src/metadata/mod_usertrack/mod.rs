//! mod_usertrack: a cookie that follows a client from request to request.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_usertrack.html>

mod cookie;
mod period;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::hooks::{Bound, Hooks, Phase, Rank, Step};
use server::merge::Merge;
use server::module::Module;

/// `mod_usertrack.c`
pub struct Usertrack;

/// Server configuration.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Whether there is a directive of the module, also in a section.
    is_set: bool,
    /// `CookieExpires` outside of `.htaccess`, seconds; 0 for the end of the session.
    expires: i32,
}

impl Merge for Settings {
    /// The module merges nothing: a host with any of its directives inherits nothing.
    fn merge(outer: &Self, inner: &Self) -> Self {
        if inner.is_set { inner.clone() } else { outer.clone() }
    }
}

/// Per-directory configuration.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    /// `CookieTracking`
    is_on: bool,
    /// `CookieName`; `None` for `Apache`.
    name: Option<Vec<u8>>,
    /// `CookieDomain`
    domain: Option<Vec<u8>>,
    /// `CookieStyle`
    style: Style,
    /// `CookieSameSite`
    same_site: Option<&'static [u8]>,
    /// `CookieSecure`
    is_secure: bool,
    /// `CookieHttpOnly`
    is_http_only: bool,
    /// `CookieExpires` in `.htaccess`, seconds.
    expires: Option<i32>,
}

/// `CookieStyle`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Style {
    /// `expires=`
    #[default]
    Netscape,
    /// `max-age=` (RFC 2109)
    Cookie,
    /// `Set-Cookie2` (RFC 2965)
    Cookie2,
}

impl Merge for Directory {
    /// The module merges nothing: an inner section replaces everything.
    fn merge(_: &Self, inner: &Self) -> Self {
        inner.clone()
    }
}

impl Module for Usertrack {
    const NAME: &'static str = "usertrack_module";
    const FILE: &'static str = "mod_usertrack.c";
    type Server = Settings;
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Usertrack>] = &[
        row("CookieDomain", Takes::One(domain), "domain", "Sets the domain of the cookie."),
        row(
            "CookieExpires",
            Takes::One(expires),
            "seconds|\"num unit [num unit] ...\"",
            "Sets how long the cookie lives.",
        ),
        row(
            "CookieHttpOnly",
            Takes::Flag(|cx, on| set(cx, |dir| dir.is_http_only = on)),
            "On|Off",
            "Hides the cookie from scripts in the browser.",
        )
        .default("Off"),
        row("CookieName", Takes::One(name), "token", "Sets the name of the cookie.")
            .default("Apache"),
        row(
            "CookieSameSite",
            Takes::One(same_site),
            "None|Lax|Strict",
            "Sets on which requests from other sites the cookie is sent.",
        ),
        row(
            "CookieSecure",
            Takes::Flag(|cx, on| set(cx, |dir| dir.is_secure = on)),
            "On|Off",
            "Restricts the cookie to TLS connections.",
        )
        .default("Off"),
        row(
            "CookieStyle",
            Takes::One(style),
            "Netscape|Cookie|Cookie2|RFC2109|RFC2965",
            "Sets the format of the cookie's field.",
        )
        .default("Netscape"),
        row(
            "CookieTracking",
            Takes::Flag(|cx, on| set(cx, |dir| dir.is_on = on)),
            "On|Off",
            "Turns the cookie on or off.",
        )
        .default("Off"),
    ];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.on(Phase::Fixups, Rank::REALLY_FIRST, |bound| bound.dir.is_on, spot);
    }
}

const fn row(
    name: &'static str,
    takes: Takes<Usertrack>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Usertrack> {
    Row::new(name, takes, syntax, doc).standing(Places::ALL, Override::FILE_INFO)
}

type Here<'a, 't> = Cx<'a, 't, Usertrack>;

fn set(cx: &mut Here<'_, '_>, change: impl FnOnce(&mut Directory)) -> Set {
    change(cx.dir());
    if !cx.in_htaccess() {
        cx.server().is_set = true;
    }
    Ok(())
}

/// Source: `set_cookie_domain`
fn domain(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let Some(rest) = arg.text.strip_prefix(b".") else {
        return Err(Fault::new("CookieDomain values must begin with a dot").at(arg));
    };
    if !rest.contains(&b'.') {
        let fault = "CookieDomain values must contain at least one embedded dot";
        return Err(Fault::new(fault).at(arg));
    }
    set(cx, |dir| dir.domain = Some(arg.text.to_vec()))
}

/// Apache stores the period with the server, even that of a section. That of an `.htaccess` is
/// stored with its folder: it must not outlive the request.
///
/// Source: `set_cookie_exp`
fn expires(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let seconds = period::parse(&arg.text).map_err(|why| Fault::new(why).at(arg))?;
    let of_folder = cx.in_htaccess().then_some(seconds);
    if of_folder.is_none() {
        cx.server().expires = seconds;
    }
    set(cx, |dir| dir.expires = of_folder)
}

fn name(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    set(cx, |dir| dir.name = Some(arg.text.to_vec()))
}

/// Source: `set_cookie_style`
fn style(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    const STYLES: [(&str, Style); 5] = [
        ("Netscape", Style::Netscape),
        ("Cookie", Style::Cookie),
        ("RFC2109", Style::Cookie),
        ("Cookie2", Style::Cookie2),
        ("RFC2965", Style::Cookie2),
    ];
    let Some((_, style)) = STYLES.iter().find(|(word, _)| arg.is(word)) else {
        let name = cx.target.directive;
        return Err(Fault::new(format!("Invalid {name} keyword: '{}'", arg.text)).at(arg));
    };
    set(cx, |dir| dir.style = *style)
}

/// Source: `set_samesite_value`
fn same_site(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    const RULES: [&str; 3] = ["Strict", "Lax", "None"];
    let Some(rule) = RULES.into_iter().find(|rule| arg.is(rule)) else {
        let fault = "CookieSameSite accepts 'Strict', 'Lax', or 'None'";
        return Err(Fault::new(fault).at(arg));
    };
    set(cx, |dir| dir.same_site = Some(rule.as_bytes()))
}

/// Source: `spot_cookie`
fn spot<'r>(bound: Bound<'r, Usertrack>, request: &'r mut server::request::Request) -> Step<'r> {
    let dir = bound.dir;
    if request.main.is_some() {
        return Step::DECLINED;
    }
    let name = dir.name.as_deref().unwrap_or(b"Apache");
    let sent = request.head.headers_in.get(b"Cookie").and_then(|all| cookie::find(all, name));
    if let Some(value) = sent.map(<[u8]>::to_vec) {
        request.notes.set(b"cookie", &value);
        return Step::DECLINED;
    }
    let expires = dir.expires.unwrap_or(bound.server.expires);
    let value = cookie::fresh(request.time_us);
    let text = dir.cookie(name, &value, request.time_us, expires);
    let field: &[u8] = if dir.style == Style::Cookie2 { b"Set-Cookie2" } else { b"Set-Cookie" };
    request.response.err_headers_out.add(field, &text);
    request.notes.set(b"cookie", &value);
    Step::OK
}
