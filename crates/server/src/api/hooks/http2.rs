//! How mod_http2 registers what connections need to know.

use super::{Bound, Hooks};
use crate::api::module::Module;
use crate::config::registry::Registry;
use crate::request::http2::{Http2, Http2Dir};

impl<M: Module> Hooks<'_, M> {
    /// Registers how a host speaks HTTP/2 (mod_http2).
    pub fn http2(&mut self, ask: fn(&M::Server, &Registry) -> Option<Http2>) {
        let slot = self.slot;
        self.table.http2 = Some(Box::new(move |server, registry| {
            server.get::<M::Server>(slot).and_then(|own| ask(own, registry))
        }));
    }

    /// Registers what the merged configuration says about responses over HTTP/2 (mod_http2).
    pub fn http2_dir(&mut self, ask: fn(Bound<'_, M>) -> Http2Dir) {
        let slot = self.slot;
        self.table.http2_dir = Some(Box::new(move |server, dir| {
            match (server.get::<M::Server>(slot), dir.get::<M::Dir>(slot)) {
                (Some(server), Some(dir)) => ask(Bound { server, dir }),
                _ => Http2Dir::default(),
            }
        }));
    }
}
