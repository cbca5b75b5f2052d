//! URL to file: aliases, redirects, index files, negotiation, listings, types.

use super::Phase::{Fixup, Handler, Name, Type};
use super::{ALL, DIRECTORY, GLOBAL, HOST, LOCATION, Row, SECTION, SERVER, row};
use crate::choice::{Choice, quoted};

pub const ROWS: &[Row] = &[
    row("alias", "Alias", Name, HOST, 14, alias),
    row("alias", "AliasMatch", Name, HOST, 6, |choice| {
        choice.word(&[
            "^/al/(.*)$ \"@SITE@/out/$1\"",
            "\"^/m(.)\" \"@SITE@/htdocs/$1.txt\"",
            "^/al2 \"@SITE@/htdocs/a.txt\"",
            "/d/(.*)\\\\.txt$ \"@SITE@/out/$1.txt\"",
            "(?i)^/AL(/.*)?$ \"@SITE@/htdocs$1\"",
        ])
    }),
    row("alias", "Alias", Name, LOCATION, 2, |choice| {
        choice.word(&["\"@SITE@/out\"", "\"@SITE@/htdocs/d\"", "\"@SITE@/out/%{REQUEST_METHOD}\""])
    }),
    row("alias", "AliasPreservePath", Name, HOST | SECTION, 1, |choice| {
        choice.word(&["On", "Off"])
    }),
    row("alias", "Redirect", Name, ALL, 10, redirect),
    row("alias", "RedirectMatch", Name, ALL, 10, redirect_match),
    row("alias", "RedirectTemp", Name, ALL, 2, |choice| {
        format!("{} /a.txt", quoted(&choice.narrow_path()))
    }),
    row("alias", "RedirectPermanent", Name, ALL, 2, |choice| {
        format!("{} http://other.test/x", quoted(&choice.narrow_path()))
    }),
    row("alias", "RedirectRelative", Name, SERVER, 2, |choice| choice.word(&["On", "Off"])),
    row("dir", "DirectoryIndex", Handler, ALL, 14, |choice| match choice.random.below(6) {
        0 => "disabled".to_owned(),
        1 => quoted(&choice.path()),
        _ => choice.some(&["index.html", "a.txt", "index", "n", "d/", "index.txt", "nope"], 3),
    }),
    row("dir", "DirectorySlash", Handler, ALL, 6, |choice| choice.word(&["On", "Off"])),
    row("dir", "DirectoryIndexRedirect", Handler, ALL, 3, |choice| {
        choice.word(&["On", "Off", "permanent", "temp", "seeother", "303", "307"])
    }),
    row("dir", "DirectoryCheckHandler", Handler, ALL, 2, |choice| choice.word(&["On", "Off"])),
    row("dir", "FallbackResource", Handler, ALL, 3, |choice| {
        choice.word(&["disabled", "/a.txt", "/index.html", "/d/"])
    }),
    row("mime", "MultiviewsMatch", Handler, ALL, 3, |choice| {
        choice.word(&["Any", "NegotiatedOnly", "Filters", "Handlers", "Handlers Filters"])
    }),
    row("negotiation", "LanguagePriority", Handler, ALL, 4, |choice| {
        choice.some(&["en", "de", "fr", "en-US"], 3)
    }),
    row("negotiation", "ForceLanguagePriority", Handler, ALL, 3, |choice| {
        choice.word(&["None", "Prefer", "Fallback", "Prefer Fallback"])
    }),
    row("negotiation", "CacheNegotiatedDocs", Handler, SERVER, 1, |choice| {
        choice.word(&["On", "Off"])
    }),
    row("autoindex", "IndexOptions", Handler, ALL, 12, index_options),
    row("autoindex", "IndexIgnore", Handler, ALL, 4, |choice| choice.glob()),
    row("autoindex", "IndexIgnoreReset", Handler, DIRECTORY, 1, |choice| {
        choice.word(&["On", "Off"])
    }),
    row("autoindex", "IndexOrderDefault", Handler, ALL, 4, |choice| {
        choice.one(&["Ascending", "Descending"]).to_owned()
            + " "
            + choice.one(&["Name", "Date", "Size", "Description"])
    }),
    row("autoindex", "IndexStyleSheet", Handler, ALL, 1, |_| "/style.css".to_owned()),
    row("autoindex", "IndexHeadInsert", Handler, ALL, 1, |_| "\"<meta name=x>\"".to_owned()),
    row("autoindex", "HeaderName", Handler, ALL, 2, |choice| {
        choice.word(&["HEADER.html", "HEADER", "/b.html", "a.txt"])
    }),
    row("autoindex", "ReadmeName", Handler, ALL, 2, |choice| {
        choice.word(&["README.html", "README", "n", "d/"])
    }),
    row("autoindex", "AddDescription", Handler, ALL, 3, |choice| {
        format!("\"a <b> text\" {}", choice.glob())
    }),
    row("autoindex", "AddIcon", Handler, ALL, 2, |choice| {
        choice.word(&[
            "/i/a.gif .txt",
            "(TXT,/i/t.gif) *.txt",
            "/d.gif ^^DIRECTORY^^",
            "/b.gif ^^BLANKICON^^",
        ])
    }),
    row("autoindex", "AddIconByType", Handler, ALL, 1, |_| "(T,/t.gif) text/*".to_owned()),
    row("autoindex", "AddIconByEncoding", Handler, ALL, 1, |_| "/z.gif x-gzip".to_owned()),
    row("autoindex", "AddAlt", Handler, ALL, 1, |_| "\"Alt\" *.txt".to_owned()),
    row("autoindex", "AddAltByType", Handler, ALL, 1, |_| "\"AltT\" text/html".to_owned()),
    row("autoindex", "DefaultIcon", Handler, ALL, 1, |_| "/default.gif".to_owned()),
    row("mime", "AddType", Type, ALL, 10, |choice| {
        choice.word(&[
            "text/plain .html",
            "text/x-foo .foo bar",
            "image/gif n",
            "text/html;charset=utf-8 txt",
            "application/x-type-map var",
            "foo/bar .TXT",
            "text/html;qs=0.5 .fr",
            "httpd/send-as-is asis",
            "application/x-httpd-imap map",
        ])
    }),
    row("mime", "AddCharset", Type, ALL, 3, |choice| {
        choice.word(&["utf-8 .utf8 txt", "koi8-r .html", "iso-8859-1 .en"])
    }),
    row("mime", "AddLanguage", Type, ALL, 8, |choice| {
        choice.word(&["en .en", "de .de", "fr .fr", "en .en .txt", "x-klingon .foo", "en-US .html"])
    }),
    row("mime", "AddEncoding", Type, ALL, 4, |choice| {
        choice.word(&["x-gzip .gz", "gzip gz", "x-foo .txt", "br .foo"])
    }),
    row("mime", "AddHandler", Handler, ALL, 4, |choice| {
        choice.word(&[
            "type-map .var",
            "default-handler .txt",
            "type-map var html",
            "send-as-is .asis",
            "imap-file .map",
            "send-as-is asis html",
        ])
    }),
    row("mime", "AddOutputFilter", Type, ALL, 2, |choice| {
        choice.word(&["DEFLATE html", "DEFLATE txt css"])
    }),
    row("mime", "RemoveType", Type, DIRECTORY | GLOBAL | HOST, 2, |choice| {
        choice.word(&[".txt", "html", ".foo"])
    }),
    row("mime", "RemoveLanguage", Type, DIRECTORY, 1, |choice| choice.word(&[".en", "de"])),
    row("mime", "RemoveEncoding", Type, DIRECTORY, 1, |_| ".gz".to_owned()),
    row("mime", "RemoveHandler", Type, DIRECTORY, 1, |choice| choice.word(&["var", ".foo"])),
    row("mime", "RemoveCharset", Type, DIRECTORY, 1, |_| ".utf8".to_owned()),
    row("mime", "DefaultLanguage", Type, ALL, 3, |choice| choice.word(&["en", "de", "x-foo"])),
    row("mime", "ModMimeUsePathInfo", Type, DIRECTORY, 2, |choice| choice.word(&["On", "Off"])),
    row("speling", "CheckSpelling", Fixup, ALL, 4, |choice| choice.word(&["On", "On", "Off"])),
    row("speling", "CheckCaseOnly", Fixup, ALL, 2, |choice| choice.word(&["On", "On", "Off"])),
    row("speling", "CheckBasenameMatch", Fixup, ALL, 2, |choice| {
        choice.word(&["On", "Off", "Off"])
    }),
    row("userdir", "UserDir", Name, HOST, 2, users),
    row("userdir", "UserDir", Name, GLOBAL, 1, |choice| {
        choice.word(&["public_html", "disabled", "http://other.test/~*/", "enabled anna"])
    }),
    row("vhost_alias", "VirtualDocumentRoot", Name, HOST, 1, host_folder),
    row("vhost_alias", "VirtualDocumentRootIP", Name, HOST, 1, |choice| {
        choice.word(&[
            "\"@SITE@/hosts/%0\"",
            "\"@SITE@/hosts/%1\"",
            "\"@SITE@/hosts/%-1.1\"",
            "none",
        ])
    }),
    row("vhost_alias", "VirtualScriptAlias", Name, HOST, 1, |choice| {
        choice.word(&["\"@SITE@/hosts/%0\"", "\"@SITE@/%-1/bin\"", "none"])
    }),
    row("vhost_alias", "VirtualScriptAliasIP", Name, HOST, 1, |choice| {
        choice.word(&["\"@SITE@/hosts/%0\"", "\"@SITE@/nope\"", "none"])
    }),
    row("actions", "Action", Handler, ALL, 3, action),
    row("actions", "Script", Handler, SERVER | SECTION, 2, |choice| {
        let method = choice.one(&["GET", "POST", "PUT", "DELETE", "FOO"]);
        format!("{method} {}", program(choice))
    }),
    row("imagemap", "ImapBase", Handler, ALL, 2, |choice| {
        choice.word(&["map", "referer", "http://other.test/a/b", "/d/", "Map", "http://@HOST@/"])
    }),
    row("imagemap", "ImapDefault", Handler, ALL, 2, |choice| {
        choice.word(&["error", "nocontent", "map", "referer", "http://other.test/x", "d.html"])
    }),
    row("imagemap", "ImapMenu", Handler, ALL, 2, |choice| {
        choice.word(&["none", "formatted", "semiformatted", "unformatted", "odd"])
    }),
];

