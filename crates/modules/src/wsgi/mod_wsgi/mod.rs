//! mod_wsgi: Python applications (PEP 3333), with the directives of mod_wsgi 6.
//!
//! An application runs in its own `python3`, never in a process of the server: a companion starts
//! the processes of each group ([`companion`]), and requests reach them in shared memory ([`lane`])
//! or, without the extension for Python, through a queue of the kernel. What worker and loop send
//! each other is [`wire::wsgi`].
//!
//! Manual: <https://modwsgi.readthedocs.io/>

mod access;
mod alias;
mod body;
mod companion;
mod conversation;
mod counts;
mod daemon;
mod environ;
mod lane;
mod link;
mod message;
mod offer;
mod owner;
mod python;
mod respond;
mod rows;
mod runtime;
mod script;
mod setters;
mod start;
mod status_part;
mod target;
mod trusted;
mod upload;
mod words;

use std::sync::Arc;

use conf::values::Subnet;
use server::directive::Row;
use server::hooks::{Bound, Hooks, Phase, Rank};
use server::merge::{Outermost, Overlay, Own, Prepend, Replace, Setting};
use server::module::Module;

use crate::aaa::provider::{AUTHN, AUTHZ, AuthnProvider, AuthzProvider};
use crate::generators::mod_status::part::{self, PartProvider};
use alias::ScriptAlias;
use daemon::DaemonGroup;
use python::{InterpreterSection, Python};
use script::{HandlerScript, Import, Script, Selector};

pub use start::companion;

/// `mod_wsgi.c`
pub struct Wsgi;

/// The handler of scripts.
const HANDLER: &str = "wsgi-script";

server::config! {
    /// The configuration per virtual host.
    pub struct Settings {
        /// `WSGIScriptAlias`, `WSGIScriptAliasMatch`
        aliases: Prepend<ScriptAlias>,
        /// `WSGIDaemonProcess`
        groups: Own<Vec<Arc<DaemonGroup>>>,
        /// `WSGIImportScript`, and scripts of aliases with both groups.
        imports: Own<Vec<Arc<Import>>>,
        /// How Python runs.
        python: Outermost<Python>,
        /// `<WSGIInterpreterOptions>`
        interpreters: Outermost<Vec<InterpreterSection>>,
        /// What runs applications; unset before the server runs.
        runtime: Outermost<runtime::Handle>,
    }
}

/// `WSGIMapHEADToGET`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapHead {
    On,
    Off,
    Auto,
}

server::config! {
    /// The configuration per directory.
    pub struct Directory {
        /// `WSGIProcessGroup`
        process_group: Setting<Arc<Selector>>,
        /// `WSGIApplicationGroup`
        application_group: Setting<Arc<Selector>>,
        /// `WSGIRestrictProcess`
        restricted: Replace<Vec<u8>>,
        /// `WSGICallableObject`
        callable: Setting<Arc<Selector>>,
        /// `WSGIScriptReloading`
        reloading: Setting<bool>,
        /// `WSGIPassAuthorization`
        pass_authorization: Setting<bool>,
        /// `WSGIChunkedRequest`
        chunked_request: Setting<bool>,
        /// `WSGIMapHEADToGET`
        map_head: Setting<MapHead>,
        /// `WSGIErrorOverride`
        error_override: Setting<bool>,
        /// `WSGIEnableSendfile`
        sendfile: Setting<bool>,
        /// `WSGIIgnoreActivity`
        ignore_activity: Setting<bool>,
        /// `WSGITrustedProxies`
        trusted_proxies: Replace<Subnet>,
        /// `WSGITrustedProxyHeaders`
        trusted_headers: Replace<trusted::Header>,
        /// `WSGIDispatchScript`
        dispatch: Setting<Arc<Script>>,
        /// `WSGIHandlerScript`
        handlers: Overlay<Vec<u8>, Arc<HandlerScript>>,
        /// `WSGIAccessScript`
        access: Setting<Arc<Script>>,
        /// `WSGIAuthUserScript`
        auth_user: Setting<Arc<Script>>,
        /// `WSGIAuthGroupScript`
        auth_group: Setting<Arc<Script>>,
        /// `WSGIGroupAuthoritative`
        group_authoritative: Setting<bool>,
    }
}

impl Module for Wsgi {
    const NAME: &'static str = "wsgi_module";
    const FILE: &'static str = "mod_wsgi.c";
    type Server = Settings;
    type Dir = Directory;
    const ACTS_UNASKED: bool = true;
    const DIRECTIVES: &'static [Row<Wsgi>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.share(counts::share);
        hooks.provider::<PartProvider>(part::GROUP, "wsgi", &status_part::Groups);
        hooks
            .on(
                Phase::TranslateName,
                Rank::MIDDLE,
                |bound| !bound.server.aliases.is_empty(),
                alias::translate,
            )
            .after(&["mod_alias.c"])
            .before(&["mod_userdir.c", "mod_vhost_alias.c"])
            .pure();
        for name in [HANDLER, "application/x-httpd-wsgi"] {
            hooks.handler(name, respond::handle);
        }
        hooks.on(
            Phase::Handler,
            Rank::MIDDLE,
            |bound| !bound.dir.handlers.is_empty(),
            respond::handle_named,
        );
        hooks.on(
            Phase::AccessChecker,
            Rank::MIDDLE,
            |bound| bound.dir.access.is_set(),
            access::check,
        );
        // The script decides by the URI.
        hooks.merges_by_uri();
        hooks.provider::<AuthnProvider>(AUTHN, "wsgi", Arc::new(access::Passwords));
        hooks.provider(AUTHZ, "wsgi-group", AuthzProvider::new(access::parse_groups));
        hooks.post_config(start::check);
    }
}
