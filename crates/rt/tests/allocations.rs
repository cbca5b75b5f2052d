//! A warm connection allocates nothing per request: read, drain of the watch, write, sendfile.

#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rt::{Acceptor, Loop, Stream, Watcher};

/// Far longer than any step takes: the machine may stall for a while.
const TIMEOUT: Duration = Duration::from_secs(90);
const WARM_UP: u32 = 20;
const REQUESTS: u32 = 200;
const ANSWER_BYTES: usize = 2 * 1024;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed to the system's allocator unchanged; the counter is a thread-local
// cell that needs no allocation and has no destructor.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller upholds the contract of GlobalAlloc.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_warm_connection_allocates_nothing() {
    let path = std::env::temp_dir().join(format!("rt-allocations-{}", std::process::id()));
    std::fs::write(&path, [7; ANSWER_BYTES / 2]).unwrap();
    let file = File::open(&path).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = thread::spawn(move || {
        let mut socket = TcpStream::connect(address).unwrap();
        for _ in 0..WARM_UP + REQUESTS {
            socket.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            socket.read_exact(&mut [0; ANSWER_BYTES]).unwrap();
        }
    });
    let watcher = Arc::new(Watcher::new().unwrap());
    let counted = Loop::new("test")
        .watcher(watcher)
        .start(|handle| async move {
            let acceptor = Acceptor::from_fd(OwnedFd::from(listener)).unwrap();
            let mut stream = Stream::new(acceptor.accept().await.unwrap()).unwrap();
            let mut buffer = Vec::with_capacity(4096);
            let mut before = 0;
            for request in 0..WARM_UP + REQUESTS {
                if request == WARM_UP {
                    before = ALLOCATIONS.get();
                }
                buffer.clear();
                stream.readable(handle.deadline(TIMEOUT)).await.unwrap();
                stream.read(&mut buffer, handle.deadline(TIMEOUT)).await.unwrap();
                handle.drained().await;
                let head = [1; ANSWER_BYTES / 2];
                let len = (ANSWER_BYTES / 2) as u64;
                stream.send_file(&head, &file, 0, len, TIMEOUT).await.unwrap();
            }
            ALLOCATIONS.get() - before
        })
        .unwrap();
    client.join().unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!(counted, 0);
}
