//! Suggestions for an unknown name: a misspelling, or a module that is not active or not
//! implemented yet.

use conf::suggest;

use crate::api::directive::Fault;
use crate::api::missing;
use crate::api::module::ErasedModule;
use crate::config::build::Build;
use crate::config::registry::Registry;

/// The number of findings after which unknown names are not looked up.
pub(crate) const HINTS_MAX: usize = 50;

/// A suggestion for a directive that no active module has.
pub(crate) struct Hint {
    pub text: String,
    /// Whether the name is known exactly.
    pub is_it: bool,
    /// The missing module that has it.
    pub missing: Option<String>,
}

impl Hint {
    pub fn new(registry: &Registry, name: &str) -> Option<Hint> {
        let is_away = |module: &&&'static dyn ErasedModule| {
            module.missing().is_some() || !registry.is_active(module.name())
        };
        let away: Vec<(&str, &dyn ErasedModule)> = registry
            .known()
            .iter()
            .filter(is_away)
            .flat_map(|module| module.rows(0).into_iter().map(|row| (row.name, *module)))
            .collect();
        let names = registry.rows().map(|row| row.name).chain(away.iter().map(|row| row.0));
        let near = suggest(name, names)?;
        let is_it = near.eq_ignore_ascii_case(name);
        let owner = away.iter().find(|row| row.0 == near).map(|row| row.1);
        let belongs = owner.map(|owner| {
            let module = missing::of_manual(owner.name());
            match owner.missing() {
                Some(_) => format!("belongs to {module}, which Tamarack does not have yet"),
                None => format!("belongs to {module}, which requires LoadModule {}", owner.name()),
            }
        });
        let text = match (belongs, is_it) {
            (Some(belongs), true) => format!("{near} {belongs}"),
            (Some(belongs), false) => format!("did you mean {near}? It {belongs}"),
            (None, false) => format!("did you mean {near}?"),
            (None, true) => return None,
        };
        let missing = owner.and_then(|owner| owner.missing());
        Some(Hint { text, is_it, missing: missing.map(|module| module.of_manual()) })
    }
}

impl Build {
    /// The error for a provider that no active module has; `kind` is Apache's `Authn` or `Authz`.
    pub fn unknown_provider(&self, kind: &str, name: &str) -> Fault {
        let fault = Fault::new(format!("Unknown {kind} provider: {name}"));
        let mut missing = self.registry.known().iter().filter_map(|module| module.missing());
        match missing.find(|module| module.has_provider(name)) {
            Some(module) => {
                let module = module.of_manual();
                fault.help(format!("{name} belongs to {module}, which Tamarack does not have yet"))
            }
            None => fault,
        }
    }
}
