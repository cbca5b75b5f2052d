//! mod_userdir: the folders of users, under `/~name`.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_userdir.html>

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;

use conf::Arg;
use conf::word::{blanks, first_word};
use messages::Message;
use nix::unistd::User;
use rt::Work;
use server::directive::{Cx, Row, Set, Takes};
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::log::Level;
use server::merge::{Merge, Setting};
use server::module::Module;
use server::path;
use server::request::Request;

use super::set_context;

/// `mod_userdir.c`
pub struct Userdir;

/// The user whose folder a request was mapped to: its programs run as that user.
pub(crate) struct UserdirUser(pub Vec<u8>);

/// Server configuration.
#[derive(Clone, Default)]
pub struct Settings {
    /// Whether there is a directive.
    is_set: bool,
    /// `UserDir disabled` or `enabled` for all users: whether it is disabled.
    is_disabled: Setting<bool>,
    /// The places, in order.
    places: Setting<Vec<Place>>,
    /// `UserDir enabled name ...`, in lower case.
    enabled: BTreeSet<Vec<u8>>,
    /// `UserDir disabled name ...`, in lower case.
    disabled: BTreeSet<Vec<u8>>,
}

impl Merge for Settings {
    /// A host with a directive inherits no names. Source: `merge_userdir_config`
    fn merge(outer: &Self, inner: &Self) -> Self {
        if !inner.is_set {
            return outer.clone();
        }
        Settings {
            is_set: true,
            is_disabled: Merge::merge(&outer.is_disabled, &inner.is_disabled),
            places: Merge::merge(&outer.places, &inner.places),
            enabled: inner.enabled.clone(),
            disabled: inner.disabled.clone(),
        }
    }
}

/// Where a user's folder is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// In this folder, by the user's name.
    Below(Vec<u8>),
    /// The name between these.
    Around(Vec<u8>, Vec<u8>),
    /// In the user's home.
    Home(Vec<u8>),
    /// A redirect to this, the name and the rest of the path.
    Url(Vec<u8>),
}

impl Module for Userdir {
    const NAME: &'static str = "userdir_module";
    const FILE: &'static str = "mod_userdir.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Userdir>] = &[Row::new(
        "UserDir",
        Takes::Raw(user_dir),
        "directory-filename [directory-filename] ... | enabled|disabled [username] ...",
        "Sets where the folders of users are, and which users have one.",
    )];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        // A look-up in the user database makes the request impure.
        hooks
            .on(Phase::TranslateName, Rank::MIDDLE, |bound| bound.server.places.is_set(), translate)
            .before(&["mod_vhost_alias.c"])
            .pure();
    }
}

/// Source: `set_user_dir`
fn user_dir(cx: &mut Cx<'_, '_, Userdir>, raw: &Arg) -> Set {
    let words: Vec<Vec<u8>> = words(&raw.text).collect();
    let Some((keyword, users)) = words.split_first().filter(|(word, _)| !word.is_empty()) else {
        return Err("UserDir requires an argument.".into());
    };
    let settings = cx.server();
    settings.is_set = true;
    let is_disabled = match keyword.to_ascii_lowercase().as_slice() {
        b"disable" | b"disabled" => true,
        b"enable" | b"enabled" => false,
        _ => {
            settings.places.set(words.iter().map(|word| Place::parse(word)).collect());
            return Ok(());
        }
    };
    if users.is_empty() {
        settings.is_disabled.set(is_disabled);
        return Ok(());
    }
    let list = if is_disabled { &mut settings.disabled } else { &mut settings.enabled };
    list.extend(users.iter().map(|user| user.to_ascii_lowercase()));
    Ok(())
}

fn words(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.get(blanks(rest)..)?;
        let (word, length) = first_word(rest)?;
        rest = rest.get(length..).unwrap_or_default();
        Some(word.into())
    })
}

impl Place {
    /// Source: `translate_userdir`
    fn parse(word: &[u8]) -> Place {
        let is_absolute = word.first() == Some(&b'/');
        let (before, rest) = match word.iter().position(|byte| *byte == b'*') {
            Some(star) => {
                let (before, rest) = word.split_at(star);
                let stars = rest.iter().take_while(|byte| **byte == b'*').count();
                (Some(before), rest.get(stars..).unwrap_or_default())
            }
            None => (None, word),
        };
        let is_url = |before: &[u8]| before.contains(&b':') && !is_absolute;
        match before {
            // What follows the name in a URL is not used.
            Some(before) if is_url(before) => Place::Url(before.to_vec()),
            Some(before) if rest.is_empty() || is_absolute => {
                Place::Around(before.to_vec(), rest.to_vec())
            }
            None if rest.is_empty() || is_absolute => Place::Below(word.to_vec()),
            Some(_) | None => Place::Home(rest.to_vec()),
        }
    }
}

