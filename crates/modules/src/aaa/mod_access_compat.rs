//! mod_access_compat: `Order`, `Allow`, `Deny` and `Satisfy` as in Apache 2.2.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_access_compat.html>

use conf::Arg;
use conf::values::Subnet;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::errorlog::Verbatim;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::hostname;
use server::log::Level;
use server::merge::Merge;
use server::module::Module;
use server::request::Request;
use wire::MethodSet;
use wire::method::Method;

use super::mod_authz_host::{is_in_domain, network};

/// `mod_access_compat.c`
pub struct AccessCompat;

impl Module for AccessCompat {
    const NAME: &'static str = "access_compat_module";
    const FILE: &'static str = "mod_access_compat.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AccessCompat>] = &[
        Row::<AccessCompat>::new(
            "allow",
            Takes::EachOf(|cx, from, who| entry(cx, from, who, true)),
            "from all|host|env=[!]env-variable [host|env=[!]env-variable] ...",
            "Allows access for the given clients.",
        )
        .standing(Places::PER_DIR, Override::LIMIT),
        Row::<AccessCompat>::new(
            "deny",
            Takes::EachOf(|cx, from, who| entry(cx, from, who, false)),
            "from all|host|env=[!]env-variable [host|env=[!]env-variable] ...",
            "Denies access for the given clients.",
        )
        .standing(Places::PER_DIR, Override::LIMIT),
        Row::<AccessCompat>::new(
            "order",
            Takes::One(order),
            "ordering",
            "Sets the order in which Allow and Deny apply, and the default access state.",
        )
        .standing(Places::PER_DIR, Override::LIMIT)
        .default("Deny,Allow"),
        Row::<AccessCompat>::new(
            "Satisfy",
            Takes::One(satisfy),
            "Any|All",
            "Sets whether access requires both an allowed address and a valid login, or either of \
             them.",
        )
        .standing(Places::PER_DIR, Override::AUTH_CONFIG)
        .default("All"),
    ];

    fn skipped(_: &mut Cx<'_, '_, AccessCompat>) {
        // In Apache, the access control of outer sections ends here.
    }

    fn hooks(hooks: &mut Hooks<'_, AccessCompat>) {
        hooks.satisfies_any(|dir| dir.any);
        hooks.on(Phase::AccessChecker, Rank::MIDDLE, |cx| !cx.dir.lets_all_in(), check);
    }
}

/// The order of evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    AllowDeny,
    DenyAllow,
    MutualFailure,
}

/// The clients that an entry applies to.
#[derive(Clone, Debug)]
enum Who {
    All,
    Network(Subnet),
    Env(Vec<u8>),
    NotEnv(Vec<u8>),
    Host(Vec<u8>),
}

#[derive(Clone, Debug)]
struct Entry {
    who: Who,
    methods: MethodSet,
}

/// Per-directory configuration. An inner section replaces all of it: Apache's module has no merge
/// function.
#[derive(Clone, Debug, Default)]
pub struct Dir {
    allow: Vec<Entry>,
    deny: Vec<Entry>,
    /// The methods of `Order Allow,Deny`; all others are `Deny,Allow`.
    allow_deny: MethodSet,
    /// The methods of `Order Mutual-failure`.
    mutual_failure: MethodSet,
    /// The methods of `Satisfy Any`.
    any: MethodSet,
}

impl Merge for Dir {
    fn merge(_: &Dir, inner: &Dir) -> Dir {
        inner.clone()
    }
}

impl Dir {
    fn order(&self, method: Method) -> Order {
        if self.mutual_failure.contains(method) {
            Order::MutualFailure
        } else if self.allow_deny.contains(method) {
            Order::AllowDeny
        } else {
            Order::DenyAllow
        }
    }

