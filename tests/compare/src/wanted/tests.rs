use super::{LIMITS, OF_META_FILES, OF_NESTED_META_FILES, WANTED, rule_of_logs};
use crate::neighbours::CITES;
use crate::site::{Content, File, Node, Request, Site};
use crate::skipped;

fn rule(
    site: &Site,
    request: &Request,
    apache: &[String],
    tamarack: &[String],
) -> Option<&'static str> {
    super::rule(site, request, apache, tamarack, "")
}

#[test]
fn a_rule_with_status_zero_may_end_a_request() {
    let allows = |words: &str, status: &str| {
        let config = vec![Node::directive("RewriteRule", words)];
        let site = Site { config, ..Site::default() };
        let lines = |status: &str| [format!("< HTTP/1.1 {status}"), "<".to_owned()];
        rule(&site, &Request::default(), &lines("200 OK"), &lines(status)).is_some()
    };
    let failed = "500 Internal Server Error";
    assert!(allows(". d/$2 [gone,R=foo,qsappend]", failed) && allows("a - [F, R=foo]", failed));
    assert!(
        allows("a - [R=200, R=foo, UNC]", failed) && !allows("a - [R=permanent,R=foo]", failed)
    );
    assert!(!allows("a - [R=foo]", failed) && !allows("a - [F,R=foo]", "403 Forbidden"));
}

#[test]
fn a_folder_as_it_is_may_be_a_document_or_be_buffered() {
    let folder = "< Content-Type: httpd/unix-directory";
    let site = |words: &[&str]| {
        let config = words.iter().map(|words| Node::directive("SetHandler", *words)).collect();
        Site { config, ..Site::default() }
    };
    let lines = |status: &str, field: &str| {
        [format!("< HTTP/1.1 {status}"), field.to_owned(), "<".to_owned()]
    };
    let request = |method: &str| Request { method: method.to_owned(), ..Request::default() };
    let page = lines("404 Not Found", "< Content-Type: text/html; charset=iso-8859-1");
    let document = |method: &str, field: &str| {
        let apache = lines("404 Not Found", field);
        rule(&site(&["send-as-is"]), &request(method), &apache, &page).is_some()
    };
    assert!(document("HEAD", folder) && !document("GET", folder));
    let data = lines("200 OK", "< Content-Type: text/plain");
    let refused_page = lines("403 Forbidden", "< Content-Type: text/html");
    let passes = |filters: &str| {
        rule(&site(&["send-as-is", filters]), &request("HEAD"), &data, &refused_page).is_some()
    };
    assert!(passes("DATA;SUBSTITUTE") && !passes("SUBSTITUTE"));
    let asked = ["< HTTP/1.1 100 Continue".to_owned(), "<".to_owned()];
    let begun = [asked.as_slice(), &lines("200 OK", folder)].concat();
    let refused = lines("403 Forbidden", "< Connection: close");
    assert!(rule(&site(&["send-as-is"]), &request("HEAD"), &begun, &refused).is_some());
    assert!(rule(&site(&["send-as-is"]), &request("GET"), &begun, &refused).is_none());
    assert!(!document("HEAD", "< Content-Type: text/html"));
    let denied = lines("403 Forbidden", "< Content-Length: 168");
    let buffered = |filters: &str, length: &str| {
        let apache = lines("200 OK", length);
        rule(&site(&["send-as-is", filters]), &request("GET"), &apache, &denied).is_some()
    };
    assert!(buffered("BUFFER;SUBSTITUTE", "< Content-Length: 0"));
    assert!(!buffered("SUBSTITUTE", "< Content-Length: 0"));
    assert!(!buffered("BUFFER;SUBSTITUTE", "< Content-Length: 1"));
    let empty = ["< HTTP/1.1 200 OK", "< Content-Length: 0", folder, "<"].map(str::to_owned);
    let passed = |filter: &str| {
        rule(&site(&["send-as-is", filter]), &request("GET"), &empty, &denied).is_some()
    };
    assert!(passed("SUBSTITUTE") && !passed("DATA"));
    let failed = lines("500 Internal Server Error", "< Connection: close");
    let changed = |errors: &str| {
        super::rule(&site(&["x;Sed"]), &request("GET"), &failed, &denied, errors).is_some()
    };
    assert!(changed("[asis:error] AH01234: file permissions deny") && !changed(""));
    let mut translated = site(&["send-as-is"]);
    assert!(rule(&translated, &request("GET"), &failed, &denied).is_none());
    translated.config.push(Node::directive("CharsetSourceEnc", "UTF-8"));
    assert!(rule(&translated, &request("GET"), &failed, &denied).is_some());
}

