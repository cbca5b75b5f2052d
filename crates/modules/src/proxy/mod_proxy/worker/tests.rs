use super::*;

fn set(word: &str) -> Result<Parameters, String> {
    let (key, value) = word.split_once('=').unwrap();
    let mut parameters = Parameters::default();
    parameters.set(key.as_bytes(), value.as_bytes()).map_err(Cow::into_owned)?;
    Ok(parameters)
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
