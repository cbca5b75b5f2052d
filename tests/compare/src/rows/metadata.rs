//! Header fields, the environment, compression.

use super::Phase::{Filter, Fixup, Type};
use super::{ALL, DIRECTORY, HOST, Row, SECTION, SERVER, row};
use crate::choice::Choice;

pub const ROWS: &[Row] = &[
    row("headers", "Header", Filter, ALL, 24, header),
    row("headers", "RequestHeader", Fixup, ALL, 10, request_header),
    row("env", "SetEnv", Fixup, ALL, 5, |choice| {
        choice.word(&[
            "V 1",
            "bad",
            "no-gzip 1",
            "V \"a b\"",
            "force-response-1.0 1",
            "nokeepalive 1",
            "downgrade-1.0 1",
        ])
    }),
    row("env", "UnsetEnv", Fixup, ALL, 2, |choice| choice.word(&["V", "bad"])),
    row("env", "PassEnv", Fixup, ALL, 1, |choice| choice.word(&["BLACKBOX", "NOPE"])),
    row("setenvif", "SetEnvIf", Fixup, ALL, 12, set_env_if),
    row("setenvif", "SetEnvIfNoCase", Fixup, ALL, 4, set_env_if),
    row("setenvif", "BrowserMatch", Fixup, ALL, 3, |choice| {
        format!(
            "{} {}",
            choice.pattern(),
            choice.one(&["V", "bad=1", "!V", "nokeepalive", "no-gzip"])
        )
    }),
    // No `$0`: what Apache fills in is arbitrary where it takes no pattern to have matched, as
    // docs/refused.md says ("`$0`–`$9` in the value of a SetEnvIfExpr").
    row("setenvif", "SetEnvIfExpr", Fixup, ALL, 5, |choice| {
        format!("\"{}\" {}", choice.expression(2), choice.one(&["V", "bad=1", "V=1", "!bad"]))
    }),
    row("mime_magic", "MimeMagicFile", Type, SERVER, 1, |_| "/etc/apache2/magic".to_owned()),
    row("remoteip", "RemoteIPHeader", Fixup, SERVER, 3, |choice| {
        choice.word(&["X-Forwarded-For", "X-Forwarded-For", "X-Test"])
    }),
    row("remoteip", "RemoteIPProxiesHeader", Fixup, SERVER, 1, |choice| {
        choice.word(&["X-Test", "X-By"])
    }),
    row("remoteip", "RemoteIPInternalProxy", Fixup, SERVER, 2, |choice| {
        choice.word(&["127.0.0.1", "127.0.0.0/8 10.1", "9.9.9.9 8.8.0.0/255.255.0.0", "10.0.0.1"])
    }),
    row("remoteip", "RemoteIPTrustedProxy", Fixup, SERVER, 2, |choice| {
        choice.word(&["127.0.0.1", "9.9.9.0/24", "2001:db8::/32 127.0.0.1"])
    }),
    row("filter", "AddOutputFilterByType", Filter, ALL, 3, |choice| {
        choice.word(&[
            "DEFLATE text/html",
            "DEFLATE text/plain text/css",
            "DEFLATE application/json",
        ])
    }),
    row("filter", "FilterDeclare", Filter, SERVER | SECTION, 1, |_| "zip CONTENT_SET".to_owned()),
    row("filter", "FilterProvider", Filter, HOST | DIRECTORY, 1, |choice| {
        format!("zip DEFLATE \"{}\"", choice.expression(1))
    }),
    row("filter", "FilterChain", Filter, DIRECTORY, 1, |choice| {
        choice.word(&["zip", "+zip", "-zip", "!"])
    }),
    row("request", "KeptBodySize", Filter, SECTION, 2, |choice| {
        choice.word(&["0", "1", "3", "10", "1000"])
    }),
    row("expires", "ExpiresActive", Filter, ALL, 4, |choice| choice.word(&["On", "On", "Off"])),
    row("expires", "ExpiresDefault", Filter, ALL, 4, lifetime),
    row("expires", "ExpiresByType", Filter, ALL, 4, |choice| {
        let of = choice.one(&["text/html", "text/*", "TEXT/plain", "image/png", "*/*", "text/css"]);
        format!("{of} {}", lifetime(choice))
    }),
    row("cern_meta", "MetaFiles", Fixup, ALL, 2, |choice| choice.word(&["On", "On", "Off"])),
    row("cern_meta", "MetaDir", Fixup, ALL, 2, |choice| {
        choice.word(&[".", ".", ".web", "d", "nope", ".."])
    }),
    row("cern_meta", "MetaSuffix", Fixup, ALL, 2, |choice| {
        choice.word(&[".meta", ".m", ".m", ".txt", ".en"])
    }),
    row("usertrack", "CookieTracking", Fixup, ALL, 2, |choice| choice.word(&["On", "On", "Off"])),
    row("usertrack", "CookieName", Fixup, ALL, 2, |choice| {
        choice.word(&["Apache", "Track", "a", "b.c"])
    }),
    row("usertrack", "CookieDomain", Fixup, ALL, 2, |choice| {
        choice.word(&[".example.test", ".a.b.c", ".x.test"])
    }),
    // In an `.htaccess` it is rare, since docs/refused.md allows the life of all cookies to differ.
    row("usertrack", "CookieExpires", Fixup, SERVER | SECTION, 2, |choice| {
        choice.word(&["3600", "\"2 weeks 3 days\"", "0", "\"1 year\"", "\"plus 1 month\""])
    }),
    row("usertrack", "CookieHTTPOnly", Fixup, ALL, 1, |choice| choice.word(&["On", "On", "Off"])),
    row("usertrack", "CookieSecure", Fixup, ALL, 1, |choice| choice.word(&["On", "On", "Off"])),
    row("usertrack", "CookieSameSite", Fixup, ALL, 2, |choice| {
        choice.word(&["None", "Lax", "Strict", "lax"])
    }),
    row("usertrack", "CookieStyle", Fixup, ALL, 2, |choice| {
        choice.word(&["Netscape", "Cookie", "Cookie2", "RFC2109", "rfc2965"])
    }),
];

