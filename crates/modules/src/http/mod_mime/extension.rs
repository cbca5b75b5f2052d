//! The meaning of an extension, and its inheritance.

use std::collections::BTreeMap;

use server::merge::Merge;

/// A property of an extension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Meaning {
    /// Not mentioned: inherited.
    #[default]
    Unsaid,
    /// `Remove…`: not inherited.
    Removed,
    /// `Add…`
    Is(Vec<u8>),
}

impl Meaning {
    /// The value, if there is one.
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
    /// The properties of an extension.
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
        /// `AddInputFilter`: names separated by `;`.
        pub input_filters: Meaning,
        /// `AddOutputFilter`
        pub output_filters: Meaning,
    }
}

/// Extensions by name, in lower case without the dot.
#[derive(Clone, Default)]
pub struct Extensions(BTreeMap<Vec<u8>, Extension>);

impl Extensions {
    /// The extension `name`, for editing; a leading dot is ignored.
    pub fn edit(&mut self, name: &[u8]) -> &mut Extension {
        let name = name.strip_prefix(b".").unwrap_or(name);
        self.0.entry(name.to_ascii_lowercase()).or_default()
    }

    /// The properties of an extension in lower case.
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

/// `MultiviewsMatch`: which files can be variants for mod_negotiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultiviewsMatch {
    /// `Any`: unknown extensions are allowed.
    pub any: bool,
    /// `Handlers`: extensions with a handler are allowed.
    pub handlers: bool,
    /// `Filters`: extensions with a filter are allowed.
    pub filters: bool,
}
