//! A connection that is passed to another process once the head of its response has been sent.

use std::io;

use server::log::Level;
use server::passing::Passing;
use server::request::Request;

use super::Connection;
use super::finish::Sent;

/// Passes the client's descriptor. What this server has received of the client beyond the request's
/// head is lost, as in Apache.
pub(super) fn pass(connection: &Connection, request: &mut Request, passing: &Passing, sent: &Sent) {
    let Some(near) = &connection.stream else { return };
    let log = |number, error: &io::Error, text| {
        request.log_error_as(passing.module, Level::Error, number, error, format_args!("{text}"));
    };
    if let Err(error) = &sent.outcome {
        log(1156, error, "ap_pass_brigade failed:");
        return;
    }
    if let Err(error) = near.pass_over(&passing.to) {
        log(1154, &error, "send_socket failed:");
        request.response.status = 500;
    }
}
