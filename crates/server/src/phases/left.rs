//! What a subrequest changes in the requests around it, once it has been looked up.

use crate::request::Request;

/// A change of a request.
pub type Change = Box<dyn FnOnce(&mut Request)>;

/// The changes that a subrequest leaves.
#[derive(Default)]
pub(super) struct Left {
    of_main: Vec<Change>,
    of_parent: Vec<Change>,
}

/// Makes the changes that `sub` leaves in `request`, which made it, and passes on those of the main
/// request.
pub(super) fn hand_over(sub: &mut Request, request: &mut Request) {
    if let Some(left) = sub.kept_mut::<Left>() {
        let Left { of_main, of_parent } = std::mem::take(left);
        of_parent.into_iter().for_each(|change| change(request));
        of_main.into_iter().for_each(|change| request.change_main(change));
    }
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

    /// Changes the request that made this subrequest, when this has been looked up.
    pub fn change_parent(&mut self, change: Change) {
        self.leave(|left| left.of_parent.push(change));
    }

    fn leave(&mut self, change: impl FnOnce(&mut Left)) {
        if self.kept::<Left>().is_none() {
            self.keep(Left::default());
        }
        if let Some(left) = self.kept_mut::<Left>() {
            change(left);
        }
    }
}
