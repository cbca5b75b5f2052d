//! The meaning of an extension, and its inheritance.

use std::collections::BTreeMap;

use server::merge::Merge;

/// The media type of an extension: the last line of a section counts.
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

/// Another property of an extension. Of a section that adds and removes it, the removal counts,
/// whichever comes first, but only where the section merges with those before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Property {
    /// `Add…`
    value: Option<Vec<u8>>,
    /// `Remove…`
    is_removed: bool,
}

impl Property {
    /// Sets the value.
    pub fn add(&mut self, value: Vec<u8>) {
        self.value = Some(value);
    }

    /// Removes the value when the section merges with those before.
    pub fn remove(&mut self) {
        self.is_removed = true;
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<&[u8]> {
        self.value.as_deref()
    }
}

/// Source: `merge_mime_dir_configs`.
impl Merge for Property {
    fn merge(outer: &Self, inner: &Self) -> Self {
        let value = inner.value.as_ref().or(outer.value.as_ref()).filter(|_| !inner.is_removed);
        Property { value: value.cloned(), is_removed: false }
    }
}

server::config! {
    /// The properties of an extension.
    pub struct Extension {
        /// `AddType`
        pub media_type: Meaning,
        /// `AddEncoding`
        pub encoding: Property,
        /// `AddLanguage`
        pub language: Property,
        /// `AddHandler`
        pub handler: Property,
        /// `AddCharset`
        pub charset: Property,
        /// `AddInputFilter`: names separated by `;`.
        pub input_filters: Property,
        /// `AddOutputFilter`
        pub output_filters: Property,
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
        let none = Extension::default();
        let merged = |name: &Vec<u8>| {
            let [outer, inner] = [outer, inner].map(|all| all.0.get(name).unwrap_or(&none));
            (name.clone(), Extension::merge(outer, inner))
        };
        Extensions(outer.0.keys().chain(inner.0.keys()).map(merged).collect())
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
