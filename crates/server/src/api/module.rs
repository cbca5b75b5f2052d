//! Defines a module.
//!
//! A module has a name, two configuration types, rows (its directives) and hooks. This is all that
//! the server knows of it; `crates/modules/src/lib.rs` lists all modules.

use std::any::{Any, TypeId};
use std::marker::PhantomData;
use std::sync::Arc;

use crate::api::directive::{Cx, ErasedRow, Row};
use crate::api::hooks::{HookTable, Hooks};
use crate::api::missing::Missing;
use crate::merge::Merge;

/// A configuration type of a module: declared with [`config!`](crate::config), or `()`.
pub trait Config: Merge + Default + Clone + Send + Sync + 'static {}
impl<T: Merge + Default + Clone + Send + Sync + 'static> Config for T {}

/// The name of the core, whose configuration ([`crate::core`]) the phases read.
pub const CORE: &str = "core_module";

/// A module, as `LoadModule` names it.
pub trait Module: Sized + Send + Sync + 'static {
    /// The name in `LoadModule` lines and `IfModule`: `alias_module`.
    const NAME: &'static str;
    /// The file in Apache's tree, for `-l`, `IfModule` and the order of hooks: `mod_alias.c`.
    const FILE: &'static str;
    /// The configuration per server and virtual host (`create_server_config`).
    type Server: Config;
    /// The configuration per directory (`create_dir_config`).
    type Dir: Config;
    /// Whether it changes requests or takes memory by being loaded, without a directive: a
    /// configuration that names no modules at all does not have it.
    const ACTS_UNASKED: bool = false;
    /// Its directives, one row each.
    const DIRECTIVES: &'static [Row<Self>] = &[];
    /// Leaves out a directive of an `.htaccess`, as `AllowOverride Nonfatal=` asks. As in Apache,
    /// the file then has the module's configuration (`ap_set_config_vectors`).
    fn skipped(cx: &mut Cx<'_, '_, Self>) {
        cx.dir();
    }
    /// Registers its hooks; called once at startup.
    fn hooks(_hooks: &mut Hooks<'_, Self>) {}
}

/// A configuration value of any module.
pub type AnyConfig = dyn Any + Send + Sync;

/// A [`Module`] without its type, so that all of them fit in one list.
pub trait ErasedModule: Sync {
    /// [`Module::NAME`]
    fn name(&self) -> &'static str;
    /// [`Module::FILE`]
    fn file(&self) -> &'static str;
    /// The module as a missing one; `None` if it is implemented.
    fn missing(&self) -> Option<&Missing> {
        None
    }
    /// [`Module::ACTS_UNASKED`]
    fn acts_unasked(&self) -> bool {
        false
    }
    /// The id of the implementing type.
    fn type_id(&self) -> TypeId;
    /// Whether it has a configuration of the server or of directories.
    fn is_configured(&self) -> bool;
    /// The erased rows; `slot` is the module's in the registry.
    fn rows(&self, slot: usize) -> Vec<ErasedRow>;
    /// Registers the hooks; `slot` is the module's in the registry.
    fn register(&self, slot: usize, table: &mut HookTable);
    /// The default configurations: (server, directory).
    fn defaults(&self) -> (Arc<AnyConfig>, Arc<AnyConfig>);
    /// Merges two `Server` values.
    fn merge_server(&self, outer: &AnyConfig, inner: &AnyConfig) -> Option<Arc<AnyConfig>>;
    /// Merges two `Dir` values.
    fn merge_dir(&self, outer: &AnyConfig, inner: &AnyConfig) -> Option<Arc<AnyConfig>>;
}

struct Of<M>(PhantomData<fn() -> M>);

/// The list entry of a module: `module::<Alias>()`.
pub const fn module<M: Module>() -> &'static dyn ErasedModule {
    &Of::<M>(PhantomData)
}

fn merge_any<T: Config>(outer: &AnyConfig, inner: &AnyConfig) -> Option<Arc<AnyConfig>> {
    let (outer, inner) = (outer.downcast_ref::<T>()?, inner.downcast_ref::<T>()?);
    Some(Arc::new(T::merge(outer, inner)))
}

impl<M: Module> ErasedModule for Of<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }
    fn file(&self) -> &'static str {
        M::FILE
    }
    fn acts_unasked(&self) -> bool {
        M::ACTS_UNASKED
    }
    fn type_id(&self) -> TypeId {
        TypeId::of::<M>()
    }
    fn is_configured(&self) -> bool {
        TypeId::of::<(M::Server, M::Dir)>() != TypeId::of::<((), ())>()
    }
    fn rows(&self, slot: usize) -> Vec<ErasedRow> {
        M::DIRECTIVES.iter().map(|row| ErasedRow::of(row, slot)).collect()
    }
    fn register(&self, slot: usize, table: &mut HookTable) {
        M::hooks(&mut Hooks::new(slot, table));
    }
    fn defaults(&self) -> (Arc<AnyConfig>, Arc<AnyConfig>) {
        (Arc::new(M::Server::default()), Arc::new(M::Dir::default()))
    }
    fn merge_server(&self, outer: &AnyConfig, inner: &AnyConfig) -> Option<Arc<AnyConfig>> {
        merge_any::<M::Server>(outer, inner)
    }
    fn merge_dir(&self, outer: &AnyConfig, inner: &AnyConfig) -> Option<Arc<AnyConfig>> {
        merge_any::<M::Dir>(outer, inner)
    }
}
