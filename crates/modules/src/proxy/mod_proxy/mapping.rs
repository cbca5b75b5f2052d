//! ProxyPass and ProxyPassMatch. `add_pass`.

use pcre::Regex;

use super::target::split_at_text;

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

const FORM: &str =
    "Invalid ProxyPass|ProxyPassMatch parameter. Parameter must be in the form 'key=value'.";
const NO_PATH: &str = "ProxyPass|ProxyPassMatch needs a path when not defined in a location";
const PATH_IN_LOCATION: &str =
    "ProxyPass|ProxyPassMatch can not have a path when defined in a location.";

/// The words of a line of the form `key=value`, each key once.
pub type Words = Vec<(Vec<u8>, Vec<u8>)>;

impl Mapping {
    /// Reads the words after the path, and returns those about the worker or the balancer.
    /// `section` tells whether the path is that of a section.
    ///
    /// # Errors
    /// Apache's words.
    pub fn parse<'w>(
        from: From,
        words: impl IntoIterator<Item = &'w [u8]>,
        section: bool,
    ) -> Result<(Mapping, Words), String> {
        let mut words = words.into_iter();
        let url = words.next().ok_or(NO_PATH)?;
        let mut mapping = Mapping {
            from,
            target: (url != b"!").then(|| url.to_vec()),
            is_literal: false,
            interpolates: false,
            drops_query: false,
            form: PathForm::Decoded,
        };
        let mut pairs = Words::new();
        for word in words {
            match word.to_ascii_lowercase().as_slice() {
                b"nocanon" => mapping.is_literal = true,
                b"interpolate" => mapping.interpolates = true,
                b"noquery" => mapping.drops_query = true,
                _ => {
                    let starts_as_path = url.first() == Some(&b'/');
                    let text = if section && starts_as_path { PATH_IN_LOCATION } else { FORM };
                    let (key, value) = split_at_text(word, b"=").ok_or(text)?;
                    mapping.read(key, value, &mut pairs)?;
                }
            }
        }
        Ok((mapping, pairs))
    }

    fn read(&mut self, key: &[u8], value: &[u8], pairs: &mut Words) -> Result<(), String> {
        if !key.eq_ignore_ascii_case(b"mapping") {
            set_word(pairs, key, value);
            return Ok(());
        }
        self.form = match value.to_ascii_lowercase().as_slice() {
            b"encoded" => PathForm::Encoded,
            b"servlet" => PathForm::Servlet,
            _ => return Err("unknown mapping".into()),
        };
        Ok(())
    }

    /// Whether it has captures.
    pub fn is_pattern(&self) -> bool {
        matches!(self.from, From::Regex(_))
    }
}

/// Adds a word; a key that was there gets the new value.
pub(super) fn set_word(words: &mut Words, key: &[u8], value: &[u8]) {
    match words.iter_mut().find(|(own, _)| own.eq_ignore_ascii_case(key)) {
        Some((_, own)) => *own = value.to_vec(),
        None => words.push((key.to_vec(), value.to_vec())),
    }
}
