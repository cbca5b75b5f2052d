//! The server's identity: names, aliases, the document root, and its version.

use conf::Arg;
use server::context::{Override, Places};
use server::core::{CanonicalName, HostnameLookups, ServerName, Signature, Tokens};
use server::directive::{Fault, Row, Set, Takes};

use super::{Here, file_info, global, host, one_of};
use crate::core::Core;

pub(super) const ROWS: &[Row<Core>] = &[
    host(
        "ServerName",
        Takes::One(server_name),
        "[scheme://]domain-name|ip-address[:port]",
        "",
        "Sets the server's name for its own URLs, optionally with scheme and port.",
    ),
    host(
        "ServerAdmin",
        Takes::One(|cx, arg| {
            cx.server().server_admin.set(arg.text.to_vec());
            Ok(())
        }),
        "email-address|URL",
        "",
        "Sets the contact address on error pages.",
    ),
    Row::<Core>::new(
        "ServerAlias",
        Takes::Each(server_alias),
        "hostname [hostname] ...",
        "Sets further names of a virtual host; * and ? are wildcards.",
    )
    .standing(Places::HOST, Override::NONE),
    Row::<Core>::new(
        "ServerPath",
        Takes::One(server_path),
        "URL-path",
        "Selects this virtual host for requests without a Host field whose path begins so.",
    )
    .standing(Places::HOST, Override::NONE),
    host(
        "DocumentRoot",
        Takes::One(document_root),
        "directory-path",
        "/var/www/html",
        "Sets the directory of the files that are served under /.",
    ),
    Row::<Core>::new(
        "UseCanonicalName",
        Takes::One(use_canonical_name),
        "On|Off|DNS",
        "Sets the host name in the server's own URLs: ServerName, the Host field, or the name of \
         its address.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("Off"),
    Row::<Core>::new(
        "UseCanonicalPhysicalPort",
        Takes::One(|cx, arg| {
            let on = on_off(arg)?;
            cx.dir().use_canonical_physical_port.set(on);
            Ok(())
        }),
        "On|Off",
        "Uses the connection's port in the server's own URLs.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("Off"),
    Row::<Core>::new(
        "HostnameLookups",
        Takes::One(hostname_lookups),
        "On|Off|Double",
        "Looks up client host names for logs and variables; Double verifies them by a forward \
         look-up.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("Off"),
    host(
        "StrictHostCheck",
        Takes::Flag(|cx, on| {
            cx.server().strict_host_check.set(on);
            Ok(())
        }),
        "ON|OFF",
        "OFF",
        "Refuses requests whose host name matches no name or alias of the address's hosts.",
    ),
    global(
        "NameVirtualHost",
        Takes::One(name_virtual_host),
        "addr[:port]",
        "",
        "Has no effect: an address with several virtual hosts is always name-based.",
    )
    .standing(Places::HOST, Override::NONE),
    global(
        "ServerTokens",
        Takes::One(server_tokens),
        "Major|Minor|Min[imal]|Prod[uctOnly]|OS|Full",
        "Full",
        "Sets how much of the version the Server field contains.",
    ),
    Row::<Core>::new(
        "ServerSignature",
        Takes::One(server_signature),
        "On|Off|EMail",
        "Adds a last line with version and host name to pages that the server generates.",
    )
    .standing(Places::ALL, Override::ALL)
    .default("Off"),
    file_info(
        "QualifyRedirectURL",
        Takes::Flag(|cx, on| {
            cx.dir().qualify_redirect_url.set(on);
            Ok(())
        }),
        "On|Off",
        "Off",
        "Makes the variable REDIRECT_URL a complete URL instead of a path.",
    ),
];

/// Source: `server_hostname_port` (server/core.c).
fn server_name(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let text = arg.text.as_slice();
    let (scheme, rest) = match text.windows(3).position(|found| found == b"://") {
        Some(at) => {
            let scheme = text.get(..at).unwrap_or_default();
            if scheme.is_empty() || !scheme.iter().all(u8::is_ascii_alphanumeric) {
                return Err(
                    Fault::new("ServerName: the scheme may hold letters and digits only").at(arg)
                );
            }
            let scheme = String::from_utf8_lossy(scheme).to_ascii_lowercase();
            (Some(scheme), text.get(at + 3..).unwrap_or_default())
        }
        None => (None, text),
    };
    let after_bracket = rest.iter().rposition(|byte| *byte == b']').unwrap_or(0);
    let colon = rest.iter().rposition(|byte| *byte == b':').filter(|at| *at >= after_bracket);
    let (name, port) = match colon {
        Some(at) => (rest.get(..at).unwrap_or_default(), rest.get(at + 1..)),
        None => (rest, None),
    };
    let port = match port {
        Some(digits) => Some(port_number(digits).ok_or_else(|| bad_port(arg))?),
        None => None,
    };
    let name = name.to_ascii_lowercase();
    cx.server().server_name.0 = Some(ServerName { scheme, name, port });
    Ok(())
}

fn port_number(digits: &[u8]) -> Option<u16> {
    // As in Apache, a slash after the port is allowed.
    let digits = digits.strip_suffix(b"/").unwrap_or(digits);
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|port| *port != 0)
}

fn bad_port(arg: &Arg) -> Fault {
    let message = format!(
        "The port number \"{}\" is outside the appropriate range (i.e., 1..65535).",
        arg.text
    );
    Fault::new(message).at(arg)
}

fn server_alias(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    if cx.target.place != Places::VHOST {
        return Err("ServerAlias only used in <VirtualHost>".into());
    }
    cx.server().server_aliases.0.push(arg.text.to_ascii_lowercase());
    Ok(())
}

fn server_path(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    cx.server().server_path.0 = Some(arg.text.to_vec());
    Ok(())
}

/// Source: `set_document_root` (server/core.c).
fn document_root(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    use std::os::unix::ffi::OsStrExt;
    let check = cx.build().check_document_root;
    let root = conf::values::relative_to(&cx.build().server_root, &arg.text)
        .ok_or_else(|| Fault::new("DocumentRoot must be a directory").at(arg))?;
    if check && !root.is_dir() {
        let shown = root.display();
        if cx.target.place != Places::VHOST {
            let why = format!("DocumentRoot '{shown}' is not a directory, or is not readable");
            return Err(Fault::new(why).at(arg));
        }
        let number = "AH00112: Warning: DocumentRoot";
        cx.warn(format!("{number} [{shown}] does not exist"));
    }
    let mut path = root.as_os_str().as_bytes().to_vec();
    while path.len() > 1 && path.last() == Some(&b'/') {
        path.pop();
    }
    cx.server().document_root.set(path);
    Ok(())
}

fn on_off(arg: &Arg) -> Result<bool, Fault> {
    one_of(arg, &[("on", true), ("off", false)], "parameter must be 'on' or 'off'")
}

fn use_canonical_name(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let words =
        [("on", CanonicalName::On), ("off", CanonicalName::Off), ("dns", CanonicalName::Dns)];
    let choice = one_of(arg, &words, "parameter must be 'on', 'off', or 'dns'")?;
    cx.dir().use_canonical_name.set(choice);
    Ok(())
}

fn hostname_lookups(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let words = [
        ("on", HostnameLookups::On),
        ("off", HostnameLookups::Off),
        ("double", HostnameLookups::Double),
    ];
    let choice = one_of(arg, &words, "parameter must be 'on', 'off', or 'double'")?;
    cx.dir().hostname_lookups.set(choice);
    Ok(())
}

fn name_virtual_host(cx: &mut Here<'_, '_>, _: &Arg) -> Set {
    let span = cx.span();
    let (file, line) = cx.build().sources.place(span);
    cx.warn(format!(
        "AH00548: NameVirtualHost has no effect and will be removed in the next release \
         {file}:{line}"
    ));
    Ok(())
}

fn server_tokens(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let words = [
        ("os", Tokens::Os),
        ("min", Tokens::Minimal),
        ("minimal", Tokens::Minimal),
        ("major", Tokens::Major),
        ("minor", Tokens::Minor),
        ("prod", Tokens::Product),
        ("productonly", Tokens::Product),
        ("full", Tokens::Full),
    ];
    let fault = "ServerTokens takes 1 argument: 'Prod(uctOnly)', 'Major', 'Minor', \
                 'Min(imal)', 'OS', or 'Full'";
    let tokens = one_of(arg, &words, fault)?;
    cx.server().globals_mut().server_tokens.set(tokens);
    Ok(())
}

fn server_signature(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let words = [("on", Signature::On), ("off", Signature::Off), ("email", Signature::Email)];
    let choice = one_of(arg, &words, "ServerSignature: use one of: off | on | email")?;
    cx.dir().server_signature.set(choice);
    Ok(())
}