#[test]
fn ranges_of_a_page_may_hide_that_the_body_is_refused() {
    let allows = |field: &str, statuses: [&str; 2]| {
        let fields = vec![(field.to_owned(), b"bytes=0-1".to_vec())];
        let request = Request { fields, ..Request::default() };
        let [apache, tamarack] =
            statuses.map(|status| [format!("< HTTP/1.1 {status}"), "<".to_owned()]);
        rule(&Site::default(), &request, &apache, &tamarack).is_some()
    };
    let refused = "413 Request Entity Too Large";
    assert!(allows("Range", ["206 Partial Content", refused]));
    assert!(!allows("Range", ["200 OK", refused]));
    assert!(!allows("Range", ["206 Partial Content", "200 OK"]));
    assert!(!allows("X-Range", ["206 Partial Content", refused]));
    let file = ["< HTTP/1.1 206 Partial Content", "< Last-Modified: *", "<"].map(str::to_owned);
    let fields = vec![("Range".to_owned(), b"bytes=0-1".to_vec())];
    let request = Request { fields, ..Request::default() };
    let refused = [format!("< HTTP/1.1 {refused}"), "<".to_owned()];
    assert!(rule(&Site::default(), &request, &file, &refused).is_none());
}

#[test]
fn a_field_that_may_not_be_sent_has_a_page() {
    let lines = |length: &str| {
        let status = "< HTTP/1.1 500 Internal Server Error".to_owned();
        [status, format!("< Content-Length: {length}"), "<".to_owned()]
    };
    let allows = |words: &str, length: &str| {
        let site = Site { config: vec![Node::directive("Header", words)], ..Site::default() };
        rule(&site, &Request::default(), &lines(length), &lines("275")).is_some()
    };
    assert!(allows("always merge expr=a b", "0") && !allows("always merge a b", "10"));
    assert!(!allows("merge a b", "0"));
}

#[test]
fn a_listing_may_have_the_page_of_a_failing_readme() {
    let lines = |titles: &[&str]| {
        let status = ["< HTTP/1.1 200 OK".to_owned(), "<".to_owned()];
        let blanks = |title: &str| if title.starts_with("Index") { "  " } else { "" };
        let titles =
            titles.iter().map(|title| format!("| {}<title>{title}</title>", blanks(title)));
        status.into_iter().chain(titles).collect::<Vec<_>>()
    };
    let allows = |name: &str, titles: &[&str]| {
        let site =
            Site { config: vec![Node::directive(name, "text/html /none")], ..Site::default() };
        rule(&site, &Request::default(), &lines(&["404 Not Found"]), &lines(titles)).is_some()
    };
    let both = ["Index of /d", "404 Not Found"];
    assert!(allows("Action", &both) && !allows("AddType", &both));
    assert!(!allows("Action", &both[..1]) && !allows("Action", &[]));
}

#[test]
fn a_message_of_a_limit_excuses_a_response() {
    let (site, request) = (Site::default(), Request::default());
    let lines = |status: &str| [format!("< HTTP/1.1 {status}"), "<".to_owned()];
    let (apache, tamarack) = (lines("403 Forbidden"), lines("200 OK"));
    let is_wanted = |errors| super::rule(&site, &request, &apache, &tamarack, errors).is_some();
    assert!(is_wanted("[core:error] AH20200: Request exceeded the limit of 500 look-ups"));
    assert!(is_wanted("[core:error] (36)File name too long: [client x] AH00036: access failed"));
    assert!(!is_wanted("[core:error] [client x] AH00036: access failed: /a"));
    assert!(!is_wanted("[core:error] AH00124: Request exceeded the limit"));
}

#[test]
fn a_redirect_of_a_fallback_may_fail() {
    let lines = |status: &str| [format!("< HTTP/1.1 {status}"), "<".to_owned()];
    let (failed, found) = (lines("500 Internal Server Error"), lines("302 Found"));
    let site = |names: &[&str]| {
        let config = names.iter().map(|name| Node::directive(name, "/a")).collect();
        Site { config, ..Site::default() }
    };
    let is_wanted = |names: &[&str], tamarack: &[String]| {
        rule(&site(names), &Request::default(), &failed, tamarack).is_some()
    };
    assert!(is_wanted(&["FallbackResource", "RedirectMatch"], &found));
    assert!(!is_wanted(&["FallbackResource"], &found));
    assert!(!is_wanted(&["RedirectMatch"], &found));
    assert!(!is_wanted(&["FallbackResource", "RedirectMatch"], &lines("200 OK")));
    let to = |fields: &str| {
        let fields = fields.split('|').map(|field| format!("< {field}"));
        let status = std::iter::once("< HTTP/1.1 302 Found".to_owned());
        status.chain(fields).chain(["<".to_owned()]).collect::<Vec<_>>()
    };
    let site = site(&["FallbackResource", "Redirect"]);
    let request = Request::default();
    assert!(
        rule(&site, &request, &to("Location: Sun, 29 Nov 2026"), &to("Location: /a")).is_some()
    );
    assert!(rule(&site, &request, &lines("301 Moved Permanently"), &found).is_none());
    assert!(rule(&site, &request, &to("Location: /a|X-A: b"), &to("Location: /a")).is_none());
}

