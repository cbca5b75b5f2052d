//! Connections over real loopback sockets.

#![allow(clippy::unwrap_used)]

use std::io::{IoSlice, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rt::{Deadline, Inbox, Loop, Stream};

#[path = "support/one_connection.rs"]
mod one_connection;

use one_connection::serve_one;

/// Far longer than any step takes: the machine may stall for a while.
const TIMEOUT: Duration = Duration::from_secs(90);

#[test]
fn answers_what_it_read() {
    let answer = serve_one(
        |mut client| {
            client.write_all(b"ping").unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).unwrap();
            answer
        },
        |handle, mut stream| async move {
            let mut buffer = Vec::with_capacity(100);
            let deadline = handle.deadline(TIMEOUT);
            assert_eq!(stream.read(&mut buffer, deadline).await.unwrap(), 4);
            assert_eq!(buffer, b"ping");
            stream.write_all(b"po", TIMEOUT).await.unwrap();
            let mut parts = [IoSlice::new(b"n"), IoSlice::new(b""), IoSlice::new(b"g")];
            stream.write_vectored(&mut parts, TIMEOUT).await.unwrap();
            assert_eq!((stream.received(), stream.sent()), (4, 4));
            assert!(rustix::net::sockopt::tcp_nodelay(&stream).unwrap());
            assert!(stream.local_addr().unwrap().port() > 0);
            stream.linger().await;
        },
    );
    assert_eq!(answer, b"pong");
}

#[test]
fn one_byte_at_a_time_arrives_whole() {
    serve_one(
        |mut client| {
            for byte in b"0123456789" {
                client.write_all(&[*byte]).unwrap();
                thread::sleep(Duration::from_millis(2));
            }
        },
        |handle, mut stream| async move {
            let mut buffer = Vec::with_capacity(100);
            let deadline = handle.deadline(TIMEOUT);
            while stream.read(&mut buffer, deadline).await.unwrap() > 0 {}
            assert_eq!(buffer, b"0123456789");
        },
    );
}

#[test]
fn a_full_buffer_is_read_on_without_new_bytes() {
    serve_one(
        |mut client| {
            client.write_all(b"0123456789").unwrap();
            let _ = client.read(&mut [0]);
        },
        |handle, mut stream| async move {
            let deadline = handle.deadline(TIMEOUT);
            let mut all = Vec::new();
            while all.len() < 10 {
                let mut buffer = Vec::with_capacity(4);
                stream.read(&mut buffer, deadline).await.unwrap();
                assert!(buffer.capacity() == 4);
                all.extend(buffer);
            }
            assert_eq!(all, b"0123456789");
            let error = stream.read(&mut Vec::new(), deadline).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        },
    );
}

#[test]
fn waits_end_at_their_deadline() {
    serve_one(
        |mut client| {
            let _ = client.read(&mut [0]);
        },
        |handle, mut stream| async move {
            let mut buffer = Vec::with_capacity(4);
            for wait in [30, 80] {
                // On a busy machine, at least one of many tries is close.
                let mut nearest = u64::MAX;
                for _ in 0..50 {
                    // Deadlines are relative to this.
                    let before = handle.clock().now_us();
                    let deadline = handle.deadline(Duration::from_millis(wait));
                    let error = stream.read(&mut buffer, deadline).await.unwrap_err();
                    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
                    let took = (handle.clock().precise_us() - before) / 1000;
                    assert!(took >= wait, "{took} ms instead of {wait}");
                    nearest = nearest.min(took);
                    if nearest < wait + 40 {
                        break;
                    }
                }
                assert!(nearest < wait + 40, "{nearest} ms instead of {wait}");
            }
            let passed = handle.deadline(Duration::ZERO);
            assert!(stream.readable(passed).await.is_err());
            assert_ne!(Deadline::NEVER, passed);
        },
    );
}

#[test]
fn a_connection_goes_on_on_another_loop() {
    let inbox = Arc::new(Inbox::new(1));
    let taking = inbox.clone();
    let other = thread::spawn(move || {
        Loop::run("other", |handle| async move {
            let mut stream = Stream::attach(taking.take().await.unwrap()).unwrap();
            let mut buffer = Vec::with_capacity(100);
            // This arrived before the connection was accepted.
            stream.read(&mut buffer, handle.deadline(TIMEOUT)).await.unwrap();
            stream.write_all(&buffer, TIMEOUT).await.unwrap();
            assert_eq!((stream.received(), stream.sent()), (8, 8));
            stream.linger().await;
        })
    });
    let answers = serve_one(
        |mut client| {
            let mut answer = [0; 4];
            client.write_all(b"ping").unwrap();
            client.read_exact(&mut answer).unwrap();
            client.write_all(b"more").unwrap();
            let mut rest = String::new();
            client.read_to_string(&mut rest).unwrap();
            (answer, rest)
        },
        |handle, mut stream| async move {
            let mut buffer = Vec::with_capacity(100);
            assert!(stream.readable(handle.deadline(TIMEOUT)).await.is_ok() && !stream.is_quiet());
            stream.read(&mut buffer, handle.deadline(TIMEOUT)).await.unwrap();
            assert!(stream.is_quiet());
            stream.write_all(b"pong", TIMEOUT).await.unwrap();
            while stream.is_quiet() {
                handle.sleep(Duration::from_millis(1)).await;
            }
            inbox.put(stream.detach()).unwrap();
        },
    );
    other.join().unwrap().unwrap();
    assert_eq!(answers, (*b"pong", "more".to_owned()));
}
