//! What a client keeps of responses, for credentials that depend on them: the challenges of digest
//! authentication, and cookies.

use crate::answer::Answer;
use crate::escape::escape;
use md5::{Digest, Md5};

/// What begins the text that stands for credentials by digest, and for the cookies.
const DIGEST: &str = "@DIGEST ";
const COOKIES: &str = "@COOKIES";
/// The names of what a login is computed from.
const PARTS: [&str; 7] = ["username", "realm", "uri", "qop", "nc", "cnonce", "algorithm"];

/// A challenge.
#[derive(Debug, Clone, Default)]
struct Challenge {
    realm: String,
    nonce: String,
    opaque: Option<String>,
    /// How often it was used.
    used: u32,
}

/// The memory of a client.
#[derive(Debug, Clone, Default)]
pub struct Keeper {
    challenges: Vec<Challenge>,
    cookies: Vec<(String, String)>,
    /// Proofs of the server that would be right.
    proofs: Vec<String>,
    /// What was filled in, and for what.
    sent: Vec<(String, String)>,
}

impl Keeper {
    /// Fills in the credentials of requests:
    ///
    /// - `@DIGEST USER:PASSWORD NAME=VALUE…@` answers the last challenge. With `nonce=first` it is
    ///   the first one; other parameters have the value, or are left out with `-`.
    /// - `@COOKIES@` are all cookies; `@COOKIES N@` changes a bit of their byte N.
    pub fn fill(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(&bytes) else { return bytes };
        if !text.contains(DIGEST) && !text.contains(COOKIES) {
            return bytes;
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = [DIGEST, COOKIES].iter().filter_map(|mark| rest.find(mark)).min() {
            let (before, mark) = rest.split_at(at);
            let Some(end) = mark.get(1..).and_then(|inner| inner.find('@')) else { break };
            let (words, after) = (mark.get(1..end + 1), mark.get(end + 2..));
            out.push_str(before);
            let mark = words.unwrap_or_default();
            let mut words = mark.split(' ');
            let filled = match words.next() {
                Some("DIGEST") => self.answer(request_line(&out), words),
                _ => self.cookies(words.next()),
            };
            out.push_str(&filled);
            // Those that have no byte to change are as they were.
            let is_as_was = mark.starts_with("COOKIES ") && filled == self.cookies(None);
            let mark = if is_as_was { "COOKIES" } else { mark };
            self.sent.push((filled, mark.to_owned()));
            rest = after.unwrap_or_default();
        }
        out.push_str(rest);
        out.into_bytes()
    }

    fn cookies(&self, changed: Option<&str>) -> String {
        let pairs = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        let mut text = pairs.collect::<Vec<_>>().join("; ").into_bytes();
        let at = changed.and_then(|at| at.parse::<usize>().ok());
        if let Some(byte) = at.and_then(|at| text.get_mut(at)).filter(|byte| byte.is_ascii()) {
            *byte ^= 1;
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Credentials for a request with this line.
    fn answer<'w>(&mut self, line: &str, mut words: impl Iterator<Item = &'w str>) -> String {
        let (user, password) =
            words.next().and_then(|word| word.split_once(':')).unwrap_or(("", ""));
        let given: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
        let given = |name: &str| given.iter().find(|(known, _)| *known == name).map(|(_, is)| *is);
        let place = match given("nonce") {
            Some("first") => self.challenges.first_mut(),
            _ => self.challenges.last_mut(),
        };
        let mut unasked = Challenge { realm: "realm".to_owned(), ..Challenge::default() };
        let challenge = place.unwrap_or(&mut unasked);
        challenge.used += 1;
        let nonce = match given("nonce") {
            None | Some("first") => challenge.nonce.clone(),
            Some(other) => other.to_owned(),
        };
        let mut line = line.split(' ');
        let (method, target) = (line.next().unwrap_or("GET"), line.next().unwrap_or("/"));
        let defaults = [
            user,
            &challenge.realm,
            target,
            "auth",
            &format!("{:08x}", challenge.used),
            "c0ffee",
            "MD5",
        ];
        let value = |name: &str| {
            let at = PARTS.iter().position(|known| *known == name);
            let default = at.and_then(|at| defaults.get(at)).copied().unwrap_or_default();
            given(name).unwrap_or(default)
        };
        let hash = |parts: &[&str]| -> String {
            Md5::digest(parts.join(":")).iter().map(|byte| format!("{byte:02x}")).collect()
        };
        let of_user = hash(&[user, &plain(value("realm")), password]);
        let digest =
            |of: &str| hash(&[&of_user, &nonce, value("nc"), value("cnonce"), value("qop"), of]);
        let response = digest(&hash(&[given("method").unwrap_or(method), value("uri")]));
        self.proofs.push(digest(&hash(&["", value("uri")])));
        let mut parts = Vec::new();
        for name in ["username", "realm", "nonce", "uri", "response", "opaque"] {
            let value = match name {
                "nonce" => nonce.as_str(),
                "response" => given("response").unwrap_or(&response),
                "opaque" => given("opaque").or(challenge.opaque.as_deref()).unwrap_or("-"),
                _ => value(name),
            };
            if value != "-" {
                parts.push(format!("{name}=\"{value}\""));
            }
        }
        for name in ["algorithm", "qop", "nc"] {
            if value(name) != "-" {
                parts.push(format!("{name}={}", value(name)));
            }
        }
        if value("cnonce") != "-" {
            parts.push(format!("cnonce=\"{}\"", value("cnonce")));
        }
        format!("Digest {}", parts.join(", "))
    }

    /// Whether both clients have been asked and told the same, but for what is random.
    pub fn is_like(&self, other: &Keeper) -> bool {
        let asked = |keeper: &Keeper| -> Vec<(String, bool)> {
            let challenges = keeper.challenges.iter();
            challenges.map(|asked| (asked.realm.clone(), asked.opaque.is_some())).collect()
        };
        let names = |keeper: &Keeper| -> Vec<String> {
            keeper.cookies.iter().map(|(name, _)| name.clone()).collect()
        };
        asked(self) == asked(other) && names(self) == names(other)
    }

    /// Whether a text has credentials to be filled in.
    pub fn has_credentials(text: &[u8]) -> bool {
        let has = |mark: &str| text.windows(mark.len()).any(|part| part == mark.as_bytes());
        has(DIGEST) || has(COOKIES)
    }

    /// Keeps what a response says.
    pub fn learn(&mut self, answer: &Answer) {
        let fields = answer.head.iter().flat_map(|head| &head.fields);
        for (name, value) in fields {
            let value = String::from_utf8_lossy(value);
            match name.to_ascii_lowercase().as_str() {
                "www-authenticate" => self.challenged(&value),
                "authentication-info" => self.renewed(&value),
                "set-cookie" => self.keep_cookie(&value),
                _ => {}
            }
        }
    }

    fn challenged(&mut self, value: &str) {
        // Apache joins several fields to one.
        for value in value.split("Digest ").skip(1).map(|value| format!(" {value}")) {
            let Some(nonce) = parameter(&value, "nonce") else { continue };
            let realm = parameter(&value, "realm").unwrap_or_default();
            let opaque = parameter(&value, "opaque");
            self.challenges.push(Challenge { realm, nonce, opaque, used: 0 });
        }
    }

    fn renewed(&mut self, value: &str) {
        let Some(nonce) = parameter(value, "nextnonce") else { return };
        let last = self.challenges.last().cloned().unwrap_or_default();
        self.challenges.push(Challenge { nonce, used: 0, ..last });
    }

    fn keep_cookie(&mut self, value: &str) {
        let pair = value.split(';').next().unwrap_or_default();
        let Some((name, value)) = pair.split_once('=') else { return };
        self.cookies.retain(|(known, _)| known != name);
        if !value.is_empty() {
            self.cookies.push((name.to_owned(), value.to_owned()));
        }
    }

    /// A line of a response without what is this server's alone: nonces, and proofs that are right.
    pub fn unfill(&self, line: String) -> String {
        let is_of_login = ["< WWW-Authenticate: ", "< Authentication-Info: "];
        if !is_of_login.iter().any(|start| line.starts_with(start)) {
            return line;
        }
        let mut line = line;
        for challenge in &self.challenges {
            line = line.replace(&format!("nonce=\"{}\"", challenge.nonce), "nonce=\"NONCE\"");
            if let Some(opaque) = &challenge.opaque {
                line = line.replace(&format!("opaque=\"{opaque}\""), "opaque=\"OPAQUE\"");
            }
        }
        for proof in &self.proofs {
            line = line.replace(&format!("rspauth=\"{proof}\""), "rspauth=\"RIGHT\"");
        }
        line
    }

    /// A line of a request that comes back, as TRACE and logs have it, without what this server
    /// alone was sent; `mask` is what has been done to the line.
    pub fn unsend(&self, line: String, mask: &dyn Fn(&str) -> String) -> String {
        let mut sent: Vec<_> = self.sent.iter().filter(|(filled, _)| !filled.is_empty()).collect();
        // Cookies of one request may end with those of another.
        sent.sort_by_key(|(filled, _)| std::cmp::Reverse(filled.len()));
        sent.into_iter().fold(line, |line, (filled, mark)| {
            let mark = format!("@{mark}@");
            // In a log, with quotes escaped; in a forensic log, with its own marks.
            let logged = filled.replace('\\', "\\\\").replace('"', "\\\"");
            let forensic = filled.replace('%', "%25").replace(':', "%3a").replace('|', "%7c");
            [filled, &logged, &forensic].into_iter().fold(line, |line, sent| {
                let shown = escape(sent.as_bytes());
                // Random letters may look like what is masked.
                line.replace(&shown, &mark).replace(&mask(&shown), &mark)
            })
        })
    }
}

/// The last request line of a text.
fn request_line(text: &str) -> &str {
    let is_request = |line: &&str| line.ends_with(" HTTP/1.1") || line.ends_with(" HTTP/1.0");
    text.lines().rev().find(is_request).unwrap_or_default()
}

/// The text of a quoted string.
fn plain(quoted: &str) -> String {
    let mut letters = quoted.chars();
    let mut plain = String::with_capacity(quoted.len());
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    plain
}

/// The value of a parameter in quotes, with the quotes' backslashes.
fn parameter(value: &str, name: &str) -> Option<String> {
    let begin = format!("{name}=\"");
    let at = value.match_indices(&begin).map(|(at, _)| at);
    let is_whole = |at: &usize| value.get(..*at).is_some_and(|before| before.ends_with(' '));
    let rest = value.get(at.into_iter().find(is_whole)? + begin.len()..)?;
    let mut end = 0;
    let mut is_escaped = false;
    for letter in rest.chars() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => break,
            _ => {}
        }
        end += letter.len_utf8();
    }
    rest.get(..end).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::Keeper;
    use crate::answer::{Answer, Head};

