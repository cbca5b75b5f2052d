//! ProxyPass and ProxyPassMatch. `add_pass`.

use pcre::Regex;

use super::target::split_at_text;
use super::{Target, balancer, worker};

/// A line of ProxyPass or ProxyPassMatch.
#[derive(Clone)]
pub struct Mapping {
    /// Which paths it is for.
    pub from: From,
    /// Where they go; `None` for `!`.
    pub target: Option<Vec<u8>>,
    /// `nocanon`
    pub is_literal: bool,
    /// `interpolate`
    pub interpolates: bool,
    /// `noquery`
    pub drops_query: bool,
    /// `mapping=`
    pub form: PathForm,
    /// What the words say of the worker or the balancer.
    pub parameters: Parameters,
}

/// Which paths a mapping is for.
#[derive(Clone)]
pub enum From {
    /// Those with this beginning, or of this section.
    Prefix(Vec<u8>),
    /// Those that match.
    Regex(Regex),
}

/// The form of the path that a mapping is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathForm {
    /// Decoded.
    #[default]
    Decoded,
    /// `encoded`: as sent.
    Encoded,
    /// `servlet`: as sent, without the parameters of segments.
    Servlet,
}

/// The parameters of what a mapping goes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    /// Of a worker.
    Worker(Box<worker::Parameters>),
    /// Of a balancer.
    Balancer(Box<balancer::Parameters>),
}

const FORM: &str =
    "Invalid ProxyPass|ProxyPassMatch parameter. Parameter must be in the form 'key=value'.";
const NO_PATH: &str = "ProxyPass|ProxyPassMatch needs a path when not defined in a location";
const PATH_IN_LOCATION: &str =
    "ProxyPass|ProxyPassMatch can not have a path when defined in a location.";

impl Mapping {
    /// Reads the words after the path. `section` tells whether the path is that of a section.
    ///
    /// # Errors
    /// Apache's words.
    pub fn parse<'w>(
        from: From,
        words: impl IntoIterator<Item = &'w [u8]>,
        section: bool,
        knows: impl Fn(&[u8]) -> bool,
    ) -> Result<Mapping, String> {
        let mut words = words.into_iter();
        let url = words.next().ok_or(NO_PATH)?;
        let is_refusal = url == b"!";
        let starts_as_balancer =
            url.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"balancer:"));
        let parameters = match starts_as_balancer {
            true => Parameters::Balancer(Box::default()),
            false => Parameters::Worker(Box::default()),
        };
        let mut mapping = Mapping {
            from,
            target: (!is_refusal).then(|| url.to_vec()),
            is_literal: false,
            interpolates: false,
            drops_query: false,
            form: PathForm::Decoded,
            parameters,
        };
        for word in words {
            mapping.read(word, url, section, &knows)?;
        }
        Ok(mapping)
    }

    fn read(
        &mut self,
        word: &[u8],
        url: &[u8],
        section: bool,
        knows: &impl Fn(&[u8]) -> bool,
    ) -> Result<(), String> {
        match word.to_ascii_lowercase().as_slice() {
            b"nocanon" => self.is_literal = true,
            b"interpolate" => self.interpolates = true,
            b"noquery" => self.drops_query = true,
            _ => {
                let pair = split_at_text(word, b"=");
                let starts_as_path = url.first() == Some(&b'/');
                let text = if section && starts_as_path { PATH_IN_LOCATION } else { FORM };
                let (key, value) = pair.ok_or(text)?;
                return self.set(key, value, knows);
            }
        }
        Ok(())
    }

    fn set(
        &mut self,
        key: &[u8],
        value: &[u8],
        knows: &impl Fn(&[u8]) -> bool,
    ) -> Result<(), String> {
        if key.eq_ignore_ascii_case(b"mapping") {
            self.form = match value.to_ascii_lowercase().as_slice() {
                b"encoded" => PathForm::Encoded,
                b"servlet" => PathForm::Servlet,
                _ => return Err("unknown mapping".into()),
            };
            return Ok(());
        }
        let set = match &mut self.parameters {
            Parameters::Worker(worker) => worker.set(key, value),
            Parameters::Balancer(balancer) => balancer.set(key, value, knows),
        };
        set.map_err(|text| format!("ProxyPass {text}"))
    }

    /// Checks the URL, whose worker or balancer is to be made. One with captures in its host names
    /// none.
    ///
    /// # Errors
    /// Apache's words.
    pub fn check(&self) -> Result<(), String> {
        match (&self.target, &self.from) {
            (Some(url), From::Regex(_)) if url.contains(&b'$') => Ok(()),
            (Some(url), _) => match Target::parse(url) {
                Ok(_) => Ok(()),
                Err(text) => Err(format!("ProxyPass {text}")),
            },
            (None, _) => Ok(()),
        }
    }
}
