//! One connection between a loop and a thread.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread;

use rt::{Acceptor, Handle, Loop, Stream};

/// Runs `server` with the first connection to a new listener, and `client` on another thread.
pub fn serve_one<T: Send + 'static, F, Fut>(
    client: impl FnOnce(TcpStream) -> T + Send + 'static,
    server: F,
) -> T
where
    F: FnOnce(Handle, Stream) -> Fut,
    Fut: Future<Output = ()>,
{
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = thread::spawn(move || client(TcpStream::connect(address).unwrap()));
    Loop::run("test", |handle| async move {
        let acceptor = Acceptor::from_fd(OwnedFd::from(listener)).unwrap();
        let accepted = acceptor.accept().await.unwrap();
        server(handle, Stream::new(accepted).unwrap()).await;
    })
    .unwrap();
    client.join().unwrap()
}
