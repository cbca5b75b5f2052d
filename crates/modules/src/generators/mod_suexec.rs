//! mod_suexec: the user and group that programs of a host run as.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_suexec.html>. Programs are started by the
//! wrapper of the distribution: see [`crate::arch::mod_unixd`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use conf::Arg;
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::hooks::Hooks;
use server::host::Server;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;

use crate::arch::mod_unixd::suexec::{self, Identity};
use crate::arch::mod_unixd::{Unixd, group_of, user_of};

/// `mod_suexec.c`
pub struct Suexec;

server::config! {
    /// The configuration of a host.
    pub struct Directory {
        /// `SuexecUserGroup`
        pub(crate) identity: Setting<Identity>,
    }
}

impl Module for Suexec {
    const NAME: &'static str = "suexec_module";
    const FILE: &'static str = "mod_suexec.c";
    type Server = ();
    type Dir = Directory;
    const ACTS_UNASKED: bool = true;
    const DIRECTIVES: &'static [Row<Suexec>] = &[Row::new(
        "SuexecUserGroup",
        Takes::Two(user_group),
        "User Group",
        "User and group for spawned processes",
    )];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.logs_opened(announce);
    }
}

/// Source: `set_suexec_ugid`
fn user_group(cx: &mut Cx<'_, '_, Suexec>, user: &Arg, group: &Arg) -> Set {
    if let Err(why) = suexec::wrapper(cx.build()) {
        let fault = format!("SuexecUserGroup configured, but suEXEC is disabled: {why}");
        return Err(Fault::new(fault));
    }
    let (user, group) = (user_of(user)?.id, group_of(group)?);
    cx.dir().identity.set(Identity { user, group, is_userdir: false });
    Ok(())
}

/// Names the wrapper, once in the life of the server.
///
/// Source: `suexec_post_config`
fn announce(server: &Arc<Server>) {
    static IS_ANNOUNCED: AtomicBool = AtomicBool::new(false);
    let slot = server.registry.slot_of::<Unixd>();
    let settings = slot.and_then(|slot| server.main().server.get(slot));
    if let Some(wrapper) = settings.and_then(suexec::in_force)
        && !IS_ANNOUNCED.swap(true, Ordering::Relaxed)
    {
        let text = format_args!("suEXEC mechanism enabled (wrapper: {})", wrapper.display());
        server.log(Suexec::FILE, Level::Notice, 1232, text);
    }
}
