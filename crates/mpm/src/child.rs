//! What a child receives from the supervisor.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::affinity::{CpuSet, MaskApplier, mask};
use crate::reserve::Reserve;
use crate::scoreboard::{LoopSlot, ProcessSlot, Scoreboard};
use crate::settings::{ListenAddress, Settings};
use crate::shared::Shared;

/// A child process of one generation.
pub struct Child {
    /// Its place in the shape, from 0. A replacement takes the place of the process that it
    /// replaces, as do its successors in later generations.
    pub slot: usize,
    /// The generation whose configuration it serves, from 1.
    pub generation: u32,
    /// One spec per loop, at least one.
    pub loops: Vec<LoopSpec>,
    /// Its part of the scoreboard.
    pub process: ProcessSlot,
    /// Orders from the supervisor and reports to it.
    pub control: Control,
    /// The whole scoreboard, for reading.
    pub scoreboard: Scoreboard,
    /// The shared regions.
    pub shared: Shared,
    /// The settings that its generation was loaded with.
    pub settings: Arc<Settings>,
    /// Counts the threads that wait for a connection; `None` in shapes whose loops have many
    /// connections each.
    pub reserve: Option<Reserve>,
}

/// What one loop is started with.
pub struct LoopSpec {
    /// Its number within the process, from 0.
    pub index: usize,
    /// Its number over all processes of the shape, from 0.
    pub number: usize,
    /// The sockets it accepts from, non-blocking: one per `Listen`, and further ones that belonged
    /// to loops that no longer exist.
    pub sockets: Vec<ListeningSocket>,
    /// Its slot in the scoreboard; the loop is the slot's only writer.
    pub slot: LoopSlot,
    /// The CPUs to bind to; `None` if the kernel chooses. The loop's thread calls
    /// [`LoopSpec::enter_thread`] before it serves.
    pub cpus: Option<CpuSet>,
}

impl LoopSpec {
    /// Makes the calling thread the loop's thread: binds it to the spec's CPUs and publishes its id
    /// to the supervisor. If binding fails, because the CPUs have just been taken away, the thread
    /// runs wherever it may.
    pub fn enter_thread(&self) {
        self.slot.set_thread(u32::try_from(nix::unistd::gettid().as_raw()).unwrap_or(0));
        let told = CpuSet::from_words(&self.slot.mask());
        if !told.is_empty() {
            // The allowed CPUs have changed since the process was forked.
            let _ = mask::pin(&told);
        } else if let Some(cpus) = &self.cpus {
            let _ = mask::pin(cpus);
            let planned = cpus.first().filter(|_| cpus.len() == 1);
            self.slot.set_place(&cpus.to_words(), planned, false);
        }
    }
}

/// A listening socket of one loop or, in worker and prefork, one shared by all.
///
/// The supervisor also holds it open, so a child that closes it resets no connection. On
/// [`Order::Graceful`], accept until the queue is empty, then close.
#[derive(Debug)]
pub struct ListeningSocket {
    /// The socket.
    pub socket: TcpListener,
    /// Which of [`Settings::listeners`] it belongs to.
    pub listener: usize,
    /// The address of its `Listen` line.
    pub address: ListenAddress,
    /// The line's protocol.
    pub protocol: Arc<str>,
}

/// An order from the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Accept what is queued, close the listeners, finish every request in flight, respond to the
    /// next request of idle connections with `Connection: close`, then exit with 0.
    Graceful,
    /// As [`Order::Graceful`], but leave what is queued to other processes, which accept from the
    /// same sockets: for surplus children, and for children whose successor is ready.
    Leave,
    /// Exit now. The supervisor kills children that are still running after
    /// [`STOP_DEADLINE`](crate::supervisor::STOP_DEADLINE).
    Stop,
}

// Children and supervisors of different versions exchange these bytes (`-k upgrade`): their meaning
// must not change.

/// Byte of [`Order::Graceful`].
const GRACEFUL: u8 = b'G';
/// Byte of [`Order::Leave`].
const LEAVE: u8 = b'L';
/// Byte of [`Order::Stop`].
const STOP: u8 = b'S';
/// Byte of an order that [`Control`] executes itself: the masks of the loops, or the allowed CPUs,
/// have changed.
const PLACES: u8 = b'P';
/// Byte of [`Control::report_ready`].
const READY: u8 = b'R';
/// Byte of [`Control::exhausted`].
const EXHAUSTED: u8 = b'X';
/// Byte of a [`Reserve`] that is too small.
const LOW: u8 = b'W';
/// Byte of [`Control::full`].
const FULL: u8 = b'F';
/// Byte of [`Control::nearly_full`].
const NEARLY_FULL: u8 = b'N';