#[test]
fn a_digest_without_a_count_may_be_refused() {
    let config = vec![Node::directive("AuthDigestNcCheck", "On")];
    let site = Site { config, ..Site::default() };
    let lines = |status: &str| [format!("< HTTP/1.1 {status}"), "<".to_owned()];
    let (found, refused) = (lines("404 Not Found"), lines("401 Unauthorized"));
    let is_wanted = |site: &Site, digest: &str| {
        let fields = vec![("Authorization".to_owned(), digest.into())];
        let request = Request { fields, ..Request::default() };
        rule(site, &request, &found, &refused).is_some()
    };
    assert!(is_wanted(&site, "@DIGEST alice:test nc=@"));
    assert!(!is_wanted(&site, "@DIGEST alice:test@"));
    assert!(!is_wanted(&Site::default(), "@DIGEST alice:test nc=@"));
}

#[test]
fn a_nonce_that_is_counted_out_is_stale() {
    let site = |value: &str| {
        let config = vec![Node::directive("AuthDigestNcCheck", value)];
        Site { config, ..Site::default() }
    };
    let lines = |end: &str| {
        let field = format!("< WWW-Authenticate: Digest realm=\"r\"{end}");
        ["< HTTP/1.1 401 Unauthorized".to_owned(), field, "<".to_owned()]
    };
    let (fresh, stale) = (lines(""), lines(", stale=true"));
    let is_wanted = |site: &Site, apache: &[String], tamarack: &[String]| {
        rule(site, &Request::default(), apache, tamarack).is_some()
    };
    assert!(is_wanted(&site("On"), &fresh, &stale));
    assert!(!is_wanted(&site("Off"), &fresh, &stale));
    assert!(!is_wanted(&site("On"), &stale, &fresh));
}

#[test]
fn a_folder_as_it_is_may_lack_its_body() {
    let config = vec![Node::directive("SetHandler", "send-as-is")];
    let site = Site { config, ..Site::default() };
    let folder = ["< HTTP/1.1 200 OK", "< Content-Type: httpd/unix-directory", "<"];
    let folder = folder.map(str::to_owned).to_vec();
    let forbidden = ["< HTTP/1.1 403 Forbidden".to_owned(), "<".to_owned()];
    let is_wanted = |site: &Site, method: &str, end: &str| {
        let request = Request { method: method.to_owned(), ..Request::default() };
        let mut apache = folder.clone();
        apache.extend((!end.is_empty()).then(|| end.to_owned()));
        rule(site, &request, &apache, &forbidden).is_some()
    };
    let broken = "= broken: 0 of 4096 bytes came";
    assert!(is_wanted(&site, "GET", broken) && is_wanted(&site, "HEAD", ""));
    let of_range = |fields: &[&str], lines: [&str; 2]| {
        let fields = fields.iter().map(|name| ((*name).to_owned(), b"bytes=9-".to_vec()));
        let request = Request { fields: fields.collect(), ..Request::default() };
        rule(&site, &request, &lines.map(str::to_owned), &forbidden).is_some()
    };
    assert!(of_range(&["Range"], ["< HTTP/1.1 416 Requested Range Not Satisfiable", "<"]));
    assert!(of_range(&["Range"], ["< HTTP/1.1 206 Partial Content", broken]));
    assert!(!of_range(&["Range"], ["< HTTP/1.1 206 Partial Content", "<"]));
    let bad = ["< HTTP/1.1 400 Bad Request".to_owned(), "<".to_owned()];
    let of_document =
        |line: &str| rule(&site, &Request::default(), &[line.to_owned()], &bad).is_some();
    let found = ["< HTTP/1.1 302 Found".to_owned(), "<".to_owned()];
    let unheard = ["= no answer".to_owned()];
    assert!(rule(&site, &Request::default(), &unheard, &found).is_some());
    let page = ["| <!DOCTYPE html>", "| <title>403 Forbidden</title>"].map(str::to_owned);
    assert!(rule(&site, &Request::default(), &unheard, &page).is_some());
    assert!(of_document("= no answer") && !of_document("< HTTP/1.1 200 OK"));
    assert!(!of_range(&[], ["< HTTP/1.1 416 Requested Range Not Satisfiable", "<"]));
    assert!(!is_wanted(&site, "GET", "") && !is_wanted(&site, "GET", "| body"));
    assert!(!is_wanted(&Site::default(), "GET", broken));
}

