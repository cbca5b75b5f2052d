//! The `Allow` field.
//!
//! Source: `make_allow` (modules/http/http_protocol.c).

use wire::method::Method;

use crate::config::core::Trace;
use crate::request::Request;

impl Request {
    /// The value of `Allow`: the methods that handlers declared, in Apache's order.
    pub fn allow(&self) -> Vec<u8> {
        const FIRST: [(Method, &[u8]); 4] = [
            (Method::OPTIONS, b"OPTIONS"),
            (Method::GET, b"HEAD"),
            (Method::GET, b"GET"),
            (Method::POST, b"POST"),
        ];
        let allowed = self.response.allowed;
        let mut names: Vec<&[u8]> = Vec::new();
        names.extend(FIRST.iter().filter(|(of, _)| allowed.contains(*of)).map(|(_, name)| *name));
        let registry = &self.engine.server.methods;
        for method in allowed.iter() {
            let listed = FIRST.iter().any(|(of, _)| *of == method) || method == Method::TRACE;
            if let (false, Some(name)) = (listed, method.name(registry)) {
                names.push(name);
            }
        }
        if self.host.core.trace_enable.or(Trace::On) != Trace::Off {
            names.push(b"TRACE");
        }
        names.join(&b","[..])
    }
}
