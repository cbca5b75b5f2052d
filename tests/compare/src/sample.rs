//! What decided a response: omits one directive at a time and asks Apache again, to find how often
//! each directive and phase has an effect.

use std::collections::{BTreeMap, BTreeSet};

use crate::pair::{Pair, Servers};
use crate::rows::{self, Phase};
use crate::shrink::{parts, without};
use crate::site::Case;
use crate::verdict::Exchange;

/// Most directives of a site that are omitted, one at a time.
const VARIANTS_MAX: usize = 40;

/// Counts over all sampled sites.
#[derive(Debug, Default)]
pub struct Sample {
    /// By directive: the number of sites that contained it, and of those in which it changed a
    /// response.
    pub directives: BTreeMap<String, (usize, usize)>,
    /// By phase: the number of responses that one of its directives changed.
    pub phases: BTreeMap<Phase, usize>,
}

impl Sample {
    /// Asks Apache about the case without each of its directives.
    pub fn look(&mut self, case: &Case, apache: &mut Pair) {
        let (names, variants) = variants(case);
        let mut cases = vec![case.clone()];
        cases.extend(variants);
        let verdicts = apache.ask(&cases);
        let Some((whole, rest)) = verdicts.split_first() else {
            return;
        };
        for (name, verdict) in names.iter().zip(rest) {
            let pairs = whole.exchanges.iter().zip(&verdict.exchanges);
            let is_other = |(one, other): &(&Exchange, &Exchange)| {
                own_name(&one.apache) != own_name(&other.apache)
            };
            let mut changed = pairs.filter(is_other).count();
            // Others need it.
            if verdict.refused.is_some() && whole.refused.is_none() {
                changed = whole.exchanges.len();
            }
            let count = self.directives.entry(name.clone()).or_default();
            count.0 += 1;
            count.1 += usize::from(changed > 0);
            *self.phases.entry(rows::phase(name)).or_default() += changed;
        }
    }

    /// Adds other counts.
    pub fn add(&mut self, other: Sample) {
        for (name, (sites, decided)) in other.directives {
            let count = self.directives.entry(name).or_default();
            count.0 += sites;
            count.1 += decided;
        }
        for (phase, changed) in other.phases {
            *self.phases.entry(phase).or_default() += changed;
        }
    }

    /// A table for the end of a run.
    pub fn text(&self) -> String {
        let mut text = "responses that changed without a directive, by phase:\n".to_owned();
        for (phase, count) in &self.phases {
            text.push_str(&format!("  {phase:?} {count}\n"));
        }
        text.push_str("directives: sites in which it decided a response, of those sampled\n");
        let mut line = String::new();
        for (name, (sites, decided)) in &self.directives {
            let item = format!("  {name} {decided}/{sites}");
            if line.len() + item.len() > 98 {
                text.push_str(&format!("{line}\n"));
                line.clear();
            }
            line.push_str(&item);
        }
        text + &line + "\n"
    }

    /// Directives that never had an effect, although several sites contained them.
    pub fn idle(&self) -> Vec<&str> {
        let idle = |&(name, &(sites, decided)): &(&String, &(usize, usize))| {
            sites > 3 && decided == 0 && rows::phase(name) != Phase::Log
        };
        self.directives.iter().filter(idle).map(|(name, _)| name.as_str()).collect()
    }
}

/// The case without one directive or section at a time, and their names.
fn variants(case: &Case) -> (Vec<String>, Vec<Case>) {
    let mut names = Vec::new();
    let mut variants = Vec::new();
    let before = directive_names(case);
    for part in 0..parts(case) {
        let variant = without(case, &BTreeSet::from([part]));
        if variant.requests.len() != case.requests.len() || variant.site.global != case.site.global
        {
            continue;
        }
        let after = directive_names(&variant);
        if after.len() < before.len() && variant.site.files.len() == case.site.files.len() {
            // The first node at which they differ is the omitted one.
            let at = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
            names.extend(before.get(at).cloned());
            variants.push(variant);
        }
        if variants.len() == VARIANTS_MAX {
            break;
        }
    }
    (names, variants)
}

fn directive_names(case: &Case) -> Vec<String> {
    let mut names = Vec::new();
    case.site.walk(&mut |node| names.push(node.name.clone()));
    names
}

/// Replaces a response's own host name.
fn own_name(lines: &[String]) -> Vec<String> {
    let plain = |line: &String| match line.find(".test") {
        Some(at) if at >= 3 => line.replace(line.get(at - 3..at + 5).unwrap_or_default(), "HOST"),
        _ => line.clone(),
    };
    lines.iter().map(plain).collect()
}
