//! Memory per idle keep-alive connection. `idle [CONNECTIONS] [tls]` opens the connections, sends
//! one request on each, and leaves them idle. Prints, per connection, what this crate, tokio and
//! rustls hold on the heap, as counted by the allocator, and the process's resident size.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rt::{Acceptor, Handle, Loop, Pool, Stream, tls};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};

const TIMEOUT: Duration = Duration::from_secs(60);

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed to the system's allocator unchanged; the counter touches no memory.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of GlobalAlloc.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// State that a connection needs only while it is active.
struct Active {
    buffer: Vec<u8>,
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let count = arguments.get(1).and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let secure = arguments.get(2).is_some_and(|word| word == "tls");
    if let Some(address) = arguments.get(3).and_then(|address| address.parse().ok()) {
        return client(address, count, secure);
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let mut client = Command::new(std::env::current_exe()?)
        .args([count.to_string(), arguments.get(2).cloned().unwrap_or("plain".into())])
        .arg(address.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let config = if secure { Some(server_config(&mut client)?) } else { None };
    Loop::run("idle", |handle| serve(handle, listener, count, config))??;
    client.kill()
}

async fn serve(
    handle: Handle,
    listener: TcpListener,
    count: usize,
    config: Option<Arc<ServerConfig>>,
) -> std::io::Result<()> {
    let acceptor = Acceptor::from_fd(OwnedFd::from(listener))?;
    let pool = Pool::new("active connections", 64);
    let (live, resident) = (LIVE.load(Ordering::Relaxed), resident_bytes());
    let alive = Rc::new(());
    let mut active_size = 0;
    for _ in 0..count {
        let Ok(accepted) = acceptor.accept().await else { break };
        let stream = Stream::new(accepted)?;
        // The large state of an active connection is boxed before the task captures it, so that it
        // does not size the task, and dropped (by a statement of its own) before the idle wait.
        let task = connection(handle.clone(), stream, pool.clone(), config.clone());
        active_size = size_of_val(&task);
        let task = Box::pin(task);
        let handle = handle.clone();
        let alive = alive.clone();
        handle.clone().spawn_local(async move {
            let active = task.await;
            if let Some(stream) = active {
                idle(stream, handle).await;
            }
            drop(alive);
        });
    }
    handle.sleep(Duration::from_secs(2)).await;
    let here = Rc::strong_count(&alive) - 1;
    let per = |now: usize, before: usize| now.saturating_sub(before) / here.max(1);
    println!(
        "{here} idle connections; sizes: Stream {}, active {}; per connection: heap {} bytes, \
         resident {} bytes",
        size_of::<Stream>(),
        active_size,
        per(LIVE.load(Ordering::Relaxed), live),
        per(resident_bytes(), resident)
    );
    Ok(())
}

async fn connection(
    handle: Handle,
    stream: Stream,
    pool: Pool<Active>,
    config: Option<Arc<ServerConfig>>,
) -> Option<Box<Stream>> {
    let mut stream = match config {
        None => stream,
        Some(config) => {
            let deadline = handle.deadline(TIMEOUT);
            tls::accept(stream, deadline, move |_| Some(config)).await.ok()?
        }
    };
    let mut active = pool.take(|| Active { buffer: Vec::with_capacity(8192) });
    active.buffer.clear();
    stream.read(&mut active.buffer, handle.deadline(TIMEOUT)).await.ok()?;
    stream.write_all(&[b'x'; 1024], TIMEOUT).await.ok()?;
    Some(Box::new(stream))
}

async fn idle(mut stream: Box<Stream>, handle: Handle) {
    let _ = stream.readable(handle.deadline(TIMEOUT)).await;
}

/// Generates a certificate and passes it to the client.
fn server_config(client: &mut std::process::Child) -> std::io::Result<Arc<ServerConfig>> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])
        .map_err(std::io::Error::other)?;
    let certificate = made.cert.der().clone();
    let key =
        PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(std::io::Error::other)?;
    if let Some(mut pipe) = client.stdin.take() {
        pipe.write_all(&certificate)?;
    }
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(std::io::Error::other)?;
    Ok(Arc::new(config))
}

/// Opens the connections and holds them until it is killed.
fn client(address: SocketAddr, count: usize, secure: bool) -> std::io::Result<()> {
    let mut roots = RootCertStore::empty();
    if secure {
        let mut certificate = Vec::new();
        std::io::stdin().read_to_end(&mut certificate)?;
        roots.add(CertificateDer::from(certificate)).map_err(std::io::Error::other)?;
    }
    let config =
        Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth());
    let mut held = Vec::new();
    for _ in 0..count {
        let mut socket = TcpStream::connect(address)?;
        let mut answer = [0; 1024];
        if secure {
            let name = ServerName::try_from("localhost").map_err(std::io::Error::other)?;
            let session =
                ClientConnection::new(config.clone(), name).map_err(std::io::Error::other)?;
            let mut stream = rustls::StreamOwned::new(session, socket);
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
            stream.read_exact(&mut answer)?;
            socket = stream.sock;
        } else {
            socket.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
            socket.read_exact(&mut answer)?;
        }
        held.push(socket);
    }
    loop {
        std::thread::park();
    }
}

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|n| n.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}