    /// Whether nothing can be denied: `Order Allow,Deny` with only `Allow from all`, or no `Deny`;
    /// and no name may have to be looked up.
    fn lets_all_in(&self) -> bool {
        let mut entries = self.allow.iter().chain(&self.deny);
        if entries.any(|entry| matches!(entry.who, Who::Host(_))) {
            return false;
        }
        let is_all =
            |entry: &Entry| matches!(entry.who, Who::All) && entry.methods == MethodSet::ALL;
        let all_allowed = self.allow.iter().any(is_all);
        let some_default_to_no = !self.allow_deny.union(self.mutual_failure).is_empty();
        match (self.deny.is_empty(), some_default_to_no) {
            (true, false) => true,
            (true, true) => all_allowed,
            (false, true) => false,
            (false, false) => all_allowed,
        }
    }
}

fn order(cx: &mut Cx<'_, '_, AccessCompat>, arg: &Arg) -> Set {
    let order = match () {
        () if arg.is("allow,deny") => Order::AllowDeny,
        () if arg.is("deny,allow") => Order::DenyAllow,
        () if arg.is("mutual-failure") => Order::MutualFailure,
        () => return Err(Fault::new("unknown order").at(arg)),
    };
    let methods = cx.target.limited.unwrap_or(MethodSet::ALL);
    let dir = cx.dir();
    let without = |set: MethodSet| set.intersection(methods.complement());
    (dir.allow_deny, dir.mutual_failure) = (without(dir.allow_deny), without(dir.mutual_failure));
    match order {
        Order::AllowDeny => dir.allow_deny = dir.allow_deny.union(methods),
        Order::MutualFailure => dir.mutual_failure = dir.mutual_failure.union(methods),
        Order::DenyAllow => {}
    }
    Ok(())
}

fn satisfy(cx: &mut Cx<'_, '_, AccessCompat>, arg: &Arg) -> Set {
    let methods = cx.target.limited.unwrap_or(MethodSet::ALL);
    let dir = cx.dir();
    if arg.is("any") {
        dir.any = dir.any.union(methods);
    } else if arg.is("all") {
        dir.any = dir.any.intersection(methods.complement());
    } else {
        return Err(Fault::new("Satisfy either 'any' or 'all'.").at(arg));
    }
    Ok(())
}

/// Source: `allow_cmd`.
fn entry(cx: &mut Cx<'_, '_, AccessCompat>, from: &Arg, who: &Arg, allow: bool) -> Set {
    if !from.is("from") {
        return Err(Fault::new("allow and deny must be followed by 'from'").at(from));
    }
    let text = who.text.as_slice();
    let starts = |prefix: &str| {
        let (start, rest) = text.split_at_checked(prefix.len())?;
        start.eq_ignore_ascii_case(prefix.as_bytes()).then(|| rest.to_vec())
    };
    let named = if let Some(name) = starts("env=!") {
        Who::NotEnv(name)
    } else if let Some(name) = starts("env=") {
        Who::Env(name)
    } else if who.is("all") {
        Who::All
    } else {
        match network(text) {
            Ok(network) => Who::Network(network),
            Err(Some(reason)) => return Err(Fault::new(reason).at(who)),
            Err(None) if text.contains(&b'/') => {
                return Err(Fault::new("An IP address was expected").at(who));
            }
            Err(None) if text.contains(&b'#') => {
                return Err(Fault::new("No comments are allowed here").at(who));
            }
            Err(None) => Who::Host(text.to_vec()),
        }
    };
    let entry = Entry { who: named, methods: cx.target.limited.unwrap_or(MethodSet::ALL) };
    let dir = cx.dir();
    if allow {
        dir.allow.push(entry)
    } else {
        dir.deny.push(entry)
    }
    Ok(())
}

/// How the client's name is known.
#[derive(Clone, Copy)]
enum Name<'n> {
    /// It matches none of the names in the configuration.
    None,
    /// The name itself.
    Known(&'n [u8]),
}

/// Source: `check_dir_access`.
fn check<'r>(cx: Bound<'r, AccessCompat>, request: &'r mut Request) -> Step<'r> {
    if !asks_name(cx.dir, request) {
        let lets_in = lets_in(cx.dir, request, Name::None);
        return Step::Ready(verdict(request, lets_in));
    }
    Step::Pending(Box::pin(async move {
        let name = hostname::verified(request).await.map(<[u8]>::to_vec);
        let lets_in = lets_in(cx.dir, request, name.as_deref().map_or(Name::None, Name::Known));
        verdict(request, lets_in)
    }))
}

