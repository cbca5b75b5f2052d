//! mod_lbmethod_bytraffic: members get numbers of bytes in proportion to their factors.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_lbmethod_bytraffic.html>

use std::sync::Arc;

use server::hooks::Hooks;
use server::module::Module;

use super::super::mod_proxy::lbmethod::{Choice, GROUP, Method, MethodProvider};
use super::super::mod_proxy::workers::Worker;

/// `mod_lbmethod_bytraffic.c`
pub struct Bytraffic;

impl Module for Bytraffic {
    const NAME: &'static str = "lbmethod_bytraffic_module";
    const FILE: &'static str = "mod_lbmethod_bytraffic.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(|build| super::need_proxy::<Self>(build, 10150));
        hooks.provider::<MethodProvider>(GROUP, "bytraffic", &Bytraffic);
    }
}

impl Method for Bytraffic {
    fn choose<'c>(&self, choice: &Choice<'c>) -> Option<&'c Arc<Worker>> {
        let traffic = |member: &Worker| {
            let factor = u64::from(member.state.load_factor()).max(1);
            member.state.transferred() / factor + member.state.read() / factor
        };
        let best =
            choice.best(|member, best| best.is_none_or(|best| traffic(member) < traffic(best)))?;
        super::log_best(choice, best);
        Some(best)
    }
}