#[test]
fn a_signature_alone_is_wanted() {
    let lines = |server: &str, length: &str| {
        let lines = ["< HTTP/1.1 200 OK", "<", "| x"].map(str::to_owned).to_vec();
        let mut lines = [lines, vec![format!("| <address>{server}</address>")]].concat();
        lines.insert(1, format!("< Content-Length: {length}"));
        lines
    };
    let apache = lines("Apache", "9");
    assert!(
        rule(&Site::default(), &Request::default(), &apache, &lines("Tamarack", "11")).is_some()
    );
    let mut other = lines("Tamarack", "11");
    "| y".clone_into(&mut other[3]);
    assert!(rule(&Site::default(), &Request::default(), &apache, &other).is_none());
}

#[test]
fn lengths_of_unsent_bodies_may_be_wanted() {
    let lines = |status: &str, kind: &str, length: &str| {
        let lines = [
            format!("< HTTP/1.1 {status}"),
            format!("< Content-Length: {length}"),
            format!("< Content-Type: {kind}"),
            "<".to_owned(),
        ];
        lines.to_vec()
    };
    let range = ("Range".to_owned(), b"bytes=0-0,2-2".to_vec());
    let request = |method: &str| Request {
        method: method.to_owned(),
        fields: vec![range.clone()],
        ..Request::default()
    };
    let is_wanted = |method, status, kind, lengths: [&str; 2]| {
        let [apache, tamarack] = lengths.map(|length| lines(status, kind, length));
        rule(&Site::default(), &request(method), &apache, &tamarack).is_some()
    };
    let multipart = "multipart/byteranges; boundary=BOUNDARY";
    assert!(is_wanted("HEAD", "206 Partial Content", multipart, ["100", "103"]));
    assert!(!is_wanted("HEAD", "206 Partial Content", multipart, ["100", "104"]));
    assert!(!is_wanted("GET", "206 Partial Content", multipart, ["100", "103"]));
    assert!(is_wanted("HEAD", "400 Bad Request", "text/x-own", ["100", "104"]));
    assert!(!is_wanted("GET", "400 Bad Request", "text/x-own", ["100", "104"]));
    assert!(!is_wanted("HEAD", "200 OK", "text/x-own", ["100", "104"]));
    let of_modified = |modified: &str| {
        let kind = format!("text/x-own\n< Last-Modified: {modified}");
        let lines = |length| -> Vec<String> {
            let text = lines("400 Bad Request", &kind, length).join("\n");
            text.lines().map(str::to_owned).collect()
        };
        rule(&Site::default(), &request("HEAD"), &lines("100"), &lines("104")).is_some()
    };
    assert!(of_modified("Accept") && !of_modified("Sat, 01 Jan 2022 00:00:00 GMT"));
}

#[test]
fn parts_of_compressed_bodies_may_differ() {
    let lines = |coding: &str, length: &str, body: &str| {
        let coding = format!("< Content-Encoding: {coding}");
        let range = format!("< Content-Range: bytes 2-9/{length}");
        let length = format!("< Content-Length: {length}");
        ["< HTTP/1.1 206 Partial Content", &coding, &length, &range, "<", body].map(str::to_owned)
    };
    let is_wanted = |coding: &str, other: &str| {
        let (apache, tamarack) = (lines(coding, "251", "| a"), lines(other, "250", "| b"));
        rule(&Site::default(), &Request::default(), &apache, &tamarack).is_some()
    };
    assert!(is_wanted("gzip", "gzip"));
    assert!(!is_wanted("gzip", "br"));
    assert!(!is_wanted("identity", "identity"));
}

#[test]
fn a_body_beyond_a_limit_is_refused_where_mod_sed_edits() {
    let site = |limit: &str, filter: &str| Site {
        config: vec![Node::directive(limit, "3"), Node::directive("SetOutputFilter", filter)],
        ..Site::default()
    };
    let lines = |status: &str| [format!("< HTTP/1.1 {status}"), "<".to_owned()];
    let (found, refused) = (lines("200 OK"), lines("413 Request Entity Too Large"));
    let is_wanted = |limit: &str, filter: &str| {
        rule(&site(limit, filter), &Request::default(), &found, &refused).is_some()
    };
    assert!(is_wanted("LimitRequestBody", "Sed") && is_wanted("KeptBodySize", "Sed"));
    assert!(!is_wanted("LimitRequestBody", "DEFLATE") && !is_wanted("BufferSize", "Sed"));
}

