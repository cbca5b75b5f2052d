//! Scripts that decide: who has access, whose password is right, which groups a user is in, and
//! which process runs a request. They run in embedded mode.
//!
//! Source: `wsgi_hook_access_checker`, `wsgi_check_password`, `wsgi_get_realm_hash`,
//! `wsgi_authorization_check`, `wsgi_execute_dispatch`

use std::pin::Pin;
use std::sync::Arc;

use bstr::ByteSlice;
use server::directive::{Fault, Target as Place};
use server::errorlog::Verbatim;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::request::Request;
use wire::wsgi::write_head;

use super::conversation::Next;
use super::environ::{self, About};
use super::message::HEAD_ROOM;
use super::respond::{application_group, embedded, open};
use super::runtime::Runtime;
use super::script::{Script, Selector};
use super::target::{CALLABLE, Target, refuse};
use super::{Directory, Settings, Wsgi};
use crate::aaa::provider::{Authenticate, Authn, Authz, Login, Pending, RealmHash, Requirement};

/// The answer of a script that has none to give.
const NONE: &[u8] = b"none";

/// A script that failed, which has been logged.
struct Failed;

/// Asks a script: the kind of the question, and what it is about.
async fn ask(
    bound: Bound<'_, Wsgi>,
    request: &mut Request,
    script: &Script,
    kind: &[u8],
    about: [&[u8]; 2],
) -> Result<Vec<u8>, Failed> {
    request.depends.pure = false;
    let application = application_group(request, script.application_group.as_deref());
    let env = environ::build(
        bound,
        request,
        &About {
            process_group: b"",
            application_group: &application,
            callable: b"",
            handler: b"",
            handler_script: b"",
            passes_authorization: false,
        },
    )
    .await;
    let own = request.own_variables();
    let flags: &[u8] = if bound.dir.reloading.or(true) { b"r" } else { b"" };
    let parts = [kind, &script.path, b"", flags, b"", about[0], about[1], b""];
    // What the configuration sets is not for these scripts.
    let pairs = environ::given(&env).filter(|(name, value)| own.get(name) != Some(value));
    let mut head = Vec::with_capacity(HEAD_ROOM);
    if write_head(&mut head, &parts, pairs).is_err() {
        return Err(Failed);
    }
    let handle = bound.server.runtime.0.clone();
    let Some(runtime) = handle.get() else { return Err(Failed) };
    converse(request, runtime, &application, &head).await.map_err(|why| {
        if let Some(why) = why {
            let file = Verbatim::new(&script.path);
            request.log::<Wsgi>(Level::Error, 0, format_args!("{why}: {file}"));
        }
        Failed
    })
}

/// The answer, or why there is none, unless the script has logged that.
async fn converse(
    request: &mut Request,
    runtime: &Runtime,
    application: &[u8],
    head: &[u8],
) -> Result<Vec<u8>, Option<String>> {
    let group = runtime.find(b"").ok_or_else(|| Some("no embedded mode".to_owned()))?;
    for _ in 0..10 {
        let opened = open(request, runtime, group, application, head).await;
        let mut conversation = opened.map_err(|error| Some(error.to_string()))?;
        match conversation.next().await {
            Ok(Next::Answer(answer)) => return Ok(answer),
            Ok(Next::Retry) => {}
            Ok(_) => return Err(None),
            Err(broken) => return Err(Some(broken.to_string())),
        }
    }
    Err(Some("no process takes the question".to_owned()))
}

/// `WSGIAccessScript`
pub(super) fn check<'r>(bound: Bound<'r, Wsgi>, request: &'r mut Request) -> Step<'r> {
    let Some(script) = bound.dir.access.get().cloned() else { return Step::DECLINED };
    Step::Pending(Box::pin(async move {
        let host = server::hostname::client_name(request).await.map(<[u8]>::to_vec);
        let host = host.unwrap_or_else(|| request.useragent_addr.ip().to_string().into_bytes());
        match ask(bound, request, &script, b"a", [&host, b""]).await {
            Ok(answer) if answer == b"yes" => Verdict::Ok,
            Ok(answer) if answer == NONE => Verdict::Declined,
            Ok(_) => {
                let file = Verbatim::new(&request.resource.filename);
                let text = format_args!("Client denied by server configuration: '{file}'.");
                request.log::<Wsgi>(Level::Error, 0, text);
                Verdict::Status(403)
            }
            Err(Failed) => Verdict::Status(500),
        }
    }))
}

/// The provider `wsgi`.
pub(super) struct Passwords;

/// The configuration in force for a request.
fn settings(request: &Request) -> Option<(Arc<Settings>, Arc<Directory>)> {
    let slot = request.engine.server.registry.slot_of::<Wsgi>()?;
    Some((request.host.server.share(slot)?, request.plan.dir.share(slot)?))
}

