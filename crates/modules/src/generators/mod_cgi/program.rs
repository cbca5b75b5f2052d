//! A program: its arguments and variables, the order to start it, and its pipes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Instant;

use mpm::Line;
use mpm::companion::spawner::Outcome;
use mpm::companion::{Limit, Limits, MESSAGE_BYTES_MAX, OrderWriter};
use nix::sys::resource::RLIM_INFINITY;
use rt::Pipe;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendFlags, send};
use rustix::pipe::{PipeFlags, pipe_with};
use server::core::ResourceLimit;
use server::request::Request;

use crate::util_script::environment::Environment;

/// The delay before an order is sent again if too many wait to be received.
const RETRY: std::time::Duration = std::time::Duration::from_millis(10);

/// A program that runs. Dropping it ends the program.
pub(super) struct Program {
    /// Its standard input; `None` once it has all of the request's body.
    pub input: Option<Pipe>,
    /// Its standard output.
    pub output: Pipe,
    /// Its standard error; `None` after its end.
    pub errors: Option<Pipe>,
    /// Where its end is reported. Closing it ends the program.
    answer: OwnedFd,
}

impl Program {
    /// Has the companion start the request's file.
    ///
    /// # Errors
    /// `WouldBlock` if the companion takes no orders for `Timeout`; others if there are no
    /// descriptors, or the companion is gone.
    pub async fn start(request: &Request, line: &Line) -> io::Result<Program> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC);
        let ((input, own_input), (own_output, output)) = (pipe()?, pipe()?);
        let (own_errors, errors) = pipe()?;
        let order = order(request);
        let file = match order.len() > MESSAGE_BYTES_MAX {
            true => Some(in_memory(&order)?),
            false => None,
        };
        let message = if file.is_some() { b"in a file".as_slice() } else { &order };
        let mut descriptors = vec![input.as_fd(), output.as_fd(), errors.as_fd()];
        descriptors.extend(file.as_ref().map(AsFd::as_fd));
        let (begun, wait) = (Instant::now(), request.host.core.timeout());
        let answer = loop {
            match line.ask_with(message, &descriptors) {
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && begun.elapsed() < wait =>
                {
                    request.engine.handle.sleep(RETRY).await;
                }
                outcome => break outcome?,
            }
        };
        Ok(Program {
            input: Some(Pipe::writer(own_input)?),
            output: Pipe::reader(own_output)?,
            errors: Some(Pipe::reader(own_errors)?),
            answer,
        })
    }

    /// What has become of it, if that is known by now: after the end of its output it is for a
    /// program that was not started.
    pub fn outcome(&self) -> Option<Outcome> {
        let mut answer = [0; 16];
        let length = rustix::io::read(&self.answer, &mut answer).ok()?;
        Outcome::read(answer.get(..length)?)
    }

    /// Its output has ended: what it has left running is not ended with it.
    pub fn finish(self) {
        let _ = send(&self.answer, b"d", SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }
}

/// The order to start the request's file, in its folder.
fn order(request: &Request) -> Vec<u8> {
    let file = request.resource.filename.as_slice();
    let folder = file.iter().rposition(|byte| *byte == b'/').and_then(|at| file.get(..=at));
    let mut words = vec![file.to_vec()];
    words.extend(arguments(request.query().unwrap_or_default()));
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let core = &request.plan.core;
    let limits = Limits {
        cpu_seconds: limit(core.limit_cpu.get()),
        memory_bytes: limit(core.limit_memory.get()),
        processes: limit(core.limit_processes.get()),
    };
    let mut order = OrderWriter::new(&limits, folder.unwrap_or(b"/"), file, &words);
    for (name, value) in Environment::of(&request.env).iter() {
        order.variable(&name, value);
    }
    order.finish()
}

fn limit(setting: Option<&ResourceLimit>) -> Limit {
    let Some((soft, hard)) = setting else { return (None, None) };
    let number = |limit: &Option<u64>| limit.unwrap_or(RLIM_INFINITY);
    (Some(number(soft)), hard.as_ref().map(number))
}

/// The arguments in a query without `=` (RFC 3875 section 4.4): words between `+`, unescaped, and
/// escaped for a shell.
///
/// Source: `split_argv`, `create_argv`
fn arguments(query: &[u8]) -> Vec<Vec<u8>> {
    if query.is_empty() || query.contains(&b'=') {
        return Vec::new();
    }
    query.split(|byte| *byte == b'+').map(argument).collect()
}

fn argument(word: &[u8]) -> Vec<u8> {
    let mut text = word.to_vec();
    // Whatever it contains.
    let _ = wire::uri::unescape_url(&mut text, wire::uri::Slashes::Decode);
    shell_escaped(text.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// Source: `ap_escape_shell_cmd`
fn shell_escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if b"&;`'\"|*?~<>^()[]{}$\\\n".contains(byte) || *byte == 0xFF {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}

/// A file in memory that contains `bytes`.
fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = std::fs::File::from(memfd_create(c"order", MemfdFlags::CLOEXEC)?);
    file.write_all_at(bytes, 0)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_without_an_equals_sign_is_arguments() {
        let of = |query: &str| -> Vec<String> {
            let words = arguments(query.as_bytes()).into_iter();
            words.map(|word| String::from_utf8(word).unwrap()).collect()
        };
        assert_eq!(of("a+b%20c++d"), ["a", "b c", "", "d"]);
        assert_eq!(of("%27;%zz+%00b+%e2%82%ac"), ["\\'\\;%zz", "", "€"]);
        assert_eq!(of("+"), ["", ""]);
        assert!(of("").is_empty() && of("a=b+c").is_empty());
    }
}