#[test]
fn a_page_of_success_may_have_other_words() {
    let rules = |words: &str| Site {
        config: vec![Node::directive("RewriteRule", words)],
        ..Site::default()
    };
    let lines = |title: &str, length: &str, words: &str| {
        let title = format!("| <title>{title}</title>");
        let length = format!("< Content-Length: {length}");
        let kind = "< Content-Type: text/html; charset=iso-8859-1";
        ["< HTTP/1.1 200 OK", &length, kind, "<", &title, "| <h1>OK</h1>", words].map(str::to_owned)
    };
    let is_wanted = |site: &Site, title: &str| {
        let (apache, tamarack) = (lines(title, "533", "| a"), lines(title, "237", "| b"));
        rule(site, &Request::default(), &apache, &tamarack).is_some()
    };
    assert!(is_wanted(&rules("^ - [R=200]"), "200 OK"));
    let of_1_0 = |length: &str, words: &str| {
        lines("200 OK", length, words).map(|line| line.replace("HTTP/1.1", "HTTP/1.0"))
    };
    let (apache, tamarack) = (of_1_0("533", "| a"), of_1_0("237", "| b"));
    assert!(rule(&rules("^ - [R=200]"), &Request::default(), &apache, &tamarack).is_some());
    let behind_interim = |lines: [String; 7]| {
        [vec!["< HTTP/1.1 100 Continue".to_owned(), "<".to_owned()], lines.to_vec()].concat()
    };
    let site = rules("^ - [R=200]");
    let (apache, tamarack) = (lines("200 OK", "533", "| a"), lines("200 OK", "237", "| b"));
    let [apache, tamarack] = [apache, tamarack].map(behind_interim);
    assert!(rule(&site, &Request::default(), &apache, &tamarack).is_some());
    let parts = |length: &str| {
        let kind = "< Content-Type: multipart/byteranges; boundary=BOUNDARY";
        let range = format!("| Content-range: bytes 0-1/{length}\\r");
        ["< HTTP/1.1 206 Partial Content", kind, "<", &range, "| <!"].map(str::to_owned)
    };
    let (apache, tamarack) = (parts("533"), parts("237"));
    assert!(rule(&site, &Request::default(), &apache, &tamarack).is_some());
    let ranges = vec![("Range".to_owned(), b"bytes=-300".to_vec())];
    let request = Request { fields: ranges, ..Request::default() };
    let whole = lines("200 OK", "237", "| b");
    assert!(rule(&site, &request, &apache, &whole).is_some());
    assert!(rule(&site, &request, &apache, &lines("My page", "237", "| b")).is_none());
    assert!(rule(&site, &Request::default(), &apache, &whole).is_none());
    assert!(!is_wanted(&rules("^ - [R=200]"), "My page"));
    assert!(!is_wanted(&rules("^ - [R]"), "200 OK"));
}

#[test]
fn a_long_page_may_come_in_chunks() {
    let page = |framing: &str| {
        let lines = ["< HTTP/1.1 300 Multiple Choices", framing, "<"].map(str::to_owned);
        lines.to_vec()
    };
    let apache = [page("< Transfer-Encoding: chunked"), vec!["body canned".into()]].concat();
    let is_wanted = |framing: &str| {
        let tamarack = [page(framing), vec!["| page".into()]].concat();
        rule(&Site::default(), &Request::default(), &apache, &tamarack).is_some()
    };
    assert!(is_wanted("< Content-Length: 8032"));
    assert!(!is_wanted("< Content-Length: 1000"));
}

#[test]
fn empty_names_in_vary_do_not_count() {
    let lines = |vary: &str| ["< HTTP/1.1 200 OK", vary, "<"].map(str::to_owned).to_vec();
    let request = Request::default();
    assert!(
        rule(&Site::default(), &request, &lines("< Vary: , ,X"), &lines("< Vary: X")).is_some()
    );
    let [apache, tamarack] = [lines("< Vary: ,\\x20"), lines("< Vary:")];
    assert!(rule(&Site::default(), &request, &apache, &tamarack).is_some());
    assert!(rule(&Site::default(), &request, &lines("< Vary: X"), &lines("< Vary: Y")).is_none());
}

#[test]
fn what_lies_behind_links_of_others_is_compared_where_it_is_named() {
    let link = File {
        path: "htdocs/index.html".to_owned(),
        content: Content::Link("a.txt".to_owned()),
        options: vec![("uid".to_owned(), "33".to_owned())],
    };
    let options = Node::directive("Options", "+SymLinksIfOwnerMatch");
    let site = Site { config: vec![options], files: vec![link], ..Site::default() };
    let lines = |status: &str| [format!("< HTTP/1.1 {status}"), "<".to_owned()];
    let differs = |target: &str| {
        let request = Request { target: target.into(), ..Request::default() };
        rule(&site, &request, &lines("200 OK"), &lines("403 Forbidden")).is_none()
    };
    assert!(differs("/index.html") && differs("/index.html/x?a"));
    assert!(!differs("/") && !differs("/index") && !differs("/index.html/.%2E/"));
}

