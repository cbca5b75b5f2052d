use super::*;

fn set(word: &str) -> Result<Parameters, String> {
    let (key, value) = word.split_once('=').unwrap();
    let mut parameters = Parameters::default();
    let knows = |name: &[u8]| name.starts_with(b"by") && name != b"bynothing";
    parameters.set(key.as_bytes(), value.as_bytes(), knows).map_err(Cow::into_owned)?;
    Ok(parameters)
}

#[test]
fn words_become_values() {
    let both = |cookie: &str, path: &str| Some((cookie.into(), path.into()));
    assert_eq!(set("stickysession=A|b").unwrap().sticky, both("A", "b"));
    assert_eq!(set("STICKYSESSION=A").unwrap().sticky, both("A", "A"));
    assert_eq!(set("stickysessionsep=Off").unwrap().sticky_separator, Some(None));
    assert_eq!(set("failonstatus=500,503").unwrap().fail_on_status, [500, 503]);
    assert_eq!(set("nonce=none").unwrap().nonce, Some(Vec::new()));
    assert_eq!(set("growth=100").unwrap().growth, Some(100));
}
