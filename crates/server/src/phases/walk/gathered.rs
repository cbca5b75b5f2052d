//! The sections of one walk that match a request.
//!
//! They merge with each other first, and what comes of it merges with the configuration before the
//! walk (`now_merged` in Apache's walks). The order matters: `AuthMerging And` in a section without
//! a `Require` takes the rules of the section before it, and both count beside those from outside.

use std::rc::Rc;
use std::sync::Arc;

use crate::config::section::Section;
use crate::plan::{Layer, Part};
use crate::request::Request;

/// The sections so far.
#[derive(Default)]
pub(super) enum Gathered {
    #[default]
    None,
    One(Arc<Section>),
    Many(Rc<Layer>),
}

impl Gathered {
    /// One more section matches.
    pub fn add(&mut self, request: &Request, section: &Arc<Section>) {
        let join = |before: Part<'_>| {
            let plans = &request.engine.plans;
            Gathered::Many(plans.join(&request.host, before, (&**section).into()))
        };
        *self = match self {
            Gathered::None => Gathered::One(section.clone()),
            Gathered::One(first) => join((&**first).into()),
            Gathered::Many(before) => join((&**before).into()),
        }
    }

    /// What they make of the configuration before the walk.
    pub fn onto(&self, request: &Request, before: &Rc<Layer>) -> Rc<Layer> {
        let plans = &request.engine.plans;
        match self {
            Gathered::None => before.clone(),
            Gathered::One(section) => plans.merge(before, (&**section).into()),
            Gathered::Many(all) => plans.merge(before, (&**all).into()),
        }
    }
}
