use super::*;

fn set(word: &str) -> Result<Parameters, String> {
    let (key, value) = word.split_once('=').unwrap();
    let mut parameters = Parameters::default();
    parameters.set(key.as_bytes(), value.as_bytes()).map_err(Cow::into_owned)?;
    Ok(parameters)
}

/// The words and answers are those of recorded/worker.cli, recorded from Apache.
#[test]
fn the_recorded_words_get_apaches_answers() {
    let recorded = include_str!("../recorded/worker.cli");
    let line = |case: &str| {
        let start = format!("    bad/{case}.conf\n    | ProxyPass /a http://127.0.0.1:9/ ");
        let from = recorded.find(&start)? + start.len();
        recorded.get(from..)?.lines().next()
    };
    let mut tried = 0;
    for answer in recorded.split("-C \"Define CASE ").skip(1) {
        let (case, rest) = answer.split_once("\"\n").unwrap();
        let rest = rest.split("\n\n").next().unwrap().trim_end();
        let words = line(case).unwrap();
        let is_of_the_line = |word: &str| {
            ["nocanon", "interpolate", "noquery"].contains(&word) || word.starts_with("mapping")
        };
        let mut words = words.split(' ').filter(|word| !is_of_the_line(word));
        if rest.contains("key=value") || rest.contains("unknown mapping") {
            continue;
        }
        let outcome = words.try_for_each(|word| set(word).map(drop));
        match outcome {
            Ok(()) => assert!(rest.starts_with("exit 0"), "{case} {rest}"),
            Err(text) => assert!(rest.ends_with(&format!("| ProxyPass {text}")), "{rest}: {text}"),
        }
        tried += 1;
    }
    assert!(tried > 80, "{tried}");
}

#[test]
fn words_become_values() {
    assert_eq!(set("LoadFactor=1.55").unwrap().load_factor, Some(155));
    assert_eq!(set("ping=1").unwrap().ping, Some(Duration::from_secs(1)));
    assert_eq!(set("acquire=7").unwrap().acquire, Some(Duration::from_millis(7)));
    assert_eq!(set("enablereuse=on").unwrap().disable_reuse, Some(false));
    assert_eq!(set("upgrade=any").unwrap().upgrade, Some(b"*".to_vec()));
    assert_eq!(set("addressttl=-1").unwrap().address_ttl, None);
    assert_eq!(set("flushwait=20").unwrap().flush_wait, Some(Duration::from_millis(20)));
    assert!(set("status=-D+H").unwrap().status.has(Status::HOT_STANDBY));
}
