use std::io::Write;
use std::net::TcpListener;

use rt::{ConnectOptions, Remote};

use super::*;
use crate::proxy::mod_proxy::Target;
use crate::proxy::mod_proxy::worker::Parameters;

fn worker(number: usize, words: &[(&str, &str)]) -> Worker {
    let mut parameters = Parameters::default();
    for (key, value) in words {
        parameters.set(key.as_bytes(), value.as_bytes()).unwrap();
    }
    Worker {
        name: b"http://127.0.0.1/".to_vec(),
        target: Target::parse(b"http://127.0.0.1/").unwrap(),
        parameters,
        scheme: None,
        is_pattern: false,
        is_generic: false,
        is_member: false,
        number,
        state: Arc::default(),
    }
}

fn open(worker: &Worker) -> u64 {
    worker.state.open.load(Ordering::SeqCst)
}

async fn connect(listener: &TcpListener) -> Stream {
    let remote = Remote::Tcp(listener.local_addr().unwrap());
    Stream::connect(&remote, &ConnectOptions::default(), Deadline::NEVER).await.unwrap()
}

async fn slot(pool: &Pool, handle: &Handle) -> Slot {
    match pool.acquire(handle).await {
        Some(Acquired::Slot(slot)) => slot,
        Some(Acquired::Reused(..)) => panic!("reused"),
        None => panic!("none"),
    }
}

fn run(test: impl AsyncFnOnce(Handle, TcpListener) + 'static) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rt::Loop::run("test", |handle| async move { test(handle, listener).await }).unwrap();
}

#[test]
fn the_last_idle_connection_is_reused_first() {
    run(async |handle, listener| {
        let worker = worker(0, &[]);
        let pool = Pool::of(&worker);
        let slots = [slot(&pool, &handle).await, slot(&pool, &handle).await];
        let streams = [connect(&listener).await, connect(&listener).await];
        let last = streams[1].local_addr().unwrap();
        for (stream, slot) in streams.into_iter().zip(slots) {
            pool.put(stream, slot);
        }
        assert_eq!((pool.idle(), open(&worker)), (2, 2));
        let Some(Acquired::Reused(stream, slot)) = pool.acquire(&handle).await else {
            panic!("not reused")
        };
        assert_eq!(stream.local_addr().unwrap(), last);
        drop((stream, slot));
        assert_eq!((pool.idle(), open(&worker)), (1, 1));
    });
}

#[test]
fn a_closed_connection_is_not_reused() {
    run(async |handle, listener| {
        let worker = worker(1, &[]);
        let pool = Pool::of(&worker);
        let slot = slot(&pool, &handle).await;
        let stream = connect(&listener).await;
        let (mut peer, _) = listener.accept().unwrap();
        peer.write_all(b"unasked").unwrap();
        drop(peer);
        let mut stream = stream;
        stream.readable(Deadline::NEVER).await.unwrap();
        pool.put(stream, slot);
        assert!(matches!(pool.acquire(&handle).await, Some(Acquired::Slot(_))));
        assert_eq!((pool.idle(), open(&worker)), (0, 0));
    });
}

#[test]
fn at_max_a_request_waits_until_one_is_returned() {
    run(async |handle, listener| {
        let worker = worker(2, &[("max", "1"), ("acquire", "20")]);
        let pool = Pool::of(&worker);
        let first = slot(&pool, &handle).await;
        assert!(pool.acquire(&handle).await.is_none(), "nothing within 20 ms");
        assert!(!worker.state.queue.has_waiters());
        let stream = connect(&listener).await;
        let waiting = async {
            match pool.acquire(&handle).await {
                Some(Acquired::Reused(_, slot)) => slot,
                _ => panic!("no connection"),
            }
        };
        let put = async {
            tokio::task::yield_now().await;
            pool.put(stream, first);
        };
        let ((), slot) = tokio::join!(biased; put, waiting);
        assert_eq!((pool.idle(), open(&worker)), (0, 1));
        // A place that is given up is passed on as well.
        let waiting = async { self::slot(&pool, &handle).await };
        let give_up = async {
            tokio::task::yield_now().await;
            drop(slot);
        };
        let ((), slot) = tokio::join!(biased; give_up, waiting);
        assert_eq!(open(&worker), 1);
        drop(slot);
        assert_eq!(open(&worker), 0);
    });
}

#[test]
fn connections_expire_and_another_configuration_closes_them() {
    run(async |handle, listener| {
        let worker = worker(3, &[("ttl", "1"), ("smax", "1")]);
        let pool = Pool::of(&worker);
        let slot = slot(&pool, &handle).await;
        pool.put(connect(&listener).await, slot);
        let now_ms = handle.clock().now_ms();
        pool.maintain(now_ms);
        assert_eq!(pool.idle(), 1);
        assert!(pool.take(now_ms + 1000).is_none());
        assert_eq!((pool.idle(), open(&worker)), (0, 0));

        let slot = self::slot(&pool, &handle).await;
        pool.put(connect(&listener).await, slot);
        pool.maintain(now_ms + 1001);
        assert_eq!((pool.idle(), open(&worker)), (0, 0));

        let slot = self::slot(&pool, &handle).await;
        pool.put(connect(&listener).await, slot);
        drop(pool);
        let after = self::worker(3, &[]);
        assert_eq!(Pool::of(&after).idle(), 0);
        assert_eq!(open(&worker), 0);
    });
}

#[test]
fn without_ttl_no_more_than_smax_stay() {
    run(async |handle, listener| {
        let worker = worker(4, &[("smax", "1")]);
        let pool = Pool::of(&worker);
        let slots = [slot(&pool, &handle).await, slot(&pool, &handle).await];
        for slot in slots {
            pool.put(connect(&listener).await, slot);
        }
        assert_eq!(pool.idle(), 2);
        pool.maintain(handle.clock().now_ms());
        assert_eq!((pool.idle(), open(&worker)), (1, 1));
    });
}
