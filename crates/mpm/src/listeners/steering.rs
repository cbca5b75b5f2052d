//! The program by which the kernel chooses one of an address's sockets for a new connection:
//! classic BPF, either at random by weight or by the receiving CPU. It has no state, so the
//! supervisor replaces it to change the weights.

use std::io;
use std::net::TcpListener;

use nix::sys::socket::{setsockopt, sockopt};

use super::open::set_integer;

/// The most sockets that a program can choose from: it has two instructions per socket, and the
/// kernel accepts 4096 (`BPF_MAXINSNS`).
const CHOICES_MAX: usize = 2000;

/// Makes the kernel choose socket `i` of the group of `socket` with the probability of
/// `weights[i]`. Without weights it chooses evenly, by the connection's addresses.
///
/// Errors: the kernel does not support such programs (before 4.6), or forbids them.
pub(super) fn steer(socket: &TcpListener, weights: &[u32]) -> io::Result<()> {
    if weights.is_empty() {
        return detach(socket);
    }
    attach(socket, program(weights))
}

/// Makes the kernel choose socket `i` of the group of `socket` for connections that CPU `cpus[i]`
/// has received; for other CPUs it chooses by the connection's addresses.
///
/// Errors: as [`steer`].
pub(super) fn steer_by_cpu(socket: &TcpListener, cpus: &[usize]) -> io::Result<()> {
    attach(socket, program_by_cpu(cpus))
}

fn attach(socket: &TcpListener, mut program: Vec<libc::sock_filter>) -> io::Result<()> {
    let filter =
        libc::sock_fprog { len: program.len() as libc::c_ushort, filter: program.as_mut_ptr() };
    // The kernel validates and copies the program.
    Ok(setsockopt(socket, sockopt::AttachReusePortCbpf, &filter)?)
}

fn detach(socket: &TcpListener) -> io::Result<()> {
    match set_integer(socket, libc::SOL_SOCKET, libc::SO_DETACH_REUSEPORT_BPF, 0) {
        // There was no program.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        other => other,
    }
}

/// Draws a random number below the sum of the weights, and chooses the first socket at which the
/// running sum exceeds it.
fn program(weights: &[u32]) -> Vec<libc::sock_filter> {
    let weights = weights.get(..weights.len().min(CHOICES_MAX)).unwrap_or_default();
    let sum: u32 = weights.iter().fold(0, |sum, weight| sum.saturating_add(*weight));
    let random = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32;
    let mut program = vec![
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, random, 0, 0),
        instruction(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, sum.max(1), 0, 0),
    ];
    let mut until = 0u32;
    for (index, weight) in (0u32..).zip(weights) {
        until = until.saturating_add(*weight);
        program.push(instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, until, 1, 0));
        program.push(instruction(libc::BPF_RET | libc::BPF_K, index, 0, 0));
    }
    // An index without a socket: the kernel chooses.
    program.push(instruction(libc::BPF_RET | libc::BPF_K, u32::MAX, 0, 0));
    program
}

/// Chooses the first socket whose CPU runs the program.
fn program_by_cpu(cpus: &[usize]) -> Vec<libc::sock_filter> {
    let cpu = (libc::SKF_AD_OFF + libc::SKF_AD_CPU) as u32;
    let mut program = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, cpu, 0, 0)];
    for (index, cpu) in (0u32..).zip(cpus).take(CHOICES_MAX) {
        let cpu = u32::try_from(*cpu).unwrap_or(u32::MAX);
        program.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, cpu, 0, 1));
        program.push(instruction(libc::BPF_RET | libc::BPF_K, index, 0, 0));
    }
    program.push(instruction(libc::BPF_RET | libc::BPF_K, u32::MAX, 0, 0));
    program
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::super::open;
    use super::super::tests::settings;
    use super::*;
    use crate::settings::{AcceptFilter, ListenAddress};

    /// How many of `count` connections each socket gets.
    fn spread(sockets: &[TcpListener], count: usize) -> Vec<usize> {
        let address = sockets[0].local_addr().unwrap();
        let clients: Vec<TcpStream> =
            (0..count).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut taken = vec![0; sockets.len()];
        while taken.iter().sum::<usize>() < count {
            for (taken, socket) in taken.iter_mut().zip(sockets) {
                *taken += usize::from(socket.accept().is_ok());
            }
        }
        drop(clients);
        taken
    }

    #[test]
    fn connections_follow_the_weights() {
        let settings = settings(3, &[ListenAddress::Socket(([127, 0, 0, 1], 0).into())]);
        let mut listener = settings.listeners[0].clone();
        listener.accept_filter = AcceptFilter::None;
        let first = open::first(&listener, false).unwrap();
        let mut sockets = vec![first];
        for _ in 1..3 {
            sockets.push(open::another(&sockets[0], &listener).unwrap());
        }
        steer(&sockets[0], &[0, 5, 0]).unwrap();
        assert_eq!(spread(&sockets, 40), [0, 40, 0]);
        steer(&sockets[0], &[1, 0, 9]).unwrap();
        let taken = spread(&sockets, 100);
        assert!(taken[1] == 0 && taken[2] > taken[0], "{taken:?}");
        // Evenly again; repeating it is no error.
        steer(&sockets[0], &[]).unwrap();
        steer(&sockets[0], &[]).unwrap();
        let taken = spread(&sockets, 100);
        assert!(taken.iter().all(|taken| *taken > 5), "{taken:?}");
    }

    #[test]
    fn connections_follow_their_cpu() {
        let allowed: Vec<usize> = crate::affinity::mask::current().unwrap().iter().collect();
        let settings = settings(2, &[ListenAddress::Socket(([127, 0, 0, 1], 0).into())]);
        let mut listener = settings.listeners[0].clone();
        listener.accept_filter = AcceptFilter::None;
        let first = open::first(&listener, false).unwrap();
        let second = open::another(&first, &listener).unwrap();
        let sockets = [first, second];
        // On the loopback the receiving CPU is the sender's: assign all allowed CPUs to the second
        // socket.
        let none = 1 + allowed.iter().max().unwrap();
        for cpu in &allowed {
            steer_by_cpu(&sockets[0], &[none, *cpu]).unwrap();
            let spread = std::thread::scope(|scope| {
                let pinned = scope.spawn(|| {
                    crate::affinity::mask::pin(&[*cpu].into_iter().collect()).unwrap();
                    spread(&sockets, 20)
                });
                pinned.join().unwrap()
            });
            assert_eq!(spread, [0, 20]);
        }
        // For CPUs without a loop the kernel chooses as it does without a program.
        steer_by_cpu(&sockets[0], &[none, none + 1]).unwrap();
        assert_eq!(spread(&sockets, 20).iter().sum::<usize>(), 20);
    }

    #[test]
    fn programs_end_in_a_choice() {
        for weights in [&[1][..], &[0, 0, 7], &[u32::MAX, u32::MAX]] {
            let program = program(weights);
            assert_eq!(program.len(), 3 + 2 * weights.len());
            assert!(program[1].k > 0, "no division by zero");
        }
        assert!(program(&vec![1; 5000]).len() <= 4096);
    }
}