/// When something expires.
pub fn lifetime(choice: &mut Choice) -> String {
    choice.word(&[
        "A0",
        "A3600",
        "M60",
        "M2000000000",
        "\"access plus 1 month\"",
        "\"now 1 day 2 hours\"",
        "\"modification plus 60 years\"",
        "\"access 3 weeks\"",
        "\"modification 20 years 5 minutes 1 second\"",
        "A-60",
    ])
}

/// Names of response fields.
const FIELDS: [&str; 20] = [
    "X-A",
    "X-B",
    "X-A",
    "Content-Type",
    "Content-Type",
    "Content-Type",
    "Vary",
    "ETag",
    "Cache-Control",
    "Set-Cookie",
    "Last-Modified",
    "Content-Language",
    "Location",
    "WWW-Authenticate",
    "Accept-Ranges",
    "Content-Location",
    "Expires",
    "Link",
    "Allow",
    "Content-Encoding",
];

fn header(choice: &mut Choice) -> String {
    let condition = choice.one(&["", "", "always ", "onsuccess "]);
    let action = choice.one(&[
        "set",
        "set",
        "append",
        "merge",
        "add",
        "unset",
        "edit",
        "edit*",
        "setifempty",
        "echo",
        "note",
    ]);
    let field = choice.one(&FIELDS);
    let rest = match action {
        "unset" => field.to_owned(),
        "echo" => choice.pattern(),
        "note" => format!("{field} seen"),
        "edit" | "edit*" => {
            format!("{field} {} \"{}\"", choice.pattern(), choice.one(&["", "x$0", "$1-y", "z"]))
        }
        _ => format!("{field} {}", value(choice)),
    };
    format!("{condition}{action} {rest}{}", condition_after(choice))
}

fn request_header(choice: &mut Choice) -> String {
    let field = choice.one(&[
        "X-Test",
        "User-Agent",
        "Accept-Encoding",
        "If-None-Match",
        "If-Modified-Since",
        "Range",
        "Accept-Language",
        "Authorization",
        "Accept",
        "Host",
        "Cookie",
    ]);
    let action = choice.one(&["set", "append", "add", "unset", "edit", "setifempty", "merge"]);
    let rest = match action {
        "unset" => field.to_owned(),
        "edit" => format!("{field} {} \"{}\"", choice.pattern(), choice.one(&["", "x$0", "z"])),
        _ => format!("{field} {}", value(choice)),
    };
    format!("{action} {rest}{}", condition_after(choice))
}

fn value(choice: &mut Choice) -> String {
    match choice.random.below(6) {
        0 => format!("\"expr={}\"", choice.template()),
        1 if choice.is_tls => choice.word(&[
            "\"%{SSL_PROTOCOL}s\"",
            "\"%{SSL_CLIENT_VERIFY}s %{SSL_CLIENT_S_DN_CN}s\"",
            "\"%{SSL_TLS_SNI}s-%{HTTPS}s\"",
        ]),
        1 => choice.word(&["\"%{V}e\"", "\"%{REQUEST_URI}e-%%\"", "\"%{bad}e x\""]),
        2 => choice.word(&[
            "\"text/html\"",
            "\"bytes=0-3\"",
            "\"gzip\"",
            "\"de\"",
            "\"\\\"tag\\\"\"",
        ]),
        _ => choice.word(&["v", "\"a b\"", "\"a, b\"", "\"\"", "Accept", "'q'", "\"a=\\\"b\\\"\""]),
    }
}

fn condition_after(choice: &mut Choice) -> String {
    match choice.random.below(10) {
        0 => choice.word(&[" env=V", " env=!bad", " env=bad"]),
        1 => format!(" \"expr={}\"", choice.expression(2)),
        2 if choice.random.percent(40) => " early".to_owned(),
        _ => String::new(),
    }
}

fn set_env_if(choice: &mut Choice) -> String {
    let of = choice.one(&[
        "User-Agent",
        "Request_URI",
        "Request_Method",
        "Remote_Addr",
        "Request_Protocol",
        "X-Test",
        "Host",
        "Referer",
        "Server_Addr",
        "V",
        "^X-.*",
        "Accept.*",
    ]);
    let pattern = choice.pattern();
    let set = choice.some(&["V", "bad", "V=1", "bad=$1", "!V", "!bad", "V=a$0b", "no-gzip"], 2);
    format!("{of} {pattern} {set}")
}