/// Where the folders of users are, and who has one.
pub fn users(choice: &mut Choice) -> String {
    choice.word(&[
        "\"@SITE@/users\"",
        "\"@SITE@/users\"",
        "\"@SITE@/users/\"",
        "\"@SITE@/users/*/public_html\"",
        "\"@SITE@/users/*\" public_html",
        "\"@SITE@/nope\" \"@SITE@/users\"",
        "http://other.test/users",
        "http://other.test/~*/home",
        "disabled",
        "disabled bob",
        "enabled anna",
        "public_html",
    ])
}

/// The folder of each host, by its name.
pub fn host_folder(choice: &mut Choice) -> String {
    choice.word(&[
        "\"@SITE@/hosts/%0\"",
        "\"@SITE@/hosts/%0/\"",
        "\"@SITE@/hosts/%-1\"",
        "\"@SITE@/hosts/%2+\"",
        "\"@SITE@/hosts/%-1.1/%2.-1-\"",
        "\"@SITE@/hosts/%1.1\"",
        "\"@SITE@/htdocs/%5\"",
        "\"@SITE@/htdocs\"",
        "none",
    ])
}

/// A program for files of a type or with a handler.
pub fn action(choice: &mut Choice) -> String {
    let of = choice.one(&[
        "text/html",
        "text/html",
        "text/plain",
        "text/css",
        "httpd/unix-directory",
        "send-as-is",
        "imap-file",
        "type-map",
        "image/gif",
    ]);
    format!("{of} {}{}", program(choice), choice.one(&["", "", " virtual"]))
}

