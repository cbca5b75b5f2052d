//! Handlers that no active module provides.
//!
//! Apache's default handler then serves the file verbatim: the source of a program. Here the line
//! with such a handler causes a warning at startup, and its files are a 500.

use crate::api::directive::Target;
use crate::api::missing::UNPROVIDED;
use crate::config::build::Build;
use crate::config::context::Places;
use crate::config::registry::Registry;
use crate::log::Level;
use crate::request::Request;
use messages::Message;

/// The default handler.
const DEFAULT: &[u8] = b"default-handler";

/// Media types with these prefixes serve only as handlers.
const HANDLER_TYPES: [&[u8]; 2] = [b"application/x-httpd-", b"httpd/send-as-is"];

impl Target<'_> {
    /// Remembers a handler that no active module provides, to warn about it. In an `.htaccess`
    /// there is no warning: each affected request is logged.
    pub fn check_handler(&mut self, name: &[u8]) {
        if self.place != Places::HTACCESS && !is_provided(&self.build.registry, name) {
            self.build.unprovided.push((self.span, name.to_vec()));
        }
    }

    /// The same for a media type that serves as a handler.
    pub fn check_type(&mut self, media_type: &[u8]) {
        if is_handler_type(media_type) {
            self.check_handler(media_type);
        }
    }
}

impl Build {
    /// Warns about handlers that no active module provides, and no `Action` passes on: its line may
    /// be the later one.
    pub(crate) fn warn_of_unprovided(&mut self) {
        for (span, name) in std::mem::take(&mut self.unprovided) {
            if !self.passed_on.contains(&name.to_ascii_lowercase()) {
                let why = no_such(&self.registry, &name);
                let text = format!("{why}: requests for its files get a 500 response");
                self.remark(span, UNPROVIDED, text);
            }
        }
    }
}

fn is_handler_type(name: &[u8]) -> bool {
    HANDLER_TYPES.iter().any(|known| name.starts_with(known))
}

fn is_provided(registry: &Registry, name: &[u8]) -> bool {
    name.is_empty() || name == DEFAULT || registry.hooks.provides_handler(name)
}

fn no_such(registry: &Registry, name: &[u8]) -> String {
    let shown = String::from_utf8_lossy(name);
    let word = if shown.starts_with("proxy:") { "proxy-server".into() } else { shown.clone() };
    let missing = registry.known().iter().filter_map(|module| module.missing());
    let owners: Vec<String> = missing
        .filter(|module| module.has_handler(&word))
        .map(|module| module.of_manual())
        .collect();
    match owners.is_empty() {
        true => format!("no active module has the handler '{shown}'"),
        false => format!(
            "the handler '{shown}' belongs to {}, which Tamarack does not have yet",
            owners.join(" or ")
        ),
    }
}

/// Whether a file is withheld because its handler does not exist; logs that.
pub fn withholds(request: &Request) -> bool {
    let Some(name) = request.handler.as_deref() else { return false };
    if request.handler_of_type && !is_handler_type(name) {
        return false;
    }
    let registry = &request.engine.server.registry;
    if is_provided(registry, name) {
        return false;
    }
    let why = format!("{}: the file is not served", no_such(registry, name));
    request.log_core(
        Level::Error,
        Message::HandlerMissing.number(),
        &why,
        Some(&request.resource.filename),
    );
    true
}
