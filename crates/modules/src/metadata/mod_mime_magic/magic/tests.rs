//! Tests of parsing and running.

use super::*;

/// The outcome for a file that is long enough for every rule.
fn outcome(magic: &str, content: &[u8]) -> Option<(String, Option<String>)> {
    let (magic, _) = Magic::parse(magic.as_bytes());
    let long = [content, &[0; 200]].concat();
    let pieces = magic.identify(&Sample::of_file(&long), &mut Vec::new())?;
    let outcome = Outcome::of(&pieces)?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Some((text(outcome.media_type), outcome.encoding.map(text)))
}

fn media_type(magic: &str, content: &[u8]) -> Option<String> {
    outcome(magic, content).map(|(media_type, _)| media_type)
}

#[test]
fn values_are_compared() {
    let holds = |rule: &str, content: &[u8]| media_type(&format!("{rule} a/b"), content).is_some();
    assert!(holds("0 string AB", b"ABC") && !holds("0 string AB", b"AC"));
    assert!(holds(r"1 string \x41\102\ ", b"_AB "));
    assert!(holds("0 string >A", b"B") && !holds("0 string >A", b"A"));
    assert!(holds("0 beshort 0x4142", b"AB") && holds("0 leshort 0x4241", b"AB"));
    assert!(holds("0 belong&0xffff0000 0x41420000", b"ABCD"));
    // On 64 bits the sign of the value is extended, and that of the number is not.
    assert!(!holds("0 belong 0xcafebabe", b"\xca\xfe\xba\xbe"));
    assert!(holds("0 belong&0xffffffff 0xcafebabe", b"\xca\xfe\xba\xbe"));
    assert!(holds("0 byte <0", b"\xff") && !holds("0 ubyte <0", b"\xff"));
    assert!(holds("0 byte &0x40", b"A") && holds("0 byte ^0x20", b"A"));
    assert!(holds("0 byte !0x42", b"A") && !holds("0 byte !0x41", b"A"));
    assert!(holds("0 byte x", b"A"));
    assert!(!holds("0 byte", b"A"));
    assert!(holds("0 byte 0x78", b"any value, as in Apache"));
    assert!(holds("4000 byte x", &[0; 4090]) && !holds("4040 byte x", &[0; 4090]));
}

#[test]
fn rules_below_print_too() {
    let magic = "0 string A a/b\n>1 string C c\n>>2 string D d\n>1 string B x-b\n>2 string C more\n\
                 0 string Z z/z";
    assert_eq!(outcome(magic, b"ABC"), Some(("a/b ".into(), Some("x-b ".into()))));
    assert_eq!(outcome(magic, b"ACD"), Some(("a/b ".into(), Some("c ".into()))));
    assert_eq!(outcome(magic, b"Z"), Some(("z/z".into(), None)));
    assert_eq!(outcome(magic, b"Y"), None);
    let joined = "0 string A a/\n>1 string B \\bb\n";
    assert_eq!(outcome(joined, b"AB"), Some(("a/b".into(), None)));
    let indirect = "0 string A\n>(1.b+2) string Z a/z";
    assert_eq!(media_type(indirect, b"A\x03___Z"), Some("a/z".into()));
}

#[test]
fn descriptions_are_formats() {
    assert_eq!(media_type("0 byte x a/%d-%%", b"A"), Some("a/65-%".into()));
    assert_eq!(media_type("0 beshort x a/%04x%-3uz", b"\x01\x02"), Some("a/0102258z".into()));
    assert_eq!(media_type("0 byte <0 a/%d", b"\xff"), Some("a/-1".into()));
    assert_eq!(media_type("0 string >A a/%s-%.2s", b"BCD\nE"), Some("a/bcd-bc".into()));
    assert_eq!(media_type("0 byte x a/%s%099999999999999999999d", b"A").unwrap().len(), 255);
    assert_eq!(media_type("0 byte x text", b"A"), None);
}

#[test]
fn texts_and_archives_are_known() {
    assert_eq!(media_type("", b".TH A"), Some("application/x-troff".into()));
    assert_eq!(media_type("", b"c comment"), Some("text/plain".into()));
    assert_eq!(media_type("", b"a <html> the"), Some("text/html".into()));
    let escaped = outcome("", b"a <html> \x1b");
    assert_eq!(escaped, Some(("text/html ".into(), Some("(with ".into()))));
    let mut tar = vec![b'a'; 512];
    tar[148..156].fill(b' ');
    let sum: u32 = tar.iter().map(|byte| u32::from(*byte)).sum();
    tar[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
    tar[154] = 0;
    assert_eq!(media_type("", &tar), Some("application/x-tar".into()));
    tar[0] = b'b';
    assert_eq!(media_type("", &tar), None);
}

#[test]
fn faults_have_apaches_text_and_a_line() {
    let faults = |text: &str| -> Vec<(u32, u32, String)> {
        let faults = Magic::parse(text.as_bytes()).1;
        faults.into_iter().map(|fault| (fault.line, fault.number, fault.text)).collect()
    };
    let text = "# ok\n\nx byte 1 a/b\n0 what\n>(4.q) byte 1\n>(4+4 byte 1\n";
    let found = faults(text);
    assert_eq!(
        found,
        [
            (3, 1521, "offset x byte 1 a/b invalid".to_owned()),
            (3, 1524, "type x byte 1 a/b invalid".to_owned()),
            (4, 1524, "type what invalid".to_owned()),
            (5, 1522, "indirect offset type q invalid".to_owned()),
            (6, 1523, "missing ')' in indirect offset".to_owned()),
        ]
    );
    let long = format!("0 string {} a/b", "y".repeat(64));
    assert_eq!(faults(&long)[0].1, 1526);
    assert!(faults("0 string abc\\").is_empty());
}
