//! The parameters of health checks of a worker. mod_proxy_hcheck sets and uses them,
//! balancer-manager changes them.

use std::time::Duration;

/// The longest `hcuri`, bytes.
pub const URI_BYTES: usize = 63;
/// The least `hcinterval`.
pub const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// `hcinterval`, if it is not set.
pub const INTERVAL: Duration = Duration::from_secs(30);

/// `hcmethod`. Its number is its place in [`METHODS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// There are no checks.
    #[default]
    None,
    /// A connection.
    Tcp,
    /// OPTIONS, HTTP/1.0.
    Options,
    /// HEAD, HTTP/1.0.
    Head,
    /// GET, HTTP/1.0.
    Get,
    /// CPING of AJP.
    Cping,
    /// A method that Apache has reserved.
    Provider,
    /// OPTIONS, HTTP/1.1.
    Options11,
    /// HEAD, HTTP/1.1.
    Head11,
    /// GET, HTTP/1.1.
    Get11,
}

/// The methods by their names (`proxy_hcmethods`).
pub const METHODS: [(&str, Method); 10] = [
    ("NONE", Method::None),
    ("TCP", Method::Tcp),
    ("OPTIONS", Method::Options),
    ("HEAD", Method::Head),
    ("GET", Method::Get),
    ("CPING", Method::Cping),
    ("PROVIDER", Method::Provider),
    ("OPTIONS11", Method::Options11),
    ("HEAD11", Method::Head11),
    ("GET11", Method::Get11),
];

impl Method {
    /// The method of a name, in any case.
    pub fn of_name(name: &[u8]) -> Option<Method> {
        let is_it = |(known, _): &&(&str, Method)| known.as_bytes().eq_ignore_ascii_case(name);
        METHODS.iter().find(is_it).map(|(_, method)| *method)
    }

    /// The method of a number.
    pub fn of_number(number: u64) -> Method {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        METHODS.get(place).map_or(Method::None, |(_, method)| *method)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        METHODS.iter().zip(0..).find(|((_, method), _)| *method == self).map_or(0, |(_, at)| at)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        METHODS.iter().find(|(_, method)| *method == self).map_or("", |(name, _)| name)
    }

    /// Whether it can be used: CPING needs mod_proxy_ajp.
    pub fn is_available(self, has_ajp: bool) -> bool {
        match self {
            Method::Provider => false,
            Method::Cping => has_ajp,
            _ => true,
        }
    }
}

/// The parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checks {
    /// `hcmethod`
    pub method: Method,
    /// `hcinterval`
    pub interval: Duration,
    /// `hcpasses`
    pub passes: u32,
    /// `hcfails`
    pub fails: u32,
    /// `hcuri`
    pub uri: Vec<u8>,
    /// `hcexpr`: the name of a condition.
    pub condition: Vec<u8>,
}

impl Default for Checks {
    fn default() -> Checks {
        Checks {
            method: Method::None,
            interval: INTERVAL,
            passes: 1,
            fails: 1,
            uri: Vec::new(),
            condition: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (number, (name, method)) in (0..).zip(METHODS) {
            assert_eq!((method.number(), Method::of_number(number)), (number, method));
            assert_eq!((method.name(), Method::of_name(name.as_bytes())), (name, Some(method)));
        }
        assert_eq!(Method::of_number(99), Method::None);
    }
}
