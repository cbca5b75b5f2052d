//! Sites whose content is filtered, and whose logins are kept in databases and sessions.

use crate::choice::Choice;
use crate::fields;
use crate::site::{Node, Request};

/// What changes the content of responses and requests.
pub fn filters(choice: &mut Choice) -> Vec<Node> {
    let mut chain: Vec<&'static str> = Vec::new();
    for _ in 0..1 + choice.random.below(3) {
        let name = choice.one(&[
            "SUBSTITUTE",
            "SUBSTITUTE",
            "Sed",
            "Sed",
            "RATE_LIMIT",
            "BUFFER",
            "DATA",
            "BROTLI_COMPRESS",
            "DEFLATE",
            "INFLATE",
        ]);
        if !chain.contains(&name) {
            chain.push(name);
        }
    }
    let mut nodes = vec![Node::directive("SetOutputFilter", chain.join(";"))];
    for name in &chain {
        match *name {
            "SUBSTITUTE" => {
                for _ in 0..1 + choice.random.below(3) {
                    nodes.push(Node::directive("Substitute", substitution(choice)));
                }
                if choice.random.percent(20) {
                    let limit = choice.one(&["10", "300", "1k", "1m"]);
                    nodes.push(Node::directive("SubstituteMaxLineLength", limit));
                }
            }
            "Sed" => {
                for _ in 0..1 + choice.random.below(3) {
                    nodes.push(Node::directive("OutputSed", script(choice)));
                }
            }
            "RATE_LIMIT" => nodes.push(Node::directive("SetEnv", "rate-limit 4000")),
            "BUFFER" => {
                nodes.push(Node::directive("BufferSize", choice.one(&["1", "100", "9000"])))
            }
            _ => {}
        }
    }
    vec![Node::section(choice.one(&["Location", "Location", "LocationMatch"]), "/", nodes)]
}

/// The argument of a `Substitute`.
fn substitution(choice: &mut Choice) -> String {
    let pattern = choice.one(&["x", "[a-z]", "(.)\\.", "^", "e$", "x (\\w+)", "T", "html|txt"]);
    let with = choice.one(&["", "y", "<$0>", "$1", "\\$1", "x x x"]);
    let flags = choice.one(&["", "n", "i", "q", "f", "ni", "nq"]);
    format!("\"s|{pattern}|{with}|{flags}\"")
}

/// A script of sed.
fn script(choice: &mut Choice) -> String {
    let address = choice.one(&["", "", "", "1", "$", "/x/", "1,3", "/a/,$", "2!", "$!"]);
    let command = choice.one(&[
        "s/x/y/",
        "s/[a-z]/<&>/2",
        "s/\\([a-z]*\\)\\.\\([a-z]*\\)/\\2.\\1/",
        "s/t*/-/g",
        "s/.$//",
        "d",
        "p",
        "P",
        "n",
        "N",
        "$!N",
        "D",
        "G",
        "H",
        "h",
        "g",
        "x",
        "l",
        "y/abcx/ABCX/",
        "q",
        "s/\\.\\{1,2\\}h/X/p",
    ]);
    let address = if command.starts_with('$') { "" } else { address };
    format!("\"{address}{command}\"")
}

/// Translation between character sets.
pub fn charsets(choice: &mut Choice) -> Vec<Node> {
    let source = choice.one(&["UTF-8", "ISO-8859-1", "windows-1252", "UTF-8"]);
    let sent = choice.one(&["UTF-8", "ISO-8859-1", "KOI8-R"]);
    let mut nodes =
        vec![Node::directive("CharsetSourceEnc", source), Node::directive("CharsetDefault", sent)];
    if choice.random.percent(30) {
        let option = choice.one(&["NoImplicitAdd", "TranslateAllMimeTypes", "ImplicitAdd"]);
        nodes.push(Node::directive("CharsetOptions", option));
    }
    vec![Node::section("Location", choice.one(&["/", "/d"]), nodes)]
}

/// Bodies of requests that come back.
pub fn reflection(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = vec![Node::directive("SetHandler", "reflector")];
    if choice.random.percent(40) {
        nodes.push(Node::directive("ReflectorHeader", choice.one(&["X-Test", "Accept X-Was"])));
    }
    if choice.random.percent(40) {
        nodes.push(Node::directive("SetInputFilter", "Sed"));
        nodes.push(Node::directive("InputSed", script(choice)));
    }
    choice.paths.extend(["/reflect", "/reflect/x"].map(str::to_owned));
    vec![Node::section("Location", "/reflect", nodes)]
}

