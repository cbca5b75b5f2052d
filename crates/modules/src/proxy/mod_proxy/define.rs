//! How the directives define workers and balancers.
//!
//! Source: `add_pass`, `add_member`, `set_proxy_param`, `ap_proxy_define_worker_ex`,
//! `ap_proxy_define_balancer`.

use server::directive::{Fault, Set};
use server::errorlog::Verbatim;
use server::log::Level;

use super::mapping::Words;
use super::setters::Here;
use super::status::Status;
use super::target::{Target, without_socket};
use super::worker_log::Line;
use super::workers::{Kind, balancer_name, best};
use super::{balancer, worker};
use crate::proxy::mod_proxy_hcheck::{self, ProxyHcheck};

/// The longest name of a balancer, bytes (`PROXY_BALANCER_MAX_NAME_SIZE` without its end).
const BALANCER_NAME_BYTES: usize = 63;

/// A worker, as defined.
#[derive(Clone)]
pub struct Definition {
    /// [`Target::name`]
    pub name: Vec<u8>,
    /// Its URL.
    pub target: Target,
    /// Whether `$1` and so on in it stand for any text.
    pub is_pattern: bool,
    /// What the words say.
    pub parameters: worker::Parameters,
}

/// A balancer, as defined.
#[derive(Clone, Default)]
pub struct BalancerDefinition {
    /// Without its path, in lower case.
    pub name: Vec<u8>,
    /// What the words say.
    pub parameters: balancer::Parameters,
    /// Its members.
    pub members: Vec<Definition>,
    /// The path of the last ProxyPass that leads here.
    pub path: Vec<u8>,
}

/// The workers and balancers that a host itself defines.
#[derive(Clone, Default)]
pub struct Definitions {
    /// Workers of no balancer.
    pub workers: Vec<Definition>,
    /// Balancers.
    pub balancers: Vec<BalancerDefinition>,
    /// What the log says of how they were defined.
    pub lines: Vec<Line>,
}

/// What a URL of a directive names, by its place in [`Definitions`].
#[derive(Clone, Copy)]
pub(super) enum Named {
    Worker(usize),
    Balancer(usize),
}

impl Definitions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty() && self.balancers.is_empty()
    }

    /// The worker of a URL, among those of `kind`.
    pub(super) fn find(&self, url: &[u8], kind: Kind) -> Option<usize> {
        find(&self.workers, url, kind)
    }

    /// The balancer that a URL names.
    pub(super) fn find_balancer(&self, url: &[u8]) -> Option<usize> {
        let name = balancer_name(url)?;
        self.balancers.iter().position(|balancer| balancer.name == name)
    }
}

fn find(workers: &[Definition], url: &[u8], kind: Kind) -> Option<usize> {
    best(workers.iter().map(|one| (one.name.as_slice(), one.is_pattern)), url, kind)
}

/// Whether a URL begins like a balancer's (`ap_proxy_valid_balancer_name` with 9).
pub(super) fn is_balancer(url: &[u8]) -> bool {
    url.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"balancer:"))
}

/// Defines what a line of ProxyPass goes to, or shares what is defined.
pub(super) fn for_mapping(
    cx: &mut Here<'_, '_>,
    path: &[u8],
    url: &[u8],
    is_pattern: bool,
    words: &Words,
) -> Set {
    let fault = |text: String| Fault::new(format!("ProxyPass {text}"));
    if is_balancer(url) {
        let place = match cx.server().definitions.0.find_balancer(url) {
            Some(place) => place,
            None => define_balancer(cx, url).map_err(fault)?,
        };
        if let Some(balancer) = cx.server().definitions.0.balancers.get_mut(place) {
            balancer.path = path.to_vec();
        }
        return words.iter().try_for_each(|(key, value)| {
            set(cx, Named::Balancer(place), key, value).map_err(fault)
        });
    }
    let kind = if is_pattern { Kind::Pattern } else { Kind::Prefix };
    let text = "ProxyPass|ProxyPassMatch uses an invalid \"unix:\" URL";
    let real = without_socket(url).ok_or(text)?;
    if let Some(place) = cx.server().definitions.0.find(&real, kind) {
        let shared = cx.server().definitions.0.workers.get(place);
        let shared = shared.map(|worker| worker.name.clone()).unwrap_or_default();
        note_sharing(cx, 1145, &shared, &real);
        ignore_words(cx, &shared, words, "AH01146");
        return Ok(());
    }
    let place = define_worker(cx, url, is_pattern).map_err(fault)?;
    inherit_settings(cx, place);
    let mut words = words.iter();
    words.try_for_each(|(key, value)| set(cx, Named::Worker(place), key, value).map_err(fault))
}

