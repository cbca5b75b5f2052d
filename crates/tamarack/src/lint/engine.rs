//! Rules of mod_rewrite that never run, because no RewriteEngine is on where they are.

use super::Finding;
use super::rewriting::Line;
use super::sections::each;
use crate::explain::places::Directive;

/// Checks a configuration: hosts inherit the switch of the main server, and folders that of others.
pub fn check(top: &[Directive], found: &mut Vec<Finding>) {
    let mut inherits = false;
    each(top, &mut |one| inherits |= inherits_rules(one));
    if inherits {
        return;
    }
    let is_on = is_switched_on(top);
    of_place(top, is_on, found);
    let on_in_folders = any_in_folders(top);
    for one in top {
        let inside = one.inside.as_deref().unwrap_or_default();
        if one.name.eq_ignore_ascii_case("VirtualHost") {
            of_place(inside, is_on || is_switched_on(inside), found);
            of_folders(inside, on_in_folders, found);
        } else {
            of_folder(one, on_in_folders, found);
        }
    }
}

/// Checks a file of a folder; `is_on_outside` if the switch may be on outside of it.
pub fn of_file(directives: &[Directive], is_on_outside: bool, found: &mut Vec<Finding>) {
    let is_on = is_on_outside || has_switch(directives);
    of_place(directives, is_on, found);
    of_folders(directives, is_on, found);
}

/// Whether the switch is on in a section of a configuration that applies to folders.
pub fn any_in_folders(top: &[Directive]) -> bool {
    top.iter().any(|one| {
        let inside = one.inside.as_deref().unwrap_or_default();
        match one.name.eq_ignore_ascii_case("VirtualHost") {
            true => any_in_folders(inside),
            false => has_switch(inside),
        }
    })
}

/// Whether the switch is on anywhere in directives.
pub fn has_switch(all: &[Directive]) -> bool {
    let mut is_on = false;
    each(all, &mut |one| is_on |= switches_on(one));
    is_on
}

fn of_folders(all: &[Directive], is_on: bool, found: &mut Vec<Finding>) {
    all.iter().for_each(|one| of_folder(one, is_on, found));
}

fn of_folder(one: &Directive, is_on: bool, found: &mut Vec<Finding>) {
    if let Some(inside) = &one.inside {
        of_place(inside, is_on, found);
        of_folders(inside, is_on, found);
    }
}

/// Checks the rules of one place, without the sections in it. An explicit `Off` is meant.
fn of_place(all: &[Directive], is_on: bool, found: &mut Vec<Finding>) {
    let is_switch = |one: &Directive| one.name.eq_ignore_ascii_case("RewriteEngine");
    if is_on || all.iter().any(is_switch) {
        return;
    }
    let rules = all.iter().filter(|one| one.name.eq_ignore_ascii_case("RewriteRule"));
    let rules: Vec<(&Directive, Line<'_>)> =
        rules.filter_map(|one| Some((one, Line::of(&one.args)?))).collect();
    let denying = rules.iter().find(|(_, line)| line.denies());
    if let Some((one, _)) = denying.or(rules.first()) {
        let message = match rules.len() {
            1 => "this rule never runs: RewriteEngine is not on here".to_owned(),
            count => format!("these {count} rules never run: RewriteEngine is not on here"),
        };
        let finding = Finding::hint(one.span, message, "add RewriteEngine On");
        found.push(finding.severe_if(denying.is_some()));
    }
}

fn is_switched_on(all: &[Directive]) -> bool {
    all.iter().any(switches_on)
}

fn switches_on(one: &Directive) -> bool {
    one.name.eq_ignore_ascii_case("RewriteEngine") && one.args.trim().eq_ignore_ascii_case("on")
}

fn inherits_rules(one: &Directive) -> bool {
    one.name.eq_ignore_ascii_case("RewriteOptions")
        && one.args.to_ascii_lowercase().contains("inherit")
}
