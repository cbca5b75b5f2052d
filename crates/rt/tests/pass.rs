//! A connection that is passed to another process over a UNIX socket.

#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rt::{ConnectOptions, Handle, Loop, Remote, Stream};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// Far longer than any step takes: the machine may stall for a while.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Runs `work` on a loop for many connections, then on one that works in place.
fn on_both_loops(mut work: impl AsyncFnMut(Handle)) {
    Loop::run("many", async |handle| work(handle).await).unwrap();
    Loop::new("in place").in_place().start(async |handle| work(handle).await).unwrap();
}

/// A socket in a folder of its own, which is removed when dropped.
struct Place(PathBuf);

impl Place {
    fn listen(name: &str) -> (Place, UnixListener) {
        let folder = std::env::temp_dir().join(format!("rt-pass-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        (Place(folder), listener)
    }

    fn remote(&self) -> Remote {
        Remote::Unix(self.0.join("socket"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The message and the descriptor that came with it.
fn receive(from: &UnixStream) -> (Vec<u8>, OwnedFd) {
    let mut bytes = [1; 10];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let parts = &mut [IoSliceMut::new(&mut bytes)];
    let received = recvmsg(from, parts, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptor = descriptors.flatten().next().unwrap();
    (bytes[..received.bytes].to_vec(), descriptor)
}

async fn connect(handle: &Handle, remote: &Remote) -> Stream {
    let end = handle.deadline(TIMEOUT);
    Stream::connect(remote, &ConnectOptions::default(), end).await.unwrap()
}

#[test]
fn the_other_process_has_the_connection() {
    let clients = TcpListener::bind("127.0.0.1:0").unwrap();
    let client_address = clients.local_addr().unwrap();
    let (place, listener) = Place::listen("other");
    on_both_loops(async |handle| {
        let near = connect(&handle, &Remote::Tcp(client_address)).await;
        let mut client = clients.accept().unwrap().0;
        let to = connect(&handle, &place.remote()).await;
        let other = listener.accept().unwrap().0;
        near.pass_over(&to).unwrap();
        drop((near, to));
        let (message, passed) = receive(&other);
        assert_eq!(message, [0]);
        let mut passed = TcpStream::from(passed);
        passed.set_nonblocking(false).unwrap();
        let talk = thread::spawn(move || {
            client.write_all(b"question").unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
            let mut text = String::new();
            client.read_to_string(&mut text).unwrap();
            text
        });
        let mut text = String::new();
        passed.read_to_string(&mut text).unwrap();
        assert_eq!(text, "question");
        // What arrived for it is no event of the loop that has passed it.
        handle.sleep(Duration::from_millis(20)).await;
        passed.write_all(b"answer").unwrap();
        drop(passed);
        assert_eq!(talk.join().unwrap(), "answer");
    });
}

#[test]
fn a_process_that_is_gone_gets_nothing() {
    let clients = TcpListener::bind("127.0.0.1:0").unwrap();
    let client_address = clients.local_addr().unwrap();
    let (place, listener) = Place::listen("gone");
    on_both_loops(async |handle| {
        let near = connect(&handle, &Remote::Tcp(client_address)).await;
        let to = connect(&handle, &place.remote()).await;
        drop(listener.accept().unwrap().0);
        let error = near.pass_over(&to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}
