//! Tunnels between two connections: both directions, half-closed ones, slow and silent ends.

#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rt::{Carried, ConnectOptions, Handle, Loop, Remote, Stream, tunnel};

/// Far longer than any step takes: the machine may stall for a while.
const TIMEOUT: Duration = Duration::from_secs(90);
/// The wait for an end that says nothing.
const SHORT: Duration = Duration::from_millis(60);

/// Runs `client` on a loop for many connections, then on one that works in place.
fn on_both_loops(mut client: impl AsyncFnMut(Handle)) {
    Loop::run("many", async |handle| client(handle).await).unwrap();
    Loop::new("in place").in_place().start(async |handle| client(handle).await).unwrap();
}

/// A connection of this loop, with what a thread does at its other end.
async fn end<T: Send + 'static>(
    handle: &Handle,
    other: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (Stream, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let remote = Remote::Tcp(listener.local_addr().unwrap());
    let thread = thread::spawn(move || other(listener.accept().unwrap().0));
    let options = ConnectOptions::default();
    let stream = Stream::connect(&remote, &options, handle.deadline(TIMEOUT)).await.unwrap();
    (stream, thread)
}

/// Sends `text`, ends its direction, and returns what it receives.
fn exchange(text: Vec<u8>) -> impl FnOnce(TcpStream) -> Vec<u8> + Send {
    move |mut stream| {
        let mut writer = stream.try_clone().unwrap();
        let sender = thread::spawn(move || {
            writer.write_all(&text).unwrap();
            writer.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        sender.join().unwrap();
        received
    }
}

fn pattern(len: usize, step: usize) -> Vec<u8> {
    (0..len).map(|at| (at * step % 251) as u8).collect()
}

#[test]
fn both_directions_arrive_whole_and_end() {
    let (out, back) = (pattern(3_000_000, 3), pattern(2_000_000, 7));
    on_both_loops(async |handle| {
        let (mut near, client) = end(&handle, exchange(out.clone())).await;
        let (mut far, server) = end(&handle, exchange(back.clone())).await;
        let (carried, outcome) =
            tunnel(&mut near, &mut far, [Vec::new(), Vec::new()], TIMEOUT).await;
        outcome.unwrap();
        assert_eq!(carried, Carried { outward: 3_000_000, inward: 2_000_000 });
        assert!(client.join().unwrap() == back && server.join().unwrap() == out);
    });
}

#[test]
fn what_came_early_goes_first() {
    on_both_loops(async |handle| {
        let (mut near, client) = end(&handle, exchange(b"late".to_vec())).await;
        let (mut far, server) = end(&handle, exchange(Vec::new())).await;
        let early = [b"early ".to_vec(), b"hello".to_vec()];
        let (carried, outcome) = tunnel(&mut near, &mut far, early, TIMEOUT).await;
        outcome.unwrap();
        assert_eq!(carried, Carried { outward: 10, inward: 5 });
        assert_eq!(server.join().unwrap(), b"early late");
        assert_eq!(client.join().unwrap(), b"hello");
    });
}

#[test]
fn the_end_of_one_direction_leaves_the_other_open() {
    on_both_loops(async |handle| {
        let (mut near, client) = end(&handle, exchange(b"question".to_vec())).await;
        // Answers only after it has seen the end of the question.
        let (mut far, server) = end(&handle, |mut stream| {
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            stream.write_all(b"answer").unwrap();
            received
        })
        .await;
        let (_, outcome) = tunnel(&mut near, &mut far, [Vec::new(), Vec::new()], TIMEOUT).await;
        outcome.unwrap();
        assert_eq!(server.join().unwrap(), b"question");
        assert_eq!(client.join().unwrap(), b"answer");
    });
}

#[test]
fn silence_ends_it() {
    on_both_loops(async |handle| {
        let hold = |mut stream: TcpStream| stream.read(&mut [0; 10]).unwrap_or(0);
        let (mut near, client) = end(&handle, hold).await;
        let (mut far, server) = end(&handle, hold).await;
        let (carried, outcome) = tunnel(&mut near, &mut far, [Vec::new(), Vec::new()], SHORT).await;
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(carried, Carried::default());
        drop((near, far));
        assert_eq!((client.join().unwrap(), server.join().unwrap()), (0, 0));
    });
}

#[test]
fn an_end_that_takes_nothing_is_not_read_for() {
    on_both_loops(async |handle| {
        let (mut near, client) = end(&handle, |mut stream| {
            // More than the kernel's buffers hold, so that it stops in the middle.
            let piece = pattern(64 * 1024, 5);
            (0..1000).map_while(|_| stream.write_all(&piece).ok()).count()
        })
        .await;
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (mut far, server) = end(&handle, move |stream| {
            let _ = released.recv();
            drop(stream);
        })
        .await;
        let (carried, outcome) = tunnel(&mut near, &mut far, [Vec::new(), Vec::new()], SHORT).await;
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(carried.outward < 60_000_000, "{carried:?}");
        assert!(near.received() - carried.outward <= 64 * 1024);
        drop((near, far, release));
        assert!(client.join().unwrap() < 1000);
        server.join().unwrap();
    });
}

#[test]
fn an_end_that_breaks_is_an_error() {
    on_both_loops(async |handle| {
        let (mut near, client) = end(&handle, |mut stream| {
            let piece = pattern(64 * 1024, 5);
            while stream.write_all(&piece).is_ok() {}
        })
        .await;
        let (mut far, server) = end(&handle, |mut stream| {
            // With bytes unread, closing resets the connection.
            let _ = stream.read(&mut [0; 10]);
        })
        .await;
        let (_, outcome) = tunnel(&mut near, &mut far, [Vec::new(), Vec::new()], TIMEOUT).await;
        let kind = outcome.unwrap_err().kind();
        assert!([ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&kind), "{kind:?}");
        drop((near, far));
        client.join().unwrap();
        server.join().unwrap();
    });
}