impl Authenticate for Passwords {
    fn check_password<'r>(
        &'r self,
        request: &'r mut Request,
        login: &'r Login,
    ) -> Pending<'r, Authn> {
        Pending::Wait(Box::pin(async move {
            let Some((server, dir)) = settings(request) else { return Authn::GeneralError };
            let bound = Bound::<Wsgi> { server: &server, dir: &dir };
            let Some(script) = bound.dir.auth_user.get().cloned() else {
                let text = "Location of WSGI user authentication script not provided.";
                request.log::<Wsgi>(Level::Error, 0, format_args!("{text}"));
                return Authn::GeneralError;
            };
            let about = [login.user.as_slice(), &login.password];
            match ask(bound, request, &script, b"p", about).await {
                Ok(answer) if answer == b"yes" => Authn::Granted,
                Ok(answer) if answer == NONE => Authn::UserNotFound,
                // The user's new name.
                Ok(answer) if answer.starts_with(b"=") => {
                    request.user = Some(answer.get(1..).unwrap_or_default().to_vec());
                    Authn::Granted
                }
                Ok(_) => Authn::Denied,
                Err(Failed) => Authn::GeneralError,
            }
        }))
    }

    fn has_digests(&self) -> bool {
        true
    }

    fn realm_hash<'r>(
        &'r self,
        request: &'r mut Request,
        user: &'r [u8],
        realm: &'r [u8],
    ) -> Option<Pending<'r, RealmHash>> {
        Some(Pending::Wait(Box::pin(async move {
            let Some((server, dir)) = settings(request) else { return RealmHash::GeneralError };
            let bound = Bound::<Wsgi> { server: &server, dir: &dir };
            let Some(script) = bound.dir.auth_user.get().cloned() else {
                return RealmHash::GeneralError;
            };
            match ask(bound, request, &script, b"d", [user, realm]).await {
                Ok(answer) if answer == NONE => RealmHash::UserNotFound,
                Ok(answer) => match answer.strip_prefix(b"=") {
                    Some(hash) => RealmHash::Found(hash.to_vec()),
                    None => RealmHash::GeneralError,
                },
                Err(Failed) => RealmHash::GeneralError,
            }
        })))
    }
}

/// `Require wsgi-group`
struct Groups(Vec<Vec<u8>>);

pub(super) fn parse_groups(
    _: &mut Place<'_>,
    arguments: &[u8],
) -> Result<Arc<dyn Requirement>, Fault> {
    Ok(Arc::new(Groups(super::words::all(arguments))))
}

impl Requirement for Groups {
    fn waits(&self) -> bool {
        true
    }

    fn wait<'r>(&'r self, request: &'r mut Request) -> Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move {
            let Some(user) = request.user.clone() else { return Authz::DeniedNoUser };
            let Some((server, dir)) = settings(request) else { return Authz::GeneralError };
            let bound = Bound::<Wsgi> { server: &server, dir: &dir };
            let Some(script) = bound.dir.auth_group.get().cloned() else {
                let text = "Location of WSGI group authentication script not provided.";
                request.log::<Wsgi>(Level::Error, 0, format_args!("{text}"));
                return Authz::Denied;
            };
            let Ok(answer) = ask(bound, request, &script, b"g", [&user, b""]).await else {
                return Authz::Denied;
            };
            let mut groups = answer.split(|byte| *byte == 0);
            match groups.any(|group| self.0.iter().any(|wanted| wanted == group)) {
                true => Authz::Granted,
                false => {
                    let (user, file) =
                        (Verbatim::new(&user), Verbatim::new(&request.resource.filename));
                    let text = format_args!(
                        "Authorization of user '{user}' to access '{file}' failed. User is not \
                         a member of designated groups."
                    );
                    request.log::<Wsgi>(Level::Error, 0, text);
                    Authz::Denied
                }
            }
        })
    }
}

/// `WSGIDispatchScript`: what the script does not decide stays as it is.
pub(super) async fn dispatch(
    bound: Bound<'_, Wsgi>,
    request: &mut Request,
    target: &mut Target,
) -> Result<(), u16> {
    let Some(script) = bound.dir.dispatch.get().cloned() else { return Ok(()) };
    if embedded(request).is_none() {
        return Err(refuse(request, 500, "Only a running server runs applications"));
    }
    let answer = ask(bound, request, &script, b"s", [b"", b""]).await.map_err(|Failed| 500u16)?;
    let mut parts = answer.split_str(b"\0");
    let (script_name, _) = environ::split_path(request);
    let mut next = || parts.next().and_then(|part| part.strip_prefix(b"=")).map(Selector::parse);
    if let Some(name) = next() {
        target.process_group = name.process_group(request);
    }
    if let Some(name) = next() {
        target.application_group = name.application_group(request, &script_name);
    }
    if let Some(name) = next() {
        let callable = name.callable(request);
        target.callable = callable.unwrap_or_else(|| CALLABLE.to_vec());
    }
    Ok(())
}
