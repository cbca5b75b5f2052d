use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::*;
use crate::settings::{AcceptFilter, DEFAULT_BACKLOG};
use crate::shape::Shape;
use free_port::free_port;

#[path = "../../tests/support/free_port.rs"]
mod free_port;

pub(crate) fn settings(loops: usize, addresses: &[ListenAddress]) -> Settings {
    Settings {
        listeners: addresses
            .iter()
            .map(|address| Listener {
                address: *address,
                protocol: "http".into(),
                backlog: DEFAULT_BACKLOG,
                accept_filter: AcceptFilter::None,
                send_buffer_bytes: 0,
                receive_buffer_bytes: 0,
            })
            .collect(),
        identity: None,
        chroot: None,
        core_dump_directory: None,
        pid_file: "/nonexistent".into(),
        shape: Shape::Event { processes: 1, loops },
        server_limit: 1,
        graceful_shutdown_timeout: None,
        stall_limit: None,
        max_connections_per_child: 0,
        counted_hosts: Vec::new(),
        extended_status: false,
        spare: None,
        listener_buckets: 1,
        admitted: usize::MAX,
        nearly_admitted: usize::MAX,
        blocking_threads: 1,
        thread_stack_bytes: None,
        affinity: Default::default(),
        companions: Vec::new(),
    }
}

fn loopback(port: u16) -> ListenAddress {
    ListenAddress::Socket(SocketAddr::from(([127, 0, 0, 1], port)))
}

/// How many connections each of the sockets has, once there are `count` in all: a client is
/// connected a moment before the listener has the connection.
fn accepted(sockets: &[&TcpListener], count: usize) -> Vec<usize> {
    let end = Instant::now() + Duration::from_secs(60);
    let mut taken = vec![0; sockets.len()];
    while taken.iter().sum::<usize>() < count && Instant::now() < end {
        for (taken, socket) in taken.iter_mut().zip(sockets) {
            socket.set_nonblocking(true).unwrap();
            *taken += std::iter::from_fn(|| socket.accept().ok()).count();
        }
    }
    taken
}

#[test]
fn every_loop_gets_connections_and_none_is_left_out() {
    let port = free_port();
    let settings = settings(3, &[loopback(port)]);
    let mut listeners = Listeners::new();
    listeners.prepare(&settings).unwrap();
    let clients: Vec<_> =
        (0..60).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    let sockets = [0, 1, 2].map(|number| listeners.sockets_of(&settings, 0, number).unwrap());
    assert!(sockets.iter().all(|sockets| sockets.len() == 1));
    let accepted = accepted(&sockets.each_ref().map(|sockets| &sockets[0].socket), clients.len());
    assert_eq!(accepted.iter().sum::<usize>(), clients.len());
    assert!(accepted.iter().filter(|count| **count > 0).count() > 1, "{accepted:?}");
}

#[test]
fn a_port_in_use_is_an_error_that_names_the_holder() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let failures = Listeners::new().prepare(&settings(2, &[loopback(port)])).unwrap_err();
    let text = failures[0].to_string();
    let start = format!(
        "(98)Address already in use: AH00072: make_sock: could not bind to address 127.0.0.1:{port}"
    );
    assert!(text.starts_with(&start), "{text}");
    assert!(text.contains(&format!("(pid {})", std::process::id())), "{text}");
}

#[test]
fn a_group_of_ours_is_in_use_for_a_second_server() {
    let port = free_port();
    let mut ours = Listeners::new();
    ours.prepare(&settings(2, &[loopback(port)])).unwrap();
    assert!(Listeners::new().prepare(&settings(2, &[loopback(port)])).is_err());
}

