//! What a subrequest changes in the requests that it belongs to.

use crate::request::Request;

/// What a subrequest changes in its main request, and in the one that made it, once it has been
/// looked up.
#[derive(Default)]
pub(super) struct LeftToMain {
    of_main: Vec<Change>,
    of_parent: Vec<Change>,
}

/// A change of a request.
pub type Change = Box<dyn FnOnce(&mut Request)>;

/// Makes the changes that a subrequest of `request` has left.
pub(super) fn carry_out(sub: &mut Request, request: &mut Request) {
    let Some(left) = sub.kept_mut::<LeftToMain>() else { return };
    let LeftToMain { of_main, of_parent } = std::mem::take(left);
    of_parent.into_iter().for_each(|change| change(request));
    of_main.into_iter().for_each(|change| request.change_main(change));
}

impl Request {
    /// Changes the main request: at once if this is it, otherwise when the subrequest has been
    /// looked up.
    pub fn change_main(&mut self, change: Change) {
        if self.main.is_none() {
            return change(self);
        }
        self.leave(|left| left.of_main.push(change));
    }

    /// Changes the request that made this subrequest: at once if this is none, otherwise when the
    /// subrequest has been looked up.
    pub fn change_parent(&mut self, change: Change) {
        if self.main.is_none() {
            return change(self);
        }
        self.leave(|left| left.of_parent.push(change));
    }

    fn leave(&mut self, change: impl FnOnce(&mut LeftToMain)) {
        if self.kept::<LeftToMain>().is_none() {
            self.keep(LeftToMain::default());
        }
        if let Some(left) = self.kept_mut::<LeftToMain>() {
            change(left);
        }
    }
}
