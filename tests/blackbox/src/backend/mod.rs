//! Backends of a proxy that the runner plays: what they answer is written in the test file, what
//! they received is recorded.
//!
//! [`script`] reads their lines, [`player`] listens and answers, the protocols find the end of a
//! request and show it.

pub mod ajp;
mod descriptor;
pub mod fastcgi;
pub mod ftp;
pub mod h2;
pub mod http;
pub mod pairs;
pub mod player;
pub mod script;
pub mod show;
pub mod socket;
mod talk;
mod wire;

/// How far a request has arrived, judged from its first byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// Not even its head.
    Partial,
    /// Its head, but not its body.
    Head,
    /// All of it: this many bytes.
    Whole(usize),
}

/// Judges what was received in a protocol.
pub fn progress(protocol: script::Protocol, bytes: &[u8]) -> Progress {
    use script::Protocol;
    match protocol {
        Protocol::Http => http::progress(bytes),
        Protocol::Fcgi => fastcgi::progress(bytes),
        Protocol::Scgi => pairs::scgi_progress(bytes),
        Protocol::Uwsgi => pairs::uwsgi_progress(bytes),
        Protocol::Ajp => ajp::progress(bytes),
        Protocol::H2c if bytes.is_empty() => Progress::Partial,
        Protocol::H2c => Progress::Whole(bytes.len()),
        // Its connections are served as a whole.
        Protocol::Raw | Protocol::Ftp | Protocol::Fdpass if bytes.is_empty() => Progress::Partial,
        Protocol::Fdpass => Progress::Whole(descriptor::MESSAGE_BYTES),
        Protocol::Raw | Protocol::Ftp => Progress::Whole(0),
    }
}
