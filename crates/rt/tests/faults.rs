//! Misbehaving clients and systems.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rt::{AcceptError, Acceptor, Loop};

#[path = "support/one_connection.rs"]
mod one_connection;

use one_connection::serve_one;

/// Far longer than any step takes: the machine may stall for a while.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Creates a file of `len` bytes, each derived from its position; returns its path and content.
fn sample(name: &str, len: usize) -> (PathBuf, File, Vec<u8>) {
    let content: Vec<u8> = (0..len).map(|n| (n % 249) as u8).collect();
    let path = std::env::temp_dir().join(format!("rt-{name}-{}", std::process::id()));
    std::fs::write(&path, &content).unwrap();
    (path.clone(), File::open(path).unwrap(), content)
}

/// Closes with a reset instead of a FIN.
fn reset(client: TcpStream) {
    let now = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(&client, nix::sys::socket::sockopt::Linger, &now).unwrap();
}

#[test]
fn a_slow_reader_gets_the_file_whole_and_does_not_hold_the_loop() {
    // More than the kernel buffers for a client that does not read.
    let (path, file, content) = sample("slow", 12_000_000);
    let (end, gone_on) = mpsc::channel::<()>();
    let (answer, has_gone_on) = serve_one(
        move |mut client| {
            // The client reads nothing before the loop's other task has ended: a loop that is
            // blocked by the response would never get there.
            let has_gone_on = gone_on.recv_timeout(TIMEOUT).is_ok();
            let mut answer: Vec<u8> = Vec::new();
            let mut piece = vec![0; 50_000];
            loop {
                let count = client.read(&mut piece).unwrap();
                if count == 0 {
                    return (answer, has_gone_on);
                }
                answer.extend(&piece[..count]);
                if answer.len() < 1_000_000 {
                    thread::sleep(Duration::from_millis(5));
                }
            }
        },
        |handle, mut stream| async move {
            let others = handle.spawn_local({
                let handle = handle.clone();
                async move {
                    for _ in 0..20 {
                        handle.sleep(Duration::from_millis(2)).await;
                    }
                    end.send(()).unwrap();
                }
            });
            stream.send_file(b"head", &file, 10, 11_999_990, 2 * TIMEOUT).await.unwrap();
            assert_eq!(stream.sent(), 11_999_994);
            stream.linger().await;
            others.await.unwrap();
        },
    );
    std::fs::remove_file(path).unwrap();
    assert!(has_gone_on, "the response blocked the loop");
    assert_eq!(&answer[..4], b"head");
    assert_eq!(answer[4..], content[10..]);
}

#[test]
fn a_cold_file_is_warmed_beside_the_loop() {
    const TMPFS_MAGIC: i128 = 0x0102_1994;
    let (path, file, content) = sample("cold", 1_000_000);
    file.sync_all().unwrap();
    // A file system without page cache is never cold.
    let never_cold = i128::from(rustix::fs::fstatfs(&file).unwrap().f_type) == TMPFS_MAGIC;
    // The kernel drops what it can, which at times is not the end of a slice: ask again.
    let is_warmed = (0..50).any(|_| {
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        sends_with_the_pool(file.try_clone().unwrap(), &content)
    });
    std::fs::remove_file(path).unwrap();
    assert_eq!(is_warmed, !never_cold);
}

/// Sends the file to a client, and tells whether a thread of the pool had a part in it.
fn sends_with_the_pool(file: File, content: &[u8]) -> bool {
    let (tell, told) = mpsc::channel();
    let len = content.len();
    let answer = serve_one(
        |mut client| {
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).map(|_| answer)
        },
        move |handle, mut stream| async move {
            stream.send_file(b"", &file, 0, len as u64, TIMEOUT).await.unwrap();
            tell.send(handle.blocking().load().0 > 0).unwrap();
            stream.linger().await;
        },
    );
    assert!(answer.unwrap() == content);
    told.recv().unwrap()
}

