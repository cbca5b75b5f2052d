//! Who the server is: names, aliases, the document root, and what it tells of itself.

use conf::Arg;

use super::{Here, file_info, global, host, one_of};
use crate::api::directive::{Fault, Row, Set, State, Takes};
use crate::config::context::{Override, Places};
use crate::core::Core;
use crate::core::dir_config::{CanonicalName, HostnameLookups, Signature};
use crate::core::server_config::{ServerName, Tokens};

pub(super) const ROWS: &[Row<Core>] = &[
    host(
        "ServerName",
        Takes::One(server_name),
        "[scheme://]domain-name|ip-address[:port]",
        "",
        "Sets the name, and perhaps scheme and port, by which the server speaks of itself.",
    ),
    host(
        "ServerAdmin",
        Takes::One(|cx, arg| {
            cx.server().server_admin.set(arg.text.to_vec());
            Ok(())
        }),
        "email-address|URL",
        "",
        "Names whom error pages tell visitors to turn to.",
    ),
    Row::<Core>::new(
        "ServerAlias",
        Takes::Each(server_alias),
        "hostname [hostname] ...",
        "Gives a virtual host further names; * and ? are wildcards.",
    )
    .standing(Places::HOST, Override::NONE),
    Row::<Core>::new(
        "ServerPath",
        Takes::One(server_path),
        "URL-path",
        "Sends requests without a Host field to this virtual host when their path starts so.",
    )
    .standing(Places::HOST, Override::NONE),
    host(
        "DocumentRoot",
        Takes::One(document_root),
        "directory-path",
        "/var/www/html",
        "Names the directory whose files are served under / where no other mapping applies.",
    ),
    Row::<Core>::new(
        "UseCanonicalName",
        Takes::One(use_canonical_name),
        "On|Off|DNS",
        "Says whether URLs that the server makes name it by ServerName, by the Host field, or by \
         its address's name.",
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
        "Lets URLs that the server makes carry the port that the connection came to.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("Off"),
    Row::<Core>::new(
        "HostnameLookups",
        Takes::One(hostname_lookups),
        "On|Off|Double",
        "Has clients' host names looked up for logs and variables; Double checks them backwards.",
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
        "Refuses requests whose host name no name or alias of the address's hosts matches.",
    ),
    global(
        "NameVirtualHost",
        Takes::One(name_virtual_host),
        "addr[:port]",
        "",
        "Does nothing: every address with several virtual hosts is name-based by itself.",
    ),
    global(
        "ServerTokens",
        Takes::One(server_tokens),
        "Major|Minor|Min[imal]|Prod[uctOnly]|OS|Full",
        "Full",
        "Says how much of the version the Server field tells.",
    ),
    Row::<Core>::new(
        "ServerSignature",
        Takes::One(server_signature),
        "On|Off|EMail",
        "Puts a last line with version and host name on pages that the server makes.",
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
        "Makes the variable REDIRECT_URL a whole URL instead of a path.",
    )
    .state(State::Accepted("no module here passes REDIRECT_URL to programs yet")),
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
    // A slash behind the port is let through, as Apache does.
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
    cx.server().globals.0.server_tokens.set(tokens);
    Ok(())
}

fn server_signature(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let words = [("on", Signature::On), ("off", Signature::Off), ("email", Signature::Email)];
    let choice = one_of(arg, &words, "ServerSignature: use one of: off | on | email")?;
    cx.dir().server_signature.set(choice);
    Ok(())
}
