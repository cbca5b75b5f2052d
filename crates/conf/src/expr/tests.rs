//! Expressions as a whole: parsed, and evaluated for a synthetic request.

use std::net::IpAddr;

use super::*;

/// A request with a few values, which records the headers that the response varies by.
#[derive(Default)]
struct Request {
    vary: Vec<String>,
}

impl Env for Request {
    fn variable(&mut self, variable: Variable, out: &mut Vec<u8>) -> bool {
        let value: &[u8] = match variable {
            Variable::RequestUri => b"/a/b.html",
            Variable::HttpUserAgent => b"Lynx/2.8",
            Variable::HttpHost => b"example.com",
            Variable::TimeHour => b"09",
            _ => return false,
        };
        out.extend_from_slice(value);
        true
    }

    fn lookup(&mut self, table: Table, name: &[u8], out: &mut Vec<u8>) -> bool {
        let value: &[u8] = match (table, name) {
            (Table::RequestHeader | Table::RequestHeaderNoVary, b"Accept") => b"text/html",
            (Table::RequestEnv, b"flag") => b"off",
            (Table::OsEnv, b"os") => b"linux",
            (Table::Note, b"note") => b"noted",
            _ => return false,
        };
        out.extend_from_slice(value);
        true
    }

    fn client_address(&mut self) -> Option<IpAddr> {
        Some(IpAddr::from([10, 1, 2, 3]))
    }

    fn allowed(&mut self, subject: Subject, text: &[u8]) -> Result<bool, pcre::Later> {
        Ok(subject == Subject::Url && text == b"/open")
    }

    fn vary(&mut self, header: &[u8]) {
        self.vary.push(String::from_utf8_lossy(header).into_owned());
    }

    fn module_function(&mut self, id: u32, argument: &[u8], out: &mut Vec<u8>) -> bool {
        if (id, argument) == (7, b"MODULE_VARIABLE") {
            out.extend_from_slice(b"from a module");
            return true;
        }
        out.extend_from_slice(format!("{id}:").as_bytes());
        out.extend_from_slice(argument);
        true
    }

    fn module_list_contains(&mut self, _: u32, argument: &[u8], needle: &[u8]) -> bool {
        argument == b"list" && needle == b"element"
    }
}

struct ModuleNames;

impl Names for ModuleNames {
    fn variable(&self, name: &str) -> Option<u32> {
        (name == "MODULE_VARIABLE").then_some(7)
    }

    fn function(&self, name: &str) -> Option<u32> {
        (name == "twice").then_some(8)
    }

    fn list_function(&self, name: &str) -> Option<u32> {
        (name == "PeerExtList").then_some(9)
    }
}

fn truth(text: &str) -> bool {
    let expr = Expr::parse_bool(text.as_bytes(), Flags::default(), &ModuleNames).unwrap();
    expr.eval_bool(&mut Request::default(), &mut Backrefs::new()).unwrap()
}

