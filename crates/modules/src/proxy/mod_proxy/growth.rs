//! Members that balancer-manager adds to a balancer after start (`growth`, BalancerGrowth).

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::scheme::SchemeProvider;
use super::shared::NAME_BYTES;
use super::status::Status;
use super::target::{Target, without_socket};
use super::workers::{Balancer, Kind, Worker, best};

/// What workers that are added get from the configuration.
pub struct Ground {
    /// The schemes that loaded modules handle, by their names.
    pub schemes: Vec<(&'static str, SchemeProvider)>,
    /// The base of relative names of UNIX sockets.
    pub run_dir: PathBuf,
}

/// A place for a member.
pub struct Spare {
    /// Its state is the member's; the rest is what the configuration says of any.
    pub blank: Arc<Worker>,
    ground: Arc<Ground>,
    /// The member, once this process has seen it.
    worker: OnceLock<Arc<Worker>>,
}

/// Why a member was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdded {
    /// No place is left, or there is such a member.
    NoPlace,
    /// The URL is no worker's.
    Invalid,
}

impl Spare {
    /// An empty place.
    pub fn new(blank: Arc<Worker>, ground: Arc<Ground>) -> Spare {
        Spare { blank, ground, worker: OnceLock::new() }
    }

    /// The member in this place.
    fn worker(&self) -> &Arc<Worker> {
        self.worker.get_or_init(|| {
            let url = self.blank.state.name();
            // It was parsed before it was put there.
            Target::parse(&url).map_or_else(|_| self.blank.clone(), |target| self.made(target))
        })
    }

    fn made(&self, mut target: Target) -> Arc<Worker> {
        use std::os::unix::ffi::OsStrExt;
        let name = target.name();
        if let Some(socket) = &mut target.socket {
            let path = self.ground.run_dir.join(std::ffi::OsStr::from_bytes(socket));
            *socket = path.as_os_str().as_bytes().to_vec();
        }
        let is_it = |(name, _): &&(&str, SchemeProvider)| name.as_bytes() == target.scheme;
        let scheme = self.ground.schemes.iter().find(is_it).map(|(_, scheme)| *scheme);
        Arc::new(Worker {
            name,
            target,
            scheme,
            parameters: self.blank.parameters.clone(),
            is_pattern: false,
            is_generic: false,
            is_member: true,
            number: self.blank.number,
            state: self.blank.state.clone(),
        })
    }
}

impl Balancer {
    /// Its workers, in their order: those of the configuration, and those that were added.
    pub fn members(&self) -> impl Iterator<Item = &Arc<Worker>> {
        let added = if self.spares.is_empty() { 0 } else { self.state.added() };
        self.configured.iter().chain(self.spares.iter().take(added).map(Spare::worker))
    }

    /// The most members, and how many there are.
    pub fn places(&self) -> (usize, usize) {
        let used = self.configured.len() + self.state.added().min(self.spares.len());
        (self.configured.len() + self.spares.len(), used)
    }

    /// The member of a URL.
    pub fn member_of(&self, url: &[u8]) -> Option<&Arc<Worker>> {
        let names = self.members().map(|member| (member.name.as_slice(), false));
        self.members().nth(best(names, &without_socket(url)?, Kind::Any)?)
    }

    /// Adds a member, which is disabled.
    ///
    /// # Errors
    /// Why it can't be one.
    pub fn add_member(&self, url: &[u8]) -> Result<(), NotAdded> {
        if self.member_of(url).is_some() {
            return Err(NotAdded::NoPlace);
        }
        let _held = self.state.lock();
        let added = self.state.added();
        let spare = self.spares.get(added).ok_or(NotAdded::NoPlace)?;
        if url.len() > NAME_BYTES || Target::parse(url).is_err() {
            return Err(NotAdded::Invalid);
        }
        spare.blank.state.set_name(url);
        spare.blank.state.set(Status::DISABLED);
        self.state.set_added(added + 1);
        Ok(())
    }
}
