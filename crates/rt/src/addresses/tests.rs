use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::Loop;

/// Far longer than any step takes: the machine may stall for a while.
const TIMEOUT: Duration = Duration::from_secs(90);

const GOOD: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Nothing listens there.
const BAD: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 1, 2, 3));

/// Answers with `answers` in turn, then with the last one, and counts the questions.
fn addresses(answers: &[&[IpAddr]]) -> (Arc<Addresses>, Arc<AtomicUsize>) {
    let answers: Vec<Vec<IpAddr>> = answers.iter().map(|one| one.to_vec()).collect();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let resolver = move |name: &str| {
        assert_eq!(name, "backend.example");
        let number = count.fetch_add(1, Ordering::SeqCst);
        // Long enough for all who ask at the same time to meet.
        thread::sleep(Duration::from_millis(20));
        match answers.get(number).or(answers.last()) {
            Some(answer) if !answer.is_empty() => Ok(answer.clone()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    };
    (Arc::new(Addresses::of_resolver(Arc::new(resolver))), asked)
}

fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind((GOOD, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

async fn connect(
    addresses: &Addresses,
    port: u16,
    ttl: Option<Duration>,
) -> Result<Stream, ConnectError> {
    let options = ConnectOptions::default();
    addresses.connect(("backend.example", port), ttl, &options, TIMEOUT).await
}

#[test]
fn a_name_is_asked_for_once_and_again_after_its_time() {
    let (_listener, port) = listen();
    let (known, asked) = addresses(&[&[BAD, GOOD]]);
    Loop::run("test", async |handle| {
        for _ in 0..3 {
            connect(&known, port, None).await.unwrap();
        }
        assert_eq!((asked.load(Ordering::SeqCst), known.len()), (1, 1));
        let (known, asked) = addresses(&[&[GOOD]]);
        let ttl = Some(Duration::from_millis(30));
        for expected in 1..4 {
            connect(&known, port, ttl).await.unwrap();
            assert_eq!(asked.load(Ordering::SeqCst), expected);
            handle.sleep(Duration::from_millis(40)).await;
        }
    })
    .unwrap();
}

#[test]
fn those_who_ask_at_once_share_an_answer_and_a_failure() {
    let (_listener, port) = listen();
    for (answer, is_good) in [(&[GOOD][..], true), (&[][..], false)] {
        let (known, asked) = addresses(&[answer]);
        let ask = |known: Arc<Addresses>| {
            move || {
                Loop::run("test", async |handle| {
                    let tasks: Vec<_> = (0..10)
                        .map(|_| {
                            let known = known.clone();
                            handle.spawn_local(async move {
                                connect(&known, port, None).await.map(drop)
                            })
                        })
                        .collect();
                    for task in tasks {
                        let outcome = task.await.unwrap();
                        match is_good {
                            true => outcome.unwrap(),
                            false => assert!(matches!(outcome, Err(ConnectError::Unknown(_)))),
                        }
                    }
                })
                .unwrap();
            }
        };
        let others: Vec<_> = (0..3).map(|_| thread::spawn(ask(known.clone()))).collect();
        others.into_iter().for_each(|other| other.join().unwrap());
        // A failure is kept for a second, which a busy machine may exceed.
        let bound = if is_good { 1 } else { 10 };
        assert!(asked.load(Ordering::SeqCst) <= bound);
    }
}

#[test]
fn one_that_gives_up_leaves_the_question_to_the_next() {
    let (_listener, port) = listen();
    let (known, asked) = addresses(&[&[GOOD]]);
    Loop::run("test", async |handle| {
        let first = handle.spawn_local({
            let known = known.clone();
            async move { connect(&known, port, None).await.map(drop) }
        });
        handle.sleep(Duration::from_millis(2)).await;
        first.abort();
        connect(&known, port, None).await.unwrap();
    })
    .unwrap();
    assert!((1..=2).contains(&asked.load(Ordering::SeqCst)));
}

#[test]
fn known_addresses_that_all_fail_are_asked_for_once_more() {
    let (listener, port) = listen();
    let (known, asked) = addresses(&[&[GOOD], &[GOOD], &[BAD], &[BAD]]);
    Loop::run("test", async |_| {
        connect(&known, port, None).await.unwrap();
        drop(listener);
        // The same, so they are not tried again; then others.
        for expected in [2, 3, 4] {
            let error = connect(&known, port, None).await.unwrap_err();
            assert!(
                matches!(&error, ConnectError::Io(error)
                    if error.kind() == io::ErrorKind::ConnectionRefused),
                "{error:?}"
            );
            assert_eq!(asked.load(Ordering::SeqCst), expected);
        }
        let _again = TcpListener::bind((BAD, port)).unwrap();
        connect(&known, port, None).await.unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), 4);
    })
    .unwrap();
}

#[test]
fn an_address_needs_no_resolver_and_the_system_knows_localhost() {
    let (_listener, port) = listen();
    let (known, asked) = addresses(&[]);
    Loop::run("test", async |_| {
        let options = ConnectOptions::default();
        known.connect(("127.0.0.1", port), None, &options, TIMEOUT).await.unwrap();
        assert_eq!((asked.load(Ordering::SeqCst), known.is_empty()), (0, true));
        let system = Addresses::default();
        system.connect(("localhost", port), None, &options, TIMEOUT).await.unwrap();
    })
    .unwrap();
}

#[test]
fn names_are_bounded() {
    let known = Addresses::default();
    for number in 0..NAMES_MAX + 10 {
        known.keep(&number.to_string(), Known { addresses: Err(Unresolved::NoName), until: None });
    }
    assert_eq!(known.len(), 10);
    let past = Some(Instant::now());
    for number in 0..NAMES_MAX + 10 {
        known.keep(&number.to_string(), Known { addresses: Err(Unresolved::NoName), until: past });
    }
    assert!(known.len() <= NAMES_MAX);
}
