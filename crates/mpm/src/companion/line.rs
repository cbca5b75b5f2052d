//! The line between children and a companion: each message carries a descriptor, on which the
//! answer arrives.
//!
//! Each question has its own pipe for the answer: an asker that gives up disturbs no other, and an
//! answer can't reach the wrong asker. It is no pair of sockets: while a socket is being passed to
//! another process, each socket that any process closes makes the kernel search for cycles.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_type;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};

/// The longest message. The kernel's default buffer for a socket holds three.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// The most descriptors that a question carries.
pub const DESCRIPTORS_MAX: usize = 4;

/// How long an asker may take to receive an answer that does not fit its pipe.
const SEND_DEADLINE: Duration = Duration::from_secs(1);

/// The line of a companion, shared by the supervisor, the companion and the children that ask.
#[derive(Debug)]
pub struct Line {
    ends: Mutex<Ends>,
    /// Room for the longest message, once a question has been received: to clear it for each one
    /// would take longer than most messages.
    room: Mutex<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Ends {
    /// The askers' end; doesn't block.
    askers: Option<Arc<OwnedFd>>,
    /// The companion's end.
    companion: Option<Arc<OwnedFd>>,
}

/// What a companion receives.
#[derive(Debug)]
pub enum Received {
    /// A question, whose asker waits for the answer.
    Question(Question),
    /// A message without answer.
    Notice(Vec<u8>),
}

/// A question that a companion has received.
#[derive(Debug)]
pub struct Question {
    /// The message.
    pub message: Vec<u8>,
    /// The asker's descriptors, in its order.
    pub descriptors: Vec<OwnedFd>,
    reply: OwnedFd,
}

impl Line {
    /// Creates a line.
    ///
    /// # Errors
    /// Those of socketpair(2).
    pub fn new() -> io::Result<Self> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (askers, companion) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
        rustix::io::ioctl_fionbio(&askers, true)?;
        let ends = Ends { askers: Some(Arc::new(askers)), companion: Some(Arc::new(companion)) };
        Ok(Self { ends: Mutex::new(ends), room: Mutex::default() })
    }

    /// The companion's side of a line, in a program that was given its end; `None` if the
    /// descriptor is no such end.
    pub(crate) fn of_companion(end: OwnedFd) -> Option<Self> {
        let kind = socket_type(&end).ok()?;
        let ends = Ends { askers: None, companion: Some(Arc::new(end)) };
        (kind == SocketType::SEQPACKET).then(|| Self { ends: ends.into(), room: Mutex::default() })
    }

    /// Sends a message, and returns the descriptor on which the answer arrives, followed by end of
    /// file. End of file without any byte means that the companion has died. Closing the descriptor
    /// withdraws the question.
    ///
    /// # Errors
    /// `WouldBlock` if too many questions wait; `InvalidInput` if the message is empty or too
    /// long; others if there are no descriptors, or the line is closed.
    pub fn ask(&self, message: &[u8]) -> io::Result<OwnedFd> {
        self.ask_with(message, &[])
    }

