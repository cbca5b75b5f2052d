use super::*;

fn region(bytes: usize) -> &'static [AtomicU64] {
    Vec::leak((0..bytes / 8).map(|_| AtomicU64::new(0)).collect())
}

#[test]
fn arguments() {
    let shared = |path: &str, bytes| SessionCache::Shared { path: path.into(), bytes };
    let parse = |argument| SessionCache::parse(argument);
    assert_eq!(parse("none"), Ok(SessionCache::None));
    assert_eq!(parse("nonenotnull"), Ok(SessionCache::None));
    assert_eq!(parse("shmcb:/run/ssl_scache(512000)"), Ok(shared("/run/ssl_scache", 512_000)));
    assert_eq!(parse("shmcb:/run/ssl_scache"), Ok(shared("/run/ssl_scache", DEFAULT_BYTES)));
    for wrong in ["dbm:/x", "shmcb:/x(100)", "shmcb:/x(abc)", "foo"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn put_get_take_expire() {
    let sessions = SharedSessions::new(region(65536), [1; 32], 300);
    assert!(sessions.store(b"id", b"secret", 1000));
    assert_eq!(sessions.find(b"id", 1299, false).as_deref(), Some(&b"secret"[..]));
    assert_eq!(sessions.find(b"id", 1300, false), None);
    assert!(sessions.store(b"id", &[5; 1000], 1000), "large values have their own slots");
    assert_eq!(sessions.find(b"other", 1000, true), None);
    assert!(sessions.find(b"id", 1000, true).is_some());
}

#[test]
fn hosts_do_not_see_each_others_sessions() {
    let words = region(65536);
    let (one, two) =
        (SharedSessions::new(words, [1; 32], 300), SharedSessions::new(words, [2; 32], 300));
    assert!(one.put(b"id".to_vec(), b"one".to_vec()));
    assert_eq!(two.get(b"id"), None);
    assert!(two.put(b"id".to_vec(), b"two".to_vec()));
    assert_eq!(one.get(b"id").as_deref(), Some(&b"one"[..]));
    assert_eq!(one.occupied(), 2);
}

#[test]
fn a_full_cache_drops_the_oldest() {
    let sessions = SharedSessions::new(region(MIN_BYTES), [1; 32], 300);
    for round in 0..200_u64 {
        assert!(sessions.store(&round.to_be_bytes(), b"v", 1000 + round));
    }
    assert!(sessions.find(&199_u64.to_be_bytes(), 1200, false).is_some());
    assert!(!sessions.store(b"huge", &[0; 5000], 1200));
}

#[test]
fn one_taker_wins() {
    let sessions = SharedSessions::new(region(65536), [1; 32], 300);
    for round in 0..200_u32 {
        let key = round.to_be_bytes();
        assert!(sessions.put(key.to_vec(), vec![7; 300]));
        let winners: usize = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| usize::from(sessions.take(&key).is_some())))
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!(winners, 1);
    }
}

#[test]
fn a_slot_of_a_dead_writer_comes_back() {
    let words = region(MIN_BYTES);
    let sessions = SharedSessions::new(words, [1; 32], 300);
    for index in 0..sessions.small.count() {
        let slot = sessions.small.slot(index).unwrap();
        slot.state.store(State(0).next(BUSY, 1000).0, Ordering::Relaxed);
    }
    assert!(!sessions.store(b"id", b"v", 1001));
    assert!(sessions.store(b"id", b"v", 1000 + STALE_SECONDS + 1));
    assert!(sessions.find(b"id", 1011, false).is_some());
}
