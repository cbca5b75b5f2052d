//! How a member of a balancer is chosen: the interface between mod_proxy_balancer and the modules
//! of its methods.
//!
//! Source: `ap_proxy_balancer_get_best_worker`.

use std::fmt;
use std::sync::Arc;

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;

use super::status::Status;
use super::workers::{Balancer, Worker};
use super::{log_of_server, retry};

/// The group of the providers that are methods, by their names: `byrequests`.
pub const GROUP: &str = "proxylbmethod";

/// A provider of [`GROUP`].
pub type MethodProvider = &'static dyn Method;

/// A method.
pub trait Method: Send + Sync {
    /// Chooses a member. Called under the balancer's lock.
    fn choose<'c>(&self, choice: &Choice<'c>) -> Option<&'c Arc<Worker>>;
}

/// What a method chooses from.
pub struct Choice<'c> {
    /// The request.
    pub request: &'c Request,
    /// The balancer.
    pub balancer: &'c Balancer,
    /// The method's name.
    pub method: &'static str,
    /// The time, µs since 1970.
    pub now_us: u64,
}

impl<'c> Choice<'c> {
    /// The best of the members that may be asked: those of the lowest set that has any. Spares take
    /// the places of unusable ones, standbys are used if there is no other. `is_better` is called
    /// for each candidate with the best one so far.
    pub fn best(
        &self,
        mut is_better: impl FnMut(&Worker, Option<&Worker>) -> bool,
    ) -> Option<&'c Arc<Worker>> {
        let last = self.balancer.members().map(|member| member.state.lbset()).max()?;
        (0..=last).find_map(|set| self.best_of_set(set, &mut is_better))
    }

    fn best_of_set(
        &self,
        set: u8,
        is_better: &mut impl FnMut(&Worker, Option<&Worker>) -> bool,
    ) -> Option<&'c Arc<Worker>> {
        let members = || self.balancer.members().filter(|member| member.state.lbset() == set);
        let mut best: Option<&'c Arc<Worker>> = None;
        let mut consider = |member: &'c Arc<Worker>, best: &mut Option<&'c Arc<Worker>>| {
            if is_better(member, best.map(|best| &**best)) {
                *best = Some(member);
            }
        };
        let mut unusable = 0;
        for member in members() {
            let status = member.state.status();
            let is_reserve = status.has(Status::HOT_SPARE) || status.has(Status::HOT_STANDBY);
            if status.has(Status::DRAIN) {
                unusable += usize::from(!is_reserve);
            } else if !self.is_usable(member) {
                unusable += 1;
            } else if !is_reserve {
                consider(member, &mut best);
            }
        }
        let reserve = |kind| {
            members().filter(move |member| {
                let status = member.state.status();
                status.is_usable() && !status.has(Status::DRAIN) && status.has(kind)
            })
        };
        for member in reserve(Status::HOT_SPARE).take(unusable) {
            consider(member, &mut best);
        }
        if best.is_none() {
            let is_spare = |member: &&Arc<Worker>| member.state.status().has(Status::HOT_SPARE);
            for member in reserve(Status::HOT_STANDBY).filter(|member| !is_spare(member)) {
                consider(member, &mut best);
            }
        }
        best
    }

    /// Whether requests may go to the member. One that has failed may be tried again.
    pub fn is_usable(&self, member: &Worker) -> bool {
        member.state.status().is_usable()
            || retry::is_usable(
                member,
                self.now_us,
                Verbatim::new("BALANCER"),
                |level, number, text| {
                    log_of_server(self.request, level, number, None, text);
                },
            )
    }

    /// Logs what a method does.
    pub fn log(&self, number: u32, text: fmt::Arguments<'_>) {
        log_of_server(self.request, Level::Debug, number, None, text);
    }
}
