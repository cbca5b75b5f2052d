//! A site of 200 pages with server-side includes, as they were written in 2003: a header, a menu
//! that knows where it is, a footer with the page's date, and a program that counts.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::browser::Browser;
use crate::compared::{FRAMING, Mask};
use crate::services::folder;
use crate::stack::{Application, Runs};
use crate::{APACHE, compare};

const SITE: Application = Application {
    name: "a site of server-side includes",
    needs: &[APACHE],
    folders: &[],
    naming: (&[], &[]),
    writable: &["/htdocs"],
    has_database: false,
    runs: Runs::Programs,
    configuration: "DocumentRoot @ROOT@/htdocs\nAddType text/html .shtml\n\
                    AddOutputFilter INCLUDES .shtml\nDirectoryIndex index.shtml\n\
                    ScriptAlias /programs/ @ROOT@/programs/\nAlias /shared/ @ROOT@/shared/\n\
                    <Directory @ROOT@>\nRequire all granted\nAllowOverride All\n\
                    Options +Includes\n</Directory>\n\
                    <Location /inc/secret>\nRequire all denied\n</Location>\n",
    prepare,
};

const SECTIONS: [&str; 10] =
    ["about", "articles", "contact", "events", "faq", "links", "news", "people", "photos", "wiki"];
/// In each section.
const PAGES: usize = 20;

const MASKS: &[Mask] = &[FRAMING];

#[test]
fn includes() {
    compare(&SITE, script, MASKS);
}

fn prepare(root: &Path) {
    for name in ["htdocs/inc/secret", "programs", "shared"] {
        folder(root, name, 0o755);
    }
    for (name, text) in PARTS {
        write(root, name, text);
    }
    let program = root.join("programs/count");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let bits = root.join("htdocs/inc/marked.html");
    fs::set_permissions(bits, fs::Permissions::from_mode(0o755)).unwrap();
    for (index, section) in SECTIONS.iter().enumerate() {
        folder(root, &format!("htdocs/{section}"), 0o755);
        write(root, &format!("htdocs/{section}/index.shtml"), &page(index, 0));
        for number in 1..PAGES {
            write(root, &format!("htdocs/{section}/{number}.shtml"), &page(index, number));
        }
    }
    write(root, "htdocs/links/.htaccess", "SSILegacyExprParser on\nSSITimeFormat \"%d.%m.%y\"\n");
    write(root, "htdocs/faq/.htaccess", "SSIErrorMsg \"<b>oh</b>\"\nSSIUndefinedEcho -\n");
    write(root, "htdocs/photos/.htaccess", "XBitHack full\nSSILastModified on\nSSIETag on\n");
}

/// Writes a file that is as old as its name is long.
fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::write(&path, text).unwrap();
    let days = 11_000 + name.len() as u64;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86_400);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

const PARTS: [(&str, &str); 12] = [
    (
        "htdocs/inc/header.shtml",
        "<html><head><title><!--#echo var=\"title\" --></title></head><body>\n\
         <!--#include virtual=\"/inc/menu.shtml\" -->\n",
    ),
    (
        "htdocs/inc/menu.shtml",
        "<ul>\n<!--#if expr=\"v('section') == 'about'\" --><li><b>About</b>\n\
         <!--#else --><li><a href=\"/about/\">About</a>\n<!--#endif -->\
         <!--#if expr=\"v('section') =~ /^(ne)(w)s$/\" --><li>$1-$2 <!--#set var=\"m\" \
         value=\"$1+$2\" -->\
         <!--#echo var=\"m\" -->\n<!--#endif -->\
         <li><!--#echo var=\"DOCUMENT_URI\" --> <!--#echo encoding=\"url\" var=\"title\" -->\n\
         <!--#include file=\"entry.txt\" --></ul>",
    ),
    ("htdocs/inc/entry.txt", "<li>a file <!--#echo var=\"title\" -->\n"),
    (
        "htdocs/inc/footer.shtml",
        "<hr><!--#config timefmt=\"%Y-%m-%d\" -->changed <!--#flastmod \
        virtual=\"/inc/menu.shtml\" --> \
         page <!--#echo var=\"LAST_MODIFIED\" --> size <!--#fsize virtual=\"/shared/long.txt\" \
         -->\n\
         </body></html>\n",
    ),
    ("htdocs/inc/marked.html", "marked: <!--#echo var=\"DOCUMENT_NAME\" -->\n"),
    ("htdocs/inc/secret/plan.txt", "not for you\n"),
    ("htdocs/inc/loop.shtml", "x<!--#include virtual=\"/inc/loop.shtml\" -->y"),
    ("htdocs/index.shtml", "<!--#include virtual=\"/about/\" -->"),
    ("htdocs/plain.shtml", "no element\n"),
    ("shared/long.txt", "0123456789abcdef0123456789abcdef0123456789abcdef"),
    (
        "shared/other.shtml",
        "other <!--#echo var=\"QUERY_STRING\" --> <!--#echo var=\"title\" -->\n",
    ),
    (
        "programs/count",
        "#!/bin/sh\nprintf 'Content-Type: text/html\\n\\n'\n\
         echo \"count $QUERY_STRING $REQUEST_METHOD $DOCUMENT_NAME $title\"\n",
    ),
];

