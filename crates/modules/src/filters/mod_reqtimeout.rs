//! mod_reqtimeout: limits how slowly a client may send.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_reqtimeout.html>. The connection enforces the
//! limits ([`server::read_policy`]); this module only configures them.

use std::time::Duration;

use bstr::{BStr, ByteSlice};
use conf::{Arg, word};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::hooks::Hooks;
use server::merge::Setting;
use server::module::Module;
use server::read_policy::{ReadPolicy, Stage};

/// `mod_reqtimeout.c`
pub struct Reqtimeout;

impl Module for Reqtimeout {
    const NAME: &'static str = "reqtimeout_module";
    const FILE: &'static str = "mod_reqtimeout.c";
    type Server = ServerConfig;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Reqtimeout>] = &[Row::<Reqtimeout>::new(
        "RequestReadTimeout",
        Takes::Raw(request_read_timeout),
        "[handshake=timeout[-maxtimeout][,MinRate=rate]] \
         [header=timeout[-maxtimeout][,MinRate=rate]] \
         [body=timeout[-maxtimeout][,MinRate=rate]]",
        "Limits the time for a TLS handshake, a request's head and its body; data at a minimum \
         rate extends it.",
    )
    .default("handshake=0 header=20-40,MinRate=500 body=20,MinRate=500")];

    fn hooks(hooks: &mut Hooks<'_, Reqtimeout>) {
        hooks.read_policy(policy);
    }
}

server::config! {
    /// Per-host configuration.
    pub struct ServerConfig {
        /// `handshake=`
        pub handshake: Setting<Stage>,
        /// `header=`
        pub header: Setting<Stage>,
        /// `body=`
        pub body: Setting<Stage>,
    }
}

/// The default for heads: 20 seconds, extended up to 40 at 500 bytes a second.
const HEADER: Stage =
    Stage { initial: Duration::from_secs(20), most: Some(Duration::from_secs(40)), min_rate: 500 };

/// The default for bodies: 20 seconds, extended as long as 500 bytes a second arrive.
const BODY: Stage = Stage { initial: Duration::from_secs(20), most: None, min_rate: 500 };

fn policy(config: &ServerConfig) -> ReadPolicy {
    ReadPolicy {
        handshake: config.handshake.or(Stage::default()),
        header: config.header.or(HEADER),
        body: config.body.or(BODY),
    }
}

/// Source: `set_reqtimeouts` (modules/filters/mod_reqtimeout.c).
fn request_read_timeout(cx: &mut Cx<'_, '_, Reqtimeout>, raw: &Arg) -> Set {
    let mut rest = raw.text.trim_ascii_start();
    while let Some((text, length)) = word::first_word(rest) {
        rest = rest.get(length..).unwrap_or_default().trim_ascii_start();
        let Some((key, value)) = text.split_once_str(b"=") else {
            let form = "Invalid RequestReadTimeout parameter. Parameter must be in the form \
                        'key=value'";
            return Err(Fault::new(form).at(raw));
        };
        stage(cx.server(), key, value).map_err(|why| {
            let (key, value) = (BStr::new(key), BStr::new(value));
            Fault::new(format!("RequestReadTimeout: {key}={value}: {why}")).at(raw)
        })?;
    }
    Ok(())
}

fn stage(config: &mut ServerConfig, key: &[u8], value: &[u8]) -> Result<(), String> {
    let stage = match key.to_ascii_lowercase().as_slice() {
        b"handshake" => &mut config.handshake,
        b"header" => &mut config.header,
        b"body" => &mut config.body,
        _ => return Err("Unknown RequestReadTimeout parameter".to_owned()),
    };
    stage.set(limits(value)?);
    Ok(())
}

/// Parses `timeout[-maxtimeout][,MinRate=rate]`: all limits of a stage, which are inherited only as
/// a whole.
fn limits(value: &[u8]) -> Result<Stage, String> {
    const RATE: &[u8] = b",minrate=";
    let seconds = |count: u32| Duration::from_secs(u64::from(count));
    let Some(at) = value.to_ascii_lowercase().find(RATE) else {
        if value.contains(&b'-') {
            return Err("Must set MinRate option if using timeout range".to_owned());
        }
        return Ok(Stage { initial: seconds(number(value)?), most: None, min_rate: 0 });
    };
    let times = value.get(..at).unwrap_or_default();
    let min_rate = number(value.get(at + RATE.len()..).unwrap_or_default())?;
    if min_rate == 0 {
        return Err("Minimum data rate must be larger than 0".to_owned());
    }
    let (initial, most) = match times.split_once_str(b"-") {
        Some((initial, most)) => (initial, Some(number(most)?)),
        None => (times, None),
    };
    let initial = number(initial)?;
    if most.is_some_and(|most| most <= initial) {
        return Err("Maximum timeout must be larger than initial timeout".to_owned());
    }
    Ok(Stage { initial: seconds(initial), most: most.map(seconds), min_rate })
}

/// Parses a number that is the whole text, as C's `strtol`.
fn number(text: &[u8]) -> Result<u32, String> {
    let shown = BStr::new(text);
    let trimmed = text.trim_ascii_start();
    let (negative, digits) = match trimmed.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, trimmed),
    };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return Err(format!("Value '{shown}' not numerical"));
    }
    let (digits, rest) = digits.split_at(length);
    if !rest.is_empty() {
        return Err(format!("Cannot parse '{}'", BStr::new(rest)));
    }
    if negative {
        return Err("Value must be non-negative".to_owned());
    }
    let value = digits
        .iter()
        .try_fold(0u32, |value, digit| value.checked_mul(10)?.checked_add(u32::from(digit - b'0')));
    Ok(value.unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, value: &str) -> Result<ServerConfig, String> {
        let mut config = ServerConfig::default();
        stage(&mut config, key.as_bytes(), value.as_bytes()).map(|()| config)
    }

    #[test]
    fn a_stage_has_a_time_a_bound_and_a_rate() {
        let header = policy(&read("Header", "3-7,minrate=10").unwrap()).header;
        assert_eq!(header.initial, Duration::from_secs(3));
        assert_eq!(header.most, Some(Duration::from_secs(7)));
        assert_eq!(header.min_rate, 10);
        let body = policy(&read("body", "5").unwrap()).body;
        assert_eq!((body.initial, body.most), (Duration::from_secs(5), None));
        assert_eq!(policy(&ServerConfig::default()).header.min_rate, 500);
    }

    #[test]
    fn what_is_wrong_is_told_in_apaches_words() {
        let why = |key, value| read(key, value).err().unwrap_or_default();
        assert_eq!(why("foo", "3"), "Unknown RequestReadTimeout parameter");
        assert_eq!(why("body", ""), "Value '' not numerical");
        assert_eq!(why("body", "3x"), "Cannot parse 'x'");
        assert_eq!(why("body", "3-4"), "Must set MinRate option if using timeout range");
        let order = "Maximum timeout must be larger than initial timeout";
        assert_eq!(why("body", "4-3,MinRate=5"), order);
        assert_eq!(why("body", "4,MinRate=0"), "Minimum data rate must be larger than 0");
    }
}