    /// As [`Line::ask`], and gives the companion copies of `descriptors`.
    ///
    /// # Errors
    /// As [`Line::ask`]; also `InvalidInput` for more than [`DESCRIPTORS_MAX`].
    pub fn ask_with(&self, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<OwnedFd> {
        let is_suitable = (1..=MESSAGE_BYTES_MAX).contains(&message.len());
        if !is_suitable || descriptors.len() > DESCRIPTORS_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (own, reply) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let sent: Vec<BorrowedFd<'_>> =
            descriptors.iter().copied().chain(std::iter::once(reply.as_fd())).collect();
        self.send(message, &sent)?;
        Ok(own)
    }

    /// As [`Line::ask_with`], by a socket that can bring a descriptor ([`Question::answer_with`]).
    ///
    /// # Errors
    /// As [`Line::ask_with`].
    pub fn ask_for_descriptor(
        &self,
        message: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<OwnedFd> {
        let is_suitable = (1..=MESSAGE_BYTES_MAX).contains(&message.len());
        if !is_suitable || descriptors.len() > DESCRIPTORS_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (own, reply) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let sent: Vec<BorrowedFd<'_>> =
            descriptors.iter().copied().chain(std::iter::once(reply.as_fd())).collect();
        self.send(message, &sent)?;
        Ok(own)
    }

    /// Sends a message that has no answer.
    ///
    /// # Errors
    /// As [`Line::ask`].
    pub fn tell(&self, message: &[u8]) -> io::Result<()> {
        match (1..=MESSAGE_BYTES_MAX).contains(&message.len()) {
            true => self.send(message, &[]),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn send(&self, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let line = self.lock().askers.clone().ok_or(io::ErrorKind::NotConnected)?;
        let mut space =
            [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX + 1))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            rights.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        loop {
            let parts = [IoSlice::new(message)];
            match sendmsg(&*line, &parts, &mut rights, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// The descriptor that is readable when a question waits, or at the end of the line.
    ///
    /// # Errors
    /// The line is closed.
    pub fn incoming(&self) -> io::Result<Arc<OwnedFd>> {
        self.lock().companion.clone().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Waits for a message and receives it; `None` at the end of the line.
    ///
    /// # Errors
    /// Those of recvmsg(2).
    pub fn next(&self) -> io::Result<Option<Received>> {
        self.receive(RecvFlags::empty())
    }

    /// Receives a message; `None` at the end of the line.
    ///
    /// # Errors
    /// `WouldBlock` if none waits; those of recvmsg(2).
    pub fn try_next(&self) -> io::Result<Option<Received>> {
        self.receive(RecvFlags::DONTWAIT)
    }

    fn receive(&self, how: RecvFlags) -> io::Result<Option<Received>> {
        let line = self.incoming()?;
        let mut bytes = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.resize(MESSAGE_BYTES_MAX, 0);
        loop {
            let mut space =
                [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX + 1))];
            let mut rights = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let flags = RecvFlags::CMSG_CLOEXEC | how;
            let got = match recvmsg(&*line, &mut parts, &mut rights, flags) {
                Ok(got) => got,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let mut descriptors: Vec<OwnedFd> = Vec::new();
            for message in rights.drain() {
                if let RecvAncillaryMessage::ScmRights(sent) = message {
                    descriptors.extend(sent);
                }
            }
            let reply = descriptors.pop();
            let is_cut = got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
            match (got.bytes, reply) {
                // Not the end of the line, if a process can still ask: only a compromised one sends
                // an empty message.
                (0, None) if has_ended(&line) => return Ok(None),
                (count @ 1.., Some(reply)) if !is_cut => {
                    let message = bytes.get(..count).unwrap_or_default().to_vec();
                    return Ok(Some(Received::Question(Question { message, descriptors, reply })));
                }
                (count @ 1.., None) if !is_cut => {
                    let message = bytes.get(..count).unwrap_or_default().to_vec();
                    return Ok(Some(Received::Notice(message)));
                }
                // [`Self::send`] did not send it.
                _ => {}
            }
        }
    }

    /// Closes the companion's end, in processes that only ask.
    pub(crate) fn leave_to_askers(&self) {
        self.lock().companion = None;
    }

    /// Closes the askers' end, in the companion.
    pub(crate) fn leave_to_companion(&self) {
        self.lock().askers = None;
    }

    /// Closes both ends.
    pub(crate) fn close(&self) {
        *self.lock() = Ends::default();
    }

    fn lock(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Question {
    /// Whether the asker still waits.
    pub fn is_wanted(&self) -> bool {
        let mut polled = [PollFd::new(&self.reply, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut polled, Some(&now)), Ok(1..))
    }

    /// Sends the answer. If the asker does not read it in time, it receives only what fits the
    /// pipe. SIGPIPE must be ignored, as the server does.
    pub fn answer(self, parts: &[&[u8]]) {
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                match rustix::io::write(&self.reply, rest) {
                    Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) if self.waits_for_room() => {}
                    Err(_) => return,
                }
            }
        }
    }

    /// Sends an answer that fits the socket's buffer, with a descriptor, to an asker that has used
    /// [`Line::ask_for_descriptor`].
    pub fn answer_with(self, message: &[u8], descriptor: BorrowedFd<'_>) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor];
        rights.push(SendAncillaryMessage::ScmRights(&descriptors));
        let parts = [IoSlice::new(message)];
        while let Err(Errno::INTR) = sendmsg(&self.reply, &parts, &mut rights, SendFlags::NOSIGNAL)
        {
        }
    }

    /// Waits until the asker has read some of the answer; false if that takes too long.
    fn waits_for_room(&self) -> bool {
        let mut polled = [PollFd::new(&self.reply, PollFlags::OUT)];
        let limit = Timespec::try_from(SEND_DEADLINE).ok();
        matches!(poll(&mut polled, limit.as_ref()), Ok(1..) | Err(Errno::INTR))
    }
}

impl AsFd for Question {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reply.as_fd()
    }
}

/// Whether no process can send any more.
fn has_ended(line: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(line, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let [polled] = match poll(&mut polled, Some(&now)) {
        Ok(_) => polled,
        Err(_) => return true,
    };
    polled.revents().contains(PollFlags::HUP)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    fn text(answer: OwnedFd) -> String {
        rustix::io::ioctl_fionbio(&answer, false).unwrap();
        let mut text = String::new();
        File::from(answer).read_to_string(&mut text).unwrap();
        text
    }

    fn next(line: &Line) -> Question {
        match line.next().unwrap().unwrap() {
            Received::Question(question) => question,
            Received::Notice(message) => panic!("{message:?}"),
        }
    }

    #[test]
    fn each_question_has_its_own_answer() {
        let line = Line::new().unwrap();
        let (one, two) = (line.ask(b"one").unwrap(), line.ask(b"two").unwrap());
        let withdrawn = line.ask(b"three").unwrap();
        for expected in ["one", "two"] {
            let question = next(&line);
            assert_eq!(question.message, expected.as_bytes());
            assert!(question.is_wanted());
            question.answer(&[b"to ", expected.as_bytes()]);
        }
        assert_eq!((text(one).as_str(), text(two).as_str()), ("to one", "to two"));
        drop(withdrawn);
        let question = next(&line);
        assert!(!question.is_wanted());
        question.answer(&[b"to no asker"]);
        line.leave_to_companion();
        assert!(line.next().unwrap().is_none());
        assert!(line.ask(b"four").is_err());
    }

    #[test]
    fn a_line_is_bounded() {
        let line = Line::new().unwrap();
        for bad in [vec![], vec![b'x'; MESSAGE_BYTES_MAX + 1]] {
            assert_eq!(line.ask(&bad).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        let mut waiting = Vec::new();
        let error = loop {
            match line.ask(&[b'x'; MESSAGE_BYTES_MAX]) {
                Ok(answer) => waiting.push(answer),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(!waiting.is_empty());
        assert_eq!(next(&line).message.len(), MESSAGE_BYTES_MAX);
    }

    #[test]
    fn an_answer_of_any_length_arrives_or_ends_in_time() {
        let line = Line::new().unwrap();
        let answer = line.ask(b"q").unwrap();
        let question = next(&line);
        let taking = std::thread::spawn(move || text(answer).len());
        question.answer(&[&vec![b'x'; 1 << 20]]);
        assert_eq!(taking.join().unwrap(), 1 << 20);
        // The asker reads nothing.
        let _answer = line.ask(b"q").unwrap();
        next(&line).answer(&[&vec![b'x'; 1 << 20]]);
    }

    #[test]
    fn a_notice_has_no_answer() {
        let line = Line::new().unwrap();
        line.tell(b"notice").unwrap();
        let answer = line.ask(b"real").unwrap();
        let Some(Received::Notice(message)) = line.next().unwrap() else { panic!() };
        assert_eq!(message, b"notice");
        assert_eq!(next(&line).message, b"real");
        assert_eq!(text(answer), "");
        assert_eq!(line.tell(b"").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        // An empty message is not the end.
        let askers = line.lock().askers.clone().unwrap();
        rustix::net::send(&*askers, b"", SendFlags::empty()).unwrap();
        line.tell(b"after").unwrap();
        assert!(matches!(line.next(), Ok(Some(Received::Notice(_)))));
    }
}
