//! Providers: what a module offers to others by group and name (`ap_register_provider`).

use std::any::Any;
use std::sync::Arc;

use super::Hooks;
use crate::api::module::Module;
use crate::config::registry::{Registry, Slots};

/// Looks up a provider in a registry, when the configuration is read.
pub fn provider<T: Any + Send + Sync>(reg: &Registry, group: &str, name: &str) -> Option<Arc<T>> {
    reg.hooks.provider(group, name)
}

/// Providers that the configuration defines (`<AuthnProviderAlias>`), in addition to those of
/// modules.
#[derive(Clone, Default)]
pub struct DefinedProviders(Vec<DefinedProvider>);

#[derive(Clone)]
struct DefinedProvider {
    group: &'static str,
    name: String,
    value: Arc<dyn Any + Send + Sync>,
}

impl DefinedProviders {
    /// Adds a provider, replacing an earlier one of the same name.
    pub fn define<T: Any + Send + Sync>(&mut self, group: &'static str, name: String, value: T) {
        self.0.push(DefinedProvider { group, name, value: Arc::new(value) });
    }

    /// The provider of this name; names are case-insensitive.
    pub fn find<T: Any + Send + Sync>(&self, group: &str, name: &str) -> Option<Arc<T>> {
        let is_it = |of: &&DefinedProvider| of.group == group && of.name.eq_ignore_ascii_case(name);
        self.0.iter().rev().find(is_it)?.value.clone().downcast::<T>().ok()
    }
}

impl<M: Module> Hooks<'_, M> {
    /// Registers whether a host forwards requests for URLs of any scheme, which are otherwise
    /// invalid.
    pub fn forwards(&mut self, ask: fn(&M::Server) -> bool) {
        let slot = self.slot;
        let ask = move |server: &Slots| server.get::<M::Server>(slot).is_some_and(ask);
        self.table.forwards = Some(Box::new(ask));
    }

    /// Adds names of handlers that hooks without a name handle; one that ends in `:` is a prefix.
    pub fn names_handlers(&mut self, names: &[&'static str]) {
        self.table.handler_names.extend_from_slice(names);
    }
}
