//! What other modules ask mod_dbd for: a statement when the configuration is read, and its outcome
//! for a request.

use std::sync::atomic::{AtomicU64, Ordering};

use conf::Arg;
use server::directive::{Fault, Target};
use server::request::Request;

use super::{Argument, Dbd, Failure, Outcome, ServerConfig};

/// Adds a statement of a directive to those of its host, and returns its label (`ap_dbd_prepare`).
///
/// # Errors
/// mod_dbd is not loaded: `needs`. Or the text is not UTF-8.
pub(crate) fn prepare(
    target: &mut Target<'_>,
    prefix: &str,
    arg: &Arg,
    needs: &str,
) -> Result<String, Fault> {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let Some(slot) = target.build.registry.slot_of::<Dbd>() else { return Err(Fault::new(needs)) };
    let text = super::rows::utf8(target.directive, arg)?;
    let label = format!("{prefix}_{}", NUMBERS.fetch_add(1, Ordering::Relaxed));
    if let Some(own) = target.server.edit::<ServerConfig>(slot) {
        own.queries.insert(label.clone(), text);
    }
    Ok(label)
}

/// Executes the statement with this label, in the database of the request's host. A request that
/// does so waits for a database anyway, which is why the label is looked up by name.
///
/// # Errors
/// Why there is no outcome. That there is no connection has been logged.
pub(crate) async fn query(
    request: &Request,
    label: &str,
    arguments: Vec<Argument>,
) -> Result<Outcome, Failure> {
    let database = request.server_of::<Dbd>().and_then(|own| own.database.0.clone());
    let Some(database) = database else {
        let server = &request.engine.server;
        let text = format_args!("not configured");
        server.log_host(&request.host, super::FILE, server::log::Level::Error, 2654, text);
        return Err(Failure::NoConnection);
    };
    database.query(request, label, arguments).await
}
