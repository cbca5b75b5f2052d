//! The filters of a request, which modules add and remove.

use std::borrow::Cow;

use super::Request;
use crate::api::filter::{Attached, KnownFilter, OutputFilter, Stage};
use crate::log::Level;

/// The names of a subrequest's input filters.
#[derive(Clone, Default)]
pub(crate) struct InputFilters(Vec<Vec<u8>>);

impl Request {
    /// Attaches an output filter after those of its stage.
    pub fn add_filter(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        stage: Stage,
        filter: Box<dyn OutputFilter>,
    ) {
        let at = self.response.filters.partition_point(|attached| attached.stage <= stage);
        self.response.filters.insert(at, Attached { name: name.into(), stage, filter });
    }

    /// Attaches a registered output filter by name; an unknown name is logged.
    pub fn add_filter_named(&mut self, name: &[u8]) {
        let Some(known) = self.engine.server.filter(name) else {
            return self.log_unknown_filter(name);
        };
        let Some(filter) = known.make(self) else { return };
        match known {
            KnownFilter::OfModule(def) => self.add_filter(def.name, def.stage, filter),
            KnownFilter::Defined(def) => self.add_filter(def.name.clone(), def.stage, filter),
        }
    }

    /// Wraps the body in a registered input filter; an unknown name is logged. A subrequest has no
    /// body: its filters are those of a request that takes over its results.
    pub fn add_input_filter_named(&mut self, name: &[u8]) {
        let of_module = self.engine.server.registry.hooks.input_filter(name).cloned();
        let defined = self.engine.server.defined_input_filter(name);
        if of_module.is_none() && defined.is_none() {
            return self.log_unknown_filter(name);
        }
        if self.main.is_some() {
            let mut names = self.kept::<InputFilters>().cloned().unwrap_or_default();
            names.0.push(name.to_vec());
            return self.keep(names);
        }
        if self.body_in.is_empty() {
            return;
        }
        let filter = match (of_module, defined) {
            (Some(def), _) => (def.make)(self),
            (None, Some(def)) => (def.make)(self, &def.name),
            (None, None) => None,
        };
        if let Some(filter) = filter {
            self.body_in.wrap(filter);
        }
    }

    /// Source: `add_any_filter` (server/util_filter.c).
    fn log_unknown_filter(&self, name: &[u8]) {
        self.log_core(Level::Error, 82, "an unknown filter was not added", Some(name));
    }

    /// Takes over the filters of a subrequest, ahead of its own in each stage.
    pub(crate) fn adopt_filters(&mut self, mut filters: Vec<Attached>, of_input: InputFilters) {
        for name in of_input.0 {
            self.add_input_filter_named(&name);
        }
        if filters.is_empty() {
            return;
        }
        filters.append(&mut self.response.filters);
        filters.sort_by_key(|attached| attached.stage);
        self.response.filters = filters;
    }

    /// Removes a filter by name.
    pub fn remove_filter(&mut self, name: &str) {
        self.response.filters.retain(|attached| !attached.name.eq_ignore_ascii_case(name));
    }
}
