//! Messages about a backend while the client gets its response, when the request itself is with the
//! sender of the response.

use std::rc::Rc;
use std::sync::Arc;

use server::connection_info::ConnectionInfo;
use server::engine::Engine;
use server::host::Host;
use server::log::Level;
use server::module::Module;
use server::request::Request;

/// Writes to the error log of a request's host.
pub struct LateLog {
    host: Arc<Host>,
    connection: Rc<ConnectionInfo>,
    engine: Rc<Engine>,
}

impl LateLog {
    /// That of a request.
    pub fn of(request: &Request) -> LateLog {
        LateLog {
            host: request.host.clone(),
            connection: request.connection.clone(),
            engine: request.engine.clone(),
        }
    }

    /// Writes a message of a module.
    pub fn write<M: Module>(&self, level: Level, number: u32, text: &[u8]) {
        let server = &self.engine.server;
        server.log_client(&self.host, &self.connection, M::FILE, level, number, text);
    }
}
