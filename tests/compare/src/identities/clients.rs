//! What clients send to sites with logins.

use crate::choice::Choice;
use crate::fields::add;
use crate::site::Request;

/// Names and passwords as mod_auth_basic reads them.
const BASIC: [&str; 12] = [
    "YWxpY2U6dGVzdA==",
    "YWxpY2U6dGVzdA==",
    "YWxpY2U6dGVzdA==",
    "Ym9iOnRlc3Q=",
    "Y2Fyb2w6dGVzdA==",
    "bydoYXJhOnRlc3Q=",
    "YWxpY2U6d3Jvbmc=",
    "bm9ib2R5OnRlc3Q=",
    "ZW1wdHk6",
    "bm9uZTp0ZXN0",
    "OnRlc3Q=",
    "YWxpY2U6",
];

fn set(request: &mut Request, name: &str, value: String) {
    request.fields.retain(|(known, _)| known != name);
    add(request, name, value);
}

fn referer(choice: &mut Choice, request: &mut Request) {
    if choice.random.percent(20) {
        set(request, "Referer", choice.word(&["/back", "http://x.test/back?a=1"]));
    }
}

/// A login by password.
pub fn basic(choice: &mut Choice, request: &mut Request) {
    referer(choice, request);
    let value = choice.one(&BASIC);
    set(request, "Authorization", format!("Basic {value}"));
}

/// A key for a map.
pub fn look(choice: &mut Choice, request: &mut Request) {
    let key = choice.one(&["one", "two", "a.txt", "nope", "it's"]);
    set(request, "X-Test", key.to_owned());
}

/// An answer to a challenge.
pub fn digest(choice: &mut Choice, request: &mut Request) {
    referer(choice, request);
    // The target of the credentials is the one that is sent.
    if request.version.is_empty() || request.target.contains(&b'"') {
        return;
    }
    let user = choice.one(&[
        "alice:test",
        "alice:test",
        "alice:test",
        "alice:test",
        "bob:test",
        "carol:test",
        "alice:wrong",
    ]);
    let odd = match choice.random.below(10) {
        0..=6 => "",
        7 => choice.one(&[" nonce=first", " nc=00000001", " nc=00000002"]),
        _ => choice.one(&[
            " nonce=x",
            " nonce=AAAAAAAAAAA=0123456789012345678901234567890123456789",
            " nc=1",
            " nc=zz",
            " nc=ffffffff",
            " nc=-",
            " nc=",
            " cnonce=-",
            " cnonce=",
            " cnonce=a\\\"b",
            " qop=-",
            " qop=auth-int",
            " qop=\"auth\"",
            " qop=AUTH",
            " algorithm=-",
            " algorithm=md5",
            " algorithm=MD5-sess",
            " algorithm=SHA-256",
            " uri=/other",
            " uri=-",
            " uri=/a.txt",
            " uri=http://localhost/a.txt",
            " uri=*",
            " uri=",
            " realm=other",
            " realm=-",
            " response=0",
            " response=-",
            " response=00000000000000000000000000000000",
            " method=POST",
            " opaque=-",
            " opaque=fffff",
            " opaque=zz",
            " opaque=",
            " username=bob",
            " username=",
            " username=-",
            " username=al\\ice",
        ]),
    };
    let text = match choice.random.below(40) {
        0 => choice.word(&["Digest", "Digest x", "digest username=\"a\"", "Digest ,,", "DIGEST"]),
        1 => "Basic YWxpY2U6dGVzdA==".to_owned(),
        _ => format!("@DIGEST {user}{odd}@"),
    };
    // The response to TRACE would contain it, and it is new each time.
    if request.method != "TRACE" {
        set(request, "Authorization", text);
    }
}

/// A form, or the session that one has begun.
pub fn form(choice: &mut Choice, request: &mut Request) {
    match choice.random.below(10) {
        0..=3 => sent(choice, request),
        4..=7 => {
            let at = choice.random.below(120).to_string();
            let changed = if choice.random.percent(10) { format!(" {at}") } else { String::new() };
            set(request, "Cookie", format!("@COOKIES{changed}@"));
        }
        8 => {
            let key = choice.one(&[
                "session=01234567-89ab-4cde-8f01-23456789abcd",
                "session=11234567-89ab-4cde-8f01-23456789abcd",
                "session=21234567-89ab-4cde-8f01-23456789abcd",
                "session=31234567-89ab-4cde-8f01-23456789abcd",
                "session=0123",
                "session=realm-user=alice&realm-pw=test",
                "session=realm-user=alice&realm-pw=wrong",
                "session=a; session=b",
            ]);
            set(request, "Cookie", key.to_owned());
        }
        _ => basic(choice, request),
    }
}

/// Sends a form.
fn sent(choice: &mut Choice, request: &mut Request) {
    if request.version.is_empty() {
        return;
    }
    let body = choice.one(&[
        "httpd_username=alice&httpd_password=test",
        "httpd_username=alice&httpd_password=test",
        "httpd_username=alice&httpd_password=test",
        "httpd_username=bob&httpd_password=test",
        "httpd_username=alice&httpd_password=test&httpd_location=/a.txt",
        "httpd_username=alice&httpd_password=test&httpd_location=http%3a//y.test/%3fa%26b",
        "httpd_username=alice&httpd_password=wrong&httpd_location=/a.txt",
        "httpd_username=alice&httpd_password=wrong",
        "httpd_username=nemo&httpd_password=test",
        "httpd_username=alice",
        "httpd_password=test",
        "httpd_username=&httpd_password=",
        "httpd_username=al%69ce&httpd_password=te%73t&x=y",
        "httpd_username=alice&httpd_password=test&httpd_username=bob",
        "u=alice&p=test&l=/d/",
        "u=alice&httpd_password=test",
        "httpd_username=o'hara&httpd_password=test",
        "",
        "%zz&&==&httpd_username",
    ]);
    "POST".clone_into(&mut request.method);
    if choice.random.percent(50) {
        choice.one(&["/login", "/login", "/a.txt", "/"]).as_bytes().clone_into(&mut request.target);
    }
    let framing = ["Content-Length", "Transfer-Encoding", "Content-Type", "Expect"];
    request.fields.retain(|(name, _)| !framing.contains(&name.as_str()));
    let media = choice.one(&[
        "application/x-www-form-urlencoded",
        "application/x-www-form-urlencoded",
        "application/x-www-form-urlencoded",
        "application/x-www-form-urlencoded; charset=UTF-8",
        "text/plain",
    ]);
    add(request, "Content-Type", media.to_owned());
    add(request, "Content-Length", body.len().to_string());
    if choice.random.percent(30) {
        set(request, "Cookie", "@COOKIES@".to_owned());
    }
    request.body = body.as_bytes().to_vec();
}
