//! What BalancerPersist keeps of a member's state.

use std::sync::atomic::Ordering::Relaxed;

use super::{At, NUMBERS, State};
use crate::proxy::mod_proxy::shared::saved::SavedMember;

/// The numbers that are not kept: requests in progress, and the balance of the method.
const FORGOTTEN: [usize; 2] = [At::Busy as usize, At::LbStatus as usize];

impl State {
    /// What is kept of the member.
    pub(in super::super) fn save(&self, name: &[u8], is_added: bool) -> SavedMember {
        let numbers = self.words.all().iter().take(NUMBERS);
        SavedMember {
            name: name.to_vec(),
            is_added,
            numbers: numbers.map(|word| word.load(Relaxed)).collect(),
            texts: vec![self.route(), self.redirect(), self.check_uri(), self.check_condition()],
        }
    }

    /// Sets it, and so that it counts instead of the configuration.
    pub(in super::super) fn restore(&self, saved: &SavedMember) {
        if saved.numbers.len() != NUMBERS {
            return;
        }
        for (place, number) in saved.numbers.iter().enumerate() {
            if let Some(word) = self.words.all().get(place).filter(|_| !FORGOTTEN.contains(&place))
            {
                word.store(*number, Relaxed);
            }
        }
        let [route, redirect, uri, condition] = saved.texts.as_slice() else { return };
        self.set_route(route);
        self.set_redirect(redirect);
        self.set_check_uri(uri);
        self.set_check_condition(condition);
    }
}
