//! Messages about a backend while the client gets its response, when the request itself is with the
//! sender of the response.

use std::rc::Rc;
use std::sync::Arc;

use server::connection_info::ConnectionInfo;
use server::engine::Engine;
use server::errorlog::Cause;
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
        self.write_cause::<M>(level, number, None, text);
    }

    /// The same for what has failed.
    pub fn write_cause<M: Module>(
        &self,
        level: Level,
        number: u32,
        cause: Option<Cause>,
        text: &[u8],
    ) {
        let server = &self.engine.server;
        server.log_client(
            (&self.host, &self.connection, None),
            M::FILE,
            level,
            number,
            cause,
            text,
        );
    }

    /// Writes a message that does not name the client to the server's log, as Apache does where it
    /// has no request at hand.
    pub fn write_of_server<M: Module>(
        &self,
        level: Level,
        number: u32,
        cause: Option<Cause>,
        text: &str,
    ) {
        let server = &self.engine.server;
        let text = format_args!("{text}");
        server.log_host_error(server.main(), M::FILE, level, number, cause, text);
    }

    /// The client's address and port.
    pub fn client(&self) -> impl std::fmt::Display + use<> {
        self.connection.peer
    }
}
