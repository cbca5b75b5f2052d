//! The last phases: filters are inserted, the handler responds, errors become documents.
//!
//! Source: `ap_invoke_handler` (server/config.c).

use std::borrow::Cow;

use crate::api::hooks::{Phase, Step, Verdict};
use crate::errorlog::Verbatim;
use crate::log::Level;
use crate::phases::process::run_all;
use crate::request::{FileKind, Request, Switching};

/// Inserts filters and runs the handlers.
#[inline]
pub async fn produce(request: &mut Request) -> Verdict {
    match run_all(request, Phase::InsertFilter).await {
        Verdict::Ok => {}
        decided => return decided,
    }
    if request.response.switching == Switching::Asked && switches(request) {
        return Verdict::Done;
    }
    request.reached_handler = true;
    let named = name_handler(request);
    request.handler_of_type = named.is_none();
    let verdict = ask_handlers(request).await;
    if request.handler_of_type && matches!(verdict, Verdict::Declined | Verdict::Status(_)) {
        // An error response of the handler itself still has the name, an error page does not.
        request.handler = None;
    }
    match verdict {
        Verdict::Declined => {
            if let Some(handler) = named {
                let handler = Verbatim::new(&handler);
                let file = Verbatim::new(&request.resource.filename);
                let why = format_args!("handler \"{handler}\" not found for: {file}");
                request.log_as("core.c", Level::Warn, 523, why);
            }
            Verdict::Status(500)
        }
        decided => decided,
    }
}

/// Lets HTTP/2 respond, if the request's directory allows that (`core_upgrade_handler`,
/// `h2_allows_h2_upgrade`).
#[cold]
fn switches(request: &mut Request) -> bool {
    let is_allowed = request.plan.http2.upgrade.unwrap_or(request.connection.tls.is_none());
    if is_allowed {
        request.response.switching = Switching::Granted;
    }
    is_allowed
}

/// AP_DEFAULT_HANDLER_NAME
const DEFAULT: &[u8] = b"";

/// Uses the media type as handler name if there is none; otherwise returns the name.
fn name_handler(request: &mut Request) -> Option<Cow<'static, [u8]>> {
    let named = request.handler.clone();
    if named.is_none() {
        let name = name_of_type(request).map(|name| Cow::Owned(name.to_vec()));
        request.handler = Some(name.unwrap_or(Cow::Borrowed(DEFAULT)));
    }
    if request.response.content_type.is_none() {
        request.response.content_type = request.given_type().map(<[u8]>::to_vec);
    }
    named
}

/// The handler name that the media type is: without parameters.
fn name_of_type(request: &Request) -> Option<&[u8]> {
    let media_type = request.response.content_type.as_deref()?;
    if !request.has_trusted_type() {
        return None;
    }
    let bare = media_type.split(|byte| *byte == b';').next().unwrap_or_default();
    Some(bare.trim_ascii_end())
}

impl Request {
    /// Whether the handler of files has made the response.
    pub(crate) fn is_file_response(&self) -> bool {
        match self.handler.as_deref() {
            None | Some(DEFAULT | b"default-handler") => true,
            Some(_) => self.handler_of_type && !self.has_handler_of_type(),
        }
    }

    /// Whether a module's handler is named like the media type: it runs if no other is named.
    pub fn has_handler_of_type(&self) -> bool {
        let Some(name) = name_of_type(self) else { return false };
        let mut names = self.plan.phase(Phase::Handler).iter().filter_map(|one| one.handler);
        names.any(|known| known.as_bytes() == name)
    }
}

/// The name of the handler of folders (DIR_MAGIC_TYPE).
const FOLDER: &str = "httpd/unix-directory";

/// Whether it is a folder whose handler has an empty name: such a folder is listed, too.
fn is_folder_by_default(request: &Request) -> bool {
    request.resource.file.kind == FileKind::Directory && request.handler.as_deref() == Some(DEFAULT)
}

#[inline]
async fn ask_handlers(request: &mut Request) -> Verdict {
    let plan = request.plan.clone();
    for planned in plan.phase(Phase::Handler) {
        if let Some(name) = planned.handler
            && request.handler.as_deref() != Some(name.as_bytes())
            && !(name == FOLDER && is_folder_by_default(request))
        {
            continue;
        }
        request.depends.pure &= planned.pure;
        let verdict = match planned.hook.run(request) {
            Step::Ready(verdict) => verdict,
            Step::Pending(future) => future.await,
        };
        if verdict != Verdict::Declined {
            return verdict;
        }
    }
    Verdict::Declined
}
