//! Inheritance of configuration: the *type* of each field determines its rule.
//!
//! A module's configuration is declared with [`config!`](crate::config), which merges outer and
//! inner field by field. A rule that no type here expresses (such as the `+` and `-` of `Options`)
//! is a type of its own that implements [`Merge`], next to the directive.

use std::collections::BTreeMap;

/// Combines an outer configuration with an inner one, like Apache's `create_dir_config` /
/// `merge_dir_config` pairs. `outer` comes first (server, parent directory), and `inner` overrides
/// it.
pub trait Merge: Sized {
    /// The configuration in force where both apply.
    fn merge(outer: &Self, inner: &Self) -> Self;
}

/// A single value: the inner one wins if it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T>(Option<T>);

impl<T> Default for Setting<T> {
    fn default() -> Self {
        Setting(None)
    }
}

impl<T> Setting<T> {
    /// Sets the value; a later directive in the same section replaces an earlier one.
    pub fn set(&mut self, value: T) {
        self.0 = Some(value);
    }

    /// Resets to "not set".
    pub fn unset(&mut self) {
        self.0 = None;
    }

    /// The value, if it is set.
    pub fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }

    /// The value for editing, if it is set.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut()
    }

    /// Whether a directive has set it.
    pub fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// The value, or the built-in default.
    pub fn or(&self, default: T) -> T
    where
        T: Copy,
    {
        self.0.unwrap_or(default)
    }

    /// The value, or the built-in default, by reference.
    pub fn or_ref<'a>(&'a self, default: &'a T) -> &'a T {
        self.0.as_ref().unwrap_or(default)
    }
}

impl<T: Clone> Merge for Setting<T> {
    fn merge(outer: &Self, inner: &Self) -> Self {
        if inner.0.is_some() { inner.clone() } else { outer.clone() }
    }
}

macro_rules! list_rule {
    ($(#[$doc:meta])* $name:ident, $outer:ident, $inner:ident => $merge:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name<T>(pub Vec<T>);

        impl<T> Default for $name<T> {
            fn default() -> Self {
                $name(Vec::new())
            }
        }

        impl<T> std::ops::Deref for $name<T> {
            type Target = Vec<T>;
            fn deref(&self) -> &Vec<T> {
                &self.0
            }
        }

        impl<T> std::ops::DerefMut for $name<T> {
            fn deref_mut(&mut self) -> &mut Vec<T> {
                &mut self.0
            }
        }

        impl<T: Clone> Merge for $name<T> {
            fn merge($outer: &Self, $inner: &Self) -> Self {
                $name($merge)
            }
        }
    };
}

list_rule! {
    /// A list: the outer entries first, then the inner ones.
    Append, outer, inner => outer.0.iter().chain(&inner.0).cloned().collect()
}
list_rule! {
    /// A list: the inner entries first, then the outer ones.
    Prepend, outer, inner => inner.0.iter().chain(&outer.0).cloned().collect()
}
list_rule! {
    /// A list that replaces the outer one as soon as it has an entry.
    Replace, outer, inner => if inner.0.is_empty() { outer.0.clone() } else { inner.0.clone() }
}

/// How many entries of [`Supplant`] replace outer ones; mod_ssl's `CERTKEYS_IDX_MAX` + 1.
const SUPPLANTING: usize = 3;

list_rule! {
    /// A list: the first inner entries replace outer ones, followed by the remaining outer ones and
    /// the other inner ones (`modssl_ctx_cfg_merge_certkeys_array`).
    Supplant, outer, inner => {
        let (first, more) = inner.0.split_at(inner.0.len().min(SUPPLANTING));
        first.iter().chain(outer.0.iter().skip(first.len())).chain(more).cloned().collect()
    }
}

/// A map: the inner entry wins, key by key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlay<K: Ord, V>(pub BTreeMap<K, V>);

impl<K: Ord, V> Default for Overlay<K, V> {
    fn default() -> Self {
        Overlay(BTreeMap::new())
    }
}

impl<K: Ord, V> std::ops::Deref for Overlay<K, V> {
    type Target = BTreeMap<K, V>;
    fn deref(&self) -> &BTreeMap<K, V> {
        &self.0
    }
}

impl<K: Ord, V> std::ops::DerefMut for Overlay<K, V> {
    fn deref_mut(&mut self) -> &mut BTreeMap<K, V> {
        &mut self.0
    }
}

impl<K: Ord + Clone, V: Clone> Merge for Overlay<K, V> {
    fn merge(outer: &Self, inner: &Self) -> Self {
        let mut all = outer.0.clone();
        all.extend(inner.0.iter().map(|(key, value)| (key.clone(), value.clone())));
        Overlay(all)
    }
}

/// A value that is not inherited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own<T>(pub T);

impl<T: Clone> Merge for Own<T> {
    fn merge(_outer: &Self, inner: &Self) -> Self {
        inner.clone()
    }
}

/// A value of the outermost place (the main server): inner ones are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outermost<T>(pub T);

impl<T: Clone> Merge for Outermost<T> {
    fn merge(outer: &Self, _inner: &Self) -> Self {
        outer.clone()
    }
}

impl Merge for () {
    fn merge(_outer: &Self, _inner: &Self) -> Self {}
}

/// Declares a configuration type whose merge is that of its fields.
///
/// ```
/// server::config! {
///     /// Per-directory configuration of `mod_example`.
///     pub struct Dir {
///         /// `ExampleEngine`
///         pub engine: server::merge::Setting<bool>,
///     }
/// }
/// ```
#[macro_export]
macro_rules! config {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$fmeta:meta])* $fvis:vis $field:ident : $type:ty),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Default)]
        $vis struct $name { $($(#[$fmeta])* $fvis $field: $type),* }

        impl $crate::merge::Merge for $name {
            fn merge(outer: &Self, inner: &Self) -> Self {
                use $crate::merge::Merge;
                $name { $($field: Merge::merge(&outer.$field, &inner.$field)),* }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_carries_its_rule() {
        let mut outer = Setting::default();
        outer.set(1);
        assert_eq!(Setting::merge(&outer, &Setting::default()).get(), Some(&1));
        let a = Append(vec![1]);
        let b = Append(vec![2]);
        assert_eq!(Append::merge(&a, &b).0, [1, 2]);
        assert_eq!(Prepend::merge(&Prepend(vec![1]), &Prepend(vec![2])).0, [2, 1]);
        assert_eq!(Replace::merge(&Replace(vec![1]), &Replace(vec![])).0, [1]);
        let merged = Supplant::merge(&Supplant(vec![1, 2]), &Supplant(vec![3]));
        assert_eq!(merged.0, [3, 2]);
        let merged = Supplant::merge(&Supplant(vec![1]), &Supplant(vec![2, 3, 4, 5]));
        assert_eq!(merged.0, [2, 3, 4, 5]);
    }
}
