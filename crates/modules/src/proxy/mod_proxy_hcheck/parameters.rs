//! The parameters of workers and templates. Source: `set_worker_hc_param`.

use std::borrow::Cow;
use std::time::Duration;

use bstr::BStr;
use conf::values::{Unit, timeout};

use super::Settings;
use crate::atoi::atoi;
use crate::proxy::mod_proxy::checks::{Checks, INTERVAL_MIN, Method, URI_BYTES};

/// Sets the parameter `key`, in any case; `own` has the templates and conditions so far.
///
/// # Errors
/// Apache's words, without the directive's name.
pub fn set(
    checks: &mut Checks,
    own: &Settings,
    has_ajp: bool,
    key: &[u8],
    value: &[u8],
) -> Result<(), Cow<'static, str>> {
    let shown = BStr::new(value);
    match key.to_ascii_lowercase().as_slice() {
        b"hctemplate" => {
            let is_it = |name: &[u8]| name.eq_ignore_ascii_case(value);
            let template = own.templates.0.iter().find(|template| is_it(&template.name));
            let text = || format!("Unknown ProxyHCTemplate name: {shown}");
            *checks = template.ok_or_else(text)?.checks.clone();
        }
        b"hcmethod" => {
            let method = Method::of_name(value).ok_or("Unknown method")?;
            if !method.is_available(has_ajp) {
                return Err(format!("Health check method {shown} not (yet) implemented").into());
            }
            checks.method = method;
        }
        b"hcinterval" => checks.interval = interval(value)?,
        b"hcpasses" => checks.passes = count(value, "Passes must be a positive value")?,
        b"hcfails" => checks.fails = count(value, "Fails must be a positive value")?,
        b"hcuri" => {
            if value.len() > URI_BYTES {
                let most = URI_BYTES + 1;
                let text = format!("Health check uri length must be < {most} characters");
                return Err(text.into());
            }
            checks.uri = value.to_vec();
        }
        b"hcexpr" => {
            if !own.conditions.0.iter().any(|condition| is_same(&condition.name, value)) {
                return Err(format!("Unknown health check condition expr: {shown}").into());
            }
            checks.condition = value.to_vec();
        }
        _ => return Err("unknown Worker hcheck parameter".into()),
    }
    Ok(())
}

/// Names of conditions are those of a table of Apache's.
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.eq_ignore_ascii_case(other)
}

fn interval(value: &[u8]) -> Result<Duration, Cow<'static, str>> {
    let interval = match value {
        b"" => Duration::ZERO,
        value => timeout(value, Unit::Seconds).ok_or("Unparse-able hcinterval setting")?,
    };
    if interval < INTERVAL_MIN {
        return Err("Interval must be a positive value greater than 100ms".into());
    }
    Ok(interval)
}

fn count(value: &[u8], text: &'static str) -> Result<u32, &'static str> {
    u32::try_from(atoi(value)).map_err(|_| text)
}
