//! What an extension means, and how that is inherited.

use std::collections::BTreeMap;

use server::merge::Merge;

/// One thing an extension may say: set here, removed here, or not mentioned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Meaning {
    /// Not mentioned: what came from outside holds.
    #[default]
    Unsaid,
    /// `Remove…`: what came from outside is gone.
    Removed,
    /// `Add…`
    Is(Vec<u8>),
}

impl Meaning {
    /// The value, where there is one.
    pub fn get(&self) -> Option<&[u8]> {
        match self {
            Meaning::Is(value) => Some(value),
            Meaning::Unsaid | Meaning::Removed => None,
        }
    }
}

impl Merge for Meaning {
    fn merge(outer: &Self, inner: &Self) -> Self {
        match inner {
            Meaning::Unsaid => outer.clone(),
            Meaning::Removed | Meaning::Is(_) => inner.clone(),
        }
    }
}

server::config! {
    /// What an extension means.
    pub struct Extension {
        /// `AddType`
        pub media_type: Meaning,
        /// `AddEncoding`
        pub encoding: Meaning,
        /// `AddLanguage`
        pub language: Meaning,
        /// `AddHandler`
        pub handler: Meaning,
        /// `AddCharset`
        pub charset: Meaning,
        /// `AddInputFilter`: names, `;` between them.
        pub input_filters: Meaning,
        /// `AddOutputFilter`
        pub output_filters: Meaning,
    }
}

/// Extensions by name: lower case, without the dot.
#[derive(Clone, Default)]
pub struct Extensions(BTreeMap<Vec<u8>, Extension>);

impl Extensions {
    /// The extension called `name` (a leading dot does not count), for writing.
    pub fn edit(&mut self, name: &[u8]) -> &mut Extension {
        let name = name.strip_prefix(b".").unwrap_or(name);
        self.0.entry(name.to_ascii_lowercase()).or_default()
    }

    /// What an extension in lower case means.
    pub fn get(&self, name: &[u8]) -> Option<&Extension> {
        self.0.get(name)
    }
}

impl Merge for Extensions {
    fn merge(outer: &Self, inner: &Self) -> Self {
        let mut merged = outer.0.clone();
        for (name, extension) in &inner.0 {
            let both = merged.get(name).map(|outer| Extension::merge(outer, extension));
            merged.insert(name.clone(), both.unwrap_or_else(|| extension.clone()));
        }
        Extensions(merged)
    }
}

/// `MultiviewsMatch`: which files mod_negotiation may take as variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultiviewsMatch {
    /// `Any`: extensions that mean nothing are no obstacle.
    pub any: bool,
    /// `Handlers`: extensions that name a handler count.
    pub handlers: bool,
    /// `Filters`: extensions that name a filter count.
    pub filters: bool,
}