/// A path that requests are passed to: its folder has files of the same names as others.
fn program(choice: &mut Choice) -> String {
    match choice.random.below(3) {
        0 => choice.word(&["/d", "/al", "/docs", "/a.txt", "/d/", "/nope"]),
        _ => quoted(&choice.path()),
    }
}

fn alias(choice: &mut Choice) -> String {
    let from = match choice.random.below(3) {
        0 => quoted(&choice.path()),
        _ => choice.word(&["/al", "/al/", "/al2", "\"/a b\"", "/AL", "/d/", "/al/sub"]),
    };
    let to = choice.one(&[
        "\"@SITE@/out\"",
        "\"@SITE@/out/\"",
        "\"@SITE@/htdocs/d/\"",
        "\"@SITE@/htdocs/a.txt\"",
        "\"@SITE@/htdocs\"",
        "\"@SITE@/nope\"",
    ]);
    format!("{from} {to}")
}

fn redirect(choice: &mut Choice) -> String {
    let status =
        choice.one(&["", "", "permanent ", "temp ", "seeother ", "gone ", "404 ", "308 ", "307 "]);
    let from = match choice.random.below(3) {
        0 => quoted(&choice.narrow_path()),
        _ => choice.word(&["/r", "/r/", "/d", "/nope", "/a.txt", "\"/c d.txt\""]),
    };
    if status == "gone " || status == "404 " {
        return format!("{status}{from}");
    }
    let to = choice.one(&[
        "http://other.test/x",
        "/a.txt",
        "/t/",
        "https://other.test/?q=1",
        "\"/a b\"",
        "/%41",
    ]);
    format!("{status}{from} {to}")
}

fn redirect_match(choice: &mut Choice) -> String {
    let status = choice.one(&["", "404 ", "gone ", "301 ", "303 ", "403 "]);
    let pattern = choice.narrow_pattern();
    match status {
        "404 " | "gone " | "403 " => format!("{status}{pattern}"),
        _ => {
            let to =
                choice.one(&["http://other.test/$1", "/x/$1", "\"/y$0\"", "https://o.test/$2-$1"]);
            format!("{status}{pattern} {to}")
        }
    }
}

fn index_options(choice: &mut Choice) -> String {
    const WORDS: [&str; 18] = [
        "FancyIndexing",
        "HTMLTable",
        "FoldersFirst",
        "IconsAreLinks",
        "IgnoreCase",
        "IgnoreClient",
        "NameWidth=*",
        "NameWidth=12",
        "ScanHTMLTitles",
        "ShowForbidden",
        "SuppressColumnSorting",
        "SuppressDescription",
        "SuppressHTMLPreamble",
        "SuppressIcon",
        "SuppressLastModified",
        "SuppressRules",
        "SuppressSize",
        "TrackModified",
    ];
    let is_relative = choice.random.percent(40);
    let words = (0..1 + choice.random.below(4)).map(|_| {
        let sign = if is_relative { choice.one(&["+", "+", "-"]) } else { "" };
        let word = choice.one(&WORDS);
        match (sign, word.split_once('=')) {
            ("-", Some((word, _))) => format!("-{word}"),
            _ => format!("{sign}{word}"),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