#[test]
fn a_link_to_a_file_of_another_owner_is_one_of_others() {
    let options = vec![("uid".to_owned(), "33".to_owned())];
    let (path, content) = ("out/a.txt".to_owned(), Content::Text("x".into()));
    let target = File { path, content, options };
    let link = File {
        path: "htdocs/index.html".to_owned(),
        content: Content::Link("@SITE@/out/a.txt".to_owned()),
        options: Vec::new(),
    };
    let config = vec![Node::directive("Options", "+SymLinksIfOwnerMatch")];
    let mut site = Site { config, files: vec![link, target], ..Site::default() };
    let lines = |status: &str| [format!("< HTTP/1.1 {status}"), "<".to_owned()];
    let request = Request { target: b"/".to_vec(), ..Request::default() };
    let allows =
        |site: &Site| rule(site, &request, &lines("200 OK"), &lines("403 Forbidden")).is_some();
    assert!(allows(&site));
    // By its name alone, in the link's folder.
    site.files[0].content = Content::Link("a.txt".to_owned());
    assert!(!allows(&site));
    site.files[1].path = "htdocs/a.txt".to_owned();
    assert!(allows(&site));
}

#[test]
fn a_link_is_named_with_its_folder() {
    let link = |path: &str| File {
        path: path.to_owned(),
        content: Content::Link("b.html".to_owned()),
        options: vec![("uid".to_owned(), "33".to_owned())],
    };
    let config = vec![Node::directive("Options", "+SymLinksIfOwnerMatch")];
    let files = vec![link("htdocs/d/l.txt"), link("htdocs/d/sub/l")];
    let site = Site { config, files, ..Site::default() };
    let allows = |target: &str| {
        let lines = |status: &str| [format!("< HTTP/1.1 {status}"), "<".to_owned()];
        let request = Request { target: target.into(), ..Request::default() };
        rule(&site, &request, &lines("200 OK"), &lines("404 Not Found")).is_some()
    };
    assert!(allows("/d/l") && !allows("/d/sub/l") && !allows("/d/l.txt"));
}

#[test]
fn wildcards_of_folders_count_for_variants_that_are_not_named() {
    let differs = |section: &str, target: &str| {
        let config = vec![Node::section("Directory", section, Vec::new())];
        let site = Site { config, ..Site::default() };
        let request = Request { target: target.into(), ..Request::default() };
        let found = ["< HTTP/1.1 200 OK", "< Content-Location: doc.txt", "<"];
        let refused = ["< HTTP/1.1 403 Forbidden", "<"].map(str::to_owned);
        rule(&site, &request, &found.map(str::to_owned), &refused).is_none()
    };
    assert!(!differs("\"@SITE@/*/d*\"", "/doc") && !differs("\"@SITE@/*/d*\"", "/?a"));
    assert!(differs("\"@SITE@/*/d*\"", "/doc.txt"));
    assert!(differs("\"@SITE@/*/e*\"", "/doc") && differs("\"@SITE@/htdocs\"", "/doc"));
}

#[test]
fn an_edited_vary_may_have_other_names() {
    let allows = |name: &str, words: &str, fields: [&str; 2]| {
        let site = Site { config: vec![Node::directive(name, words)], ..Site::default() };
        let [apache, tamarack] = fields.map(|field| ["< HTTP/1.1 200 OK", field, "<"]);
        let (apache, tamarack) = (apache.map(str::to_owned), tamarack.map(str::to_owned));
        rule(&site, &Request::default(), &apache, &tamarack).is_some()
    };
    let names = ["< Vary: User-Agent,x", "< Vary: User-Agent"];
    assert!(allows("Header", "edit Vary a b", names));
    assert!(allows("Header", "set X \"expr=%{resp:Vary}\"", ["< X: a, a", "< X: a"]));
    assert!(!allows("Header", "set Vary a", names));
    assert!(!allows("Header", "edit Vary a b", ["< X: a, a", "< X: a"]));
}

#[test]
fn wildcards_of_folders_count_for_entries_of_listings() {
    let lines = |entries: &str| ["< HTTP/1.1 200 OK", "<", entries].map(str::to_owned);
    let differs = |section: &str, apache: &str| {
        let config = vec![Node::section("Directory", section, Vec::new())];
        let site = Site { config, ..Site::default() };
        let request = Request { target: b"/".to_vec(), ..Request::default() };
        rule(&site, &request, &lines(apache), &lines("| <ul></ul>")).is_none()
    };
    let of = |name: &str| format!("| <ul><li><a href=\"{name}\"> {name}</a></li></ul>");
    assert!(!differs("\"@SITE@/*/d*\"", &of("doc.txt")));
    assert!(!differs("\"@SITE@/htdocs/?\"", &of("n")));
    assert!(differs("\"@SITE@/*/d*\"", &of("a.txt")));
    assert!(differs("\"@SITE@/htdocs/?\"", &of("no")));
    assert!(differs("\"@SITE@/htdocs\"", &of("doc.txt")));
}

