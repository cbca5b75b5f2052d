//! The built-in modules, in one folder per family of Apache's tree.

pub mod aaa;
pub mod arch;
mod atoi;
pub mod cache;
pub mod cluster;
pub mod core;
mod ctime;
pub mod database;
pub mod debugging;
pub mod echo;
pub mod filters;
pub mod generators;
pub mod http;
pub mod http2;
mod lease;
pub mod loggers;
pub mod mappers;
pub mod metadata;
pub mod missing;
pub mod mpm;
pub mod proxy;
mod random;
mod sdbm;
pub mod session;
pub mod slotmem;
pub mod ssl;
mod util_script;
pub mod wsgi;

use server::module::{ErasedModule, module};

/// The modules of a configuration without LoadModule lines, all MPMs included.
pub fn unnamed() -> Vec<&'static dyn ErasedModule> {
    all().into_iter().filter(|module| !module.acts_unasked()).collect()
}

/// All modules, in the order in which a static httpd would list them.
pub fn all() -> Vec<&'static dyn ErasedModule> {
    let mut all = vec![
        module::<core::Core>(),
        module::<core::mod_so::So>(),
        module::<core::mod_watchdog::Watchdog>(),
        module::<http::http_core::HttpCore>(),
        module::<loggers::mod_log_config::LogConfig>(),
        module::<loggers::mod_logio::Logio>(),
        module::<metadata::mod_version::Version>(),
        module::<arch::mod_unixd::Unixd>(),
        module::<mpm::mpm_event::Event>(),
        module::<mpm::mpm_worker::Worker>(),
        module::<mpm::mpm_prefork::Prefork>(),
        module::<mpm::mpm_loop::Loop>(),
        module::<core::mod_macro::Macro>(),
    ];
    all.extend(cache::modules());
    all.extend(aaa::modules());
    all.push(module::<database::mod_dbd::Dbd>());
    all.push(module::<debugging::mod_dumpio::Dumpio>());
    all.push(module::<echo::mod_echo::Echo>());
    all.extend(filters::modules());
    all.extend([
        module::<generators::mod_asis::Asis>(),
        module::<generators::mod_autoindex::Autoindex>(),
        module::<generators::mod_cgi::Cgi>(),
        module::<generators::mod_cgi::Cgid>(),
        module::<generators::mod_info::Info>(),
        module::<generators::mod_reflector::Reflector>(),
        module::<generators::mod_status::Status>(),
        module::<generators::mod_suexec::Suexec>(),
        module::<http::mod_mime::Mime>(),
        module::<http2::mod_http2::Http2Module>(),
        module::<loggers::mod_log_debug::LogDebug>(),
        module::<loggers::mod_log_forensic::LogForensic>(),
        module::<mappers::mod_actions::Actions>(),
        module::<mappers::mod_alias::Alias>(),
        module::<mappers::mod_dir::Dir>(),
        module::<mappers::mod_imagemap::Imagemap>(),
        module::<mappers::mod_negotiation::Negotiation>(),
        module::<mappers::mod_rewrite::Rewrite>(),
        module::<mappers::mod_speling::Speling>(),
        module::<mappers::mod_userdir::Userdir>(),
        module::<mappers::mod_vhost_alias::VhostAlias>(),
        module::<metadata::mod_cern_meta::CernMeta>(),
        module::<metadata::mod_env::Env>(),
        module::<metadata::mod_expires::Expires>(),
        module::<metadata::mod_headers::Headers>(),
        module::<metadata::mod_ident::Ident>(),
        module::<metadata::mod_mime_magic::MimeMagic>(),
        module::<metadata::mod_remoteip::Remoteip>(),
        module::<metadata::mod_setenvif::Setenvif>(),
        module::<metadata::mod_unique_id::UniqueId>(),
        module::<metadata::mod_usertrack::Usertrack>(),
    ]);
    all.extend(cluster::modules());
    all.extend(proxy::modules());
    all.extend(session::modules());
    all.extend([
        module::<slotmem::mod_slotmem_plain::SlotmemPlain>(),
        module::<slotmem::mod_slotmem_shm::SlotmemShm>(),
        module::<ssl::mod_ssl::Ssl>(),
        module::<wsgi::mod_wsgi::Wsgi>(),
    ]);
    all
}