/// Whether a list reaches a name before another of its entries applies. Then the client's name is
/// looked up, as in Apache even if it decides nothing: the log and the environment contain it.
fn asks_name(dir: &Dir, request: &Request) -> bool {
    let asks = |list: &[Entry], undecided: bool| {
        let mut of_method = list.iter().filter(|entry| entry.methods.contains(request.head.method));
        let first = of_method.find(|entry| {
            matches!(entry.who, Who::Host(_))
                || is_meant(&entry.who, request, Name::None).unwrap_or(undecided)
        });
        first.is_some_and(|entry| matches!(entry.who, Who::Host(_)))
    };
    asks(&dir.allow, false)
        || match dir.order(request.head.method) {
            // The second list matters only to clients that the first one lets in.
            Order::MutualFailure => lets_in(dir, request, Name::None) && asks(&dir.deny, true),
            Order::AllowDeny | Order::DenyAllow => asks(&dir.deny, true),
        }
}

fn lets_in(dir: &Dir, request: &Request, name: Name<'_>) -> bool {
    // A match that depends on an undecided variable denies and never allows.
    let is_in = |list: &[Entry], undecided: bool| {
        let mut of_method = list.iter().filter(|entry| entry.methods.contains(request.head.method));
        of_method.any(|entry| is_meant(&entry.who, request, name).unwrap_or(undecided))
    };
    let (allowed, denied) = (is_in(&dir.allow, false), || is_in(&dir.deny, true));
    match dir.order(request.head.method) {
        Order::AllowDeny | Order::MutualFailure => allowed && !denied(),
        Order::DenyAllow => allowed || !denied(),
    }
}

/// Whether an entry applies to the request; `None` if that is undecided.
fn is_meant(who: &Who, request: &Request, name: Name<'_>) -> Option<bool> {
    let is_set =
        |variable: &[u8]| (!request.is_undecided(variable)).then(|| request.env.contains(variable));
    Some(match (who, name) {
        (Who::All, _) => true,
        (Who::Network(network), _) => network.contains(request.useragent_addr.ip()),
        (Who::Env(variable), _) => is_set(variable)?,
        (Who::NotEnv(variable), _) => !is_set(variable)?,
        (Who::Host(domain), Name::Known(name)) => is_in_domain(name, domain),
        (Who::Host(_), Name::None) => false,
    })
}

fn verdict(request: &Request, lets_in: bool) -> Verdict {
    if lets_in {
        return Verdict::Ok;
    }
    let (before, file) = match request.resource.filename.as_slice() {
        b"" => ("uri ", request.resource.uri.as_slice()),
        file => ("", file),
    };
    let file = Verbatim::new(file);
    let message = format_args!("client denied by server configuration: {before}{file}");
    request.log::<AccessCompat>(Level::Error, 1797, message);
    Verdict::Status(403)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Entry {
        Entry { who: Who::All, methods: MethodSet::ALL }
    }

    #[test]
    fn nothing_to_check_is_known_before() {
        assert!(Dir::default().lets_all_in());
        let usual = Dir { allow: vec![all()], allow_deny: MethodSet::ALL, ..Dir::default() };
        assert!(usual.lets_all_in());
        assert!(!Dir { deny: vec![all()], ..usual.clone() }.lets_all_in());
        assert!(!Dir { allow: Vec::new(), ..usual }.lets_all_in());
        assert!(!Dir { deny: vec![all()], ..Dir::default() }.lets_all_in());
        assert!(Dir { deny: vec![all()], allow: vec![all()], ..Dir::default() }.lets_all_in());
        let for_post = Entry { who: Who::All, methods: MethodSet::only(Method::POST) };
        let some = Dir { allow: vec![for_post], allow_deny: MethodSet::ALL, ..Dir::default() };
        assert!(!some.lets_all_in());
    }
}