/// A page: what all have, and what this one has besides.
fn page(section: usize, number: usize) -> String {
    let name = SECTIONS[section];
    let own = match (section + number) % 10 {
        0 => "<!--#include virtual=\"/programs/count?page\" -->",
        1 => {
            "<!--#if expr=\"v('HTTP_USER_AGENT') =~ /old/\" -->old<!--#elif expr=\"-n \
            v('HTTP_X_NEW')\" \
              -->new <!--#echo var=\"HTTP_X_NEW\" --><!--#else -->neither<!--#endif -->"
        }
        2 => "<!--#include virtual=\"/inc/secret/plan.txt\" --> <!--#fsize file=\"none.txt\" -->",
        3 => "<!--#include virtual=\"/none.txt\" onerror=\"/shared/other.shtml?wrong\" -->",
        4 => {
            "<!--#include virtual=\"/shared/other.shtml?a=1&amp;b=2\" --><!--#echo \
            var=\"nothing\" -->"
        }
        5 => "<!--#exec cmd=\"echo '$title'; echo $DOCUMENT_NAME\" -->",
        6 => "<!--#config errmsg=\"broken\" --><!--#unknown --><!--#echo vra=\"x\" --><!--#if -->",
        7 => {
            "<!--#set var=\"a\" value=\"x&amp;y\" --><!--#set var=\"b\" value=\"${a}z\\$a\" -->\
              <!--#echo encoding=\"none\" var=\"b\" --> <!--#echo var=\"b\" -->"
        }
        8 => {
            "<!--#config sizefmt=\"bytes\" --><!--#fsize virtual=\"/shared/long.txt\" --> \
              <!--#include virtual=\"/inc/marked.html\" --><!--#echo \
              var=\"QUERY_STRING_UNESCAPED\" -->"
        }
        _ => {
            "<!--#include virtual=\"/inc/loop.shtml\" --><!--#if expr=\"$section = links\" -->old \
              syntax<!--#endif -->"
        }
    };
    let text = "A paragraph of the page. ".repeat(number * 10);
    format!(
        "<!--#set var=\"title\" value=\"{name} &amp; {number}\" --><!--#set var=\"section\" \
         value=\"{name}\" --><!--#include virtual=\"/inc/header.shtml\" -->\n<p>{text}\n{own}\n\
         <!--#include virtual=\"/inc/footer.shtml\" -->"
    )
}

fn paths() -> impl Iterator<Item = String> {
    SECTIONS.into_iter().flat_map(|section| {
        let page = move |number| match number {
            0 => format!("/{section}/"),
            number => format!("/{section}/{number}.shtml"),
        };
        (0..PAGES).map(page)
    })
}

fn script(browser: &mut Browser) {
    for path in ["/", "/index.shtml", "/plain.shtml", "/inc/loop.shtml", "/inc/marked.html"] {
        browser.get(path);
    }
    for path in paths() {
        browser.get(&path);
    }
    let folder = browser.folder.parent().unwrap().to_path_buf();
    write(&folder, "htdocs/inc/entry.txt", "<li>another file\n");
    write(&folder, "htdocs/inc/footer.shtml", "<hr><!--#echo var=\"title\" --></html>\n");
    for path in paths() {
        browser.get(&path);
        browser.get(&format!("{path}?q=%3Cb%3E&r=1"));
    }
    fs::remove_file(folder.join("htdocs/inc/entry.txt")).unwrap();
    fs::rename(folder.join("shared/long.txt"), folder.join("htdocs/none.txt")).unwrap();
    write(&folder, "htdocs/inc/secret/.htaccess", "SSIErrorMsg no\n");
    for path in paths() {
        browser.get_with(&path, "X-New: 1\r\nUser-Agent: old\r\n");
        browser.get_with(&path, "Accept-Encoding: gzip\r\nX-New: 2\r\n");
    }
    for path in ["/plain.shtml", "/about/", "/photos/3.shtml"] {
        browser.send("HEAD", path, "", b"");
        browser.get_with(path, "Range: bytes=0-9\r\n");
        browser.get_with(path, "If-Modified-Since: Sat, 01 Jan 2022 00:00:00 GMT\r\n");
        browser.post(path, &[("a", "b")]);
    }
}
