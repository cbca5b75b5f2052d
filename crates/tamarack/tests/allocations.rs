//! A warm connection does not allocate: a thousand GETs of a small file over one keep-alive
//! connection, on a loop of this process, without a single allocation.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, unreachable_pub)]

#[path = "../src/cli.rs"]
mod cli;
#[path = "../src/load.rs"]
mod load;
#[path = "../src/loader.rs"]
mod loader;
#[path = "../src/logs.rs"]
mod logs;
#[path = "../src/startup.rs"]
mod startup;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use http::service::Service;
use mpm::Scoreboard;
use rt::{Acceptor, Loop, SharedCache, Watcher};
use server::engine::Engine;
use server::host::Server;

/// Requests on the warm connection.
const REQUESTS: usize = 1000;
/// Requests before them.
const WARM_UP: usize = 50;
/// Attempts, if a busy machine delayed a client for so long that its connection returned its
/// buffers and got others.
const TRIES: usize = 3;
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of the file.
const FILE_BYTES: usize = 1024;

/// Allocations of the loop's thread.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether this is the loop's thread.
    static COUNTED: Cell<bool> = const { Cell::new(false) };
    /// Whether its allocations are printed, for debugging.
    static TRACED: Cell<bool> = const { Cell::new(false) };
}

struct Counting;

/// Bytes that the loop's thread has allocated and not freed.
static LIVE: AtomicU64 = AtomicU64::new(0);

impl Counting {
    fn count(layout: Layout) {
        if !COUNTED.get() {
            return;
        }
        LIVE.fetch_add(layout.size() as u64, Ordering::Relaxed);
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        if IS_WARM.load(Ordering::Relaxed) && TRACED.replace(false) {
            eprintln!("{} bytes: {}", layout.size(), std::backtrace::Backtrace::force_capture());
            TRACED.set(true);
        }
    }
}

impl Counting {
    fn uncount(layout: Layout) {
        if COUNTED.get() {
            LIVE.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        }
    }
}

/// Whether the connection is warm, so that nothing may be allocated.
static IS_WARM: AtomicBool = AtomicBool::new(false);

// SAFETY: every call is passed to the system's allocator unchanged; the counters need no allocation
// and have no destructor.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::count(layout);
        // SAFETY: the caller's promises are those of GlobalAlloc.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        Counting::uncount(layout);
        Counting::count(Layout::from_size_align(bytes, layout.align()).unwrap_or(layout));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, bytes) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Counting::uncount(layout);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A folder with a document that is old enough to be cached.
fn folder(name: &str) -> PathBuf {
    let root = std::env::temp_dir().join(format!("allocations-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join("htdocs/a/b/c/d")).unwrap();
    fs::create_dir(root.join("logs")).unwrap();
    for file in ["htdocs/a.txt", "htdocs/a/b/c/d/a.txt"] {
        let path = root.join(file);
        fs::write(&path, vec![b'x'; FILE_BYTES]).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_640_995_200)).unwrap();
    }
    root
}

fn server(root: &Path, more: &str) -> Arc<Server> {
    let shown = root.display();
    let text = format!(
        "ServerRoot {shown}\nServerName localhost\nListen 127.0.0.1:1\nDocumentRoot \
         {shown}/htdocs\nMaxKeepAliveRequests 0\n{more}\n"
    );
    let file = root.join("httpd.conf");
    fs::write(&file, text).unwrap();
    let how = load::How { check_document_root: true, ..load::How::default() };
    let loaded = load::read("test", &file, &conf::Options::default(), how);
    loaded.server.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics))
}

/// Sends `count` requests and reads the responses to their ends.
fn ask(stream: &mut TcpStream, path: &str, count: usize) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for _ in 0..count {
        receive(stream, request.as_bytes());
    }
}

/// Sends the end of a request, and reads the response to its end.
fn receive(stream: &mut TcpStream, request: &[u8]) {
    stream.write_all(request).unwrap();
    let mut bytes = [0; 8192];
    let mut length = 0;
    let mut expected = None;
    while expected.is_none_or(|expected| length < expected) {
        let got = stream.read(&mut bytes[length..]).unwrap();
        assert!(got > 0, "{}", String::from_utf8_lossy(&bytes[..length]));
        length += got;
        let end = bytes[..length].windows(4).position(|four| four == b"\r\n\r\n");
        expected = end.map(|end| end + 4 + FILE_BYTES);
    }
    assert!(bytes.starts_with(b"HTTP/1.1 200 "));
}

/// Allocations of the loop while it serves a warm connection.
fn warm_allocations(address: SocketAddr, documents: &Path, path: &str) -> u64 {
    let connect = || {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    };
    // The second connection reuses what the first one leaves behind, including lists of the loop
    // that grow when an idle connection times out.
    let mut first = connect();
    ask(&mut first, path, WARM_UP);
    change(documents, &mut first, path);
    std::thread::sleep(http::connection::LINGER + Duration::from_millis(100));
    let mut stream = connect();
    // Work after a response is done when the client has it, or soon after.
    let settle = || std::thread::sleep(Duration::from_millis(20));
    let mut warm = || {
        ask(&mut stream, path, WARM_UP);
        settle();
        IS_WARM.store(true, Ordering::Relaxed);
        let (before, began) = (ALLOCATIONS.load(Ordering::Relaxed), Instant::now());
        ask(&mut stream, path, REQUESTS);
        settle();
        let after = ALLOCATIONS.load(Ordering::Relaxed);
        IS_WARM.store(false, Ordering::Relaxed);
        (after - before, began.elapsed() >= http::connection::LINGER)
    };
    let (mut count, mut may_be_chance) = warm();
    for _ in 1..TRIES {
        if count > 0 && may_be_chance {
            (count, may_be_chance) = warm();
        }
    }
    count
}

