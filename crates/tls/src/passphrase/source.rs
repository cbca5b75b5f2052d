//! The three kinds of dialog: the terminal, a program that responds on a pipe, and a program that
//! is run for each key.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::{MAX_PASSPHRASE, PassphraseSource, Question};

/// The value of SSLPassPhraseDialog. Default: the terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Dialog {
    /// `builtin`: prompts on the controlling terminal.
    #[default]
    Builtin,
    /// `|/path/to/program args`: sends the prompts to a program and reads its responses.
    Pipe(Vec<u8>),
    /// `exec:/path/to/program`: runs it with `host:port` and `RSA`, `DSA`, `ECC` or an index.
    Exec(Vec<u8>),
}

impl Dialog {
    /// Parses the directive's argument. The caller checks whether the program exists.
    ///
    /// # Errors
    /// Anything other than the three kinds, in Apache's words.
    pub fn parse(argument: &[u8]) -> Result<Self, &'static str> {
        if argument == b"builtin" {
            return Ok(Self::Builtin);
        }
        if let Some(path) = argument.strip_prefix(b"exec:") {
            return Ok(Self::Exec(path.to_vec()));
        }
        match argument.strip_prefix(b"|") {
            Some(command) if !command.is_empty() => Ok(Self::Pipe(command.to_vec())),
            _ => Err("SSLPassPhraseDialog: Invalid argument"),
        }
    }
}

/// Asks by the configured dialog.
#[derive(Debug)]
pub struct DialogSource {
    dialog: Dialog,
    server: String,
    introduced: bool,
    pipe: Option<Pipe>,
}

#[derive(Debug)]
struct Pipe {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl DialogSource {
    /// `server` is the name in the introduction, as `Apache/2.4.71`.
    pub fn new(dialog: Dialog, server: impl Into<String>) -> Self {
        Self { dialog, server: server.into(), introduced: false, pipe: None }
    }

    fn prompt(&mut self, question: &Question<'_>, retry: Option<usize>) -> String {
        let mut text = String::new();
        if let Some(left) = retry {
            let noun = if left == 1 { "retry" } else { "retries" };
            text.push_str(&format!(
                "Apache:mod_ssl:Error: Pass phrase incorrect ({left} more {noun} permitted).\n"
            ));
        } else {
            if !self.introduced {
                self.introduced = true;
                text.push_str(&introduction(&self.server));
            }
            let path = String::from_utf8_lossy(question.path);
            text.push_str(&format!(
                "Private key {}:{} ({path})\n",
                question.host_id, question.index
            ));
        }
        text.push_str("Enter pass phrase:");
        text
    }

    fn ask_pipe(&mut self, command: &[u8], prompt: &str) -> io::Result<Vec<u8>> {
        if self.pipe.is_none() {
            self.pipe = Some(start_pipe(command)?);
        }
        let pipe = self.pipe.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        pipe.input.write_all(prompt.as_bytes())?;
        pipe.input.flush()?;
        let mut line = Vec::new();
        pipe.output.by_ref().take(MAX_PASSPHRASE as u64).read_until(b'\n', &mut line)?;
        Ok(line)
    }
}

impl PassphraseSource for DialogSource {
    fn ask(&mut self, question: &Question<'_>, retry: Option<usize>) -> Option<Vec<u8>> {
        let answer = match self.dialog.clone() {
            Dialog::Builtin => ask_terminal(&self.prompt(question, retry)),
            Dialog::Pipe(command) => {
                let prompt = self.prompt(question, retry);
                self.ask_pipe(&command, &prompt)
            }
            // The same program would only respond with the same pass phrase.
            Dialog::Exec(_) if retry.is_some() => return None,
            Dialog::Exec(path) => ask_program(&path, question),
        };
        let mut phrase = answer.ok()?;
        while matches!(phrase.last(), Some(b'\n' | b'\r')) {
            phrase.pop();
        }
        (!phrase.is_empty()).then_some(phrase)
    }
}

impl Drop for DialogSource {
    fn drop(&mut self) {
        let Some(Pipe { mut child, input, output }) = self.pipe.take() else { return };
        drop((input, output));
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn introduction(server: &str) -> String {
    format!(
        "{server} mod_ssl (Pass Phrase Dialog)\n\
         Some of your private key files are encrypted for security reasons.\n\
         In order to read them you have to provide the pass phrases.\n\n"
    )
}

fn start_pipe(command: &[u8]) -> io::Result<Pipe> {
    let mut child = command_of(command)?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    Ok(Pipe { child, input, output: BufReader::new(output) })
}

fn ask_program(path: &[u8], question: &Question<'_>) -> io::Result<Vec<u8>> {
    let kind = match question.index {
        0 => "RSA".to_owned(),
        1 => "DSA".to_owned(),
        2 => "ECC".to_owned(),
        index => index.to_string(),
    };
    let mut child =
        command_of(path)?.arg(question.host_id).arg(kind).stdout(Stdio::piped()).spawn()?;
    let mut answer = Vec::new();
    if let Some(output) = child.stdout.take() {
        let mut output = BufReader::new(output.take(MAX_PASSPHRASE as u64));
        output.read_until(b'\n', &mut answer)?;
    }
    child.wait()?;
    Ok(answer)
}

/// The program and its arguments, split at blanks as Apache does, without a shell.
fn command_of(line: &[u8]) -> io::Result<Command> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let program = words.next().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(OsStr::from_bytes(program));
    command.args(words.map(OsStr::from_bytes));
    Ok(command)
}

/// Prompts on the controlling terminal with the echo off, and restores it in any case.
fn ask_terminal(prompt: &str) -> io::Result<Vec<u8>> {
    let mut terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let before = tcgetattr(terminal.as_fd())?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    // Precedes the prompt: an immediate reply is neither echoed nor discarded.
    tcsetattr(terminal.as_fd(), OptionalActions::Flush, &silent)?;
    terminal.write_all(prompt.as_bytes())?;
    let mut line = Vec::new();
    let read = BufReader::new((&terminal).take(MAX_PASSPHRASE as u64)).read_until(b'\n', &mut line);
    tcsetattr(terminal.as_fd(), OptionalActions::Flush, &before)?;
    terminal.write_all(b"\n")?;
    read.map(|_| line)
}
