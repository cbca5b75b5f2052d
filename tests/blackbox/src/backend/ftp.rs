//! FTP: replies to the commands of a control connection, and what the data connection carries.
//!
//! A connection is one request: its commands are recorded.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::escape::unescape;
use crate::stall::Deadline;

use super::wire::{Fill, Wire};

/// The time limit for a command, and for the data connection.
const LIMIT: Duration = Duration::from_secs(15);
const ACCEPT_POLL: Duration = Duration::from_millis(5);

/// What the data connection carries unless a script says otherwise.
const CONTENT: &[u8] = b"content\n";

/// A line of a script: what is replied to a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The command, or `GREETING`, `DATA` and `DONE`: what comes before the first command, on the
    /// data connection and after it.
    event: String,
    /// The reply, with its line ends; empty: the connection is closed. `@data@` is the port of
    /// the data connection, `@data.pasv@` its address as `PASV` writes it.
    text: Vec<u8>,
}

impl Reply {
    /// Parses `EVENT TEXT`; the text of `DATA` is as it is, others get a CRLF.
    pub fn parse(line: &str) -> Result<Reply, String> {
        let (event, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut text = unescape(rest)?;
        if event != "DATA" && !text.is_empty() {
            text.extend_from_slice(b"\r\n");
        }
        Ok(Reply { event: event.to_owned(), text })
    }

    /// The same, whose placeholders are filled by `fill`.
    #[must_use]
    pub fn filled(&self, fill: impl Fn(&[u8]) -> Vec<u8>) -> Reply {
        Reply { event: self.event.clone(), text: fill(&self.text) }
    }
}

/// The server's side of a control connection.
pub(super) struct Session<'a> {
    wire: &'a mut Wire,
    scripted: VecDeque<Reply>,
    /// Where the data connection is expected.
    passive: Option<TcpListener>,
    /// The commands that have been received.
    pub commands: Vec<u8>,
}

impl<'a> Session<'a> {
    pub fn new(wire: &'a mut Wire, scripted: impl IntoIterator<Item = Reply>) -> Session<'a> {
        let scripted = scripted.into_iter().collect();
        Session { wire, scripted, passive: None, commands: Vec::new() }
    }

    /// Serves the connection to its end.
    pub fn run(&mut self) {
        let mut goes_on = self.reply("GREETING", "220 ready");
        while goes_on {
            let Some(line) = self.command() else { return };
            let name = line.split(' ').next().unwrap_or_default();
            goes_on = match name {
                "USER" => self.reply(name, "331 password?"),
                "PASS" => self.reply(name, "230 welcome"),
                "CWD" => self.reply(name, "250 there"),
                "TYPE" | "PORT" => self.reply(name, "200 done"),
                "PWD" => self.reply(name, "257 \"/home\" is current"),
                "SIZE" => self.reply(name, &format!("213 {}", CONTENT.len())),
                "MDTM" => self.reply(name, "213 20220102030405"),
                "EPSV" => {
                    self.listen();
                    self.reply(name, "229 Entering Extended Passive Mode (|||@data@|)")
                }
                "PASV" => {
                    self.listen();
                    self.reply(name, "227 Entering Passive Mode (@data.pasv@)")
                }
                "LIST" | "RETR" => self.transfer(name),
                "QUIT" => {
                    self.reply(name, "221 bye");
                    false
                }
                _ => self.reply(name, "500 unknown"),
            };
        }
        self.wire.half_close();
    }

    /// The next command without its line end.
    fn command(&mut self) -> Option<String> {
        let end = Deadline::after(LIMIT);
        loop {
            let buffer = &mut self.wire.buffer;
            if let Some(at) = buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = buffer.drain(..=at).collect();
                self.commands.extend_from_slice(&line);
                return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.wire.fill(Some(end)) != Fill::More {
                return None;
            }
        }
    }

    /// Takes what a script says about an event.
    fn scripted(&mut self, event: &str) -> Option<Vec<u8>> {
        let at = self.scripted.iter().position(|reply| reply.event == event)?;
        self.scripted.remove(at).map(|reply| reply.text)
    }

    /// Replies as a script says, or as usual; returns whether the connection goes on.
    fn reply(&mut self, event: &str, usual: &str) -> bool {
        let text = self.scripted(event).unwrap_or_else(|| format!("{usual}\r\n").into_bytes());
        let port = self.passive.as_ref().and_then(|listener| listener.local_addr().ok());
        let port = port.map_or(0, |address| address.port());
        let [high, low] = port.to_be_bytes();
        let text = String::from_utf8_lossy(&text)
            .replace("@data@", &port.to_string())
            .replace("@data.pasv@", &format!("127,0,0,1,{high},{low}"));
        self.wire.send(text.as_bytes());
        !text.is_empty()
    }

    fn listen(&mut self) {
        self.passive = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok();
    }

    /// Sends the data, between two replies; a transfer that is refused has none.
    fn transfer(&mut self, name: &str) -> bool {
        let is_refused = self
            .scripted
            .iter()
            .find(|reply| reply.event == name)
            .is_some_and(|reply| !reply.text.starts_with(b"1"));
        if !self.reply(name, "150 here it comes") {
            return false;
        }
        if is_refused {
            return true;
        }
        let content = self.scripted("DATA").unwrap_or_else(|| CONTENT.to_vec());
        if let Some(mut data) = self.accept() {
            let _ = data.write_all(&content);
            let _ = data.shutdown(Shutdown::Write);
        }
        self.reply("DONE", "226 sent")
    }

    fn accept(&mut self) -> Option<TcpStream> {
        let listener = self.passive.take()?;
        listener.set_nonblocking(true).ok()?;
        let end = Deadline::after(LIMIT);
        while end.left().is_some() {
            if let Ok((data, SocketAddr::V4(_))) = listener.accept() {
                data.set_nonblocking(false).ok()?;
                return Some(data);
            }
            std::thread::sleep(ACCEPT_POLL);
        }
        None
    }
}
