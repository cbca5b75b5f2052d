//! The configuration values of modules, one per slot, and the registry that assigns the slots.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use crate::api::directive::ErasedRow;
use crate::api::hooks::HookTable;
use crate::api::module::{AnyConfig, CORE, Config, ErasedModule, Module};

/// Whether something was mentioned; an `.htaccess` may mention it later.
#[derive(Default)]
pub struct Mentioned(AtomicBool);

impl Mentioned {
    /// Notes that it was mentioned.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was mentioned.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The active modules of a configuration, their rows, and their hooks in order.
pub struct Registry {
    modules: Vec<&'static dyn ErasedModule>,
    /// Those with a configuration, by slot.
    configured: Vec<&'static dyn ErasedModule>,
    /// All known modules, for messages.
    known: Vec<&'static dyn ErasedModule>,
    /// The slots of modules, sorted by their types.
    index: Vec<(TypeId, usize)>,
    /// The slot of the core, which every request needs several times.
    pub core: usize,
    rows: HashMap<String, ErasedRow>,
    server_defaults: Slots,
    dir_defaults: Slots,
    /// Whether an expression uses the client's name (`REMOTE_HOST`), which must be looked up
    /// beforehand.
    pub names_client: Mentioned,
    /// The same for the user name that the client's host reports (`REMOTE_IDENT`).
    pub names_user_of_host: Mentioned,
    /// Whether clients' hosts may be asked for it (`IdentityCheck`).
    pub asks_user_of_host: Mentioned,
    /// Whether a directive reads a variable that programs and pages get.
    pub names_variables: Mentioned,
    /// Every hook, provider and filter of the active modules.
    pub hooks: HookTable,
}

impl Registry {
    /// Returns a registry of `modules` in load order; hooks are sorted by rank and by after/before.
    pub fn new(modules: Vec<&'static dyn ErasedModule>) -> Registry {
        let mut rows = HashMap::new();
        let mut hooks = HookTable::default();
        let mut index = Vec::new();
        // The slots of the others come last: the values of hosts and sections end before them.
        let (configured, others): (Vec<_>, Vec<_>) =
            modules.iter().copied().partition(|module| module.is_configured());
        let mut slots = (0..configured.len(), configured.len()..configured.len() + others.len());
        for module in &modules {
            let slots = if module.is_configured() { &mut slots.0 } else { &mut slots.1 };
            let Some(slot) = slots.next() else { continue };
            for row in module.rows(slot) {
                rows.entry(row.name.to_ascii_lowercase()).or_insert(row);
            }
            module.register(slot, &mut hooks);
            index.push((module.type_id(), slot));
        }
        index.sort_unstable();
        hooks.sort(&modules.iter().map(|module| module.file()).collect::<Vec<_>>());
        let core = configured.iter().position(|module| module.name() == CORE);
        let (server, dir) = configured.iter().map(|module| module.defaults()).unzip();
        Registry {
            core: core.unwrap_or(0),
            index,
            rows,
            modules,
            configured,
            known: Vec::new(),
            server_defaults: Slots::of(server),
            dir_defaults: Slots::of(dir),
            names_client: Mentioned::default(),
            names_user_of_host: Mentioned::default(),
            asks_user_of_host: Mentioned::default(),
            names_variables: Mentioned::default(),
            hooks,
        }
    }

    /// Adds modules that are known but not active.
    #[must_use]
    pub fn knowing(mut self, known: Vec<&'static dyn ErasedModule>) -> Registry {
        self.known = known;
        self
    }

    /// All known modules, active or not.
    pub fn known(&self) -> &[&'static dyn ErasedModule] {
        &self.known
    }

    /// The active modules in load order.
    pub fn modules(&self) -> &[&'static dyn ErasedModule] {
        &self.modules
    }

    /// The slot of a module, if it is active.
    pub fn slot_of<M: Module>(&self) -> Option<usize> {
        let found = self.index.binary_search_by_key(&TypeId::of::<M>(), |(id, _)| *id);
        self.index.get(found.ok()?).map(|(_, slot)| *slot)
    }

    /// Whether a module is active, by `alias_module` or `mod_alias.c`.
    pub fn is_active(&self, name: &str) -> bool {
        self.modules.iter().any(|module| module.name() == name || module.file() == name)
    }

    /// The row of a directive; names are case-insensitive.
    pub fn row(&self, name: &str) -> Option<&ErasedRow> {
        self.rows.get(&name.to_ascii_lowercase())
    }

    /// All rows, in unspecified order.
    pub fn rows(&self) -> impl Iterator<Item = &ErasedRow> {
        self.rows.values()
    }

    /// Default server configurations.
    pub fn empty_server(&self) -> Slots {
        self.server_defaults.clone()
    }

    /// Default directory configurations.
    pub fn empty_dir(&self) -> Slots {
        self.dir_defaults.clone()
    }

    /// Merges the server configurations of virtual hosts with those of the main server, module by
    /// module. Hosts share the result for a module that they do not mention. It differs from the
    /// main server's value, part of which belongs to the main server alone (`ServerName`).
    pub fn merge_hosts<'s>(&self, main: &Slots, hosts: impl Iterator<Item = &'s mut Slots>) {
        let merge = |slot: usize, inner: &Arc<AnyConfig>| {
            self.configured.get(slot)?.merge_server(&**main.any(slot), &**inner)
        };
        let defaults = &self.server_defaults;
        let unsaid = defaults.combine(defaults, |slot, default, _| merge(slot, default));
        for host in hosts {
            let of_host = |slot, inner: &Arc<AnyConfig>, shared: &Arc<AnyConfig>| {
                let is_unsaid = Arc::ptr_eq(inner, defaults.any(slot));
                if is_unsaid { Some(shared.clone()) } else { merge(slot, inner) }
            };
            *host = host.combine(&unsaid, of_host);
        }
    }