/// Adds a member to a balancer, or shares one.
pub(super) fn member(cx: &mut Here<'_, '_>, balancer: &[u8], url: &[u8], words: &Words) -> Set {
    let fault = |text: String| Fault::new(format!("BalancerMember {text}"));
    let text = "BalancerMember uses an invalid \"unix:\" URL";
    let real = without_socket(url).ok_or(text)?.into_owned();
    let place = match cx.server().definitions.0.find_balancer(balancer) {
        Some(place) => place,
        None => define_balancer(cx, balancer).map_err(fault)?,
    };
    let members = |cx: &mut Here<'_, '_>| -> Vec<Definition> {
        let balancers = &cx.server().definitions.0.balancers;
        balancers.get(place).map(|one| one.members.clone()).unwrap_or_default()
    };
    let known = members(cx);
    if let Some(shared) = find(&known, &real, Kind::Any).and_then(|at| known.get(at)) {
        let name = shared.name.clone();
        note_sharing(cx, 1149, &name, &real);
        ignore_words(cx, &name, words, "AH01150");
        return Ok(());
    }
    let mut new = definition(url, false).map_err(fault)?;
    new.parameters.status = Status::default();
    copy_settings(cx, &mut new.parameters);
    let checks = checks_of(cx);
    for (key, value) in words {
        let set = set_worker(&mut new.parameters, checks.as_ref(), key, value);
        set.map_err(|text| fault(text.into_owned()))?;
    }
    let definitions = &mut cx.server().definitions.0;
    if let Some(balancer) = definitions.balancers.get_mut(place) {
        let (name, of) = (Verbatim::new(&new.name), Verbatim::new(&balancer.name));
        for (number, what) in [(1147, "Defining"), (1148, "Defined")] {
            let text = format!("{what} worker '{name}' for balancer '{of}'");
            definitions.lines.push(Line { level: Level::Debug, number, text });
        }
        balancer.members.push(new);
    }
    Ok(())
}

/// Defines a worker, and returns its place.
///
/// # Errors
/// Apache's words.
pub(super) fn define_worker(
    cx: &mut Here<'_, '_>,
    url: &[u8],
    is_pattern: bool,
) -> Result<usize, String> {
    let new = definition(url, is_pattern)?;
    let workers = &mut cx.server().definitions.0.workers;
    workers.push(new);
    Ok(workers.len() - 1)
}

fn definition(url: &[u8], is_pattern: bool) -> Result<Definition, String> {
    let target = if is_pattern { Target::parse_pattern(url) } else { Target::parse(url) }?;
    let name = target.name();
    let mut parameters = worker::Parameters { status: Status::IGNORE_ERRORS, ..Default::default() };
    if is_pattern && name.contains(&b'$') {
        parameters.disable_reuse = Some(true);
    }
    Ok(Definition { name, target, is_pattern, parameters })
}

/// Defines a balancer, and returns its place.
///
/// # Errors
/// Apache's words.
pub(super) fn define_balancer(cx: &mut Here<'_, '_>, url: &[u8]) -> Result<usize, String> {
    let shown = bstr::BStr::new(url);
    let name = balancer_name(url).ok_or(format!("Bad syntax for a balancer name ({shown})"))?;
    if name.len() > BALANCER_NAME_BYTES {
        return Err(format!("balancer name ({}) too long", bstr::BStr::new(&name)));
    }
    let balancers = &mut cx.server().definitions.0.balancers;
    balancers.push(BalancerDefinition { name, path: b"/".to_vec(), ..Default::default() });
    Ok(balancers.len() - 1)
}

