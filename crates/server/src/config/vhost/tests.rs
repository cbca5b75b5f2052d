use super::*;

#[test]
fn wildcards_match_as_apaches() {
    assert!(matches_wildcard(b"*.a.b", b"x.A.b"));
    assert!(matches_wildcard(b"a?c*", b"abc"));
    assert!(!matches_wildcard(b"*.a.b", b"a.b"));
    assert!(!matches_wildcard(b"a*b", b"abx"));
    assert!(matches_wildcard(b"*", b""));
}
