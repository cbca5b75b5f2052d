//! Listening sockets on their way to the next executable (`-k upgrade`).

use std::net::TcpListener;
use std::os::fd::OwnedFd;

use super::{Group, Listeners};
use crate::settings::ListenAddress;

/// The sockets of one address.
#[derive(Debug)]
pub(crate) struct HandedGroup<S> {
    pub address: ListenAddress,
    /// It came from systemd.
    pub is_inherited: bool,
    pub sockets: Vec<S>,
}

impl Listeners {
    /// Takes over the predecessor's sockets. Its children serve all of them.
    pub(crate) fn adopt(groups: Vec<HandedGroup<OwnedFd>>, spare: Vec<OwnedFd>) -> Self {
        let group = |group: HandedGroup<OwnedFd>| Group {
            address: group.address,
            served: group.sockets.len(),
            sockets: group.sockets.into_iter().map(TcpListener::from).collect(),
            is_inherited: group.is_inherited,
        };
        Self {
            groups: groups.into_iter().map(group).collect(),
            inherited: spare.into_iter().map(TcpListener::from).collect(),
            ..Self::default()
        }
    }

    /// The sockets to hand over: the groups, and the unused ones from systemd.
    pub(crate) fn to_hand_on(&self) -> (Vec<HandedGroup<&TcpListener>>, &[TcpListener]) {
        let groups = self.groups.iter().map(|group| HandedGroup {
            address: group.address,
            is_inherited: group.is_inherited,
            sockets: group.sockets.iter().collect(),
        });
        (groups.collect(), &self.inherited)
    }
}
