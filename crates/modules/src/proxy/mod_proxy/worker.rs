//! The parameters of a worker, which is a connection pool for one backend.
//! <https://httpd.apache.org/docs/2.4/mod/mod_proxy.html#proxypass>, `set_worker_param`.

use std::borrow::Cow;
use std::time::Duration;

use conf::values::{Unit, timeout};

use super::checks::Checks;
use super::status::Status;
use crate::atoi::{atoi, atol};

/// `PROXY_WORKER_MAX_ROUTE_SIZE`, `PROXY_WORKER_MAX_SECRET_SIZE`, bytes with the end.
const NAME_BYTES: usize = 64;
/// `PROXY_WORKER_MAX_SCHEME_SIZE`, bytes with the end.
const WORD_BYTES: usize = 16;
/// The error of an unknown parameter.
pub(super) const UNKNOWN: &str = "unknown Worker parameter";
/// The smallest buffer.
const BUFFER_MIN: i64 = 512;
/// `responsefieldsize=0`.
const RESPONSE_FIELD_BYTES: usize = 8192;
/// The unit of `loadfactor`: two decimals count.
const FACTOR_UNIT: f64 = 100.0;

/// When the response is flushed to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// When buffers are full.
    #[default]
    Off,
    /// After each piece.
    On,
    /// After `flushwait` without a further piece.
    Auto,
}

/// What the words of a line have set. `None`: not set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// `acquire`
    pub acquire: Option<Duration>,
    /// `addressttl`; negative or 0: for the life of the process.
    pub address_ttl: Option<Duration>,
    /// `connectiontimeout`
    pub connection_timeout: Option<Duration>,
    /// `disablereuse`, or `enablereuse` negated.
    pub disable_reuse: Option<bool>,
    /// `flusher`
    pub flusher: Option<Vec<u8>>,
    /// `flushpackets`
    pub flush: Option<Flush>,
    /// `flushwait`
    pub flush_wait: Option<Duration>,
    /// `iobuffersize`, bytes; 0: the default.
    pub io_buffer: Option<usize>,
    /// `keepalive`
    pub keep_alive: Option<bool>,
    /// `lbset`
    pub lbset: Option<u8>,
    /// `loadfactor` × 100
    pub load_factor: Option<u32>,
    /// `max`; 0: as many as there are threads.
    pub max: Option<u32>,
    /// `maxtotal`; 0: no limit.
    pub max_total: Option<u32>,
    /// `min`
    pub min: Option<u32>,
    /// `smax`
    pub smax: Option<u32>,
    /// `ping`
    pub ping: Option<Duration>,
    /// `receivebuffersize`, bytes; 0: the kernel's choice.
    pub receive_buffer: Option<usize>,
    /// `redirect`
    pub redirect: Option<Vec<u8>>,
    /// `responsefieldsize`, bytes.
    pub response_field: Option<usize>,
    /// `retry`
    pub retry: Option<Duration>,
    /// `route`
    pub route: Option<Vec<u8>>,
    /// `secret`
    pub secret: Option<Vec<u8>>,
    /// `status`
    pub status: Status,
    /// `timeout`
    pub timeout: Option<Duration>,
    /// `ttl`
    pub ttl: Option<Duration>,
    /// Health checks.
    pub checks: Checks,
    /// `upgrade`; `*` for any protocol. `NONE` is kept as a name, which no client asks for.
    pub upgrade: Option<Vec<u8>>,
}

