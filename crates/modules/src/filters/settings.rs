//! The settings that all modules for compression have.

use conf::Arg;
use server::directive::{Cx, Fault, Set};
use server::hooks::{Bound, Step};
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::mod_deflate::AlterEtag;
use super::mod_deflate::totals::Notes;

/// The directives of a host. None of them is inherited: one directive in a virtual host replaces
/// those of the server.
#[derive(Clone, Debug, Default)]
pub struct Settings<T> {
    /// What only this module has.
    own: T,
    /// `…AlterETag`
    etag: AlterEtag,
    /// `…FilterNote`
    notes: Notes,
}

/// The settings in force for a response.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InForce<T> {
    /// What only this module has.
    pub own: T,
    /// How the ETag changes.
    pub etag: AlterEtag,
    /// Whether totals are logged.
    pub has_notes: bool,
}

/// A module that compresses.
pub(super) trait Compressor: Module {
    /// Its own settings.
    type Own: Copy + Default + 'static;

    /// The error for another argument of `…AlterETag`.
    const WRONG_ETAG: &'static str;

    /// The settings of a host.
    fn of(host: &Self::Server) -> &Setting<Settings<Self::Own>>;

    /// The same, to change them.
    fn of_mut(host: &mut Self::Server) -> &mut Setting<Settings<Self::Own>>;

    /// The error for another kind of note.
    fn wrong_note(kind: &Arg) -> Fault;
}

/// The settings in force for a request.
pub(super) fn in_force<M: Compressor>(request: &Request) -> InForce<M::Own> {
    let settings = request.server_of::<M>().and_then(|host| M::of(host).get());
    settings.map_or_else(InForce::default, |settings| InForce {
        own: settings.own,
        etag: settings.etag,
        has_notes: settings.notes.is_any(),
    })
}

/// Changes the settings of the host.
pub(super) fn change<M: Compressor>(
    cx: &mut Cx<'_, '_, M>,
    change: impl FnOnce(&mut M::Own),
) -> Set {
    change_all(cx, |settings| change(&mut settings.own));
    Ok(())
}

fn change_all<M: Compressor>(cx: &mut Cx<'_, '_, M>, change: impl FnOnce(&mut Settings<M::Own>)) {
    let host = M::of_mut(cx.server());
    let mut settings = host.get().cloned().unwrap_or_default();
    change(&mut settings);
    host.set(settings);
}

/// `…AlterETag`
pub(super) fn alter_etag<M: Compressor>(cx: &mut Cx<'_, '_, M>, arg: &Arg) -> Set {
    let choice = AlterEtag::of(arg).ok_or_else(|| Fault::new(M::WRONG_ETAG).at(arg))?;
    change_all(cx, |settings| settings.etag = choice);
    Ok(())
}

/// `…FilterNote`
pub(super) fn filter_note<M: Compressor>(cx: &mut Cx<'_, '_, M>, args: &[Arg]) -> Set {
    let (kind, name) = match args {
        [name] => (None, name),
        [kind, name, ..] => (Some(kind), name),
        [] => return Ok(()),
    };
    let mut known = true;
    change_all(cx, |settings| {
        known = settings.notes.add(kind.map(|kind| kind.text.as_slice()), &name.text);
    });
    match kind {
        Some(kind) if !known => Err(M::wrong_note(kind)),
        _ => Ok(()),
    }
}

/// Whether a host logs totals.
pub(super) fn notes_wanted<M: Compressor>(module: Bound<'_, M>) -> bool {
    M::of(module.server).get().is_some_and(|settings| settings.notes.is_any())
}

/// Sets the notes for the log.
pub(super) fn note_totals<'r, M: Compressor>(
    module: Bound<'r, M>,
    request: &'r mut Request,
) -> Step<'r> {
    match M::of(module.server).get() {
        Some(settings) => settings.notes.set(request),
        None => Step::DECLINED,
    }
}
