use super::*;

fn set(word: &str) -> Result<Parameters, String> {
    let (key, value) = word.split_once('=').unwrap();
    let mut parameters = Parameters::default();
    let knows = |name: &[u8]| name.starts_with(b"by") && name != b"bynothing";
    parameters.set(key.as_bytes(), value.as_bytes(), knows).map_err(Cow::into_owned)?;
    Ok(parameters)
}

/// The words and answers are those of recorded/balancer.cli, recorded from Apache.
#[test]
fn the_recorded_words_get_apaches_answers() {
    let recorded =
        [include_str!("../recorded/balancer.cli"), include_str!("../recorded/balancer_2.cli")];
    let mut tried = 0;
    let answers = |file: &'static str| {
        file.split("-C \"Define CASE ").skip(1).map(move |answer| (file, answer))
    };
    for (recorded, answer) in recorded.into_iter().flat_map(answers) {
        let (case, rest) = answer.split_once("\"\n").unwrap();
        let rest = rest.split("\n\n").next().unwrap().trim_end();
        let config = recorded.split(&format!("    bad/{case}.conf\n")).nth(1).unwrap();
        let Some(word) = config.split("    bad/").next().unwrap().split("balancer://b ").nth(1)
        else {
            continue;
        };
        let word = word.lines().next().unwrap();
        if !config.starts_with("    | <Proxy balancer://b>\n") || !word.contains('=') {
            continue;
        }
        match set(word) {
            Ok(_) => assert!(rest.starts_with("exit 0"), "{word} {rest}"),
            Err(text) => assert!(rest.ends_with(&format!("| ProxyPass {text}")), "{rest}: {text}"),
        }
        tried += 1;
    }
    assert!(tried > 30, "{tried}");
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