fn text(text: &str) -> String {
    let expr = Expr::parse_string(text.as_bytes(), Flags::default(), &ModuleNames).unwrap();
    let mut out = Vec::new();
    expr.eval_string(&mut Request::default(), &mut Backrefs::new(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn refusal(text: &str) -> Error {
    Expr::parse_bool(text.as_bytes(), Flags::default(), &NoNames).unwrap_err()
}

#[test]
fn boolean_operators_bind_as_in_apache() {
    assert!(truth("true || true && false"));
    assert!(!truth("(true || true) && false"));
    assert!(truth("! false && true") && !truth("!(false || true)") && truth("not not true"));
    assert!(truth("false or true and true"));
}

#[test]
fn strings_and_numbers_compare_apart() {
    assert!(truth("'9' -lt '10'") && !truth("'9' < '10'") && truth("'a' != 'b'"));
    assert!(truth("%{TIME_HOUR} -eq 9") && truth("10 ge 10") && truth("-1 -lt 0"));
    assert!(truth("'b' >= 'a'") && truth("'a' = 'a'") && truth("'x' -eq 0"));
    assert!(truth("'99999999999999999999' -gt 5"));
}

#[test]
fn lists() {
    assert!(truth("'b' in {'a', 'b'}") && !truth("'c' -in {'a', 'b'}"));
    assert!(truth("'element' -in PeerExtList('list')"));
    assert!(!truth("'other' -in PeerExtList('list')"));
}

#[test]
fn patterns_and_references() {
    assert!(truth("%{REQUEST_URI} =~ m#^/(\\w+)/# && $1 == 'a'"));
    assert!(truth("'ABC' =~ /b/i") && !truth("'ABC' =~ /b/") && truth("'x' !~ /y/"));
    assert!(truth("'abc' =~ /(b)/ && 'z' =~ /z/ && '$1' == 'b'"), "no groups: kept");
    assert!(truth("'abc' =~ /(b)/ && 'z' !~ /(y)/ && $1 == ''"), "failed with groups: unset");
}

#[test]
fn references_of_the_caller_are_seen_and_left() {
    let expr = Expr::parse_bool(b"$1 == 'b' && 'c' =~ /(.)/", Flags::default(), &NoNames).unwrap();
    let regex = pcre::Regex::new(b"(b)", pcre::Flags::default()).unwrap();
    let mut captures = pcre::Captures::new();
    assert!(regex.matches(b"abc", Some(&mut captures)).surely());
    let mut backrefs = Backrefs::from_match(b"abc", captures);
    assert!(expr.eval_bool(&mut Request::default(), &mut backrefs).unwrap());
    assert_eq!(backrefs.text(1), b"c");
}

/// Every match is undecided, and so is the variable `open`.
struct Undecided;

impl Env for Undecided {
    fn variable(&mut self, _: Variable, _: &mut Vec<u8>) -> bool {
        false
    }
    fn lookup(&mut self, _: Table, _: &[u8], _: &mut Vec<u8>) -> bool {
        false
    }
    fn client_address(&mut self) -> Option<std::net::IpAddr> {
        None
    }
    fn allowed(&mut self, _: Subject, _: &[u8]) -> Result<bool, pcre::Later> {
        Ok(false)
    }
    fn matches(
        &mut self,
        _: &pcre::Regex,
        _: &[u8],
        _: Option<&mut pcre::Captures>,
    ) -> Result<pcre::Matched, pcre::Later> {
        Ok(pcre::Matched::Undecided(pcre::Why::Steps))
    }
    fn is_undecided(&self, variable: &[u8]) -> bool {
        variable == b"open"
    }
}

#[test]
fn what_hangs_on_an_undecided_match_is_an_error() {
    let value = |text: &str| {
        let expr = Expr::parse_bool(text.as_bytes(), Flags::default(), &NoNames).unwrap();
        expr.eval_bool(&mut Undecided, &mut Backrefs::new())
    };
    let open = Err(EvalError::Undecided);
    for text in [
        "'a' =~ /b/",
        "'a' !~ /b/",
        "! 'a' =~ /b/",
        "'a' =~ /b/ && true",
        "'a' =~ /b/ || false",
        "! ('a' =~ /b/ || false)",
        "-n env('open')",
        "! reqenv('open') == 'x'",
        "'x' -in { 'y', env('open') }",
    ] {
        assert_eq!(value(text), open, "{text}");
    }
    for (text, known) in [
        ("'a' =~ /b/ && false", false),
        ("false && 'a' =~ /b/", false),
        ("'a' =~ /b/ || true", true),
        ("! ('a' !~ /b/ && false)", true),
        ("-n env('open') || true", true),
        ("-n env('other')", false),
        ("(-n env('open') || true) && -z env('other')", true),
    ] {
        assert_eq!(value(text), Ok(known), "{text}");
    }
}

#[test]
fn unary_operators() {
    assert!(truth("-n 'a'") && truth("-z ''") && truth("-T 'yes'") && truth("-T '00'"));
    for falsy in ["''", "'0'", "'Off'", "'no'", "'FALSE'", "reqenv('flag')"] {
        assert!(!truth(&format!("-T {falsy}")), "{falsy}");
    }
    assert!(truth("-d '/'") && truth("-e '/'") && !truth("-f '/'") && !truth("-s '/nowhere'"));
    assert!(truth("-U '/open'") && truth("-A '/open'") && !truth("-F '/open'"));
    assert!(truth("-R '10.0.0.0/8'") && !truth("-R '10.2'"));
}

#[test]
fn binary_operators() {
    assert!(truth("'/a/b' -strmatch '/*'") && !truth("'/a/b' -fnmatch '/*'"));
    assert!(truth("'ABC' -strcmatch 'a?c'") && !truth("'ABC' -strmatch 'a?c'"));
    assert!(truth("'192.168.7.7' -ipmatch '192.168'") && !truth("'no' -ipmatch '10.1'"));
}

#[test]
fn functions() {
    assert_eq!(text("%{tolower:A%{REQUEST_URI}B}"), "a/a/b.htmlb");
    assert_eq!(text("%{md5:foo}"), "acbd18db4cc2f85cedef654fccc4a4d8");
    assert_eq!(text("%{sha1:foo}"), "0beec7b5ea3f0fdbc95d0dd47f3c5bc275da8a33");
    assert_eq!(text("%{base64:foo}%{unbase64:Zm9v!}"), "Zm9vfoo");
    assert_eq!(text("%{escape:a b?c/d%}%{unescape:a%20b%2Fc}"), "a%20b%3fc/d%25a b%2Fc");
    assert_eq!(text("[%{unescape:a%00b}][%{unescape:%zz}]"), "[][]");
    assert_eq!(text("%{filesize:/nowhere}%{twice:x}"), "08:x");
    assert_eq!(text("%{env:note}%{env:flag}%{env:os}"), "notedofflinux");
    assert_eq!(text("%{ldap:a,b*}"), "a\\2cb\\2a");
    assert_eq!(text("%{MODULE_VARIABLE}"), "from a module");
}

#[test]
fn strings_with_escapes() {
    assert_eq!(text("a 'b' \"c\" 100% } \\} \\n\\101\\$1"), "a 'b' \"c\" 100% } } \nA$1");
    assert!(truth("'it\\'s' == \"it's\""));
    assert!(truth("'a' . 'b' . 1 == 'ab1'"));
}

#[test]
fn vary_names_the_headers_that_were_read() {
    let read = |text: &str, flags: Flags| {
        let mut request = Request::default();
        let expr = Expr::parse_bool(text.as_bytes(), flags, &NoNames).unwrap();
        expr.eval_bool(&mut request, &mut Backrefs::new()).unwrap();
        request.vary
    };
    let all = "%{HTTP_USER_AGENT} == 'x' || req('Accept') == 'x' || %{HTTP_HOST} == 'x' \
               || req('host') == 'x' || req_novary('Cookie') == 'x'";
    assert_eq!(read(all, Flags::default()), ["User-Agent", "Accept"]);
    assert!(read(all, Flags { dont_vary: true, ..Flags::default() }).is_empty());
    assert!(read("true || req('Accept') == 'x'", Flags::default()).is_empty());
}

#[test]
fn restricted_places_do_not_read_files() {
    let flags = Flags { restricted: true, ..Flags::default() };
    for (text, message) in [
        ("file('/x') == ''", "file not available in restricted context"),
        ("filesize('/x') == 1", "filesize not available in restricted context"),
    ] {
        let error = Expr::parse_bool(text.as_bytes(), flags, &NoNames).unwrap_err();
        assert_eq!(error.message, message);
    }
    for operator in ["d", "e", "f", "s", "L", "h", "x", "n"] {
        let text = format!("-{operator} '/x'");
        assert!(Expr::parse_bool(text.as_bytes(), flags, &NoNames).is_ok(), "{text}");
    }
}

#[test]
fn ssl_require_compares_by_length_first() {
    let flags = Flags { ssl_compat: true, ..Flags::default() };
    let expr = Expr::parse_bool(b"'9' -lt '10' and '10' > '9'", flags, &NoNames).unwrap();
    assert!(expr.eval_bool(&mut Request::default(), &mut Backrefs::new()).unwrap());
}

#[test]
fn errors_say_where() {
    let error = refusal("true && %{NOPE} == 'x'");
    assert_eq!(error.message, "Variable 'NOPE' does not exist");
    assert_eq!((error.offset, error.length), (8, 7));
    assert_eq!(refusal("'a' == 'b").offset, 9);
    assert!(refusal(&"(".repeat(500)).message.contains("nested deeper"));
    assert!(refusal(&format!("'{}' == ''", "x".repeat(9000))).message.contains("too long"));
}

#[test]
fn constants_are_known() {
    let constant =
        |text: &str| Expr::parse_string(text.as_bytes(), Flags::default(), &NoNames).unwrap();
    assert_eq!(constant("plain").constant(), Some(&b"plain"[..]));
    assert!(constant("%{tolower:A}").is_constant());
    assert!(!constant("%{REQUEST_URI}").is_constant() && !constant("$1").is_constant());
    assert!(!constant("%{file:/x}").is_constant());
}

#[test]
fn evaluation_has_limits() {
    let deep = format!("{}x{}", "%{tolower:".repeat(30), "}".repeat(30));
    let expr = Expr::parse_string(deep.as_bytes(), Flags::default(), &NoNames).unwrap();
    let result = expr.eval_string(&mut Request::default(), &mut Backrefs::new(), &mut Vec::new());
    assert_eq!(result, Err(EvalError::Recursion));
    let many = vec!["true"; 500].join(" && ");
    assert!(truth(&many));
}

proptest::proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "[ -~]{0,60}") {
        for flags in [Flags::default(), Flags { restricted: true, ..Flags::default() }] {
            for result in [
                Expr::parse_bool(text.as_bytes(), flags, &ModuleNames),
                Expr::parse_string(text.as_bytes(), flags, &ModuleNames),
            ] {
                if let Err(error) = result {
                    assert!(error.offset + error.length <= text.len(), "{error:?}");
                }
            }
        }
    }

    #[test]
    fn expressions_evaluate_without_panic(
        words in proptest::collection::vec(word(), 2..6),
        operators in proptest::collection::vec(operator(), 6),
    ) {
        let mut text = String::new();
        for (index, pair) in words.chunks_exact(2).enumerate() {
            if index > 0 {
                text.push_str(" && ");
            }
            text.push_str(&format!("{} {} {}", pair[0], operators[index], pair[1]));
        }
        let flags = Flags { restricted: true, ..Flags::default() };
        if let Ok(expr) = Expr::parse_bool(text.as_bytes(), flags, &ModuleNames) {
            let _ = expr.eval_bool(&mut Request::default(), &mut Backrefs::new());
        }
    }

    #[test]
    fn a_quoted_string_comes_back(value in "[ -~]{0,40}") {
        let escaped: String = value.chars().flat_map(|letter| match letter {
            '\\' | '\'' | '$' | '%' => vec!['\\', letter],
            _ => vec![letter],
        }).collect();
        let text = format!("'{escaped}'");
        let expr = format!("{text} == 'x'");
        let parsed = Expr::parse_bool(expr.as_bytes(), Flags::default(), &NoNames).unwrap();
        let same = parsed.eval_bool(&mut Request::default(), &mut Backrefs::new()).unwrap();
        assert_eq!(same, value == "x");
        let string = Expr::parse_string(escaped.as_bytes(), Flags::default(), &NoNames).unwrap();
        let mut out = Vec::new();
        string.eval_string(&mut Request::default(), &mut Backrefs::new(), &mut out).unwrap();
        assert_eq!(out, value.as_bytes());
    }
}

fn word() -> impl proptest::strategy::Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "'a'",
        "\"$1%{REQUEST_URI}\"",
        "12",
        "$0",
        "%{HTTP_HOST}",
        "tolower('X')",
        "'a' . 'b'",
        "%{unescape:%41%}",
        "unbase64('/+==')",
        "escape('\\377')",
    ])
}

fn operator() -> impl proptest::strategy::Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "==",
        "<",
        "-lt",
        "-ge",
        "!=",
        "-strmatch",
        "-fnmatch",
        "-ipmatch",
        "=~",
        "-in",
    ])
}
