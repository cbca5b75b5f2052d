//! mod_ssl: TLS by rustls. The crate `tls` has the code for rustls and X.509; this module has the
//! directives and the server's callbacks.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html>

mod access;
mod alpn;
pub mod backends;
mod config;
mod fetch;
mod handshake;
mod local;
mod make;
mod make_backends;
mod options;
mod policy;
mod rows;
mod share;
mod staple;
mod variables;

use std::sync::Arc;

use server::directive::Row;
use server::hooks::{Hooks, Phase, Rank, Step};
use server::host::{Host, Server};
use server::log::Level;
use server::module::Module;
use tls::Severity;
use tls::sessions::SessionCache;

use crate::loggers::mod_log_config::LogItem;

pub use make::{adopt_keys, kept_keys};
pub use variables::lookup;

/// The files of a host's certificates (`-D DUMP_CERTS`).
pub fn certificate_files<'h>(server: &Server, host: &'h Host) -> &'h [Vec<u8>] {
    let slot = server.registry.slot_of::<Ssl>();
    let own = slot.and_then(|slot| host.server.get::<config::Server>(slot));
    own.map_or(&[], |own| own.certificates.0.as_slice())
}

/// The name of the server in pass phrase dialogs.
const FOLLOWS: &str = "Apache/2.4.71";

/// SSL_VERSION_INTERFACE
const INTERFACE: &str = "mod_ssl/2.4.71";

/// `mod_ssl.c`
pub struct Ssl;

impl Module for Ssl {
    const NAME: &'static str = "ssl_module";
    const FILE: &'static str = "mod_ssl.c";
    type Server = config::Server;
    type Dir = config::Dir;
    const DIRECTIVES: &'static [Row<Ssl>] = rows::ALL;

    fn hooks(hooks: &mut Hooks<'_, Ssl>) {
        hooks.post_config(make::post_config);
        hooks.share(share::share);
        hooks.maintain(share::maintain);
        hooks.logs_opened(remark);
        hooks.child_started(staple::start);
        hooks.offers_tls(handshake::HOOK);
        // Its place alone: `find_host` does its work, once per connection and host.
        hooks
            .on(Phase::PostReadRequest, Rank::MIDDLE, |_| false, |_, _| Step::DECLINED)
            .after(&["mod_setenvif.c"]);
        hooks.provider(server::expr::GROUP, "ssl", variables::EXTENSION);
        let of_request = |write| LogItem { write, reads_head_alone: false };
        hooks.provider("log_item", "x", of_request(variables::log_variable));
        hooks.provider("log_item", "c", of_request(variables::log_older));
        access::register(hooks);
    }
}

/// The configuration of a host.
fn of_host<'s>(server: &Server, host: &'s Host) -> Option<&'s config::Server> {
    host.server.get(server.registry.slot_of::<Ssl>()?)
}

/// A host by its id.
fn host_by_id(server: &Server, id: u32) -> Option<&Host> {
    server.hosts.get(usize::try_from(id).ok()?).map(|host| &**host)
}

/// The hosts with TLS.
fn all_built(server: &Server) -> impl Iterator<Item = (&config::Server, &Arc<make::Built>)> {
    server.hosts.iter().filter_map(|host| {
        let own = of_host(server, host)?;
        Some((own, own.built.0.as_ref()?))
    })
}

/// Logs remarks on the certificates.
fn remark(server: &Arc<Server>) {
    if of_host(server, server.main()).is_some_and(|own| own.session_cache.0 == SessionCache::None) {
        let what = format_args!("Init: Session Cache is not configured [hint: SSLSessionCache]");
        server.log_host(server.main(), Ssl::FILE, Level::Warn, 1873, what);
    }
    for host in &server.hosts {
        let engine = of_host(server, host).and_then(|own| own.engine.get());
        if engine == Some(&config::Engine::Optional) {
            let what = format_args!("'SSLEngine optional' is no longer supported");
            server.log_host(host, Ssl::FILE, Level::Notice, 10510, what);
        }
        let own = of_host(server, host);
        let of_clients = own.and_then(|own| own.built.0.as_ref()).map(|built| &built.remarks);
        let of_backends = own.into_iter().flat_map(|own| &own.backends.0).map(|one| &one.remarks);
        for finding in of_clients.into_iter().chain(of_backends).flatten() {
            let level = match finding.severity {
                Severity::Info => Level::Info,
                Severity::Warning => Level::Warn,
                Severity::Error => Level::Error,
            };
            let number = finding.number.map_or(0, u32::from);
            let what = format_args!("{}", finding.message);
            server.log_host(host, Ssl::FILE, level, number, what);
        }
    }
}
