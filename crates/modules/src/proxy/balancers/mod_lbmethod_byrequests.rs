//! mod_lbmethod_byrequests: members get numbers of requests in proportion to their factors.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_lbmethod_byrequests.html>

use std::sync::Arc;

use server::hooks::Hooks;
use server::module::Module;

use super::super::mod_proxy::lbmethod::{Choice, GROUP, Method, MethodProvider};
use super::super::mod_proxy::workers::Worker;

/// `mod_lbmethod_byrequests.c`
pub struct Byrequests;

impl Module for Byrequests {
    const NAME: &'static str = "lbmethod_byrequests_module";
    const FILE: &'static str = "mod_lbmethod_byrequests.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(|build| super::need_proxy::<Self>(build, 10152));
        hooks.provider::<MethodProvider>(GROUP, "byrequests", &Byrequests);
    }
}

impl Method for Byrequests {
    fn choose<'c>(&self, choice: &Choice<'c>) -> Option<&'c Arc<Worker>> {
        super::by_balance(choice, |member, best| member.state.lbstatus() > best.state.lbstatus())
    }
}
