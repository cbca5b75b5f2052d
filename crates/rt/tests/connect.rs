//! Outgoing connections, to servers that answer, refuse, are silent, or go away.

#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rt::{ConnectOptions, Deadline, Handle, Loop, Remote, Stream};

/// Far longer than any step takes: the machine may stall for a while.
const TIMEOUT: Duration = Duration::from_secs(90);
/// The wait for a server that never answers.
const SHORT: Duration = Duration::from_millis(60);

/// Runs `client` on a loop for many connections, then on one that works in place.
fn on_both_loops(mut client: impl AsyncFnMut(Handle)) {
    Loop::run("many", async |handle| client(handle).await).unwrap();
    Loop::new("in place").in_place().start(async |handle| client(handle).await).unwrap();
}

async fn connect(handle: &Handle, remote: &Remote) -> std::io::Result<Stream> {
    Stream::connect(remote, &ConnectOptions::default(), handle.deadline(TIMEOUT)).await
}

async fn read(handle: &Handle, stream: &mut Stream) -> std::io::Result<Vec<u8>> {
    let mut buffer = Vec::with_capacity(100);
    stream.read(&mut buffer, handle.deadline(TIMEOUT)).await?;
    Ok(buffer)
}

/// Listens, and serves each connection on a thread of its own.
fn tcp(serve: impl Fn(std::net::TcpStream) + Clone + Send + 'static) -> Remote {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let remote = Remote::Tcp(listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    remote
}

