//! The file or folder that is transferred. Source: part V of `proxy_ftp_handler`.

use server::request::Request;
use wire::ftp::{has_wildcards, modified};

use super::ProxyFtp;
use super::asked::{Asked, Type};
use super::control::Control;
use super::data::refused;
use super::folder::{argument, change, current};
use crate::atoi::atol;

/// The character set of listings without `ProxyFtpDirCharset`.
const CHARSET: &[u8] = b"ISO-8859-1";

/// What is being transferred.
pub(super) struct Wanted {
    /// The name in its folder; empty: the folder.
    name: Vec<u8>,
    kind: Type,
    /// Whether it is a listing.
    pub lists: bool,
    /// The server's name of the folder.
    pub folder: Option<Vec<u8>>,
    /// Bytes.
    size: Option<u64>,
    /// Seconds since 1970.
    modified: Option<i64>,
}

impl Wanted {
    /// Asks what `name` is, and begins its transfer.
    ///
    /// # Errors
    /// The status of the response.
    pub async fn find(
        request: &mut Request,
        control: &mut Control,
        asked: &Asked,
        name: Vec<u8>,
    ) -> Result<Wanted, u16> {
        let directory = request.dir_of::<ProxyFtp>();
        let lists_wildcards = directory.is_none_or(|own| own.lists_wildcards.or(true));
        let is_pattern = has_wildcards(&name) && lists_wildcards;
        let mut wanted = Wanted {
            lists: asked.lists || name.is_empty() || is_pattern,
            name,
            kind: asked.kind,
            folder: None,
            size: None,
            modified: None,
        };
        if !wanted.name.is_empty() && !is_pattern {
            wanted.look(request, control).await?;
        }
        wanted.folder = current(request, control).await;
        match wanted.lists {
            true => wanted.list(request, control).await?,
            false => wanted.retrieve(request, control).await?,
        }
        Ok(wanted)
    }

    /// Asks for the size, which a folder does not have.
    async fn look(&mut self, request: &mut Request, control: &mut Control) -> Result<(), u16> {
        control.set_type(request, self.kind).await;
        let name = argument(request, &self.name);
        let reply = control.ask(request, "SIZE", &name).await?;
        match reply.code {
            213 if reply.text.first().is_some_and(u8::is_ascii_digit) => {
                self.size = u64::try_from(atol(&reply.text)).ok();
            }
            550 => {
                self.lists = true;
                change(request, control, &self.name).await?;
                self.name.clear();
            }
            _ => {}
        }
        Ok(())
    }

    /// Begins a listing. Names are not escaped, so that servers expand patterns.
    async fn list(&mut self, request: &mut Request, control: &mut Control) -> Result<(), u16> {
        control.set_type(request, Type::Ascii).await;
        let argument = match self.name.is_empty() {
            true => self.list_options(),
            false => &self.name,
        };
        let reply = control.ask(request, "LIST", argument).await?;
        match reply.code {
            // A pattern without files may be a folder.
            550 => self.list_instead(request, control).await,
            125 | 150 | 226 | 250 => Ok(()),
            _ => Err(refused(request, &reply.text)),
        }
    }

    /// Options that not all servers know: those whose folders have slashes do.
    fn list_options(&self) -> &'static [u8] {
        match &self.folder {
            Some(folder) if !folder.contains(&b'/') => b"",
            _ => b"-lag",
        }
    }

    /// Begins the transfer of a file.
    async fn retrieve(&mut self, request: &mut Request, control: &mut Control) -> Result<(), u16> {
        control.set_type(request, self.kind).await;
        let name = argument(request, &self.name);
        let reply = control.ask(request, "MDTM", &name).await;
        // Without it, the next command fails.
        if let Ok(reply) = reply
            && reply.code == 213
        {
            self.modified = modified(&reply.text).filter(|seconds| *seconds != 0);
        }
        let reply = control.ask(request, "RETR", &name).await?;
        match reply.code {
            550 => self.list_instead(request, control).await,
            125 | 150 | 226 | 250 => Ok(()),
            _ => Err(refused(request, &reply.text)),
        }
    }

    /// Begins a listing of what is no file.
    async fn list_instead(
        &mut self,
        request: &mut Request,
        control: &mut Control,
    ) -> Result<(), u16> {
        self.lists = true;
        control.set_type(request, Type::Ascii).await;
        change(request, control, &self.name).await?;
        if let Some(folder) = current(request, control).await {
            self.folder = Some(folder);
        }
        let reply = control.ask(request, "LIST", self.list_options()).await?;
        match reply.code {
            125 | 150 | 226 | 250 => Ok(()),
            _ => Err(refused(request, &reply.text)),
        }
    }

    /// The length of the response's body in bytes, if it is known: line ends of texts may change.
    pub fn length(&self) -> Option<u64> {
        self.size.filter(|_| !self.lists && self.kind != Type::Ascii)
    }

    /// Puts the response's head into the request.
    pub fn put_head(&self, request: &mut Request) {
        let directory = request.dir_of::<ProxyFtp>();
        let charset = directory.and_then(|own| own.charset.get()).map_or(CHARSET, Vec::as_slice);
        let listing = [b"text/html;charset=", charset].concat();
        let response = &mut request.response;
        response.status = 200;
        response.status_line = Some(b"200 OK".to_vec());
        if self.lists {
            response.content_type = Some(listing);
            response.content_encoding = None;
        }
        if let Some(length) = self.length() {
            response.headers_out.set(b"Content-Length", length.to_string().as_bytes());
        }
        if let Some(seconds) = self.modified {
            response.headers_out.set(b"Last-Modified", &wire::date::format(seconds));
        }
    }
}