/// Sets a parameter.
///
/// # Errors
/// Apache's words.
pub(super) fn set(
    cx: &mut Here<'_, '_>,
    named: Named,
    key: &[u8],
    value: &[u8],
) -> Result<(), String> {
    let registry = cx.build().registry.clone();
    let knows = |name: &[u8]| {
        let name = String::from_utf8_lossy(name);
        registry.is_active(&format!("lbmethod_{name}_module"))
    };
    let checks = checks_of(cx);
    let definitions = &mut cx.server().definitions.0;
    let set = match named {
        Named::Worker(place) => {
            let worker = definitions.workers.get_mut(place);
            worker.map(|one| set_worker(&mut one.parameters, checks.as_ref(), key, value))
        }
        Named::Balancer(place) => {
            definitions.balancers.get_mut(place).map(|one| one.parameters.set(key, value, knows))
        }
    };
    set.unwrap_or(Ok(())).map_err(std::borrow::Cow::into_owned)
}

/// What mod_proxy_hcheck has for parameters: its templates and conditions, and whether there is
/// mod_proxy_ajp.
fn checks_of(cx: &mut Here<'_, '_>) -> Option<(mod_proxy_hcheck::Settings, bool)> {
    let registry = cx.build().registry.clone();
    let slot = registry.slot_of::<ProxyHcheck>()?;
    let settings = cx.target.server.get::<mod_proxy_hcheck::Settings>(slot)?;
    Some((settings.clone(), registry.is_active("proxy_ajp_module")))
}

/// Sets a parameter of a worker; those that mod_proxy doesn't know are mod_proxy_hcheck's.
fn set_worker(
    parameters: &mut worker::Parameters,
    checks: Option<&(mod_proxy_hcheck::Settings, bool)>,
    key: &[u8],
    value: &[u8],
) -> Result<(), std::borrow::Cow<'static, str>> {
    let set = parameters.set(key, value);
    match (checks, &set) {
        (Some((own, has_ajp)), Err(text)) if text == worker::UNKNOWN => {
            mod_proxy_hcheck::set(&mut parameters.checks, own, *has_ajp, key, value)
        }
        _ => set,
    }
}

/// Copies what ProxyTimeout and similar have set so far (`PROXY_COPY_CONF_PARAMS`).
fn inherit_settings(cx: &mut Here<'_, '_>, place: usize) {
    let mut parameters = worker::Parameters::default();
    copy_settings(cx, &mut parameters);
    let worker::Parameters { timeout, io_buffer, receive_buffer, .. } = parameters;
    if let Some(worker) = cx.server().definitions.0.workers.get_mut(place) {
        worker.parameters = worker::Parameters {
            timeout,
            io_buffer,
            receive_buffer,
            ..std::mem::take(&mut worker.parameters)
        };
    }
}

fn copy_settings(cx: &mut Here<'_, '_>, parameters: &mut worker::Parameters) {
    let settings = cx.server();
    parameters.timeout = settings.timeout.get().copied();
    parameters.io_buffer = settings.io_buffer.get().copied();
    parameters.receive_buffer = settings.receive_buffer.get().copied();
}

/// Notes that a URL has the worker of another one.
fn note_sharing(cx: &mut Here<'_, '_>, number: u32, shared: &[u8], url: &[u8]) {
    let (shared, url) = (Verbatim::new(shared), Verbatim::new(url));
    let text = format!("Sharing worker '{shared}' instead of creating new worker '{url}'");
    cx.server().definitions.0.lines.push(Line { level: Level::Info, number, text });
}

/// Warns that words have no effect, since the worker is shared.
fn ignore_words(cx: &mut Here<'_, '_>, name: &[u8], words: &Words, number: &str) {
    for (key, value) in words {
        let (key, value, name) =
            (bstr::BStr::new(key), bstr::BStr::new(value), bstr::BStr::new(name));
        cx.warn(format!(
            "{number}: Ignoring parameter '{key}={value}' for worker '{name}' because of worker \
             sharing"
        ));
    }
}