    fn answer(fields: &[(&str, &str)]) -> Answer {
        let field = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
        let head = Head { fields: fields.iter().map(field).collect(), ..Head::default() };
        Answer { head: Some(head), ..Answer::default() }
    }

    #[test]
    fn a_digest_answers_the_last_challenge() {
        let mut keeper = Keeper::default();
        let challenge = "Digest realm=\"testrealm@host.com\", nonce=\"n1\", opaque=\"7\"";
        keeper.learn(&answer(&[("WWW-Authenticate", challenge)]));
        let sent = b"GET /x HTTP/1.1\r\nAuthorization: @DIGEST a:b cnonce=c@\r\n\r\n".to_vec();
        let filled = String::from_utf8(keeper.fill(sent)).unwrap_or_default();
        assert!(
            filled.contains("Digest username=\"a\", realm=\"testrealm@host.com\", nonce=\"n1\"")
        );
        assert!(filled.contains("uri=\"/x\"") && filled.contains("nc=00000001, cnonce=\"c\""));
        assert!(filled.contains("response=\"") && filled.ends_with("\r\n\r\n"), "{filled}");
        let line = keeper.unfill(format!("< WWW-Authenticate: {challenge}"));
        assert!(line.ends_with("nonce=\"NONCE\", opaque=\"OPAQUE\""), "{line}");
    }