/// Bytes for each of many connections that are idle after a response.
fn idle_bytes(address: SocketAddr, documents: &Path, path: &str) -> u64 {
    let connect = || {
        let mut stream = TcpStream::connect(address).unwrap();
        ask(&mut stream, path, 1);
        stream
    };
    let mut held = active_at_once(address, path);
    change(documents, &mut held[0], path);
    let before = quiet();
    held.extend((1..IDLE).map(|_| connect()));
    IS_WARM.store(true, Ordering::Relaxed);
    held.push(connect());
    IS_WARM.store(false, Ordering::Relaxed);
    quiet().saturating_sub(before) / IDLE
}

/// Causes the first event of the file watch, which allocates its buffer. Otherwise a change by
/// another program, above the documents, does so in the middle of a measurement.
fn change(documents: &Path, stream: &mut TcpStream, path: &str) {
    fs::write(documents.join("new"), "").unwrap();
    ask(stream, path, 1);
}

/// Opens connections that all have buffers at the same time, since each waits for the rest of a
/// head: the loop's pools then hold as many as the connections after them can need, however long
/// each of those takes.
fn active_at_once(address: SocketAddr, path: &str) -> Vec<TcpStream> {
    let begin = |_| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET ").unwrap();
        stream
    };
    let mut streams: Vec<TcpStream> = (0..IDLE_BEFORE).map(begin).collect();
    quiet();
    for stream in &mut streams {
        receive(stream, format!("{path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
    }
    streams
}

/// Waits until no connection lingers and the loop has stopped allocating and freeing. Returns the
/// bytes that it holds.
fn quiet() -> u64 {
    let counters = || (ALLOCATIONS.load(Ordering::Relaxed), LIVE.load(Ordering::Relaxed));
    let end = Instant::now() + PATIENCE;
    loop {
        let before = counters();
        std::thread::sleep(http::connection::LINGER + Duration::from_millis(200));
        if counters() == before || Instant::now() > end {
            return counters().1;
        }
    }
}

fn allocations(name: &str, path: &'static str, more: &str) -> u64 {
    run(name, more, 2, |_| {}, move |address, documents| warm_allocations(address, documents, path))
}

/// Runs `client` against a loop of this process that serves `connections` connections.
fn run(
    name: &str,
    more: &str,
    connections: usize,
    prepare: impl FnOnce(&Server),
    client: impl FnOnce(SocketAddr, &Path) -> u64 + Send + 'static,
) -> u64 {
    let root = folder(name);
    let server = server(&root, &more.replace("@ROOT@", &root.display().to_string()));
    prepare(&server);
    let (board, slot) = Scoreboard::of_one_loop().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let documents = root.join("htdocs");
    let client = std::thread::spawn(move || client(address, &documents));
    let watcher = Arc::new(Watcher::new().unwrap());
    let serving = Loop::new("test").watcher(watcher).start(move |handle| async move {
        COUNTED.set(true);
        TRACED.set(std::env::var_os("TRACE_ALLOCATIONS").is_some());
        let service = Service::new(Engine::new(server, handle.clone(), slot, board));
        let acceptor = Acceptor::from_fd(OwnedFd::from(listener)).unwrap();
        let mut tasks = Vec::with_capacity(connections);
        for _ in 0..connections {
            let accepted = acceptor.accept().await.unwrap();
            let future = http::connection::serve(service.clone(), accepted);
            if tasks.is_empty() {
                println!("the task of a connection has {} bytes", size_of_val(&future));
            }
            tasks.push(handle.spawn_local(future));
        }
        for task in tasks {
            task.await.unwrap();
        }
        COUNTED.set(false);
    });
    let counted = client.join().unwrap();
    serving.unwrap();
    fs::remove_dir_all(root).unwrap();
    counted
}

/// Idle connections.
const IDLE: u64 = 1000;
/// Idle connections before them: more than may linger ([`http::connection::LINGERING_LIMIT`]).
const IDLE_BEFORE: usize = 100;
/// Most bytes of heap for each.
const IDLE_BYTES_MAX: u64 = 800;

/// A single test, since the counters are global.
#[test]
fn a_warm_connection_allocates_nothing() {
    assert_eq!(allocations("plain", "/a.txt", ""), 0, "nothing configured");
    let more = "<Directory @ROOT@/htdocs>\n  AllowOverride All\n</Directory>\n";
    assert_eq!(allocations("overrides", "/a/b/c/d/a.txt", more), 0, "AllowOverride All");
    // As in worker and prefork: what is shared is copied to where the response before it was.
    let share = |server: &Server| {
        assert!(server.shared_responses.set(SharedCache::new().unwrap()).is_ok());
    };
    let shared = run("shared", "", 2, share, |address, documents| {
        warm_allocations(address, documents, "/a.txt")
    });
    assert_eq!(shared, 0, "responses of the shared cache");
    let all = IDLE_BEFORE + usize::try_from(IDLE).unwrap();
    let each = run(
        "idle",
        "KeepAliveTimeout 300",
        all,
        |_| {},
        |address, documents| idle_bytes(address, documents, "/a.txt"),
    );
    println!("an idle connection has {each} bytes");
    assert!(each <= IDLE_BYTES_MAX, "{each}");
}
