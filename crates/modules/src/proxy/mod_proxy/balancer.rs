//! The parameters of a balancer.
//! <https://httpd.apache.org/docs/2.4/mod/mod_proxy.html#proxypass>, `set_balancer_param`.

use std::borrow::Cow;
use std::time::Duration;

use super::worker::switch;
use crate::atoi::atoi;

/// `APR_UUID_FORMATTED_LENGTH`: the longest nonce.
const NONCE_BYTES: usize = 36;
/// The most members that may be added.
const GROWTH_MAX: i32 = 100;

/// What the words of a line have set. `None`: not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// `stickysession`: the names of the cookie and of the path parameter.
    pub sticky: Option<(Vec<u8>, Vec<u8>)>,
    /// `stickysessionsep`; `Some(None)`: none.
    pub sticky_separator: Option<Option<u8>>,
    /// `nofailover`
    pub no_failover: Option<bool>,
    /// `timeout`
    pub timeout: Option<Duration>,
    /// `maxattempts`; 0: the number of members less one.
    pub max_attempts: Option<u32>,
    /// `lbmethod`
    pub method: Option<Vec<u8>>,
    /// `scolonpathdelim`
    pub semicolon_delimits: Option<bool>,
    /// `failonstatus`
    pub fail_on_status: Vec<u16>,
    /// `failontimeout`
    pub fail_on_timeout: Option<bool>,
    /// `nonce`; empty: none.
    pub nonce: Option<Vec<u8>>,
    /// `growth`
    pub growth: Option<u8>,
    /// `forcerecovery`
    pub force_recovery: Option<bool>,
}

impl Parameters {
    /// Sets the parameter `key`, in any case. `knows` tells whether there is a method of a name.
    ///
    /// # Errors
    /// Apache's words, without the directive's name.
    pub fn set(
        &mut self,
        key: &[u8],
        value: &[u8],
        knows: impl Fn(&[u8]) -> bool,
    ) -> Result<(), Cow<'static, str>> {
        match key.to_ascii_lowercase().as_slice() {
            b"stickysession" => self.sticky = Some(sticky(value)),
            b"stickysessionsep" => self.sticky_separator = Some(separator(value)?),
            b"nofailover" => self.no_failover = Some(switch(value, "failover")?),
            b"timeout" => match u64::try_from(atoi(value)) {
                Ok(seconds @ 1..) => self.timeout = Some(Duration::from_secs(seconds)),
                _ => return Err("timeout must be at least one second".into()),
            },
            b"maxattempts" => {
                let text = "maximum number of attempts must be a positive number";
                self.max_attempts = Some(u32::try_from(atoi(value)).map_err(|_| text)?);
            }
            b"lbmethod" if knows(value) => self.method = Some(value.to_vec()),
            b"lbmethod" => return Err("unknown lbmethod".into()),
            b"scolonpathdelim" => {
                self.semicolon_delimits = Some(switch(value, "scolonpathdelim")?);
            }
            b"failonstatus" => self.fail_on_status = statuses(value)?,
            b"failontimeout" => self.fail_on_timeout = Some(switch(value, "failontimeout")?),
            b"nonce" => self.nonce = Some(nonce(value)?),
            b"growth" => match atoi(value) {
                growth @ 1..=GROWTH_MAX => self.growth = u8::try_from(growth).ok(),
                _ => return Err("growth must be between 1 and 100".into()),
            },
            b"forcerecovery" => self.force_recovery = Some(switch(value, "forcerecovery")?),
            _ => return Err("unknown Balancer parameter".into()),
        }
        Ok(())
    }
}

/// The names before and after `|`; one name is both.
pub fn sticky(value: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let bar = value.iter().position(|byte| *byte == b'|').and_then(|at| value.split_at_checked(at));
    match bar {
        Some((cookie, path)) => (cookie.to_vec(), path.get(1..).unwrap_or_default().to_vec()),
        None => (value.to_vec(), value.to_vec()),
    }
}

fn separator(value: &[u8]) -> Result<Option<u8>, &'static str> {
    match value {
        [one] => Ok(Some(*one)),
        value if value.eq_ignore_ascii_case(b"off") => Ok(None),
        _ => Err("stickysessionsep must be a single character or Off"),
    }
}

fn statuses(value: &[u8]) -> Result<Vec<u16>, &'static str> {
    let words = value.split(|byte| matches!(byte, b',' | b' ')).filter(|word| !word.is_empty());
    let status = |word| match u16::try_from(atoi(word)) {
        Ok(status @ 100..=599) => Ok(status),
        _ => Err("failonstatus must be one or more HTTP response codes"),
    };
    words.map(status).collect()
}

fn nonce(value: &[u8]) -> Result<Vec<u8>, &'static str> {
    if value.eq_ignore_ascii_case(b"None") {
        return Ok(Vec::new());
    }
    if value.len() > NONCE_BYTES {
        return Err("Provided nonce is too large");
    }
    Ok(value.to_vec())
}

#[cfg(test)]
mod tests;
