//! What a stream of HTTP/2 gets instead of a response that can't be sent, as Apache was seen to
//! respond: the recordings over HTTP/1.1 have other fields there, or no response.

use wire::h2::hpack::Decoder;

use crate::http2::{HEADERS, Http2, PROTOCOLS, RST_STREAM, literal};
use crate::site::Site;

const CONFIGURATION: &str = "
LoadModule http2_module modules/mod_http2.so
LoadModule alias_module modules/mod_alias.so
LoadModule headers_module modules/mod_headers.so
LoadModule charset_lite_module modules/mod_charset_lite.so
LoadModule rewrite_module modules/mod_rewrite.so
LoadModule authz_core_module modules/mod_authz_core.so
<Location />
    Require all granted
</Location>
Header always set X-Host h
Header set X-Normal n
ErrorDocument 500 \"of the host\"
ErrorDocument 403 /section/bad.txt
Redirect 403 /forbidden
<Location /section>
    ForceType text/plain
    CharsetSourceEnc UTF-8
    CharsetDefault ISO-8859-1
    Header always set X-Section s
    ErrorDocument 500 \"of the section\"
</Location>
<Location /status>
    RewriteEngine On
    RewriteRule . /a.txt [R=foo,QSD]
    RewriteRule !\\.txt$ d/$2
</Location>
";

/// With a file that the section's filter can't translate.
fn site(name: &str, configuration: &str) -> Site {
    let mut site = Site::new(name);
    std::fs::create_dir(site.path("htdocs/section")).unwrap();
    std::fs::write(site.path("htdocs/section/bad.txt"), b"x\xff").unwrap();
    site.configure(&format!("{PROTOCOLS}{configuration}"));
    site.start();
    site
}

/// The fields of the response to a path, without those of each; `None` if the stream is reset.
fn fields(site: &Site, path: &str) -> Option<String> {
    let mut http2 = Http2::connect(site);
    let get = [&b"\x82\x86\x01\x09localhost"[..], &literal(":path", path)].concat();
    http2.request(1, &get).unwrap();
    let head = loop {
        let frame = http2.frame().unwrap();
        match frame.kind {
            HEADERS => break frame,
            RST_STREAM => return None,
            _ => {}
        }
    };
    let mut shown = Vec::new();
    let take = |name: &[u8], value: &[u8]| {
        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        if !["date", "server", "content-type"].contains(&&*name) {
            shown.push(format!("{name}={value}"));
        }
        true
    };
    Decoder::new().decode(&head.payload, take).unwrap();
    Some(shown.join(" "))
}

#[test]
fn a_filter_that_fails_leaves_an_error_of_the_host() {
    let site = site("h2-withheld", CONFIGURATION);
    for path in ["/section/bad.txt", "/forbidden"] {
        let expected = ":status=500 x-host=h content-length=11";
        assert_eq!(fields(&site, path).as_deref(), Some(expected), "{path}");
    }
    // Others are as over HTTP/1.1.
    let missing = fields(&site, "/section/missing").unwrap();
    assert!(missing.starts_with(":status=404 x-host=h x-section=s "), "{missing}");
}

#[test]
fn a_document_of_the_host_that_fails_too_ends_the_stream() {
    let document = CONFIGURATION.replace("500 \"of the host\"", "500 /section/bad.txt");
    let site = site("h2-withheld-document", &document);
    for path in ["/section/bad.txt", "/forbidden"] {
        assert_eq!(fields(&site, path), None, "{path}");
    }
}

#[test]
fn a_status_that_is_none_ends_the_stream() {
    let site = site("h2-no-status", CONFIGURATION);
    assert_eq!(fields(&site, "/status/x"), None);
}
