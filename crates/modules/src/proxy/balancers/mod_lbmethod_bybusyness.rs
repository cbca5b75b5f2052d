//! mod_lbmethod_bybusyness: the member with the fewest requests in progress is chosen.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_lbmethod_bybusyness.html>

use std::sync::Arc;

use server::hooks::Hooks;
use server::module::Module;

use super::super::mod_proxy::lbmethod::{Choice, GROUP, Method, MethodProvider};
use super::super::mod_proxy::workers::Worker;

/// `mod_lbmethod_bybusyness.c`
pub struct Bybusyness;

impl Module for Bybusyness {
    const NAME: &'static str = "lbmethod_bybusyness_module";
    const FILE: &'static str = "mod_lbmethod_bybusyness.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(|build| super::need_proxy::<Self>(build, 10151));
        hooks.provider::<MethodProvider>(GROUP, "bybusyness", &Bybusyness);
    }
}

impl Method for Bybusyness {
    fn choose<'c>(&self, choice: &Choice<'c>) -> Option<&'c Arc<Worker>> {
        super::by_balance(choice, |member, best| {
            let (own, other) = (member.state.busy(), best.state.busy());
            own < other || own == other && member.state.lbstatus() > best.state.lbstatus()
        })
    }
}
