//! The directives of mod_proxy_ftp.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, Takes};

use super::ProxyFtp;

type Here<'a, 't> = Cx<'a, 't, ProxyFtp>;

pub(super) const ROWS: &[Row<ProxyFtp>] = &[
    Row::<ProxyFtp>::new(
        "ProxyFtpListOnWildcard",
        Takes::Flag(list_on_wildcard),
        "on|off",
        "Whether wildcards in a path list the files that match instead of getting one file.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("on"),
    Row::<ProxyFtp>::new(
        "ProxyFtpEscapeWildcards",
        Takes::Flag(escape_wildcards),
        "on|off",
        "Whether wildcards in paths are sent to the server with a backslash before them.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("on"),
    Row::<ProxyFtp>::new(
        "ProxyFtpDirCharset",
        Takes::One(dir_charset),
        "character-set",
        "The character set of listings.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("ISO-8859-1"),
];

fn list_on_wildcard(cx: &mut Here<'_, '_>, on: bool) -> Set {
    cx.dir().lists_wildcards.set(on);
    Ok(())
}

fn escape_wildcards(cx: &mut Here<'_, '_>, on: bool) -> Set {
    cx.dir().escapes_wildcards.set(on);
    Ok(())
}

fn dir_charset(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    cx.dir().charset.set(arg.text.to_vec());
    Ok(())
}