impl Order {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Graceful => GRACEFUL,
            Self::Leave => LEAVE,
            Self::Stop => STOP,
        }
    }

    /// The order to send, and when, to a child for which another order may be pending. A stop is
    /// never revoked. A pending drain of sockets that only this child has keeps its time, even if a
    /// later order comes from a generation that shares all its sockets.
    pub(crate) fn after(self, waiting: Option<(Self, Instant)>, when: Instant) -> (Self, Instant) {
        match (waiting, self) {
            (Some((Self::Stop, at)), Self::Stop) => (Self::Stop, at.min(when)),
            (Some((Self::Stop, at)), _) => (Self::Stop, at),
            (Some((Self::Graceful, at)), Self::Graceful | Self::Leave) => {
                (Self::Graceful, at.max(when))
            }
            _ => (self, when),
        }
    }
}

/// The child's end of the line to the supervisor. Clones share the line.
#[derive(Clone)]
pub struct Control {
    stream: Arc<UnixStream>,
    /// Moves the process's threads.
    mask_applier: Option<Arc<MaskApplier>>,
}

impl Control {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream: Arc::new(stream), mask_applier: None }
    }

    /// Returns the line of a process whose threads `mask_applier` moves.
    pub(crate) fn with_mask_applier(self, mask_applier: MaskApplier) -> Self {
        Self { mask_applier: Some(Arc::new(mask_applier)), ..self }
    }

    /// Reports that every loop accepts, so that the supervisor may retire the old generation.
    pub fn report_ready(&self) {
        self.report(READY);
    }

    /// Reports that `MaxConnectionsPerChild` is reached: the supervisor starts a successor and
    /// sends [`Order::Graceful`] when that is ready. Keep accepting until then.
    pub fn exhausted(&self) {
        self.report(EXHAUSTED);
    }

    /// Reports that so many connections have a request that no more are accepted for now
    /// ([`Settings::admitted`]): the supervisor counts and logs it.
    pub fn full(&self) {
        self.report(FULL);
    }

    /// Reports that this limit is near ([`Settings::nearly_admitted`]): the supervisor logs it.
    pub fn nearly_full(&self) {
        self.report(NEARLY_FULL);
    }

    /// Reports that too few threads wait for a connection.
    pub(crate) fn low(&self) {
        self.report(LOW);
    }

    /// The next order, or `None` if there is none now. The end of the line (the supervisor died)
    /// counts as [`Order::Graceful`], and so does an error on it.
    ///
    /// Doesn't block. Wait for the descriptor ([`AsFd`]) to become readable, also after an order,
    /// since [`Order::Stop`] can follow [`Order::Graceful`]. After the end of the line it is always
    /// readable: see [`Control::is_orphan`].
    pub fn order(&self) -> Option<Order> {
        let mut byte = [0u8];
        match rustix::io::read(&self.stream, &mut byte) {
            Ok(0) => Some(Order::Graceful),
            Ok(_) if byte == [STOP] => Some(Order::Stop),
            Ok(_) if byte == [LEAVE] => Some(Order::Leave),
            Ok(_) if byte == [PLACES] => {
                if let Some(mask_applier) = &self.mask_applier {
                    mask_applier.apply();
                }
                None
            }
            Ok(_) => Some(Order::Graceful),
            Err(Errno::AGAIN | Errno::INTR) => None,
            Err(_) => Some(Order::Graceful),
        }
    }

    /// Blocks until an order arrives or `timeout` expires. For the main thread of a child whose
    /// loops have their own threads.
    pub fn wait_order(&self, timeout: Option<Duration>) -> Option<Order> {
        let timeout = timeout.and_then(|timeout| timeout.try_into().ok());
        let mut polled = [PollFd::new(&*self.stream, PollFlags::IN)];
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) | Err(_) => None,
            Ok(_) => self.order(),
        }
    }

    /// Whether the supervisor is gone.
    pub fn is_orphan(&self) -> bool {
        let mut byte = [0u8];
        let peeked = rustix::net::recv(
            &*self.stream,
            &mut byte[..],
            rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT,
        );
        !matches!(peeked, Ok((1.., _)) | Err(Errno::AGAIN | Errno::INTR))
    }

    fn report(&self, byte: u8) {
        // A supervisor that is gone needs no report, and a single byte always fits.
        let _ = rustix::net::send(
            &*self.stream,
            &[byte],
            rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT,
        );
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// A report from a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Ready,
    Exhausted,
    Low,
    Full,
    NearlyFull,
}

