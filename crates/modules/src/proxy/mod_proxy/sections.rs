//! `<Proxy>` and `<ProxyMatch>`, and what stands in them: BalancerMember and ProxySet.
//!
//! Source: `proxysection`, `add_member`, `set_proxy_param`.

use conf::{Arg, Node};
use server::directive::{Fault, Set};
use server::registry::Slots;
use server::section::{Matches, Section};
use server::within::Within;

use super::define::{self, Named, is_balancer};
use super::mapping::{Words, set_word};
use super::setters::Here;
use super::target::{split_at_text, without_socket};
use super::workers::Kind;

/// A section for requests that are proxied.
pub(super) fn section(cx: &mut Here<'_, '_>, raw: &Arg, nodes: &[Node], matches: bool) -> Set {
    let name = if matches { "ProxyMatch" } else { "Proxy" };
    let around = [Within::Directory, Within::Location, Within::Files];
    cx.not_within(&format!("<{name}"), &around)?;
    let words = words(&raw.text);
    let (path, words) = words.split_first().map_or((Vec::new(), &[][..]), |(first, rest)| {
        let is_prefixed = first.get(..6).is_some_and(|text| text.eq_ignore_ascii_case(b"proxy:"));
        (first.get(if is_prefixed { 6 } else { 0 }..).unwrap_or_default().to_vec(), rest)
    });
    let is_wild = conf::fnmatch::has_wildcard(&path);
    let pattern = match (matches, is_wild) {
        (true, _) => Matches::Regex(cx.build().regex(&path, false).map_err(|fault| Fault {
            message: "Regex could not be compiled".to_owned(),
            ..fault
        })?),
        (false, true) => Matches::Wildcard(path.clone()),
        (false, false) => Matches::Path(path.clone()),
    };
    let dir = inside(cx, name, path.clone(), nodes);
    let section = Section::new(pattern, dir, cx.span());
    cx.server().sections.push(section);
    if words.is_empty() {
        return Ok(());
    }
    if matches {
        return Err("Multiple <ProxyMatch> arguments not (yet) supported.".into());
    }
    if is_wild {
        return Err("<Proxy> arguments are not supported for wildchar url.".into());
    }
    if !path.contains(&b':') {
        return Err("<Proxy> arguments are not supported for non url.".into());
    }
    let text = "<Proxy/ProxyMatch > uses an invalid \"unix:\" URL";
    let named = named(cx, &path, Kind::Prefix, text);
    let named = named.map_err(|text| Fault::new(text.of("<Proxy")))?;
    set_words(cx, named, words, "Invalid Proxy parameter", |text, word| {
        format!("<Proxy {text} {word}; {}", bstr::BStr::new(&path))
    })
}

/// `BalancerMember`
pub(super) fn member(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let (mut balancer, mut url) = (cx.path().map(<[u8]>::to_vec), None);
    let in_section = balancer.is_some();
    let mut words = Words::new();
    for arg in args {
        let text = arg.text.to_vec();
        match (split_at_text(&text, b"="), &balancer, &url) {
            (Some((key, value)), ..) => set_word(&mut words, key, value),
            (None, None, _) => balancer = Some(text),
            (None, _, None) => url = Some(text),
            (None, ..) if in_section => {
                let text = "BalancerMember can not have a balancer name when defined in a location";
                return Err(text.into());
            }
            (None, ..) => {
                let text = "Invalid BalancerMember parameter. Parameter must be in the form \
                            'key=value'";
                return Err(text.into());
            }
        }
    }
    let text = "BalancerMember must define balancer name when outside <Proxy > section";
    let balancer = balancer.ok_or(text)?.to_ascii_lowercase();
    let url = url.ok_or("BalancerMember must define remote proxy server")?;
    define::member(cx, &balancer, &url, &words)
}

