//! The directives of mod_authn_socache.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};

use super::{AuthnSocache, Context, ID, TIMEOUT_S};
use crate::atoi::atoi;
use crate::cache::socache::{SOCACHE, SocacheProvider};

type Here<'a, 't> = Cx<'a, 't, AuthnSocache>;

pub(super) const ROWS: &[Row<AuthnSocache>] = &[
    Row::new(
        "AuthnCacheSOCache",
        Takes::One(cache),
        "provider-name[:provider-args]",
        "Names the provider that keeps the cache.",
    )
    .standing(Places::SERVER, Override::NONE)
    .default("shmcb"),
    Row::new(
        "AuthnCacheEnable",
        Takes::Nothing(enable),
        "",
        "Switches the cache on for .htaccess files if no other directive does.",
    )
    .standing(Places::SERVER, Override::NONE),
    Row::new(
        "AuthnCacheProvideFor",
        Takes::Each(provide_for),
        "authn-provider [...]",
        "Names the providers whose users are kept in the cache.",
    )
    .standing(Places::PER_DIR, Override::AUTH_CONFIG)
    .default("none"),
    Row::new(
        "AuthnCacheTimeout",
        Takes::One(timeout),
        "timeout (seconds)",
        "Sets how long a user is kept.",
    )
    .standing(Places::PER_DIR, Override::AUTH_CONFIG)
    .default("300"),
    Row::new(
        "AuthnCacheContext",
        Takes::One(context),
        "directory|server|custom-string",
        "Sets which requests share what is kept of a user.",
    )
    .standing(Places::DIRECTORY, Override::NONE)
    .default("directory"),
];

/// Source: `authn_cache_socache`.
fn cache(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let text: &[u8] = &arg.text;
    let (name, rest) = match text.iter().position(|byte| *byte == b':') {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
        None => (text, None),
    };
    let name = String::from_utf8_lossy(name).into_owned();
    let Some(provider) = cx.build().provider::<SocacheProvider>(SOCACHE, &name) else {
        let shown = &arg.text;
        return Err(Fault::new(format!(
            "AuthnCacheSOCache: Unknown socache provider '{shown}'. Maybe you need to load the \
             appropriate socache module (mod_socache_{shown}?)"
        ))
        .at(arg));
    };
    let made = (provider.create)(cx.build(), ID, rest);
    let made = made.map_err(|why| Fault::new(format!("AuthnCacheSOCache: {why}")).at(arg))?;
    cx.server().cache.0 = Some(made);
    Ok(())
}

fn enable(cx: &mut Here<'_, '_>) -> Set {
    cx.server().is_wanted.0 = true;
    Ok(())
}

fn provide_for(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    cx.dir().providers.push(arg.text.to_vec());
    if !cx.in_htaccess() {
        cx.server().is_wanted.0 = true;
    }
    Ok(())
}

/// The default, given, is none: that of a section around it counts (`authn_cache_dircfg_merge`).
fn timeout(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    match atoi(&arg.text) {
        TIMEOUT_S => cx.dir().timeout_s.unset(),
        seconds => cx.dir().timeout_s.set(seconds),
    }
    Ok(())
}

fn context(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let context = match &arg.text[..] {
        b"directory" => Context::Directory,
        b"server" => Context::Server,
        text => Context::Text(text.to_vec()),
    };
    cx.dir().context.set(context);
    Ok(())
}