/// The supervisor's end of the line to one child.
#[derive(Debug)]
pub(crate) struct ControlLine {
    stream: UnixStream,
}

impl ControlLine {
    /// Creates a line: the supervisor's end and the child's.
    pub(crate) fn pair() -> io::Result<(Self, Control)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        Ok((Self { stream: ours }, Control::new(theirs)))
    }

    /// Notifies the child that the masks in its loops' slots, or the allowed CPUs, have changed.
    pub(crate) fn send_places(&self) {
        self.send_byte(PLACES);
    }

    /// Sends an order; does nothing if the child is gone.
    pub(crate) fn send(&self, order: Order) {
        self.send_byte(order.byte());
    }

    fn send_byte(&self, byte: u8) {
        let _ = rustix::net::send(
            &self.stream,
            &[byte],
            rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT,
        );
    }

    /// The reports that have arrived, and whether the child has closed its end.
    pub(crate) fn reports(&self) -> (Vec<Report>, bool) {
        let mut reports = Vec::new();
        let mut bytes = [0u8; 16];
        loop {
            match rustix::io::read(&self.stream, &mut bytes) {
                Ok(0) => return (reports, true),
                Ok(count) => reports.extend(bytes[..count].iter().filter_map(|byte| match *byte {
                    READY => Some(Report::Ready),
                    EXHAUSTED => Some(Report::Exhausted),
                    LOW => Some(Report::Low),
                    FULL => Some(Report::Full),
                    NEARLY_FULL => Some(Report::NearlyFull),
                    _ => None,
                })),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return (reports, false),
                Err(_) => return (reports, true),
            }
        }
    }
}

impl From<OwnedFd> for ControlLine {
    /// The line of a child that the previous executable forked.
    fn from(stream: OwnedFd) -> Self {
        Self { stream: stream.into() }
    }
}

impl AsFd for ControlLine {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_reports_cross_the_line() {
        let (line, control) = ControlLine::pair().unwrap();
        assert_eq!(control.order(), None);
        assert!(!control.is_orphan());
        line.send(Order::Graceful);
        line.send(Order::Leave);
        line.send(Order::Stop);
        assert!(!control.is_orphan());
        assert_eq!(control.wait_order(None), Some(Order::Graceful));
        assert_eq!(control.order(), Some(Order::Leave));
        assert_eq!(control.order(), Some(Order::Stop));
        control.report_ready();
        control.clone().exhausted();
        assert_eq!(line.reports(), (vec![Report::Ready, Report::Exhausted], false));
        drop(line);
        assert!(control.is_orphan());
        assert_eq!(control.order(), Some(Order::Graceful));
    }

    #[test]
    fn what_waits_is_not_weakened() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        assert_eq!(Order::Leave.after(None, now), (Order::Leave, now));
        // Two restarts, the first of which removed an address.
        let draining = Some((Order::Graceful, later));
        assert_eq!(Order::Leave.after(draining, now), (Order::Graceful, later));
        assert_eq!(Order::Graceful.after(draining, now), (Order::Graceful, later));
        assert_eq!(Order::Stop.after(draining, now), (Order::Stop, now));
        let stopping = Some((Order::Stop, later));
        assert_eq!(Order::Graceful.after(stopping, now), (Order::Stop, later));
        assert_eq!(Order::Stop.after(stopping, now), (Order::Stop, now));
        let leaving = Some((Order::Leave, now));
        assert_eq!(Order::Graceful.after(leaving, later), (Order::Graceful, later));
    }

    #[test]
    fn a_dead_child_is_seen() {
        let (line, control) = ControlLine::pair().unwrap();
        control.report_ready();
        drop(control);
        assert_eq!(line.reports(), (vec![Report::Ready], true));
        line.send(Order::Stop);
    }
}