#[test]
fn a_reader_that_stops_times_the_writer_out() {
    let (path, file, _) = sample("stop", 20_000_000);
    let (end, ended) = mpsc::channel::<()>();
    serve_one(
        move |client| {
            // The client is connected and does not read.
            let _ = ended.recv();
            drop(client);
        },
        |handle, mut stream| async move {
            let _end = end;
            let brief = Duration::from_millis(100);
            // Deadlines are relative to this.
            let started_us = handle.clock().now_us();
            let error = stream.send_file(b"", &file, 0, 20_000_000, brief).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert!(handle.clock().precise_us() - started_us >= 100_000);
            let error = stream.write_all(&[0; 1000], brief).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
        },
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_file_that_shrinks_is_an_unexpected_end() {
    let (path, file, _) = sample("shrink", 1000);
    serve_one(
        |mut client| {
            let _ = client.read_to_end(&mut Vec::new());
        },
        |_, mut stream| async move {
            let error = stream.send_file(b"head", &file, 0, 1001, TIMEOUT).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        },
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_reset_in_the_middle_of_an_answer_is_an_error_and_no_signal() {
    serve_one(
        |mut client| {
            client.read_exact(&mut [0; 1000]).unwrap();
            reset(client);
        },
        |_, mut stream| async move {
            let error = loop {
                match stream.write_all(&[7; 100_000], TIMEOUT).await {
                    Ok(()) => {}
                    Err(error) => break error,
                }
            };
            let kind = error.kind();
            assert!(matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{kind}");
        },
    );
}

#[test]
fn a_hangup_is_seen_without_reading_and_the_bytes_before_it_stay() {
    serve_one(
        |mut client| {
            client.write_all(b"next").unwrap();
            thread::sleep(Duration::from_millis(30));
        },
        |handle, mut stream| async move {
            let deadline = handle.deadline(TIMEOUT);
            stream.readable(deadline).await.unwrap();
            stream.hangup().await;
            let mut buffer = Vec::with_capacity(10);
            assert_eq!(stream.read(&mut buffer, deadline).await.unwrap(), 4);
            assert_eq!(stream.read(&mut buffer, deadline).await.unwrap(), 0);
            assert_eq!(buffer, b"next");
        },
    );
}

#[test]
fn the_last_answer_survives_unread_bytes() {
    let answer = serve_one(
        |mut client| {
            client.write_all(&[1; 200_000]).unwrap();
            thread::sleep(Duration::from_millis(50));
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).map(|_| answer)
        },
        |handle, mut stream| async move {
            let mut buffer = Vec::with_capacity(10);
            stream.read(&mut buffer, handle.deadline(TIMEOUT)).await.unwrap();
            stream.write_all(b"413", TIMEOUT).await.unwrap();
            stream.linger().await;
        },
    );
    assert_eq!(answer.unwrap(), b"413");
}

/// Runs in its own process, because the limit applies to all threads.
#[test]
fn without_descriptors_it_waits_and_then_goes_on() {
    if std::env::var_os("RT_TEST_EMFILE").is_none() {
        let name = "without_descriptors_it_waits_and_then_goes_on";
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--test-threads=1"])
            .env("RT_TEST_EMFILE", "1")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    Loop::run("test", |handle| async move {
        let acceptor = Acceptor::from_fd(OwnedFd::from(listener)).unwrap();
        let mut hoard = Vec::new();
        nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, 64, 64).unwrap();
        while let Ok(file) = File::open("/dev/null") {
            hoard.push(file);
        }
        let wakeups = handle.counters().wakeups;
        for _ in 0..2 {
            let outcome = acceptor.accept().await;
            assert!(matches!(outcome, Err(AcceptError::Resources(_))), "{outcome:?}");
        }
        assert!(handle.counters().wakeups - wakeups < 10, "it spins");
        drop(hoard);
        let accepted = acceptor.accept().await.unwrap();
        assert_eq!(accepted.peer, client.local_addr().unwrap());
    })
    .unwrap();
}

#[test]
fn a_paused_acceptor_lets_the_kernel_queue() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    Loop::run("test", |handle| async move {
        let acceptor = std::rc::Rc::new(Acceptor::from_fd(OwnedFd::from(listener)).unwrap());
        assert!(acceptor.try_accept().unwrap().is_none());
        acceptor.pause();
        let _clients: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
        let waiting = handle.spawn_local({
            let acceptor = acceptor.clone();
            async move { acceptor.accept().await.map(|_| ()) }
        });
        handle.sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished());
        acceptor.resume();
        waiting.await.unwrap().unwrap();
        // The end of a generation: take what is queued, then close the socket.
        let end = Instant::now() + TIMEOUT;
        for _ in 0..2 {
            // The client learns that it is connected a moment before the listener has the
            // connection.
            while acceptor.try_accept().unwrap().is_none() {
                assert!(Instant::now() < end, "the connection did not arrive");
                handle.sleep(Duration::from_millis(1)).await;
            }
        }
        assert!(acceptor.try_accept().unwrap().is_none());
        drop(std::rc::Rc::into_inner(acceptor).unwrap().close());
        // A program that another test starts holds a copy of the socket until it is executed.
        while TcpStream::connect(address).is_ok() {
            assert!(Instant::now() < end, "the socket is still open");
            handle.sleep(Duration::from_millis(10)).await;
        }
    })
    .unwrap();
}
