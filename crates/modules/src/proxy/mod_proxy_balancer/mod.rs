//! mod_proxy_balancer: distributes requests among the members of balancers.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_balancer.html>

mod canonical;
mod manager;
mod pick;
mod responded;
mod session;
mod values;

use server::build::Build;
use server::hooks::{Hooks, Verdict};
use server::module::Module;
use server::request::Request;

use super::mod_proxy::balancing::{Balancing, BalancingProvider, Choosing, PROVIDER};
use super::mod_proxy::scheme::{Exchange, GROUP, Scheme, SchemeProvider, Served};
use super::mod_proxy::workers::{Balancer, Worker};
use super::mod_proxy::{DEFAULT_METHOD, Proxy, lbmethod};
use crate::slotmem;

/// `mod_proxy_balancer.c`
pub struct ProxyBalancer;

impl Module for ProxyBalancer {
    const NAME: &'static str = "proxy_balancer_module";
    const FILE: &'static str = "mod_proxy_balancer.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(check);
        hooks.handler("balancer-manager", manager::handle);
        hooks.provider::<SchemeProvider>(GROUP, "balancer", &Members);
        let (group, name) = PROVIDER;
        hooks.provider::<BalancingProvider>(group, name, &Members);
    }
}

/// What has to be loaded.
fn check(build: &mut Build) {
    if !build.for_real {
        return;
    }
    if build.provider::<slotmem::Provider>(slotmem::GROUP, "shm").is_none() {
        return build.error_without_place(
            "AH01177: Failed to lookup provider 'shm' for 'slotmem': is mod_slotmem_shm loaded??",
        );
    }
    let hosts = std::iter::once(&build.main).chain(&build.hosts);
    let needs_default =
        hosts.filter_map(|host| build.server_config::<Proxy>(&host.server)).any(|settings| {
            let balancers = &settings.definitions.0.balancers;
            balancers.iter().any(|balancer| balancer.parameters.method.is_none())
        });
    let default = String::from_utf8_lossy(DEFAULT_METHOD);
    let known = build.provider::<lbmethod::MethodProvider>(lbmethod::GROUP, &default);
    if needs_default && known.is_none() {
        build.error_without_place(format!("AH02432: Cannot find LB Method: {default}"));
        build.error_without_place("AH01183: Cannot share balancer");
    }
}

/// The members of balancers.
struct Members;

impl Balancing for Members {
    fn choose<'r>(
        &'r self,
        request: &'r mut Request,
        balancer: &'r Balancer,
        url: &'r [u8],
    ) -> Choosing<'r> {
        pick::choose(request, balancer, url)
    }

    fn responded(&self, request: &mut Request, balancer: &Balancer, member: &Worker, status: u16) {
        responded::note(request, balancer, member, status);
    }
}

impl Scheme for Members {
    fn default_port(&self) -> u16 {
        0
    }

    fn canonical(&self, request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
        canonical::canonical(request, url)
    }

    /// There is no such balancer: those that exist are replaced by a member.
    fn serve<'r>(&'r self, _: Exchange<'r>) -> Served<'r> {
        Box::pin(std::future::ready(Ok(Verdict::Declined)))
    }
}