#[test]
fn wildcards_of_folders_count_for_parts_of_listings() {
    let lines = |kind: &str, whole: usize| {
        let range = format!("< Content-Range: bytes {}-{}/{whole}", whole - 9, whole - 1);
        let kind = format!("< Content-Type: {kind}");
        ["< HTTP/1.1 206 Partial Content".to_owned(), range, kind, "<".to_owned()]
    };
    let allows = |section: &str, kind: &str, wholes: [usize; 2]| {
        let config = vec![Node::section("Directory", section, Vec::new())];
        let site = Site { config, ..Site::default() };
        let [apache, tamarack] = wholes.map(|whole| lines(kind, whole));
        rule(&site, &Request::default(), &apache, &tamarack).is_some()
    };
    let (wildcard, listing) = ("\"@SITE@/*/d*\"", "text/html;charset=ISO-8859-1");
    assert!(allows(wildcard, listing, [244, 196]));
    assert!(!allows(wildcard, listing, [196, 244]) && !allows(wildcard, "text/html", [244, 196]));
    assert!(!allows("\"@SITE@/htdocs\"", listing, [244, 196]));
}

#[test]
fn a_reflected_body_may_be_longer_than_that_of_the_request() {
    let handler = Node::directive("SetHandler", "reflector");
    let config = vec![handler, Node::directive("SetInputFilter", "Sed")];
    let site = Site { config, ..Site::default() };
    let request = Request { method: "POST".to_owned(), ..Request::default() };
    let lines = |framing: &str, body: &str| {
        let status = "< HTTP/1.1 200 OK".to_owned();
        [status, format!("< {framing}"), "<".to_owned(), body.to_owned()]
    };
    let allows = |cut: &str, whole: &str| {
        let apache = lines("Content-Length: 10", cut);
        let tamarack = lines("Transfer-Encoding: chunked", whole);
        rule(&site, &request, &apache, &tamarack).is_some()
    };
    assert!(allows("|- -0-1", "| -0-1-2") && allows("| same", "| same"));
    assert!(!allows("|- -0-2", "| -0-1-2") && !allows("| -0", "| -0-1-2"));
    let frames = |framing: &str| {
        let apache = lines("Content-Length: 3", "|- abc");
        rule(&site, &request, &apache, &lines(framing, "|- abc")).is_some()
    };
    assert!(frames("Transfer-Encoding: chunked") && !frames("Content-Length: 4"));
    let unframed = ["< HTTP/1.1 200 OK", "<", "|- abc"].map(str::to_owned);
    assert!(rule(&site, &request, &lines("Content-Length: 3", "|- abc"), &unframed).is_some());
}

#[test]
fn a_file_of_the_future_is_modified_now() {
    let options = vec![("mtime".to_owned(), "2038-05-06T07:08:09".to_owned())];
    let (path, content) = ("htdocs/a.txt".to_owned(), Content::Text("x".into()));
    let site = Site { files: vec![File { path, content, options }], ..Site::default() };
    let lines = |date: &str| [format!("< Last-Modified: {date}"), "<".to_owned()];
    let differs = |dates: [&str; 2]| {
        let [apache, tamarack] = dates.map(lines);
        rule(&site, &Request::default(), &apache, &tamarack).is_none()
    };
    assert!(!differs(["Sun, 22 Nov 2026 22:46:07 GMT", "Sun, 22 Nov 2026 22:46:08 GMT"]));
    assert!(differs(["Sun, 22 Nov 2026 22:46:07 GMT", "Sun, 22 Nov 2026 22:46:12 GMT"]));
    let expires = |second: u32| {
        let date = format!("Sun, 22 Nov 2026 22:46:0{second} GMT");
        [format!("< Expires: {date}"), format!("< Last-Modified: {date}"), "<".to_owned()]
    };
    assert!(rule(&site, &Request::default(), &expires(7), &expires(8)).is_some());
    assert!(differs(["Sun, 22 Nov 2026 22:46:07 GMT", "Sat, 01 Jan 2022 00:00:00 GMT"]));
}