    #[test]
    fn the_digest_is_that_of_rfc_2617() {
        let mut keeper = Keeper::default();
        let nonce = "dcd98b7102dd2f0e8b11d0f600bfb0c093";
        let challenge = format!("Digest realm=\"testrealm@host.com\", nonce=\"{nonce}\"");
        keeper.learn(&answer(&[("WWW-Authenticate", &challenge)]));
        let sent = "GET /dir/index.html HTTP/1.1\r\nAuthorization: \
                    @DIGEST Mufasa:CircleOfLife cnonce=0a4f113b@\r\n";
        let filled = keeper.fill(sent.as_bytes().to_vec());
        let digest = "response=\"e31b30d5e407246518d94833d7f0deea\"";
        assert!(String::from_utf8_lossy(&filled).contains(digest));
    }

    #[test]
    fn cookies_come_back_until_they_are_emptied() {
        let mut keeper = Keeper::default();
        keeper.learn(&answer(&[("Set-Cookie", "a=1;path=/"), ("Set-Cookie", "b=2")]));
        keeper.learn(&answer(&[("Set-Cookie", "a=;Max-Age=0")]));
        assert_eq!(keeper.fill(b"Cookie: @COOKIES@\r\n".to_vec()), b"Cookie: b=2\r\n");
        assert_eq!(keeper.fill(b"Cookie: @COOKIES 0@\r\n".to_vec()), b"Cookie: c=2\r\n");
        assert_eq!(keeper.fill(b"Cookie: x\r\n".to_vec()), b"Cookie: x\r\n");
    }

