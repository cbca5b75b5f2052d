//! mod_lbmethod_heartbeat: members are chosen by the idle threads that they report.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_lbmethod_heartbeat.html>

mod reports;

use std::path::PathBuf;
use std::sync::Arc;

use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::errorlog::Verbatim;
use server::hooks::Hooks;
use server::host::Server;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;

use super::super::mod_proxy::lbmethod::{Choice, GROUP, Method, MethodProvider};
use super::super::mod_proxy::workers::Worker;
use crate::cluster::mod_heartmonitor;
use crate::random;
use crate::slotmem;
use reports::Report;

/// `mod_lbmethod_heartbeat.c`
pub struct Heartbeat;

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `HeartbeatStorage`
        pub storage: Setting<PathBuf>,
    }
}

impl Module for Heartbeat {
    const NAME: &'static str = "lbmethod_heartbeat_module";
    const FILE: &'static str = "mod_lbmethod_heartbeat.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Heartbeat>] = &[Row::new(
        "HeartbeatStorage",
        Takes::One(set_storage),
        "file-path",
        "The file with what the servers of balancers report.",
    )
    .standing(Places::SERVER, Override::NONE)
    .default("logs/hb.dat")];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.logs_opened(remark);
        hooks.child_started(reports::start);
        hooks.every_second(reports::refresh);
        hooks.provider::<MethodProvider>(GROUP, "heartbeat", &Heartbeat);
    }
}

/// `HeartbeatStorage`
pub(crate) fn storage(server: &Server) -> Option<PathBuf> {
    let slot = server.registry.slot_of::<Heartbeat>()?;
    server.main().server.get::<Settings>(slot)?.storage.get().cloned()
}

fn set_storage(cx: &mut Cx<'_, '_, Heartbeat>, arg: &conf::Arg) -> Set {
    let build = cx.build();
    let core = build.core_config(&build.main.server);
    let folder = core.and_then(|core| core.globals.0.runtime_dir.get().cloned());
    let folder = folder.unwrap_or_else(|| PathBuf::from(crate::proxy::mod_proxy::RUNTIME_DIR));
    let path = conf::values::relative_to(&folder, &arg.text);
    let path = path.ok_or_else(|| Fault::new("HeartbeatStorage has an invalid path").at(arg))?;
    cx.server().storage.set(path);
    Ok(())
}

/// Reports come by shared memory if mod_heartmonitor has some, else by a file.
fn remark(server: &Arc<Server>) {
    let hooks = &server.registry.hooks;
    let has_slots = mod_heartmonitor::settings(server).is_some_and(|own| own.slots.0.is_used());
    let (number, text) = match hooks.provider::<slotmem::Provider>(slotmem::GROUP, "shm") {
        Some(_) if has_slots => (2283, "Using slotmem from mod_heartmonitor"),
        Some(_) => (2282, "No slotmem from mod_heartmonitor"),
        None => (
            2281,
            "Failed to lookup provider 'shm' for 'slotmem'. Maybe you need to load \
             mod_slotmem_shm?",
        ),
    };
    server.log_host(server.main(), Heartbeat::FILE, Level::Notice, number, format_args!("{text}"));
}

impl Method for Heartbeat {
    fn choose<'c>(&self, choice: &Choice<'c>) -> Option<&'c Arc<Worker>> {
        let slots = mod_heartmonitor::settings(&choice.request.engine.server);
        let slots = slots.map(|own| &own.slots.0).filter(|slots| slots.is_used());
        let now_s = choice.now_us / 1_000_000;
        let found = slots.map_or_else(reports::current, |slots| Ok(reports::of(slots, now_s)));
        let reports = match found {
            Ok(reports) => reports,
            Err((path, errno)) => {
                let path = path.display();
                let text = format_args!("lb_heartbeat: Unable to read heartbeats at '{path}'");
                choice.request.log_error::<Heartbeat>(Level::Error, 1213, errno, text);
                return None;
            }
        };
        let mut usable: Vec<(&'c Arc<Worker>, &Report)> = Vec::new();
        for member in choice.balancer.members() {
            let Some(report) = reports.get(&member.target.host) else {
                let name = Verbatim::new(&member.name);
                let text = format_args!("lb_heartbeat: No server for worker {name}");
                choice.request.log::<Heartbeat>(Level::Debug, 1214, text);
                continue;
            };
            if choice.is_usable(member) && report.is_recent() {
                // Of members at one address the last one stands for all, as in Apache.
                let same = usable.iter_mut().filter(|(_, other)| std::ptr::eq(*other, report));
                same.for_each(|(other, _)| *other = member);
                usable.push((member, report));
            }
        }
        let slots: usize = usable.iter().map(|(_, report)| report.ready).sum();
        if slots == 0 {
            return None;
        }
        at(&usable, random::below(slots + 1))
    }
}

/// The member that has the idle thread of this number.
fn at<'c>(usable: &[(&'c Arc<Worker>, &Report)], number: usize) -> Option<&'c Arc<Worker>> {
    let mut before = 0;
    usable.iter().find_map(|(member, report)| {
        before += report.ready;
        (number <= before).then_some(*member)
    })
}
