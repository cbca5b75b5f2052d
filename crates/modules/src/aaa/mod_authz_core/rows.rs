//! The directives.

use std::sync::Arc;

use conf::{Arg, Node};
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use wire::MethodSet;

use super::rule::{Kind, Line, Logic, Rule};
use super::{AuthzCore, Merging};
use crate::aaa::line::first;
use crate::aaa::provider::{AUTHZ, Apart, Authz, AuthzProvider, Requirement, alias_words};

type Here<'a, 't> = Cx<'a, 't, AuthzCore>;

const AUTH: Override = Override::AUTH_CONFIG;

pub(super) const ALL: &[Row<AuthzCore>] = &[
    Row::<AuthzCore>::new(
        "AuthMerging",
        Takes::One(auth_merging),
        "Off | And | Or",
        "Sets how a section's rules are combined with those of the preceding sections.",
    )
    .standing(Places::PER_DIR, AUTH)
    .default("Off"),
    Row::<AuthzCore>::new(
        "AuthzProviderAlias",
        Takes::Section(provider_alias),
        "baseProvider Alias Require-Parameters",
        "Defines an authorization provider by a name, a base provider, arguments and directives of \
         its own.",
    )
    .standing(Places::SERVER, Override::NONE),
    Row::<AuthzCore>::new(
        "AuthzSendForbiddenOnFailure",
        Takes::Flag(|cx, on| {
            cx.dir().forbidden_on_failure = Some(on);
            Ok(())
        }),
        "On|Off",
        "Responds with 403 instead of 401 if an authenticated user is not authorized.",
    )
    .standing(Places::PER_DIR, AUTH)
    .default("Off"),
    Row::<AuthzCore>::new(
        "Require",
        Takes::Raw(require),
        "[not] entity-name [entity-name] ...",
        "Requires a condition for access.",
    )
    .standing(Places::PER_DIR, AUTH),
    Row::<AuthzCore>::new(
        "RequireAll",
        Takes::Section(|cx, raw, nodes| container(cx, raw, nodes, "RequireAll")),
        "",
        "Encloses rules of which none may fail and at least one must succeed.",
    )
    .standing(Places::PER_DIR, AUTH),
    Row::<AuthzCore>::new(
        "RequireAny",
        Takes::Section(|cx, raw, nodes| container(cx, raw, nodes, "RequireAny")),
        "",
        "Encloses rules of which at least one must succeed.",
    )
    .standing(Places::PER_DIR, AUTH),
    Row::<AuthzCore>::new(
        "RequireNone",
        Takes::Section(|cx, raw, nodes| container(cx, raw, nodes, "RequireNone")),
        "",
        "Encloses rules of which none may succeed.",
    )
    .standing(Places::PER_DIR, AUTH),
];

/// Source: `add_authz_provider`.
fn require(cx: &mut Here<'_, '_>, raw: &Arg) -> Set {
    let (mut name, mut rest) = first(&raw.text).unwrap_or_default();
    let negated = name.eq_ignore_ascii_case(b"not");
    if negated {
        (name, rest) = first(rest).unwrap_or_default();
    }
    let provider = String::from_utf8_lossy(&name).into_owned();
    let found = cx.build().provider::<AuthzProvider>(AUTHZ, &provider);
    let Some(found) = found else {
        return Err(cx.build().unknown_provider("Authz", &provider).at(raw));
    };
    let requirement = (found.parse)(cx.target, rest)?;
    let (arguments, span) = (rest.to_vec(), cx.span());
    let line = Line { provider, arguments, span, requirement };
    let methods = cx.target.limited.unwrap_or(MethodSet::ALL);
    let around = current(cx);
    if negated && around.as_group().is_some_and(|group| group.logic == Logic::Or) {
        let around = around.text();
        return Err(
            format!("negative Require directive has no effect in {around} directive").into()
        );
    }
    around.push(Rule { methods, negated, kind: Kind::Line(line) });
    Ok(())
}

/// The container that receives rules.
fn current<'c>(cx: &'c mut Here<'_, '_>) -> &'c mut Rule {
    let rules = &mut cx.dir().rules;
    Arc::make_mut(rules.get_or_insert_with(|| Arc::new(Rule::group(Logic::Or, false, false))))
}

