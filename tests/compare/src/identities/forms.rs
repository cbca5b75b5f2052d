//! Logins by form, and the sessions that keep them.

use crate::choice::Choice;
use crate::site::Node;

use super::{Kind, Login, Users, clients, database, place, require, users};

/// Logins by form.
pub fn form(choice: &mut Choice) -> Login {
    let Users { names, mut nodes, mut host } = users(choice, Kind::Password);
    host.push(Node::directive("Session", choice.one(&["On", "On", "On", "On", "Off"])));
    store(choice, &mut host);
    settings(choice, &mut host);
    let mut inner = vec![
        Node::directive("AuthType", choice.one(&["Form", "form"])),
        Node::directive("AuthName", choice.one(&["realm", "realm", "\"a realm\""])),
        Node::directive("AuthFormProvider", names),
    ];
    inner.append(&mut nodes);
    let mut login = inner.clone();
    form_settings(choice, &mut inner);
    require(choice, &mut inner, &mut host);
    host.push(place(choice, inner));
    if choice.random.percent(70) {
        login.push(Node::directive("SetHandler", "form-login-handler"));
        form_settings(choice, &mut login);
        login.push(Node::directive("Require", "all granted"));
        host.push(Node::section("Location", "/login", login.clone()));
    }
    if choice.random.percent(60) {
        let mut logout = vec![
            Node::directive("SetHandler", "form-logout-handler"),
            Node::directive("Require", "all granted"),
            Node::directive("AuthName", "realm"),
        ];
        if choice.random.percent(60) {
            logout.push(Node::directive("AuthFormLogoutLocation", target(choice)));
        }
        host.push(Node::section("Location", "/logout", logout));
    }
    choice.paths.extend(["/login", "/logout", "/login", "/logout"].map(str::to_owned));
    Login { nodes: host, client: clients::form }
}

fn target(choice: &mut Choice) -> &'static str {
    choice.one(&["/a.txt", "http://x.test/in?%{REQUEST_URI}", "/nope", "\"/d/%{REMOTE_USER}\""])
}

fn form_settings(choice: &mut Choice, nodes: &mut Vec<Node>) {
    for name in ["AuthFormLoginRequiredLocation", "AuthFormLoginSuccessLocation"] {
        if choice.random.percent(35) {
            nodes.push(Node::directive(name, target(choice)));
        }
    }
    for (name, words) in [
        ("AuthFormUsername", "u"),
        ("AuthFormPassword", "p"),
        ("AuthFormLocation", "l"),
        ("AuthFormSize", "60"),
        ("AuthFormSitePassphrase", "secret"),
    ] {
        if choice.random.percent(12) {
            nodes.push(Node::directive(name, words));
        }
    }
    for name in ["AuthFormFakeBasicAuth", "AuthFormAuthoritative", "AuthFormDisableNoStore"] {
        if choice.random.percent(25) {
            nodes.push(Node::directive(name, choice.one(&["On", "Off"])));
        }
    }
}

/// Where sessions are kept.
fn store(choice: &mut Choice, nodes: &mut Vec<Node>) {
    let name = choice.one(&["session path=/", "session", "s path=/;HttpOnly;Version=1"]);
    let kind = choice.random.below(10);
    if kind < 3 {
        if nodes.iter().all(|node| node.name != "DBDriver") {
            nodes.extend(database::connection(choice));
        }
        nodes.extend(database::of_sessions());
        match kind {
            0 => nodes.push(Node::directive("SessionDBDPerUser", "On")),
            _ => nodes.push(Node::directive("SessionDBDCookieName", name)),
        }
        if choice.random.percent(20) {
            nodes.push(Node::directive("SessionDBDCookieName2", "session2 path=/"));
        }
        if choice.random.percent(30) {
            nodes.push(Node::directive("SessionDBDCookieRemove", choice.one(&["On", "Off"])));
        }
        return;
    }
    nodes.push(Node::directive("SessionCookieName", name));
    if choice.random.percent(20) {
        nodes.push(Node::directive("SessionCookieName2", "session2 path=/"));
    }
    if choice.random.percent(30) {
        nodes.push(Node::directive("SessionCookieRemove", choice.one(&["On", "Off"])));
    }
    if kind < 5 {
        let secret = choice.one(&["secret", "secret old", "\"long secret\" secret"]);
        nodes.push(Node::directive("SessionCryptoPassphrase", secret));
        if choice.random.percent(40) {
            let cipher = choice.one(&["aes256", "aes128", "aes192"]);
            nodes.push(Node::directive("SessionCryptoCipher", cipher));
        }
    }
}

/// Further directives about sessions.
fn settings(choice: &mut Choice, nodes: &mut Vec<Node>) {
    if choice.random.percent(25) {
        // None is over before the last request.
        nodes.push(Node::directive("SessionMaxAge", choice.one(&["0", "300", "3600"])));
        if choice.random.percent(50) {
            let interval = choice.one(&["0", "1", "60"]);
            nodes.push(Node::directive("SessionExpiryUpdateInterval", interval));
        }
    }
    if choice.random.percent(30) {
        nodes.push(Node::directive("SessionEnv", "On"));
        nodes.push(Node::directive("Header", "always set X-Session \"%{HTTP_SESSION}e\""));
    }
    if choice.random.percent(20) {
        nodes.push(Node::directive("SessionHeader", "X-Replace"));
        let value = choice.one(&["k=v", "k=v&realm-user=bob&realm-pw=test", "%%zz=&=x", "k"]);
        nodes.push(Node::directive("Header", format!("set X-Replace \"{value}\"")));
    }
    for name in ["SessionInclude", "SessionExclude"] {
        if choice.random.percent(15) {
            nodes.push(Node::directive(name, choice.one(&["/d", "/", "/login"])));
        }
    }
}