#[test]
fn a_doubling_pattern_may_end_a_long_request() {
    let section = Node::section("If", "\"%{QUERY_STRING} =~ m#^(a+)+$|evil#\"", Vec::new());
    let site = Site { config: vec![section], ..Site::default() };
    let lines = |status: &str| [format!("< HTTP/1.1 {status}"), "<".to_owned()];
    let differs = |target: &str, status: &str| {
        let request = Request { target: target.into(), ..Request::default() };
        rule(&site, &request, &lines("200 OK"), &lines(status)).is_none()
    };
    let long = format!("/?{}x", "a".repeat(30));
    assert!(!differs(&long, "500 Internal Server Error") && differs(&long, "404 Not Found"));
    assert!(differs("/?aaax", "500 Internal Server Error"));
    assert!(differs(&long, "302 Found"));
    let mut with_document = site.clone();
    with_document.config.push(Node::directive("ErrorDocument", "500 http://other.test/"));
    let request = Request { target: long.into(), ..Request::default() };
    assert!(rule(&with_document, &request, &lines("403 Forbidden"), &lines("302 Found")).is_some());
}

#[test]
fn a_page_with_a_length_is_not_one_without() {
    let head = Request { method: "HEAD".to_owned(), ..Request::default() };
    let lines = |length: &str| {
        let status = "< HTTP/1.1 412 Precondition Failed".to_owned();
        vec![status, length.to_owned(), "<".to_owned()]
    };
    let is_wanted = |one: &str, other: &str| {
        let [apache, tamarack] = [one, other].map(lines);
        rule(&Site::default(), &head, &apache, &tamarack).is_some()
    };
    assert!(is_wanted("< Content-Length: 9", "< Content-Length: 12"));
    assert!(!is_wanted("< Content-Length: 9", "< X-A: 1"));
    assert!(!is_wanted("< Content-Length: 9", "<"));
}

#[test]
fn times_from_now_may_be_a_few_seconds_apart() {
    let lines = |expires: &str, age: u64| {
        let expires = format!("< Expires: {expires}");
        ["< HTTP/1.1 200 OK", &expires, &format!("< Cache-Control: max-age={age}"), "<"]
            .map(str::to_owned)
    };
    let is_allowed = |expires: &str, age: u64| {
        let apache = lines("Fri, 31 Dec 2021 23:59:59 GMT", 60);
        let tamarack = lines(expires, age);
        rule(&Site::default(), &Request::default(), &apache, &tamarack).is_some()
    };
    assert!(is_allowed("Fri, 31 Dec 2021 23:59:57 GMT", 58));
    assert!(!is_allowed("Fri, 31 Dec 2021 23:59:57 GMT", 3600));
    assert!(!is_allowed("Fri, 31 Dec 2021 22:59:59 GMT", 60));
    assert!(!is_allowed("0", 60));
}

#[test]
fn messages_of_look_ups_for_meta_files_may_be_missing_or_more() {
    let nodes = |names: &[(&str, &str)]| {
        let config = names.iter().map(|(name, words)| Node::directive(name, *words)).collect();
        Site { config, ..Site::default() }
    };
    let site = nodes(&[("MetaFiles", "On"), ("RewriteRule", "^ /d"), ("LogMessage", "m")]);
    let lines = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let message = |text: &str| format!("| [TIME] [log_debug:info] {text}");
    let (a, b) = (message("a"), message("b"));
    let apache: Vec<String> = lines(&[&a, &b, &a, "x"]);
    let is_allowed =
        |site: &Site, tamarack: &[&str]| rule_of_logs(site, &apache, &lines(tamarack)).is_some();
    assert!(is_allowed(&site, &[&a, "x"]) && is_allowed(&site, &[&b, "x"]));
    assert!(!is_allowed(&site, &[&a, &b]) && !is_allowed(&site, &["x", &a]));
    assert!(!is_allowed(&site, &[&a, &message("c"), "x"]));
    let without_rules = nodes(&[("MetaFiles", "On"), ("LogMessage", "m")]);
    assert!(!is_allowed(&without_rules, &[&a, "x"]));
    assert!(is_allowed(&without_rules, &[&a, &b, &b, &a, "x"]));
    assert!(!is_allowed(&without_rules, &[&a, &b, &b, &a]));
    assert!(!is_allowed(&without_rules, &[&a, &b, &message("c"), &a, "x"]));
    assert!(!is_allowed(&nodes(&[("LogMessage", "m")]), &[&a, &b, &b, &a, "x"]));
}

#[test]
fn every_rule_cites_a_line_that_is_there() {
    let texts = [include_str!("../../../../docs/refused.md"), include_str!("../../../README.md")];
    let limits = LIMITS.iter().map(|(_, cites)| *cites).chain(CITES);
    let limits = limits.chain([OF_META_FILES, OF_NESTED_META_FILES]);
    let limits = limits.chain(skipped::CITES);
    for cites in WANTED.iter().map(|wanted| wanted.cites).chain(limits) {
        assert!(texts.iter().any(|text| text.contains(cites)), "{cites}");
    }
}