/// `ProxySet`
pub(super) fn set(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let around = cx.build().around.last().copied().unwrap_or_default();
    let kind = match around {
        "Proxy" => Kind::Prefix,
        "ProxyMatch" => Kind::Pattern,
        _ => Kind::Any,
    };
    let in_section = kind != Kind::Any;
    let texts: Vec<Vec<u8>> = args.iter().map(|arg| arg.text.to_vec()).collect();
    let own = cx.path().filter(|_| in_section).map(<[u8]>::to_vec);
    let (name, words) = match (own, texts.split_first()) {
        (Some(name), _) => (name, texts.as_slice()),
        (None, Some((first, rest))) => (first.clone(), rest),
        (None, None) => (Vec::new(), &[][..]),
    };
    let shown = bstr::BStr::new(&name);
    let named = match in_section {
        true => {
            let named = named(cx, &name, kind, "ProxySet uses an invalid \"unix:\" URL");
            named.map_err(|text| Fault::new(text.of("ProxySet")))?
        }
        false => {
            let found = known(cx, &name, kind, "ProxySet uses an invalid \"unix:\" URL")?;
            let what = if is_balancer(&name) { "Balancer" } else { "Worker" };
            found.ok_or_else(|| format!("ProxySet can not find '{shown}' {what}."))?
        }
    };
    set_words(cx, named, words, "Invalid ProxySet parameter", |text, word| {
        format!("ProxySet: {text} {word}; {shown}")
    })
}

/// What is wrong with the name of a worker.
enum Wrong {
    /// Told behind the directive's name.
    Name(String),
    Whole(&'static str),
}

impl Wrong {
    fn of(self, directive: &str) -> String {
        match self {
            Wrong::Name(text) => format!("{directive} {text}"),
            Wrong::Whole(text) => text.to_owned(),
        }
    }
}

/// What `name` names, defined if it is new.
fn named(
    cx: &mut Here<'_, '_>,
    name: &[u8],
    kind: Kind,
    text: &'static str,
) -> Result<Named, Wrong> {
    if let Some(known) = known(cx, name, kind, text).map_err(Wrong::Whole)? {
        return Ok(known);
    }
    let new = match is_balancer(name) {
        true => define::define_balancer(cx, name).map(Named::Balancer),
        false => define::define_worker(cx, name, kind == Kind::Pattern).map(Named::Worker),
    };
    new.map_err(Wrong::Name)
}

fn known(
    cx: &mut Here<'_, '_>,
    name: &[u8],
    kind: Kind,
    text: &'static str,
) -> Result<Option<Named>, &'static str> {
    let definitions = &cx.server().definitions.0;
    if is_balancer(name) {
        return Ok(definitions.find_balancer(name).map(Named::Balancer));
    }
    let real = without_socket(name).ok_or(text)?;
    Ok(definitions.find(&real, kind).map(Named::Worker))
}

fn set_words(
    cx: &mut Here<'_, '_>,
    named: Named,
    words: &[Vec<u8>],
    invalid: &str,
    told: impl Fn(&str, &bstr::BStr) -> String,
) -> Set {
    for word in words {
        let form = || format!("{invalid}. Parameter must be in the form 'key=value'");
        let (key, value) = split_at_text(word, b"=").ok_or_else(form)?;
        define::set(cx, named, key, value)
            .map_err(|text| Fault::new(told(&text, bstr::BStr::new(word))))?;
    }
    Ok(())
}

/// The words of a section's argument.
fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = text.trim_ascii_start();
    let mut found = Vec::new();
    while let Some((word, length)) = conf::word::first_word(rest) {
        found.push(word.to_vec());
        rest = rest.get(length..).unwrap_or_default().trim_ascii_start();
    }
    found
}

/// Applies the contents of a section to a configuration of its own.
fn inside(cx: &mut Here<'_, '_>, name: &'static str, path: Vec<u8>, nodes: &[Node]) -> Slots {
    let mut dir = cx.build().registry.empty_dir();
    cx.target.inside(name, Some(path), &mut dir).apply(nodes);
    dir
}
