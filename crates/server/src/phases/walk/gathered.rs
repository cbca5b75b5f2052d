//! The matching sections of a walk.
//!
//! They merge with each other first, and the result merges with the configuration before the walk
//! (`now_merged` in Apache's walks). The order matters: `AuthMerging And` in a section without a
//! `Require` takes over the rules of the section before it, and both apply in addition to the outer
//! ones.

use std::rc::Rc;
use std::sync::Arc;

use crate::config::section::Section;
use crate::engine::plan::{Layer, Part};
use crate::request::Request;

/// The sections so far.
#[derive(Clone, Default)]
pub(super) enum Gathered {
    #[default]
    None,
    One(Arc<Section>),
    Many(Rc<Layer>),
}

impl Gathered {
    /// Adds a matching section.
    pub fn add(&mut self, request: &Request, section: &Arc<Section>) {
        let join = |before: Part<'_>| {
            let plans = &request.engine.plans;
            Gathered::Many(plans.join(before, (&**section).into()))
        };
        *self = match self {
            Gathered::None => Gathered::One(section.clone()),
            Gathered::One(first) => join((&**first).into()),
            Gathered::Many(before) => join((&**before).into()),
        }
    }

    /// Whether there are any.
    pub fn is_some(&self) -> bool {
        !matches!(self, Gathered::None)
    }

    /// Merges them with the configuration before the walk.
    pub fn onto(&self, request: &Request, before: &Rc<Layer>) -> Rc<Layer> {
        let plans = &request.engine.plans;
        match self {
            Gathered::None => before.clone(),
            Gathered::One(section) => plans.merge(before, (&**section).into()),
            Gathered::Many(all) => plans.merge(before, (&**all).into()),
        }
    }
}