    #[test]
    fn clients_that_were_told_the_same_are_alike() {
        let told = |nonce: &str| {
            let mut keeper = Keeper::default();
            let challenge = format!("Digest realm=\"r\", nonce=\"{nonce}\"");
            keeper.learn(&answer(&[("WWW-Authenticate", &challenge), ("Set-Cookie", "a=1")]));
            keeper
        };
        assert!(told("n").is_like(&told("m")) && !told("n").is_like(&Keeper::default()));
        assert!(Keeper::has_credentials(b"Cookie: @COOKIES@") && !Keeper::has_credentials(b"a"));
    }

    #[test]
    fn what_was_sent_is_told_apart_when_it_comes_back() {
        let mut keeper = Keeper::default();
        keeper.learn(&answer(&[("Set-Cookie", "a=\"1\\2\"")]));
        keeper.fill(b"Cookie: @COOKIES 2@\r\n".to_vec());
        let line = "| Cookie: a=#1\\\\2\"\\r".to_owned();
        assert_eq!(keeper.unsend(line, &str::to_owned), "| Cookie: @COOKIES 2@\\r");
        let mut keeper = Keeper::default();
        keeper.fill(b"Cookie: @COOKIES@\r\n".to_vec());
        assert_eq!(keeper.unsend("| Cookie:\\r".to_owned(), &str::to_owned), "| Cookie:\\r");
    }

    #[test]
    fn cookies_are_told_apart_from_longer_ones() {
        let mut keeper = Keeper::default();
        keeper.learn(&answer(&[("Set-Cookie", "b=2")]));
        keeper.fill(b"Cookie: @COOKIES 99@\r\n".to_vec());
        assert_eq!(keeper.unsend("| b=2".to_owned(), &str::to_owned), "| @COOKIES@");
        keeper.cookies.insert(0, ("a".to_owned(), "1".to_owned()));
        keeper.fill(b"Cookie: @COOKIES 2@\r\n".to_vec());
        assert_eq!(keeper.unsend("| a=0; b=2".to_owned(), &str::to_owned), "| @COOKIES 2@");
    }

    #[test]
    fn what_was_sent_is_told_apart_behind_a_mask() {
        let mut keeper = Keeper::default();
        keeper.learn(&answer(&[("Set-Cookie", "a=1234/5")]));
        keeper.fill(b"Cookie: @COOKIES@\r\n".to_vec());
        let mask = |line: &str| line.replace("1234", "NUMBER");
        let line = mask("+1|Cookie:a=1234/5|Range:1234");
        assert_eq!(keeper.unsend(line, &mask), "+1|Cookie:@COOKIES@|Range:NUMBER");
    }
}
