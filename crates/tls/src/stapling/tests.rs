use super::*;
use crate::ocsp::tests::{Responding, body_of};

fn stapling(by: &Responding, settings: Settings) -> Stapling {
    Stapling::new(&[by.good.clone(), by.root.clone()], &[], settings, "h:443").unwrap()
}

fn now() -> u64 {
    crate::tickets::unix_seconds()
}

#[test]
fn a_response_is_asked_for_held_and_renewed() {
    let by = Responding::new("staple");
    let mut stapling = stapling(&by, Settings::default());
    let now = now();
    assert_eq!(stapling.current(now), None);
    let question = stapling.due(now).unwrap();
    let answer = by.answer_der(body_of(&question), "ca");
    assert_eq!(stapling.answered(Some(&answer), now), Outcome::Good);
    assert_eq!(stapling.current(now), Some(&answer[..]));
    assert_eq!(stapling.due(now + 2699), None);
    assert!(stapling.due(now + 2700).is_some());
    // The responder is gone: the held response is kept while it is valid.
    assert_eq!(stapling.answered(None, now + 2700), Outcome::Unreachable);
    assert_eq!(stapling.current(now + 3000), Some(&answer[..]));
    assert_eq!(stapling.due_at(), now + 2700 + 600);
    assert_eq!(stapling.current(now + 7200), None);
}

#[test]
fn errors_are_handed_on_as_configured() {
    let by = Responding::new("staple-errors");
    let (now, later) = (now(), try_later());
    for (return_errors, fake, unreachable, told) in [
        (true, true, Some(&later), Some(&later)),
        (true, false, None, Some(&later)),
        (false, true, None, None),
    ] {
        let settings = Settings { return_errors, fake_try_later: fake, ..Settings::default() };
        let mut one = stapling(&by, settings.clone());
        one.answered(None, now);
        assert_eq!(one.current(now), unreachable.map(Vec::as_slice));
        assert_eq!((one.due(now + 599), one.due(now + 600).is_some()), (None, true));
        let mut two = stapling(&by, settings);
        assert_eq!(two.answered(Some(&later), now), Outcome::Faulty(Fault::Responder(3)));
        assert_eq!(two.current(now), told.map(Vec::as_slice));
        assert_eq!(two.answered(Some(b"junk"), now), Outcome::Faulty(Fault::Malformed));
        assert_eq!(two.current(now), None);
    }
}

#[test]
fn a_revoked_certificate() {
    let by = Responding::new("staple-revoked");
    for (return_errors, stapled) in [(true, true), (false, false)] {
        let chain = [by.revoked.clone()];
        let settings = Settings { return_errors, ..Settings::default() };
        let mut one =
            Stapling::new(&chain, std::slice::from_ref(&by.root), settings, "h:443").unwrap();
        let answer = by.answer_der(body_of(&one.due(now()).unwrap()), "ca");
        assert_eq!(one.answered(Some(&answer), now()), Outcome::Status(Status::Revoked));
        assert_eq!(one.current(now()).is_some(), stapled);
    }
}

#[test]
fn what_is_missing_is_said() {
    let by = Responding::new("staple-missing");
    let new = |chain: &[CertificateDer<'static>]| {
        Stapling::new(chain, &[], Settings::default(), "h:443").unwrap_err().number
    };
    assert_eq!(new(std::slice::from_ref(&by.good)), Some(2217));
    assert_eq!(new(&[by.root.clone(), by.root.clone()]), Some(2218));
    assert_eq!(new(&[]), Some(2604));
}
