//! Attempts to connect that are given up leave no descriptor open. Alone in its process, because it
//! counts descriptors.

#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use rt::{ConnectOptions, Deadline, Loop, Remote, Stream};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_dropped_attempt_closes_its_socket() {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let mut queued = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(60)) {
        queued.push(stream);
    }
    let remote = Remote::Tcp(address);
    Loop::run("test", async |handle| {
        let before = descriptors();
        for is_dropped in [true, false] {
            let deadline = match is_dropped {
                true => Deadline::NEVER,
                false => handle.deadline(Duration::from_millis(200)),
            };
            let attempts: Vec<_> = (0..20)
                .map(|_| {
                    let remote = remote.clone();
                    handle.spawn_local(async move {
                        Stream::connect(&remote, &ConnectOptions::default(), deadline).await
                    })
                })
                .collect();
            handle.sleep(Duration::from_millis(1)).await;
            assert!(descriptors() > before);
            for attempt in attempts {
                if is_dropped {
                    attempt.abort();
                    assert!(attempt.await.unwrap_err().is_cancelled());
                } else {
                    assert!(attempt.await.unwrap().is_err());
                }
            }
            assert_eq!(descriptors(), before);
        }
    })
    .unwrap();
}
