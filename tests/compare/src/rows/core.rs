//! The core: sections, protocol, tags and the server's own pages.

use super::Phase::{Error, Filter, Fixup, Handler, Name, Protocol, Type, Walk};
use super::{ALL, DIRECTORY, GLOBAL, HOST, Row, SECTION, SERVER, row};
use crate::choice::{Choice, quoted};

pub const ROWS: &[Row] = &[
    row("core", "Options", Walk, ALL, 24, options),
    // Most sites let their files say what they do: else each of them is one 500 after the other.
    row("core", "AllowOverride", Walk, SECTION, 6, |choice| {
        choice.word(&[
            "All",
            "All",
            "All",
            "All",
            "None",
            "None",
            "Nonfatal=All",
            "FileInfo AuthConfig Indexes Limit Options",
            "FileInfo AuthConfig",
            "Options=Indexes,FollowSymLinks",
            "Nonfatal=Override FileInfo",
            "Limit Indexes Options",
        ])
    }),
    row("core", "AllowOverrideList", Walk, SECTION, 1, |choice| {
        choice.word(&["None", "Header Redirect", "Require Options", "AddType ErrorDocument"])
    }),
    row("core", "AcceptPathInfo", Handler, ALL, 8, |choice| choice.word(&["On", "Off", "Default"])),
    row("core", "ErrorDocument", Error, ALL, 16, error_document),
    row("core", "FileETag", Filter, ALL, 8, |choice| {
        choice.word(&[
            "None",
            "All",
            "MTime",
            "Size",
            "MTime Size",
            "INode",
            "-Size",
            "+INode -MTime",
            "Digest",
            "MTime Digest",
        ])
    }),
    row("core", "ContentDigest", Filter, ALL, 2, |choice| choice.word(&["On", "Off"])),
    row("core", "DefaultType", Type, ALL, 1, |choice| choice.word(&["none", "text/plain"])),
    row("core", "ForceType", Type, DIRECTORY, 5, |choice| {
        choice.word(&["text/plain", "None", "image/gif", "text/html;charset=utf-8", "foo"])
    }),
    row("core", "SetHandler", Handler, ALL, 6, |choice| {
        choice.word(&[
            "None",
            "default-handler",
            "default-handler",
            "type-map",
            "\"%{HTTP:X}\"",
            "send-as-is",
            "imap-file",
        ])
    }),
    row("core", "AddDefaultCharset", Type, ALL, 5, |choice| {
        choice.word(&["On", "Off", "utf-8", "koi8-r"])
    }),
    row("core", "AllowEncodedSlashes", Name, SERVER, 6, |choice| {
        choice.word(&["On", "Off", "NoDecode"])
    }),
    row("core", "MergeSlashes", Name, SERVER, 4, |choice| choice.word(&["On", "Off"])),
    row("core", "UseCanonicalName", Name, SERVER | SECTION, 4, |choice| {
        choice.word(&["On", "Off"])
    }),
    row("core", "ServerSignature", Error, ALL, 3, |_| "Off".to_owned()),
    row("core", "ServerAdmin", Error, SERVER, 1, |_| "me@example.com".to_owned()),
    row("core", "TraceEnable", Protocol, SERVER, 3, |choice| {
        choice.word(&["On", "Off", "extended"])
    }),
    row("core", "LimitRequestBody", Protocol, ALL, 3, |choice| choice.word(&["0", "3", "10"])),
    row("core", "LimitRequestFields", Protocol, SERVER, 1, |choice| choice.word(&["0", "4", "8"])),
    row("core", "LimitRequestLine", Protocol, GLOBAL, 1, |choice| choice.word(&["60", "8190"])),
    row("core", "LimitRequestFieldSize", Protocol, GLOBAL, 1, |choice| {
        choice.word(&["80", "8190"])
    }),
    row("core", "HttpProtocolOptions", Protocol, SERVER, 3, |choice| {
        choice.word(&[
            "Strict",
            "Unsafe",
            "Allow0.9",
            "Require1.0",
            "RegisteredMethods",
            "Unsafe Allow0.9",
        ])
    }),
    row("core", "MaxRanges", Filter, HOST | SECTION, 4, |choice| {
        choice.word(&["none", "default", "unlimited", "1", "2"])
    }),
    row("core", "MaxRangeOverlaps", Filter, HOST | SECTION, 2, |choice| {
        choice.word(&["none", "1", "20"])
    }),
    row("core", "MaxRangeReversals", Filter, HOST | SECTION, 2, |choice| {
        choice.word(&["none", "1", "20"])
    }),
    row("core", "KeepAlive", Protocol, HOST, 2, |choice| choice.word(&["On", "Off"])),
    row("core", "MaxKeepAliveRequests", Protocol, HOST, 1, |choice| choice.word(&["0", "2", "5"])),
    row("core", "SetOutputFilter", Filter, DIRECTORY, 2, |_| "DEFLATE".to_owned()),
    row("core", "QualifyRedirectURL", Fixup, HOST | SECTION, 1, |choice| {
        choice.word(&["On", "Off"])
    }),
    row("core", "StrictHostCheck", Protocol, SERVER, 2, |choice| choice.word(&["On", "Off"])),
    row("core", "AccessFileName", Walk, SERVER, 1, |choice| {
        choice.word(&[".htaccess", ".acl .htaccess"])
    }),
    row("core", "ServerAlias", Name, HOST, 1, |_| "alias.test *.wild.test".to_owned()),
    row("core", "ServerTokens", Error, GLOBAL, 3, |choice| choice.word(&["Prod", "Full"])),
    row("core", "RegexDefaultOptions", Walk, GLOBAL, 3, |choice| {
        choice.word(&["+ICASE", "-DOLLAR_ENDONLY"])
    }),
    row("core", "EnableSendfile", Filter, ALL, 1, |choice| choice.word(&["On", "Off"])),
    row("core", "EnableMMAP", Filter, ALL, 1, |choice| choice.word(&["On", "Off"])),
];

fn options(choice: &mut Choice) -> String {
    const WORDS: [&str; 7] = [
        "Indexes",
        "FollowSymLinks",
        "SymLinksIfOwnerMatch",
        "MultiViews",
        "Includes",
        "ExecCGI",
        "IncludesNOEXEC",
    ];
    if choice.random.percent(12) {
        return choice.word(&[
            "All",
            "None",
            "All -Indexes",
            "None +FollowSymLinks",
            "Indexes -All",
        ]);
    }
    let is_relative = choice.random.percent(70);
    let words = (0..1 + choice.random.below(3)).map(|_| {
        let sign = if is_relative { choice.one(&["+", "+", "-"]) } else { "" };
        format!("{sign}{}", choice.one(&WORDS))
    });
    words.collect::<Vec<_>>().join(" ")
}

fn error_document(choice: &mut Choice) -> String {
    let status = choice.one(&[
        "404", "404", "403", "403", "401", "400", "405", "500", "412", "416", "406", "417", "413",
    ]);
    let what = match choice.random.below(10) {
        // An empty text is refused.
        0 if choice.random.percent(8) => "\"\"".to_owned(),
        0..=2 => choice.word(&["\"sorry\"", "\"a < b\"", "default", "\"a \\\"q\\\"\"", "'x'"]),
        3..=6 => quoted(&choice.path()),
        7 => choice.word(&["http://other.test/x", "http://other.test/?a", "https://other.test"]),
        8 => choice.word(&["/error.html", "/nope", "/d/", "/a.txt?q=1", "/al/a.txt"]),
        _ => format!("\"{} {}\"", choice.one(&["no", "text"]), choice.template()),
    };
    format!("{status} {what}")
}
