//! Listening sockets. The supervisor owns all of them, across generations and deaths of children:
//! closing one resets every connection that is queued on it.
//!
//! In shapes whose loops have listeners of their own, an address has one socket per loop in an
//! SO_REUSEPORT group, and the kernel spreads connections over them. The first socket is
//! bound before it joins the group, so that a port in use is an error and not a silent share.
//! Elsewhere it has one, or some (`ListenCoresBucketsRatio`), from all of which every process
//! accepts. A socket once opened for an address stays until the address is removed: when fewer
//! loops are planned, the sockets that are left over are handed to the loops that there are.

mod handed;
mod holder;
mod open;
mod steering;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use crate::child::ListeningSocket;
use crate::settings::{ListenAddress, Listener, Settings};

pub(crate) use handed::HandedGroup;
pub use open::BindFailure;

/// No address has more sockets than this.
pub const SOCKETS_PER_ADDRESS_MAX: usize = 4096;

/// The sockets of one address.
#[derive(Debug)]
struct Group {
    address: ListenAddress,
    sockets: Vec<TcpListener>,
    /// Can't grow: one socket, handed over by systemd, from which every loop accepts.
    is_inherited: bool,
    /// How many of the sockets the serving generation accepts from, the first ones; 0 when the
    /// address is new.
    served: usize,
}

/// All listening sockets.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    groups: Vec<Group>,
    /// Sockets handed over by systemd (LISTEN_FDS) that no `Listen` line has asked for yet.
    inherited: Vec<TcpListener>,
    /// Removed addresses: new connections are no longer taken, what is queued is.
    retired: Vec<Group>,
    /// How new connections are spread over the loops.
    weights: Vec<u32>,
    /// The CPU of each loop, and the addresses whose connections go to the loop of the CPU that
    /// receives them, as long as there are no weights.
    receivers: (Vec<usize>, Vec<ListenAddress>),
}

impl Listeners {
    /// No sockets yet but those that systemd handed over.
    pub(crate) fn new() -> Self {
        Self { inherited: open::inherited(), ..Self::default() }
    }

    /// Opens whatever `settings` asks for and isn't open. On failure what was open before is as it
    /// was. What `settings` doesn't ask for stays open until [`Listeners::retire`].
    pub(crate) fn prepare(&mut self, settings: &Settings) -> Result<(), Vec<BindFailure>> {
        let wanted = wanted(settings);
        let mut failures = Vec::new();
        let mut opened: Vec<Group> = Vec::new();
        let mut seen: Vec<ListenAddress> = Vec::new();
        for listener in &wanted {
            let is_open = self.groups.iter().any(|group| group.address == listener.address);
            if is_open && !seen.contains(&listener.address) {
                seen.push(listener.address);
                continue;
            }
            match self.open_group(listener, settings) {
                Ok(group) => opened.push(group),
                Err(failure) => failures.push(failure),
            }
        }
        if !failures.is_empty() {
            self.inherited.extend(
                opened.into_iter().filter(|group| group.is_inherited).flat_map(|g| g.sockets),
            );
            return Err(failures);
        }
        self.groups.extend(opened);
        for listener in &wanted {
            self.fit(listener, settings).map_err(|failure| vec![failure])?;
        }
        Ok(())
    }

    /// Has the kernel choose loop `i` for a new connection with the probability of `weights[i]`;
    /// without weights all alike, or by the CPU that received it. For shapes whose loops have
    /// listeners of their own.
    pub(crate) fn steer(&mut self, weights: Vec<u32>) -> std::io::Result<()> {
        self.weights = weights;
        let (cpus, addresses) = &self.receivers;
        let groups = self.groups.iter().filter(|group| !group.is_inherited);
        let mut firsts = groups.filter_map(|group| Some((group.address, group.sockets.first()?)));
        firsts.try_for_each(|(address, first)| {
            if self.weights.is_empty() && addresses.contains(&address) {
                return steering::steer_by_cpu(first, cpus);
            }
            steering::steer(first, &self.weights)
        })
    }

    /// `cpus[i]` is loop `i`'s from now on, nobody's where there are none. What comes in at
    /// addresses of which `is_spread` says so goes to the loop of the CPU that receives it while
    /// there are no weights. Returns them.
    pub(crate) fn receive_by_cpu(
        &mut self,
        cpus: Vec<usize>,
        is_spread: impl Fn(ListenAddress) -> bool,
    ) -> std::io::Result<&[ListenAddress]> {
        let addresses = self.groups.iter().map(|group| group.address);
        let addresses = addresses.filter(|address| !cpus.is_empty() && is_spread(*address));
        let addresses = addresses.collect();
        self.receivers = (cpus, addresses);
        let weights = std::mem::take(&mut self.weights);
        self.steer(weights)?;
        Ok(&self.receivers.1)
    }

    /// The generation that was prepared for serves: its children accept from all sockets.
    pub(crate) fn commit(&mut self) {
        for group in &mut self.groups {
            group.served = group.sockets.len();
        }
    }

    /// The generation that was prepared for came to nothing: closes what was opened for it, since
    /// nobody would accept from it.
    pub(crate) fn roll_back(&mut self) {
        self.groups.retain(|group| group.served > 0 || group.is_inherited);
        for group in &mut self.groups {
            group.sockets.truncate(group.served.max(1));
        }
    }

    /// Stops new connections on the addresses that `settings` no longer has; what is queued there
    /// can still be accepted until [`Listeners::close_retired`]. Returns whether there are any.
    pub(crate) fn retire(&mut self, settings: &Settings) -> bool {
        let wanted = wanted(settings);
        let is_wanted =
            |group: &Group| wanted.iter().any(|listener| listener.address == group.address);
        let (kept, removed) = std::mem::take(&mut self.groups).into_iter().partition(is_wanted);
        self.groups = kept;
        let is_any = !Vec::is_empty(&removed);
        self.refuse(removed);
        is_any
    }