/// Source: `add_authz_section`.
fn container(cx: &mut Here<'_, '_>, raw: &Arg, nodes: &[Node], name: &'static str) -> Set {
    if !raw.text.is_empty() {
        return Err(format!("<{name}> directive doesn't take additional arguments").into());
    }
    let logic = if name == "RequireAll" { Logic::And } else { Logic::Or };
    let group = Rule::group(logic, name == "RequireNone", false);
    let outer = cx.dir().rules.replace(Arc::new(group));
    let around = cx.target.container.replace(name);
    apply_inside(cx, nodes, name);
    cx.target.container = around;
    let read = std::mem::replace(&mut cx.dir().rules, outer);
    let Some(read) = read.map(Arc::unwrap_or_clone) else { return Ok(()) };
    if read.as_group().is_none_or(|group| group.rules.is_empty()) {
        // Errors inside have already been reported.
        if cx.build().has_errors() {
            return Ok(());
        }
        return Err(format!("<{name}> directive contains no authorization directives").into());
    }
    let around = current(cx);
    if read.negated && around.as_group().is_some_and(|group| group.logic == Logic::Or) {
        let (read, around) = (read.text(), around.text());
        return Err(format!("{read} directive has no effect in {around} directive").into());
    }
    around.push(read);
    Ok(())
}

/// A container allows only directives of the class AuthConfig.
fn apply_inside(cx: &mut Here<'_, '_>, nodes: &[Node], name: &str) {
    let registry = cx.build().registry.clone();
    for node in nodes {
        let row = registry.row(&node.name.to_string());
        if row.is_some_and(|row| !row.allow.intersects(AUTH)) {
            let shown = if node.is_section() { "<" } else { "" };
            let message = format!("{shown}{} not allowed in <{name}> context", node.name);
            cx.build().diagnostics.push(node.error(message));
            continue;
        }
        cx.apply(std::slice::from_ref(node));
    }
}

fn auth_merging(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let merging = match () {
        () if arg.is("Off") => Merging::Off,
        () if arg.is("And") => Merging::And,
        () if arg.is("Or") => Merging::Or,
        () => return Err(Fault::new("AuthMerging must be one of: Off | And | Or").at(arg)),
    };
    cx.dir().merging = Some(merging);
    Ok(())
}

/// Source: `authz_require_alias_section`.
fn provider_alias(cx: &mut Here<'_, '_>, raw: &Arg, nodes: &[Node]) -> Set {
    let Some((base, alias, rest)) = alias_words(&raw.text) else {
        return Err("<AuthzProviderAlias> directive requires additional arguments".into());
    };
    let (arguments, more) = first(&rest).unwrap_or_default();
    if !more.is_empty() {
        let rest = bstr::BStr::new(&rest);
        cx.warn(format!(
            "AH10142: When several arguments ({rest}...) are passed to a <AuthzProviderAlias \
             directive, they must be enclosed in quotation marks.  Otherwise, only the first one \
             is taken into account"
        ));
    }
    let apart = Apart::read(cx.target, "AuthzProviderAlias", nodes);
    let Some(found) = cx.build().provider::<AuthzProvider>(AUTHZ, &base) else {
        return Err(cx.build().unknown_provider("Authz", &base).at(raw));
    };
    let parsed = (found.parse)(cx.target, &arguments).map_err(|why| {
        let arguments = bstr::BStr::new(&arguments);
        Fault::new(format!("Can't parse 'Require {base} {arguments}': {}", why.message)).at(raw)
    })?;
    let requirement: Arc<dyn Requirement> = Arc::new(Alias { base: parsed, apart });
    let provider = AuthzProvider::new(move |_, _| Ok(requirement.clone()));
    cx.build().defined.define(AUTHZ, alias, provider);
    Ok(())
}

/// A requirement with directives of its own.
struct Alias {
    base: Arc<dyn Requirement>,
    apart: Apart,
}

impl Requirement for Alias {
    fn waits(&self) -> bool {
        self.base.waits()
    }

    fn check(&self, request: &mut server::request::Request) -> Authz {
        let before = self.apart.enter(request);
        let found = self.base.check(request);
        server::walk::enter(request, before);
        found
    }

    fn wait<'r>(
        &'r self,
        request: &'r mut server::request::Request,
    ) -> std::pin::Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move {
            let before = self.apart.enter(request);
            let found = self.base.wait(request).await;
            server::walk::enter(request, before);
            found
        })
    }
}