    /// Merges a section's configurations into those of a request, module by module. Modules that
    /// the section does not mention are shared. The reverse does not hold: a rule may drop or
    /// rebase values that only the section mentions.
    pub fn merge_dir(&self, outer: &Slots, inner: &Slots) -> Slots {
        self.merge(outer, inner, false)
    }

    /// Merges the configurations of two sections. If one of them does not mention a module, the
    /// other's is kept unchanged: Apache creates a section's configuration only for a directive.
    pub fn join_dir(&self, first: &Slots, second: &Slots) -> Slots {
        self.merge(first, second, true)
    }

    fn merge(&self, outer: &Slots, inner: &Slots, are_sections: bool) -> Slots {
        if inner.same(&self.dir_defaults) {
            return outer.clone();
        }
        outer.combine(inner, |slot, outer, inner| {
            let default = self.dir_defaults.any(slot);
            if Arc::ptr_eq(inner, default) {
                return Some(outer.clone());
            }
            if are_sections && Arc::ptr_eq(outer, default) {
                return Some(inner.clone());
            }
            self.configured.get(slot)?.merge_dir(&**outer, &**inner)
        })
    }
}

/// A value for each active module that has a configuration, shared until it is edited.
///
/// A place configures a few modules, and a server can have thousands of places: the values are in
/// pages, and places share pages with equal values.
#[derive(Clone)]
pub struct Slots(Arc<[Page]>);

/// A place has one pointer for a page, so its size is part of the type; [`NOTHING`] fills the last.
type Page = Arc<Values>;
type Values = [Arc<AnyConfig>; PAGE_SLOTS];

/// Values in a page.
const PAGE_SLOTS: usize = 8;

/// The value of modules without a configuration, whose slots are behind all pages.
static NOTHING: LazyLock<Arc<AnyConfig>> = LazyLock::new(|| Arc::new(()));

impl Slots {
    fn of(values: Vec<Arc<AnyConfig>>) -> Slots {
        Slots(values.chunks(PAGE_SLOTS).map(page_of).collect())
    }

    /// The value in a slot; `None` only if `T` is not the slot's type.
    pub fn get<T: Config>(&self, slot: usize) -> Option<&T> {
        self.any(slot).downcast_ref::<T>()
    }

    /// The shared value in a slot.
    pub fn share<T: Config>(&self, slot: usize) -> Option<Arc<T>> {
        self.any(slot).clone().downcast::<T>().ok()
    }

    /// The value in a slot, for writing.
    pub fn edit<T: Config>(&mut self, slot: usize) -> Option<&mut T> {
        let value = self.any_mut(slot)?;
        if Arc::get_mut(value).is_none() {
            let own = value.downcast_ref::<T>()?.clone();
            *value = Arc::new(own);
        }
        Arc::get_mut(value)?.downcast_mut::<T>()
    }

    /// The value in a slot, of any type: `()` for a module without a configuration.
    pub(crate) fn any(&self, slot: usize) -> &Arc<AnyConfig> {
        let page = self.0.get(slot / PAGE_SLOTS);
        page.and_then(|page| page.get(slot % PAGE_SLOTS)).unwrap_or_else(|| &NOTHING)
    }

    /// The same, to be replaced.
    pub(crate) fn any_mut(&mut self, slot: usize) -> Option<&mut Arc<AnyConfig>> {
        let page = Arc::make_mut(&mut self.0).get_mut(slot / PAGE_SLOTS)?;
        Arc::make_mut(page).get_mut(slot % PAGE_SLOTS)
    }

    /// The addresses of all values, which identify the configuration.
    pub(crate) fn addresses(&self) -> Vec<*const ()> {
        let values = self.0.iter().flat_map(|page| page.iter());
        values.map(|value| Arc::as_ptr(value).cast()).collect()
    }

    /// Whether both share every value, and thus are the same configuration.
    pub fn same(&self, other: &Slots) -> bool {
        let mut pages = self.0.iter().zip(other.0.iter());
        Arc::ptr_eq(&self.0, &other.0) || pages.all(|(one, other)| are_same(one, other))
    }

    /// Combines the values of both by `make`, slot by slot. A page that results in one of the two
    /// inputs is shared with it.
    fn combine(
        &self,
        other: &Slots,
        make: impl Fn(usize, &Arc<AnyConfig>, &Arc<AnyConfig>) -> Option<Arc<AnyConfig>>,
    ) -> Slots {
        let pages = self.0.iter().zip(other.0.iter()).enumerate();
        let pages = pages.map(|(number, (of_self, of_other))| {
            let mut values = of_self.iter().zip(of_other.iter()).enumerate().map(|(at, (a, b))| {
                make(number * PAGE_SLOTS + at, a, b).unwrap_or_else(|| NOTHING.clone())
            });
            let made = std::array::from_fn(|_| values.next().unwrap_or_else(|| NOTHING.clone()));
            let mut inputs = [of_self, of_other].into_iter();
            let same = inputs.find(|page| are_same(page, &made));
            same.cloned().unwrap_or_else(|| Arc::new(made))
        });
        Slots(pages.collect())
    }
}

fn page_of(values: &[Arc<AnyConfig>]) -> Page {
    Arc::new(std::array::from_fn(|at| values.get(at).unwrap_or_else(|| &NOTHING).clone()))
}

fn are_same(one: &Values, other: &Values) -> bool {
    one.iter().zip(other).all(|(a, b)| Arc::ptr_eq(a, b))
}