/// Source: `translate_userdir`
fn translate<'r>(bound: Bound<'r, Userdir>, request: &'r mut Request) -> Step<'r> {
    let Some(rest) = request.resource.uri.strip_prefix(b"/~") else { return Step::DECLINED };
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let (user, rest) = rest.split_at(end);
    // Of several slashes behind the name one is left (`ap_getword`).
    let further = rest.iter().take_while(|byte| **byte == b'/').count().saturating_sub(1);
    let rest = rest.get(further..).unwrap_or_default();
    if matches!(user, b"" | b"." | b"..") {
        return Step::DECLINED;
    }
    let (user, rest) = (user.to_vec(), rest.to_vec());
    let (settings, lower) = (bound.server, user.to_ascii_lowercase());
    let is_enabled = !settings.is_disabled.or(false) || settings.enabled.contains(&lower);
    if settings.disabled.contains(&lower) || !is_enabled {
        return Step::DECLINED;
    }
    let places = settings.places.get().map(Vec::as_slice).unwrap_or_default();
    Step::Pending(Box::pin(find(places, request, user, rest)))
}

/// Maps to the first place that exists, or to the last.
async fn find(places: &[Place], request: &mut Request, user: Vec<u8>, rest: Vec<u8>) -> Verdict {
    let mut home = None;
    for (at, place) in places.iter().enumerate() {
        let folder = match place {
            Place::Below(folder) => [folder, &b"/"[..], &user].concat(),
            Place::Around(before, after) => [before.as_slice(), &user, after].concat(),
            Place::Url(before) => {
                let url = [before.as_slice(), &user, &rest].concat();
                request.response.headers_out.set(b"Location", &url);
                return Verdict::Status(302);
            }
            Place::Home(folder) => {
                if home.is_none() {
                    home = match home_of(request, &user).await {
                        Ok(found) => Some(found),
                        Err(status) => return Verdict::Status(status),
                    };
                }
                let Some(Some(home)) = &home else { continue };
                [home, &b"/"[..], folder].concat()
            }
        };
        let is_last = at + 1 == places.len();
        if is_last || exists(request, &folder) {
            return take(request, &user, &rest, &folder);
        }
    }
    Verdict::Declined
}

fn exists(request: &mut Request, folder: &[u8]) -> bool {
    let Some(folder) = absolute(folder) else { return false };
    request.trace_path(&folder);
    request.engine.stat(&folder).is_ok()
}

fn take(request: &mut Request, user: &[u8], rest: &[u8], folder: &[u8]) -> Verdict {
    let file = [folder, rest].concat();
    let Some(canonical) = absolute(&file) else { return Verdict::Status(403) };
    set_context(request, Some(&[b"/~", user].concat()), Some(folder));
    // No note: mod_headers copies fields of the client into those (CVE-2025-66200).
    request.keep(UserdirUser(user.to_vec()));
    // The walk makes it canonical; a TRACE, which is not mapped to storage, is logged as it is.
    request.resource.filename = if file.starts_with(b"/") { file } else { canonical.clone() };
    request.resource.canonical_filename = canonical;
    Verdict::Ok
}

/// A canonical path; a relative one is below the working directory.
fn absolute(file: &[u8]) -> Option<Vec<u8>> {
    if file.first() == Some(&b'/') {
        return path::canonical(file);
    }
    let here = std::env::current_dir().ok()?;
    path::into_canonical([here.as_os_str().as_bytes(), b"/", file].concat())
}

/// The home of a user in the user database, which may be on another machine.
async fn home_of(request: &mut Request, user: &[u8]) -> Result<Option<Vec<u8>>, u16> {
    request.depends.pure = false;
    let Ok(name) = String::from_utf8(user.to_vec()) else { return Ok(None) };
    let look_up = move || {
        let user = User::from_name(&name).ok()??;
        Some(user.dir.as_os_str().as_bytes().to_vec())
    };
    let pool = request.engine.handle.blocking().clone();
    pool.run(Work::Name, look_up).await.map_err(|why| {
        let number = Message::PoolRefused.number();
        request.log::<Userdir>(Level::Error, number, format_args!("{why}"));
        503
    })
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn a_place_is_a_folder_a_home_or_a_url() {
        let text = |text: &str| text.as_bytes().to_vec();
        let parsed = |text: &str| Place::parse(text.as_bytes());
        assert_eq!(parsed("public_html"), Place::Home(text("public_html")));
        assert_eq!(parsed("/usr/web"), Place::Below(text("/usr/web")));
        assert_eq!(parsed("/home/**/www"), Place::Around(text("/home/"), text("/www")));
        assert_eq!(parsed("/a:b/*/c"), Place::Around(text("/a:b/"), text("/c")));
        assert_eq!(parsed("http://x/*/y"), Place::Url(text("http://x/")));
        assert_eq!(parsed("http://x/users"), Place::Home(text("http://x/users")));
        assert_eq!(parsed("rel*/tail"), Place::Home(text("/tail")));
        assert_eq!(parsed("rel*"), Place::Around(text("rel"), text("")));
    }
}
