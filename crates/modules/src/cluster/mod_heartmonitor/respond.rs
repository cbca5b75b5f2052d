//! The handler `heartbeat`: a server reports by POST.
//!
//! Source: `hm_handler`.

use bstr::BStr;
use rustix::io::Errno;
use server::body::Body;
use server::discard::discard_body;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::request::Request;
use wire::Method;

use super::message::{BYTES, DEFAULT_PORT, Heartbeat, Words, number};
use super::{Heartmonitor, path, settings, storage};

pub(super) fn handle<'r>(_: Bound<'r, Heartmonitor>, request: &'r mut Request) -> Step<'r> {
    request.depends.pure = false;
    if request.head.method != Method::POST {
        return Step::status(405);
    }
    Step::Pending(Box::pin(respond(request)))
}

async fn respond(request: &mut Request) -> Verdict {
    match take(request).await {
        Ok(()) => {
            request.response.content_type = Some(b"text/plain".to_vec());
            request.print(Body::from(b"OK".to_vec()));
            Verdict::Ok
        }
        Err(status) => Verdict::Status(status),
    }
}

/// Reads the message, and keeps it.
async fn take(request: &mut Request) -> Result<(), u16> {
    let own = settings(&request.engine.server).ok_or(500u16)?;
    if own.address.get().is_none() {
        let text = format_args!("Heartbeat monitoring not active");
        request.log::<Heartmonitor>(Level::Error, 10561, text);
        return Err(503);
    }
    let slots = own.slots.0.clone();
    let mut text = Vec::new();
    while text.len() < BYTES
        && let Some(piece) = request.body_in.next().await
    {
        text.extend_from_slice(&piece.map_err(|error| error.status(request))?);
    }
    discard_body(request).await?;
    let server = server_of(request, &Words::parse(&text))?;
    // A recording changes nothing.
    if request.engine.recorder.is_some() {
        return Ok(());
    }
    match slots.is_used() {
        true => slots.put(&server),
        false => keep_in_file(request, server).await,
    }
    Ok(())
}

/// What the client says of itself.
fn server_of(request: &Request, words: &Words) -> Result<Heartbeat, u16> {
    let log = |level, number, text: std::fmt::Arguments<'_>| {
        request.log::<Heartmonitor>(level, number, text);
    };
    let (Some(busy), Some(ready)) = (words.get("busy"), words.get("ready")) else {
        let text = "Missing required parameters: busy and/or ready";
        log(Level::Error, 10563, format_args!("{text}"));
        return Err(400);
    };
    let port = words.get("port").map(|text| {
        let port = number(text).and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        port.map_or_else(
            || {
                let shown = BStr::new(text);
                let text = format_args!("Invalid port value: {shown}, using default 80");
                log(Level::Warn, 10564, text);
                DEFAULT_PORT
            },
            u32::from,
        )
    });
    let count = |name, text: &[u8], message| match number(text) {
        Some(count) => count as i32,
        None => {
            let text = BStr::new(text);
            log(Level::Warn, message, format_args!("Invalid {name} value: {text}, using 0"));
            0
        }
    };
    Ok(Heartbeat {
        ip: request.connection.peer.ip().to_string().into_bytes(),
        busy: count("busy", busy, 10565),
        ready: count("ready", ready, 10566),
        port: port.unwrap_or(DEFAULT_PORT),
        seen_s: request.engine.handle.clock().wall_s(),
    })
}

async fn keep_in_file(request: &Request, server: Heartbeat) {
    let path = path(&request.engine.server);
    let shown = path.display().to_string();
    let now_s = server.seen_s;
    let pool = request.engine.handle.blocking();
    let kept = pool.run(rt::Work::File, move || storage::update(&path, &server, now_s)).await;
    let Ok(Err(error)) = kept else { return };
    let (engine, errno) = (&request.engine.server, Errno::from_io_error(&error));
    let text = format_args!("Unable to open tmp file: {shown}.tmp.XXXXXX");
    engine.log_host_error(
        engine.main(),
        <Heartmonitor as server::module::Module>::FILE,
        Level::Crit,
        2074,
        errno,
        text,
    );
}