impl Parameters {
    /// Sets the parameter `key`, in any case.
    ///
    /// # Errors
    /// Apache's words, without the directive's name.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cow<'static, str>> {
        match key.to_ascii_lowercase().as_slice() {
            b"disablereuse" => self.disable_reuse = Some(switch(value, "DisableReuse")?),
            b"enablereuse" => self.disable_reuse = Some(!switch(value, "EnableReuse")?),
            b"flusher" => self.flusher = Some(word(value, "flusher name", WORD_BYTES)?),
            b"flushpackets" => self.flush = Some(flush(value)?),
            b"keepalive" => self.keep_alive = Some(switch(value, "KeepAlive")?),
            b"loadfactor" => self.load_factor = Some(load_factor(value)?),
            b"redirect" => self.redirect = Some(word(value, "Redirect", NAME_BYTES)?),
            b"route" => self.route = Some(word(value, "Route", NAME_BYTES)?),
            b"secret" => self.secret = Some(word(value, "Secret", NAME_BYTES)?),
            b"status" => {
                let status = self.status.changed(value);
                self.status = status.ok_or("Unknown status parameter option")?;
            }
            b"upgrade" => self.upgrade = Some(upgrade(value)?),
            key => match self.set_time(key, value) {
                Some(set) => set?,
                None => self.set_number(key, value)?,
            },
        }
        Ok(())
    }

    /// Sets a time; `None` if the parameter is none.
    fn set_time(&mut self, key: &[u8], value: &[u8]) -> Option<Result<(), Cow<'static, str>>> {
        let seconds = |least, text: &'static str| match u32::try_from(atoi(value)) {
            Ok(seconds) if seconds >= least => Ok(Some(Duration::from_secs(seconds.into()))),
            _ => Err(text),
        };
        let precise = |unit, format: &'static str, short: &'static str| {
            let time = timeout(value, unit).ok_or(format)?;
            if time < Duration::from_millis(1) { Err(short) } else { Ok(Some(time)) }
        };
        let (field, time) = match key {
            b"retry" => (&mut self.retry, seconds(0, "Retry must be a positive value")),
            b"ttl" => (&mut self.ttl, seconds(1, "TTL must be at least one second")),
            b"timeout" => (&mut self.timeout, seconds(1, "Timeout must be at least one second")),
            b"addressttl" => (&mut self.address_ttl, Ok(seconds(1, "").unwrap_or(None))),
            b"acquire" => (
                &mut self.acquire,
                precise(
                    Unit::Milliseconds,
                    "Acquire timeout has wrong format",
                    "Acquire must be at least one millisecond",
                ),
            ),
            b"ping" => (
                &mut self.ping,
                precise(
                    Unit::Seconds,
                    "Ping/Pong timeout has wrong format",
                    "Ping/Pong timeout must be at least one millisecond",
                ),
            ),
            b"connectiontimeout" => (
                &mut self.connection_timeout,
                precise(
                    Unit::Seconds,
                    "Connectiontimeout has wrong format",
                    "Connectiontimeout must be at least one millisecond.",
                ),
            ),
            b"flushwait" => (&mut self.flush_wait, flush_wait(value)),
            _ => return None,
        };
        Some(time.map(|time| *field = time).map_err(Cow::Borrowed))
    }

    fn set_number(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cow<'static, str>> {
        let count = |text: &'static str| u32::try_from(atoi(value)).map(Some).map_err(|_| text);
        match key {
            b"max" => self.max = count("Max must be a positive number")?,
            b"maxtotal" => self.max_total = count("Maxtotal must be a positive number")?,
            b"min" => self.min = count("Min must be a positive number")?,
            b"smax" => self.smax = count("Smax must be a positive number")?,
            b"lbset" => match u8::try_from(atoi(value)) {
                Ok(set @ 0..=99) => self.lbset = Some(set),
                _ => return Err("lbset must be between 0 and 99".into()),
            },
            b"iobuffersize" => self.io_buffer = Some(buffer(atol(value), "IOBufferSize")?),
            b"receivebuffersize" => {
                self.receive_buffer = Some(buffer(atoi(value).into(), "ReceiveBufferSize")?);
            }
            b"responsefieldsize" => {
                let text =
                    "ResponseFieldSize must be greater than 0 bytes, or 0 for system default.";
                let size = usize::try_from(atol(value)).map_err(|_| text)?;
                self.response_field = Some(if size == 0 { RESPONSE_FIELD_BYTES } else { size });
            }
            _ => return Err(UNKNOWN.into()),
        }
        Ok(())
    }
}

pub(super) fn switch(value: &[u8], name: &str) -> Result<bool, Cow<'static, str>> {
    match value.to_ascii_lowercase().as_slice() {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(format!("{name} must be On|Off").into()),
    }
}

fn word(value: &[u8], name: &str, bytes: usize) -> Result<Vec<u8>, Cow<'static, str>> {
    if value.len() >= bytes {
        return Err(format!("{name} length must be < {bytes} characters").into());
    }
    Ok(value.to_vec())
}

fn upgrade(value: &[u8]) -> Result<Vec<u8>, Cow<'static, str>> {
    if value.eq_ignore_ascii_case(b"ANY") {
        return Ok(b"*".to_vec());
    }
    word(value, "upgrade protocol", WORD_BYTES)
}

fn flush(value: &[u8]) -> Result<Flush, &'static str> {
    match value.to_ascii_lowercase().as_slice() {
        b"on" => Ok(Flush::On),
        b"off" => Ok(Flush::Off),
        b"auto" => Ok(Flush::Auto),
        _ => Err("flushpackets must be on|off|auto"),
    }
}

/// 0: the default.
fn flush_wait(value: &[u8]) -> Result<Option<Duration>, &'static str> {
    match u64::try_from(atoi(value)) {
        Ok(0) => Ok(None),
        Ok(ms @ ..=1000) => Ok(Some(Duration::from_millis(ms))),
        _ => Err("flushwait must be <= 1000, or 0 for system default of 10 millseconds."),
    }
}

fn load_factor(value: &[u8]) -> Result<u32, &'static str> {
    let digits = value.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'.')).count();
    let number = value.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
    let number: f64 = number.and_then(|digits| digits.parse().ok()).unwrap_or(0.0);
    let factor = (number * FACTOR_UNIT).min(f64::from(u32::MAX)) as u32;
    if !(100..=10_000).contains(&factor) {
        return Err("LoadFactor must be a number between 1..100");
    }
    Ok(factor)
}

fn buffer(bytes: i64, name: &str) -> Result<usize, Cow<'static, str>> {
    if bytes < BUFFER_MIN && bytes != 0 {
        return Err(format!("{name} must be >= 512 bytes, or 0 for system default.").into());
    }
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests;