    /// As [`Listeners::retire`], for all addresses.
    pub(crate) fn retire_all(&mut self) {
        let groups = std::mem::take(&mut self.groups);
        self.refuse(groups);
    }

    fn refuse(&mut self, groups: Vec<Group>) {
        // What systemd has handed over it listens on, for whoever comes next.
        let own = groups.iter().filter(|group| !group.is_inherited);
        for socket in own.flat_map(|group| &group.sockets) {
            // Where it fails, a connection that comes in the last moment is reset, as in httpd.
            let _ = open::refuse_new_connections(socket);
        }
        self.retired.extend(groups);
    }

    /// Closes the supervisor's handles on retired sockets. They are gone when the children have
    /// closed theirs.
    pub(crate) fn close_retired(&mut self) {
        self.retired.clear();
    }

    /// How many connections wait to be accepted, on all sockets together.
    pub(crate) fn queued(&self) -> usize {
        let sockets = self.groups.iter().flat_map(|group| &group.sockets);
        sockets.map(open::queued).sum()
    }

    /// The sockets of loop `number`, which is in the process at `slot`: the child's copies. For the
    /// process that will use them, after the fork.
    pub(crate) fn seats(
        &self,
        settings: &Settings,
        slot: usize,
        number: usize,
    ) -> std::io::Result<Vec<ListeningSocket>> {
        let has_own = settings.shape.has_own_listeners();
        let loops = settings.shape.total_loops().max(1);
        let mut sockets = Vec::new();
        for (index, listener) in settings.listeners.iter().enumerate() {
            let Some(group) = self.groups.iter().find(|group| group.address == listener.address)
            else {
                continue;
            };
            // Processes take from all, so that no socket is left to one that is busy or has been
            // ended; each from another first.
            let first = if has_own { 0 } else { slot % group.sockets.len().max(1) };
            let (before, from) = group.sockets.split_at(first);
            for (position, socket) in from.iter().chain(before).enumerate() {
                let is_others = has_own && position % loops != number % loops;
                if is_others && !group.is_inherited {
                    continue;
                }
                sockets.push(ListeningSocket {
                    socket: socket.try_clone()?,
                    listener: index,
                    address: listener.address,
                    protocol: Arc::clone(&listener.protocol),
                });
            }
        }
        Ok(sockets)
    }

    fn open_group(
        &mut self,
        listener: &Listener,
        settings: &Settings,
    ) -> Result<Group, BindFailure> {
        let address = listener.address;
        let position = self.inherited.iter().position(|socket| open::is_at(socket, address));
        if let Some(position) = position {
            let sockets = vec![self.inherited.swap_remove(position)];
            return Ok(Group { address, sockets, is_inherited: true, served: 0 });
        }
        // A socket of ours that is to go may be in the way (`Listen 80` becomes
        // `Listen 192.0.2.1:80`): then the new one joins by SO_REUSEPORT, since old children
        // hold the old one until they have finished.
        let wanted = wanted(settings);
        let is_in_way = self.groups.iter().chain(&self.retired).any(|group| {
            group.address.port() == address.port()
                && (group.address == address
                    || !wanted.iter().any(|listener| listener.address == group.address))
        });
        let is_duplicate =
            wanted.iter().filter(|listener| listener.address == address).nth(1).is_some();
        let first = open::first(listener, is_in_way && !is_duplicate)?;
        Ok(Group { address, sockets: vec![first], is_inherited: false, served: 0 })
    }

    /// Gives a group as many sockets as there are loops, and all of them the listener's options.
    fn fit(&mut self, listener: &Listener, settings: &Settings) -> Result<(), BindFailure> {
        let Some(group) = self.groups.iter_mut().find(|group| group.address == listener.address)
        else {
            return Ok(());
        };
        let wanted = match settings.shape.has_own_listeners() && !group.is_inherited {
            true => settings.shape.total_loops().min(SOCKETS_PER_ADDRESS_MAX),
            false if group.is_inherited => 1,
            false => settings.listener_buckets.clamp(1, SOCKETS_PER_ADDRESS_MAX),
        };
        while group.sockets.len() < wanted {
            let Some(first) = group.sockets.first() else { break };
            let another = open::another(first, listener)?;
            group.sockets.push(another);
        }
        for socket in &group.sockets {
            open::set_options(socket, listener);
        }
        Ok(())
    }
}

/// The lines that get a socket. As in httpd, `0.0.0.0` beside `::` on one port is left out,
/// because the socket at `::` takes IPv4 too.
fn wanted(settings: &Settings) -> Vec<Listener> {
    let takes_all = |port: u16| {
        settings.listeners.iter().any(|listener| match listener.address {
            ListenAddress::Any { port: other } => other == port,
            ListenAddress::Socket(SocketAddr::V6(address)) => {
                address.ip().is_unspecified() && address.port() == port
            }
            ListenAddress::Socket(SocketAddr::V4(_)) => false,
        })
    };
    let is_covered = |address: ListenAddress| match address {
        ListenAddress::Socket(address) => {
            address.ip() == IpAddr::V4(Ipv4Addr::UNSPECIFIED) && takes_all(address.port())
        }
        ListenAddress::Any { .. } => false,
    };
    settings
        .listeners
        .iter()
        .filter(|listener| !is_covered(listener.address) || listener.address.port() == 0)
        .cloned()
        .collect()
}

#[cfg(test)]
pub(crate) mod tests;
