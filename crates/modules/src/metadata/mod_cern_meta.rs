//! mod_cern_meta: header fields from a meta file beside a file.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_cern_meta.html>

use bytes::Bytes;
use conf::Arg;
use messages::Message;
use rt::Work;
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, Takes};
use server::errorlog::Verbatim;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::log::Level;
use server::merge::{Own, Setting};
use server::module::Module;
use server::path;
use server::request::{FileKind, Request};
use server::subrequest;
use wire::Table;
use wire::field_lines::{self, FieldLine};
use wire::table::Overlap;

use crate::atoi::atoi;

/// `mod_cern_meta.c`
pub struct CernMeta;

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `MetaFiles`
        is_on: Own<bool>,
        /// `MetaDir`
        folder: Setting<Vec<u8>>,
        /// `MetaSuffix`
        suffix: Setting<Vec<u8>>,
    }
}

/// Fields that a meta file must not have.
const FRAMING: [&[u8]; 7] = [
    b"Connection",
    b"Content-Length",
    b"Keep-Alive",
    b"TE",
    b"Trailer",
    b"Transfer-Encoding",
    b"Upgrade",
];

/// The maximum size of a meta file, in bytes.
const META_BYTES_MAX: u64 = 64 * 1024;

impl Module for CernMeta {
    const NAME: &'static str = "cern_meta_module";
    const FILE: &'static str = "mod_cern_meta.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<CernMeta>] = &[
        row("MetaDir", Takes::One(meta_dir), "directory", "Sets the folder of meta files.")
            .default(".web"),
        row("MetaFiles", Takes::Flag(meta_files), "on|off", "Turns meta files on or off.")
            .default("off"),
        row("MetaSuffix", Takes::One(meta_suffix), "suffix", "Sets the suffix of meta files.")
            .default(".meta"),
    ];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.on(Phase::Fixups, Rank::MIDDLE, |bound| bound.dir.is_on.0, add).pure();
    }
}

const fn row(
    name: &'static str,
    takes: Takes<CernMeta>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<CernMeta> {
    Row::new(name, takes, syntax, doc).standing(Places::ALL, Override::INDEXES)
}

fn meta_dir(cx: &mut Cx<'_, '_, CernMeta>, arg: &Arg) -> Set {
    cx.dir().folder.set(arg.text.to_vec());
    Ok(())
}

fn meta_files(cx: &mut Cx<'_, '_, CernMeta>, on: bool) -> Set {
    cx.dir().is_on.0 = on;
    Ok(())
}

fn meta_suffix(cx: &mut Cx<'_, '_, CernMeta>, arg: &Arg) -> Set {
    cx.dir().suffix.set(arg.text.to_vec());
    Ok(())
}

/// Source: `add_cern_meta_data`
fn add<'r>(bound: Bound<'r, CernMeta>, request: &'r mut Request) -> Step<'r> {
    let resource = &request.resource;
    let is_file = !matches!(resource.file.kind, FileKind::None | FileKind::Directory);
    if !is_file || resource.uri.last() == Some(&b'/') {
        return Step::DECLINED;
    }
    let slash = resource.filename.iter().rposition(|byte| *byte == b'/');
    let Some(slash) = slash.filter(|slash| *slash > 0) else {
        let file = Verbatim::new(&resource.filename);
        let message = format_args!("internal error in mod_cern_meta: {file}");
        request.log::<CernMeta>(Level::Error, 1581, message);
        return Step::DECLINED;
    };
    let (folder, name) = resource.filename.split_at(slash);
    let dir = bound.dir;
    let meta = [
        folder,
        b"/",
        dir.folder.get().map_or(b".web", Vec::as_slice),
        b"/",
        name.get(1..).unwrap_or_default(),
        dir.suffix.get().map_or(b".meta", Vec::as_slice),
    ];
    let Some(meta) = path::into_canonical(meta.concat()) else { return Step::DECLINED };
    Step::Pending(Box::pin(add_from(request, meta)))
}

async fn add_from(request: &mut Request, meta: Vec<u8>) -> Verdict {
    let sub = subrequest::lookup_file(request, &meta).await;
    if sub.response.status != 200 || sub.resource.file.kind == FileKind::None {
        return Verdict::Declined;
    }
    match read(request, &meta).await {
        Ok(content) => apply(request, &content),
        Err(verdict) => verdict,
    }
}

async fn read(request: &mut Request, meta: &[u8]) -> Result<Bytes, Verdict> {
    if let Some((_, content)) = request.engine.content(meta) {
        return Ok(content);
    }
    let file = meta.to_vec();
    let pool = request.engine.handle.blocking().clone();
    let job = move || regular::read(path::as_path(&file), META_BYTES_MAX);
    match pool.run(Work::File, job).await {
        Ok(Ok(content)) => Ok(content.into()),
        Ok(Err(error)) => match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::NOENT) => Err(Verdict::Declined),
            // Apache reads a folder as an empty file.
            Some(errno) if errno == regular::NOT_REGULAR => Ok(Bytes::new()),
            _ => {
                let meta = Verbatim::new(meta);
                request.log::<CernMeta>(
                    Level::Error,
                    1562,
                    format_args!("meta file permissions deny server access: {meta}"),
                );
                Err(Verdict::Status(403))
            }
        },
        Err(why) => {
            let number = Message::PoolRefused.number();
            request.log::<CernMeta>(Level::Error, number, format_args!("{why}"));
            Err(Verdict::Status(503))
        }
    }
}

/// Source: `scan_meta_file`
fn apply(request: &mut Request, content: &[u8]) -> Verdict {
    let (mut rest, mut fields) = (content, Table::new());
    while let Some(line) = field_lines::take(&mut rest) {
        match line {
            // Like Apache: the fields before an empty line are lost.
            FieldLine::End => return Verdict::Ok,
            FieldLine::Malformed(_) => {
                let file = Verbatim::new(&request.resource.filename);
                let message = format_args!("malformed header in meta file: {file}");
                request.log::<CernMeta>(Level::Error, 1560, message);
                return Verdict::Status(500);
            }
            FieldLine::Field(name, value) if name.eq_ignore_ascii_case(b"Content-Type") => {
                request.set_untrusted_type(field_lines::media_type(value));
            }
            FieldLine::Field(name, value) if name.eq_ignore_ascii_case(b"Status") => {
                set_status(request, value);
            }
            FieldLine::Field(name, _) if is_framing(name) => {
                let (name, file) = (Verbatim::new(name), Verbatim::new(&request.resource.filename));
                let message =
                    format_args!("forbidden HTTP framing header '{name}' in meta file: {file}");
                request.log::<CernMeta>(Level::Error, 10596, message);
                return Verdict::Status(500);
            }
            FieldLine::Field(name, value) => fields.set(name, value),
        }
    }
    request.response.headers_out.overlap(&fields, Overlap::Set);
    Verdict::Ok
}

/// Whether a field is about the connection and not about the file.
fn is_framing(name: &[u8]) -> bool {
    FRAMING.iter().any(|field| name.eq_ignore_ascii_case(field))
}

fn set_status(request: &mut Request, line: &[u8]) {
    let digits = line.strip_prefix(b"-").unwrap_or(line);
    if digits.first().is_some_and(u8::is_ascii_digit) {
        request.response.status = u16::try_from(atoi(line)).unwrap_or(0);
    }
    let status = request.response.status;
    let is_bare = line == status.to_string().as_bytes();
    let is_sendable = is_bare || field_lines::is_status_line(line, status);
    request.response.status_line = is_sendable.then(|| line.to_vec());
}