#[test]
fn the_same_line_twice_is_an_error_as_in_httpd() {
    let port = free_port();
    let twice = settings(1, &[loopback(port), loopback(port)]);
    let mut listeners = Listeners::new();
    assert!(listeners.prepare(&twice).is_err());
    // A program that another test starts holds a copy of the closed socket until it executes.
    let end = Instant::now() + Duration::from_secs(60);
    while let Err(failures) = listeners.prepare(&settings(1, &[loopback(port)])) {
        assert!(Instant::now() < end, "{}", failures[0]);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(listeners.prepare(&twice).is_err());
}

#[test]
fn listen_without_address_takes_both_families() {
    let port = free_port();
    let four = ListenAddress::Socket(SocketAddr::from(([0, 0, 0, 0], port)));
    let settings = settings(2, &[ListenAddress::Any { port }, four]);
    let mut listeners = Listeners::new();
    listeners.prepare(&settings).unwrap();
    assert_eq!(listeners.groups.len(), 1);
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    if std::path::Path::new("/proc/net/if_inet6").exists() {
        TcpStream::connect(("::1", port)).unwrap();
    }
}

#[test]
fn fewer_loops_take_over_the_sockets_left_over() {
    let port = free_port();
    let mut listeners = Listeners::new();
    listeners.prepare(&settings(4, &[loopback(port)])).unwrap();
    let fewer = settings(2, &[loopback(port)]);
    listeners.prepare(&fewer).unwrap();
    assert!(!listeners.retire(&fewer));
    assert_eq!(listeners.sockets_of(&fewer, 0, 0).unwrap().len(), 2);
    assert_eq!(listeners.sockets_of(&fewer, 0, 1).unwrap().len(), 2);
}

#[test]
fn every_process_takes_from_all_buckets_and_from_another_first() {
    let port = free_port();
    let settings = Settings {
        shape: Shape::Prefork { processes: 4 },
        listener_buckets: 3,
        ..settings(1, &[loopback(port)])
    };
    let mut listeners = Listeners::new();
    listeners.prepare(&settings).unwrap();
    let clients: Vec<_> =
        (0..30).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    let cookie = |socket: &ListeningSocket| rustix::net::sockopt::socket_cookie(&socket.socket);
    let firsts: Vec<_> = (0..4)
        .map(|slot| {
            let sockets = listeners.sockets_of(&settings, slot, 0).unwrap();
            assert_eq!(sockets.len(), 3);
            cookie(&sockets[0]).unwrap()
        })
        .collect();
    assert_eq!(firsts[0], firsts[3]);
    assert!(firsts[0] != firsts[1] && firsts[1] != firsts[2] && firsts[0] != firsts[2]);
    let sockets = listeners.sockets_of(&settings, 3, 0).unwrap();
    let sockets: Vec<_> = sockets.iter().map(|socket| &socket.socket).collect();
    let accepted = accepted(&sockets, clients.len());
    assert_eq!(
        accepted.iter().sum::<usize>(),
        clients.len(),
        "one process accepts all connections"
    );
}

#[test]
fn a_removed_address_serves_its_queue_and_then_refuses() {
    let (port, other) = (free_port(), free_port());
    let before = settings(1, &[loopback(port)]);
    let after = settings(1, &[loopback(other)]);
    let mut listeners = Listeners::new();
    listeners.prepare(&before).unwrap();
    let old_child = listeners.sockets_of(&before, 0, 0).unwrap();
    let mut queued = TcpStream::connect(("127.0.0.1", port)).unwrap();
    // The connection is queued.
    let mut polled = [PollFd::new(&old_child[0].socket, PollFlags::IN)];
    poll(&mut polled, None).unwrap();
    listeners.prepare(&after).unwrap();
    assert!(listeners.retire(&after));
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let late = TcpStream::connect_timeout(&address, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(late.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock), "{late}");
    listeners.close_retired();
    let (mut accepted, _) = old_child[0].socket.accept().unwrap();
    drop(old_child);
    accepted.write_all(b"answer").unwrap();
    drop(accepted);
    let mut answer = String::new();
    queued.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
    // A program that another test starts holds a copy of the socket until it is executed.
    let end = Instant::now() + Duration::from_secs(60);
    let refused = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Err(refused) => break refused,
            Ok(_) => assert!(Instant::now() < end, "the socket is still open"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    TcpStream::connect(("127.0.0.1", other)).unwrap();
}

#[test]
fn a_narrower_address_on_the_same_port_replaces_a_wider_one() {
    let port = free_port();
    let mut listeners = Listeners::new();
    listeners.prepare(&settings(2, &[ListenAddress::Any { port }])).unwrap();
    let narrow = settings(2, &[loopback(port)]);
    listeners.prepare(&narrow).unwrap();
    assert!(listeners.retire(&narrow));
    TcpStream::connect(("127.0.0.1", port)).unwrap();
}

#[test]
fn weights_go_before_the_cpu_that_receives() {
    let (port, other) = (free_port(), free_port());
    let settings = settings(2, &[loopback(port), loopback(other)]);
    let mut listeners = Listeners::new();
    listeners.prepare(&settings).unwrap();
    // No CPU has such a number.
    let far = vec![4000, 4001];
    let chosen = listeners.receive_by_cpu(far, |address| address == loopback(port)).unwrap();
    assert_eq!(chosen, [loopback(port)]);
    listeners.steer(vec![0, 1]).unwrap();
    let accepted = |listeners: &Listeners| {
        let group = listeners.groups.iter().find(|group| group.address == loopback(port)).unwrap();
        accepted(&[&group.sockets[0], &group.sockets[1]], 20)
    };
    let clients: Vec<_> =
        (0..20).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    assert_eq!(accepted(&listeners), [0, 20]);
    drop(clients);
    // All that a process sends on one CPU is received there.
    let mine = crate::affinity::mask::current().unwrap().first().unwrap();
    listeners.receive_by_cpu(vec![mine, 4000], |_| true).unwrap();
    let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
    let clients = |count: usize| {
        std::thread::scope(|scope| {
            let pinned = scope.spawn(|| {
                crate::affinity::mask::pin(&[mine].into_iter().collect()).unwrap();
                (0..count).map(|_| connect()).collect::<Vec<_>>()
            });
            pinned.join().unwrap()
        })
    };
    let weighted = clients(20);
    assert_eq!(accepted(&listeners), [0, 20]);
    listeners.steer(Vec::new()).unwrap();
    let received = clients(20);
    assert_eq!(accepted(&listeners), [20, 0]);
    // Without CPUs the kernel chooses again.
    listeners.receive_by_cpu(Vec::new(), |_| true).unwrap();
    drop((weighted, received));
}