/// Logins: where the users, their groups and the session come from.
pub fn logins(choice: &mut Choice) -> Vec<Node> {
    let mut nodes =
        vec![Node::directive("AuthType", "Basic"), Node::directive("AuthName", "realm")];
    let provider = choice.one(&["dbm", "dbm", "anon", "anon dbm", "dbm file", "dbm anon"]);
    nodes.push(Node::directive("AuthBasicProvider", provider));
    nodes.push(Node::directive("AuthUserFile", "\"@SITE@/auth/users\""));
    nodes.push(Node::directive("AuthDBMUserFile", "\"@SITE@/auth/dbm\""));
    nodes.push(Node::directive("AuthDBMGroupFile", "\"@SITE@/auth/dbm\""));
    // Apache's default is another format.
    nodes.push(Node::directive("AuthDBMType", "SDBM"));
    nodes.push(Node::directive("AuthzDBMType", "SDBM"));
    if provider.contains("anon") {
        nodes.push(Node::directive("Anonymous", choice.one(&["anna carol", "alice", "*"])));
        for name in ["Anonymous_MustGiveEmail", "Anonymous_VerifyEmail", "Anonymous_NoUserID"] {
            if choice.random.percent(40) {
                nodes.push(Node::directive(name, choice.one(&["On", "Off"])));
            }
        }
    }
    nodes.push(Node::directive(
        "Require",
        choice.one(&[
            "valid-user",
            "valid-user",
            "dbm-group staff",
            "dbm-group all none",
            "file-owner",
            "file-group",
            "dbm-file-group",
        ]),
    ));
    nodes.push(Node::directive("AuthGroupFile", "\"@SITE@/auth/groups\""));
    vec![Node::section("Location", choice.one(&["/", "/d"]), nodes)]
}

/// Sessions in cookies, and the forms that begin them.
pub fn sessions(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = vec![
        Node::directive("Session", choice.one(&["On", "On", "On", "Off"])),
        Node::directive("SessionCookieName", choice.one(&["session path=/", "session", "s"])),
    ];
    if choice.random.percent(30) {
        nodes.push(Node::directive("SessionHeader", "X-Replace-Session"));
        nodes.push(Node::directive("Header", "set X-Replace-Session \"k=v&n=%{REQUEST_STATUS}e\""));
    }
    if choice.random.percent(30) {
        nodes.push(Node::directive("SessionEnv", "On"));
        nodes.push(Node::directive("Header", "set X-Session \"%{HTTP_SESSION}e\""));
    }
    if choice.random.percent(30) {
        nodes.push(Node::directive("SessionExclude", choice.one(&["/d", "/docs"])));
    }
    if choice.random.percent(70) {
        nodes.push(Node::directive("AuthType", "Form"));
        nodes.push(Node::directive("AuthName", "realm"));
        nodes.push(Node::directive("AuthFormProvider", "file"));
        nodes.push(Node::directive("AuthUserFile", "\"@SITE@/auth/users\""));
        nodes.push(Node::directive("Require", choice.one(&["valid-user", "user alice"])));
        if choice.random.percent(50) {
            let place = choice.one(&["/a.txt", "/nope", "http://x.test/"]);
            nodes.push(Node::directive("AuthFormLoginRequiredLocation", place));
        }
        if choice.random.percent(30) {
            nodes.push(Node::directive("AuthFormFakeBasicAuth", "On"));
        }
    }
    vec![Node::section("Location", choice.one(&["/", "/d"]), nodes)]
}

/// Adds a cookie with a session.
pub fn session(choice: &mut Choice, request: &mut Request) {
    let value = choice.word(&[
        "session=realm-user=alice&realm-pw=test",
        "session=realm-user=alice&realm-pw=test",
        "s=realm-user=alice&realm-pw=test",
        "session=realm-user=bob&realm-pw=test",
        "session=realm-user=alice&realm-pw=wrong",
        "session=realm-user=alice",
        "session=k=v&n",
        "session=",
        "session=%41=%zz&&=",
        "session=a=1; session=realm-user=alice&realm-pw=test",
        "session=expiry=1&realm-user=alice&realm-pw=test",
    ]);
    fields::add(request, "Cookie", value);
}
