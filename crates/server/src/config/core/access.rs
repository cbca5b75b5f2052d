//! Access to the core's configuration while it is built, and its defaults.

use super::{CoreDir, CoreServer};
use crate::api::directive::Target;
use crate::config::build::{Build, DEFAULT_DOCUMENT_ROOT};
use crate::config::registry::Slots;
use crate::log::sinks;

impl Build {
    /// The core's configuration in a server's slots.
    pub fn core_config<'s>(&self, slots: &'s Slots) -> Option<&'s CoreServer> {
        slots.get::<CoreServer>(self.registry.core)
    }

    /// Sets the default `ErrorLog logs/error_log`.
    pub(crate) fn default_error_log(&mut self) {
        let file = self.server_root.join("logs/error_log");
        let slot = self.registry.core;
        let Some(core) = self.main.server.edit::<CoreServer>(slot) else { return };
        if !core.error_log.is_set() {
            core.error_log.set(self.sinks.register(sinks::Target::File(file)));
        }
    }

    /// Sets the default `DocumentRoot` of the main server.
    pub(crate) fn default_document_root(&mut self) {
        let slot = self.registry.core;
        let Some(core) = self.main.server.edit::<CoreServer>(slot) else { return };
        if !core.document_root.is_set() {
            core.document_root.set(DEFAULT_DOCUMENT_ROOT.as_bytes().to_vec());
        }
    }
}

impl Target<'_> {
    /// The core's directory configuration, for writing.
    pub fn core_dir(&mut self) -> &mut CoreDir {
        let slot = self.build.registry.core;
        let Some(dir) = self.dir.edit(slot) else { unreachable!("core is always active") };
        dir
    }

    /// The core's server configuration, for writing.
    pub fn core_server(&mut self) -> &mut CoreServer {
        let slot = self.build.registry.core;
        let Some(server) = self.server.edit(slot) else { unreachable!("core is always active") };
        server
    }
}