fn echo(mut stream: impl Read + Write) {
    let mut buffer = [0; 1000];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

/// A path for a socket; the file is removed when dropped.
struct SocketPath(PathBuf);

impl SocketPath {
    fn new(name: &str) -> Self {
        let file = format!("rt-connect-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(file);
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn remote(&self) -> Remote {
        Remote::Unix(self.0.clone())
    }
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn talks_and_stays_reusable_by_tcp() {
    let remote = tcp(echo);
    on_both_loops(async |handle| {
        let mut stream = connect(&handle, &remote).await.unwrap();
        assert!(rustix::net::sockopt::tcp_nodelay(&stream).unwrap());
        assert!(!rustix::net::sockopt::socket_keepalive(&stream).unwrap());
        for _ in 0..3 {
            assert!(stream.is_reusable());
            stream.write_all(b"ping", TIMEOUT).await.unwrap();
            assert_eq!(read(&handle, &mut stream).await.unwrap(), b"ping");
        }
        assert_eq!((stream.sent(), stream.received()), (12, 12));
    });
}

#[test]
fn talks_over_ipv6_if_there_is_any() {
    let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else { return };
    let remote = Remote::Tcp(listener.local_addr().unwrap());
    thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(echo));
    on_both_loops(async |handle| {
        let mut stream = connect(&handle, &remote).await.unwrap();
        stream.write_all(b"ping", TIMEOUT).await.unwrap();
        assert_eq!(read(&handle, &mut stream).await.unwrap(), b"ping");
    });
}

#[test]
fn talks_over_a_unix_socket() {
    let path = SocketPath::new("talks");
    let listener = UnixListener::bind(&path.0).unwrap();
    thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(echo));
    on_both_loops(async |handle| {
        let mut stream = connect(&handle, &path.remote()).await.unwrap();
        for _ in 0..3 {
            assert!(stream.is_reusable());
            stream.write_all(b"ping", TIMEOUT).await.unwrap();
            assert_eq!(read(&handle, &mut stream).await.unwrap(), b"ping");
        }
    });
    assert_eq!(path.remote().to_string(), path.0.to_str().unwrap());
}

#[test]
fn connects_from_the_given_address_with_the_given_options() {
    let remote = tcp(|mut stream| {
        let peer = stream.peer_addr().unwrap().ip().to_string();
        stream.write_all(peer.as_bytes()).unwrap();
    });
    on_both_loops(async |handle| {
        let source = Some(Ipv4Addr::new(127, 9, 8, 7).into());
        let options = ConnectOptions { source, keep_alive: true, receive_buffer: Some(20_000) };
        let connecting = Stream::connect(&remote, &options, handle.deadline(TIMEOUT));
        let mut stream = connecting.await.unwrap();
        assert_eq!(read(&handle, &mut stream).await.unwrap(), b"127.9.8.7");
        assert!(rustix::net::sockopt::socket_keepalive(&stream).unwrap());
        // The kernel doubles what is asked for.
        assert_eq!(rustix::net::sockopt::socket_recv_buffer_size(&stream).unwrap(), 40_000);
        // Not an address of this machine.
        let options =
            ConnectOptions { source: Some(Ipv4Addr::new(192, 0, 2, 9).into()), ..options };
        let error = Stream::connect(&remote, &options, Deadline::NEVER).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
    });
}

#[test]
fn a_refusal_and_an_unreachable_address_are_errors_at_once() {
    // Bound, so that no one else gets the port, and not listening.
    let taken = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    rustix::net::bind(&taken, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let closed = SocketAddr::try_from(rustix::net::getsockname(&taken).unwrap()).unwrap();
    let path = SocketPath::new("refuses");
    on_both_loops(async |handle| {
        let error = connect(&handle, &Remote::Tcp(closed)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        // The broadcast address has no TCP.
        let nowhere = Remote::Tcp((Ipv4Addr::BROADCAST, 9).into());
        let error = connect(&handle, &nowhere).await.unwrap_err();
        let kinds = [ErrorKind::NetworkUnreachable, ErrorKind::PermissionDenied];
        assert!(kinds.contains(&error.kind()), "{error:?}");
        assert_eq!(connect(&handle, &path.remote()).await.unwrap_err().kind(), ErrorKind::NotFound);
        let long = Remote::Unix(PathBuf::from("x".repeat(200)));
        assert!(connect(&handle, &long).await.is_err());
    });
    drop(UnixListener::bind(&path.0).unwrap());
    on_both_loops(async |handle| {
        let error = connect(&handle, &path.remote()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
    let outside = std::pin::pin!(Stream::connect(
        &Remote::Tcp(closed),
        &ConnectOptions { ..Default::default() },
        Deadline::NEVER
    ))
    .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    .map(|outcome| outcome.unwrap_err().kind());
    assert_eq!(outside, std::task::Poll::Ready(ErrorKind::NotConnected));
}

/// A listener whose queue is full, with the connections that fill it.
fn full_tcp() -> (Remote, impl Sized) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let mut queued = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, SHORT) {
        queued.push(stream);
    }
    (Remote::Tcp(address), (socket, queued))
}

#[test]
fn a_silent_server_is_given_up_at_the_deadline() {
    let (remote, _full) = full_tcp();
    on_both_loops(async |handle| {
        let began = Instant::now();
        let deadline = handle.deadline(SHORT);
        let outcome = Stream::connect(&remote, &ConnectOptions::default(), deadline).await;
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(began.elapsed() >= SHORT);
    });
}

#[test]
fn a_unix_socket_with_a_full_queue_is_waited_for() {
    let path = SocketPath::new("full");
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    socket.bind(&socket2::SockAddr::unix(&path.0).unwrap()).unwrap();
    socket.listen(0).unwrap();
    on_both_loops(async |handle| {
        let mut queued = Vec::new();
        let error = loop {
            let deadline = handle.deadline(SHORT);
            let options = ConnectOptions::default();
            match Stream::connect(&path.remote(), &options, deadline).await {
                Ok(stream) => queued.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let queue = socket.try_clone().unwrap();
        let later = thread::spawn(move || {
            thread::sleep(SHORT);
            queue.accept().unwrap()
        });
        connect(&handle, &path.remote()).await.unwrap();
        later.join().unwrap();
        while queued.pop().is_some() {
            socket.accept().unwrap();
        }
    });
}

#[test]
fn one_that_is_closed_or_speaks_while_idle_is_not_reused() {
    fn silent(mut stream: std::net::TcpStream) {
        let _ = stream.read(&mut [0]);
    }
    fn reset(stream: std::net::TcpStream) {
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    }
    fn speak(mut stream: std::net::TcpStream) {
        stream.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").unwrap();
        silent(stream);
    }
    let servers: [(fn(std::net::TcpStream), bool); 4] =
        [(silent, true), (drop, false), (reset, false), (speak, false)];
    for (server, stays) in servers {
        let remote = tcp(move |mut stream| {
            stream.read_exact(&mut [0]).unwrap();
            server(stream);
        });
        on_both_loops(async |handle| {
            let mut stream = connect(&handle, &remote).await.unwrap();
            stream.write_all(b"!", TIMEOUT).await.unwrap();
            let until = handle.deadline(if stays { SHORT } else { TIMEOUT });
            while stream.is_reusable() && !until.has_passed(handle.clock()) {
                handle.sleep(Duration::from_millis(2)).await;
            }
            assert_eq!(stream.is_reusable(), stays);
        });
    }
}

#[test]
fn a_response_that_fills_the_buffer_does_not_end_reuse() {
    let remote = tcp(echo);
    on_both_loops(async |handle| {
        let mut stream = connect(&handle, &remote).await.unwrap();
        for (sent, stays) in [(&b"1234"[..], true), (b"5678", true), (b"12345", false)] {
            stream.write_all(sent, TIMEOUT).await.unwrap();
            let mut buffer = Vec::with_capacity(4);
            while buffer.len() < 4 {
                stream.read(&mut buffer, handle.deadline(TIMEOUT)).await.unwrap();
            }
            assert_eq!(buffer, sent[..4]);
            assert_eq!(stream.is_reusable(), stays);
        }
    });
}

#[test]
fn reads_end_with_a_reset_or_at_their_deadline() {
    let remote = tcp(|mut stream| {
        let _ = stream.read(&mut [0; 10]);
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    });
    on_both_loops(async |handle| {
        let mut stream = connect(&handle, &remote).await.unwrap();
        let mut buffer = Vec::with_capacity(10);
        let error = stream.read(&mut buffer, handle.deadline(SHORT)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        stream.write_all(b"go", TIMEOUT).await.unwrap();
        let error = read(&handle, &mut stream).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert!(!stream.is_reusable());
    });
}

#[test]
fn a_slow_server_is_read_piece_by_piece_after_a_half_close() {
    let remote = tcp(|mut stream| {
        let mut request = Vec::new();
        stream.read_to_end(&mut request).unwrap();
        for byte in request {
            stream.write_all(&[byte]).unwrap();
            thread::sleep(Duration::from_millis(2));
        }
    });
    on_both_loops(async |handle| {
        let mut stream = connect(&handle, &remote).await.unwrap();
        stream.write_all(b"0123456789", TIMEOUT).await.unwrap();
        stream.shutdown_write().unwrap();
        let mut response = Vec::with_capacity(100);
        while stream.read(&mut response, handle.deadline(TIMEOUT)).await.unwrap() > 0 {}
        assert_eq!(response, b"0123456789");
    });
}

#[test]
fn a_hundred_connect_at_once() {
    let remote = tcp(echo);
    on_both_loops(async |handle| {
        let one = |number: usize| {
            let (handle, remote) = (handle.clone(), remote.clone());
            async move {
                let mut stream = connect(&handle, &remote).await.unwrap();
                let text = number.to_string();
                stream.write_all(text.as_bytes(), TIMEOUT).await.unwrap();
                assert_eq!(read(&handle, &mut stream).await.unwrap(), text.as_bytes());
            }
        };
        let tasks: Vec<_> = (0..100).map(|number| handle.spawn_local(one(number))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn an_idle_one_moves_to_another_loop() {
    let remote = tcp(echo);
    let mut stream = None;
    Loop::run("first", async |handle| {
        let mut used = connect(&handle, &remote).await.unwrap();
        used.write_all(b"ping", TIMEOUT).await.unwrap();
        read(&handle, &mut used).await.unwrap();
        stream = Some(used.detach());
    })
    .unwrap();
    on_both_loops(async |handle| {
        let mut used = Stream::attach(stream.take().unwrap()).unwrap();
        assert!(used.is_reusable());
        used.write_all(b"pong", TIMEOUT).await.unwrap();
        assert_eq!(read(&handle, &mut used).await.unwrap(), b"pong");
        stream = Some(used.detach());
    });
}
