//! Listening sockets. The supervisor owns all of them, across generations and deaths of children:
//! closing one resets every connection queued on it.
//!
//! In shapes whose loops have their own listeners, an address has one socket per loop in an
//! SO_REUSEPORT group, over which the kernel distributes connections. The first socket is bound
//! before it joins the group, so that a port in use is an error instead of being shared silently.
//! In other shapes an address has one socket, or a few (`ListenCoresBucketsRatio`), and every
//! process accepts from all of them. A socket stays open until its address is removed: if fewer
//! loops are planned, the surplus sockets are handed to the remaining loops.

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

/// Sockets per address at most.
pub const SOCKETS_PER_ADDRESS_MAX: usize = 4096;

/// The sockets of one address.
#[derive(Debug)]
struct Group {
    address: ListenAddress,
    sockets: Vec<TcpListener>,
    /// A single socket from systemd, from which every loop accepts: the group can't grow.
    is_inherited: bool,
    /// How many of the sockets, from the first, the serving generation accepts from; 0 for a new
    /// address.
    served: usize,
}

/// All listening sockets.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    groups: Vec<Group>,
    /// Sockets from systemd (LISTEN_FDS) that no `Listen` line has requested yet.
    inherited: Vec<TcpListener>,
    /// Removed addresses: they refuse new connections, and the queued ones are accepted.
    retired: Vec<Group>,
    /// The weights by which new connections are distributed over the loops.
    weights: Vec<u32>,
    /// The CPU of each loop, and the addresses whose connections go to the loop of the receiving
    /// CPU while there are no weights.
    receivers: (Vec<usize>, Vec<ListenAddress>),
}

impl Listeners {
    /// No sockets except those from systemd.
    pub(crate) fn new() -> Self {
        Self { inherited: open::inherited(), ..Self::default() }
    }

    /// Opens all sockets that `settings` requires and that are not open. On failure the open
    /// sockets are as before. Sockets that `settings` doesn't require stay open until
    /// [`Listeners::retire`].
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

    /// Makes the kernel choose loop `i` for a new connection with the probability of `weights[i]`;
    /// without weights evenly, or by the receiving CPU. For shapes whose loops have their own
    /// listeners.
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

    /// Assigns `cpus[i]` to loop `i`; an empty list assigns none. While there are no weights,
    /// connections to the addresses for which `is_spread` holds go to the loop of the receiving
    /// CPU. Returns these addresses.
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

    /// The prepared generation serves: its children accept from all sockets.
    pub(crate) fn commit(&mut self) {
        for group in &mut self.groups {
            group.served = group.sockets.len();
        }
    }

    /// The prepared generation failed: closes the sockets opened for it, since nothing would accept
    /// from them.
    pub(crate) fn roll_back(&mut self) {
        self.groups.retain(|group| group.served > 0 || group.is_inherited);
        for group in &mut self.groups {
            group.sockets.truncate(group.served.max(1));
        }
    }

    /// Refuses new connections on the addresses that `settings` no longer has; queued ones can be
    /// accepted until [`Listeners::close_retired`]. Returns whether there are any.
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
        // systemd keeps listening on its sockets, for the next service instance.
        let own = groups.iter().filter(|group| !group.is_inherited);
        for socket in own.flat_map(|group| &group.sockets) {
            // If this fails, connections that arrive last are reset, as in httpd.
            let _ = open::refuse_new_connections(socket);
        }
        self.retired.extend(groups);
    }

    /// Closes the supervisor's handles to retired sockets. The sockets are gone when the children
    /// have closed theirs.
    pub(crate) fn close_retired(&mut self) {
        self.retired.clear();
    }

    /// The number of connections that wait to be accepted, on all sockets.
    pub(crate) fn queued(&self) -> usize {
        let sockets = self.groups.iter().flat_map(|group| &group.sockets);
        sockets.map(open::queued).sum()
    }

    /// Duplicates of the sockets of loop `number`, of the process at `slot`. Called after the fork,
    /// in the process that will use them.
    pub(crate) fn sockets_of(
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
            // Processes accept from all sockets, so that no socket depends on one that is busy or
            // has ended; each starts with a different one.
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
        // A socket of ours that is about to be removed may be in the way (`Listen 80` becomes
        // `Listen 192.0.2.1:80`). The new one then joins by SO_REUSEPORT, since old children hold
        // the old one until they have finished.
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

    /// Gives a group one socket per loop, and all of them the listener's options.
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

/// The lines that get a socket. As in httpd, `0.0.0.0` beside `::` on the same port is left out,
/// because the socket at `::` also accepts IPv4.
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
