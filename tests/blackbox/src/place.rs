//! The environment of a test file while it runs: a folder with the file tree and the configuration,
//! and ports that are otherwise unused.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use socket2::{Domain, Socket, Type};

use crate::backend::socket::Backend;
use crate::http2;
use crate::testfile::{Change, Entry, TestFile};

/// The lowest port: all have five digits, so that lengths do not change, and are below the kernel's
/// ephemeral range.
const FIRST_PORT: u16 = 11_000;
const LAST_PORT: u16 = 32_000;
/// 2022-01-01T00:00:00Z, the default modification time of files.
const DEFAULT_MTIME_S: u64 = 1_640_995_200;

/// The MPM of test files that do not name one; by default mpm_event.
pub static MPM: OnceLock<String> = OnceLock::new();

/// Where folders are: the second is for files that name it, since suEXEC's wrapper runs programs
/// only there.
pub const PARENTS: [&str; 2] = ["/tmp", "/var/www"];

/// The prefix of all folders' names, below a parent.
pub const FOLDERS: &str = "/blackbox.";

static NEXT_PLACE: AtomicU32 = AtomicU32::new(0);
static NEXT_PORT: AtomicU16 = AtomicU16::new(0);

/// A folder and ports for a run of a test file. Dropping it removes the folder.
#[derive(Debug)]
pub struct Place {
    /// Always of the same length, because bodies contain paths.
    pub root: PathBuf,
    /// PORT, PORT2, …
    pub ports: Vec<u16>,
    /// Servers behind the one under test.
    pub backends: Vec<Backend>,
    /// Whether the file names its MPM.
    names_mpm: bool,
}

impl Place {
    /// Creates the folder, the tree and the configuration.
    pub fn build(file: &TestFile, certificates: &Path) -> Result<Place, String> {
        let number = NEXT_PLACE.fetch_add(1, Ordering::Relaxed);
        let parent = file.parent.unwrap_or(PARENTS[0]);
        let root = PathBuf::from(format!("{parent}{}{number:05}", prefix()));
        let names_mpm = file.modules.iter().any(|module| module.starts_with("mpm_"));
        let ports = (0..file.ports).map(|_| free_port(&file.numbers)).collect();
        let mut place = Place { root, ports, backends: Vec::new(), names_mpm };
        let filled = place.fill(file, certificates);
        filled.map_err(|e| format!("{}: {e}", place.root.display()))?;
        Ok(place)
    }

    fn fill(&mut self, file: &TestFile, certificates: &Path) -> std::io::Result<()> {
        fs::create_dir(&self.root)?;
        for folder in ["conf", "htdocs", "logs", "run"] {
            fs::create_dir(self.root.join(folder))?;
        }
        fs::write(self.root.join("conf/mime.types"), MIME_TYPES)?;
        for declared in &file.backends {
            let port = || free_port(&file.numbers);
            self.backends.push(Backend::bind(declared, &self.root, port)?);
        }
        if file.modules.iter().any(|module| module == "ssl") {
            fs::create_dir(self.root.join("tls"))?;
            for entry in fs::read_dir(certificates)? {
                let from = entry?.path();
                if let Some(name) = from.file_name() {
                    fs::copy(&from, self.root.join("tls").join(name))?;
                }
            }
        }
        for entry in &file.tree {
            self.entry(entry)?;
        }
        self.settle(file)?;
        self.write_config(file)
    }

    /// Writes another configuration for the same tree.
    pub fn configure(&self, file: &TestFile) -> Result<(), String> {
        self.write_config(file).map_err(|e| format!("{}: {e}", self.root.display()))
    }

    fn write_config(&self, file: &TestFile) -> std::io::Result<()> {
        let config = self.fill_text(&file.config);
        let base = if file.bare { config } else { self.base(file, &config)? };
        fs::write(self.root.join("conf/httpd.conf"), base)
    }

    fn base(&self, file: &TestFile, config: &str) -> std::io::Result<String> {
        fs::write(self.root.join("conf/test.conf"), config)?;
        let root = self.root.display();
        let mut text = format!(
            "ServerRoot \"{root}\"\nPidFile \"{root}/run/httpd.pid\"\n\
             DefaultRuntimeDir \"{root}/run\"\nMutex file:{root}/run default\n\
             ErrorLog \"{root}/logs/error.log\"\n"
        );
        for port in &self.ports {
            text.push_str(&format!("Listen 127.0.0.1:{port}\n"));
        }
        let mpm = MPM.get().cloned().unwrap_or_else(|| "mpm_event".to_owned());
        let mpm = (!self.names_mpm).then_some(mpm);
        let http2 = http2::is_on().then(|| "http2".to_owned());
        for module in mpm.iter().chain(&file.modules).chain(&http2) {
            text.push_str(&format!(
                "LoadModule {module}_module \"{}/mod_{module}.so\"\n",
                crate::program::MODULES
            ));
        }
        // Two lines in any case, so that line numbers are the same.
        text.push_str(match rustix::process::geteuid().is_root() {
            true => "User www-data\nGroup www-data\n",
            false => "# An ordinary user's server\n# keeps its user.\n",
        });
        text.push_str(&format!("ServerName localhost\nDocumentRoot \"{root}/htdocs\"\n"));
        if file.modules.iter().any(|module| module == "mime") {
            text.push_str("TypesConfig conf/mime.types\n");
        }
        if http2::is_on() {
            text.push_str(http2::CONFIG);
        }
        text.push_str("Include conf/test.conf\n");
        Ok(text)
    }

    fn entry(&self, entry: &Entry) -> std::io::Result<()> {
        let path = self.root.join(&entry.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        if let Some(from) = option(entry, "copy") {
            copy(Path::new(from), &path)?;
        } else if let Some(target) = &entry.link {
            symlink(self.fill_text(target), &path)?;
        } else if entry.path.ends_with('/') {
            fs::create_dir_all(&path)?;
        } else {
            fs::write(&path, self.content(entry)?)?;
        }
        Ok(())
    }

    fn content(&self, entry: &Entry) -> std::io::Result<Vec<u8>> {
        let mut content = self.fill_bytes(&entry.content);
        if let Some(size) = option(entry, "size").and_then(|size| size.parse::<usize>().ok()) {
            // Numbered words, so that a range shows where it was cut.
            let end = |at: usize| if at % 8 == 7 { '\n' } else { ' ' };
            let line = |at: usize| format!("{:07}{}", at * 8, end(at)).into_bytes();
            content = (0..size.div_ceil(8)).flat_map(line).take(size).collect();
        }
        if option(entry, "gzip").is_some() {
            let mut out =
                flate2::GzBuilder::new().mtime(0).write(Vec::new(), flate2::Compression::default());
            out.write_all(&content)?;
            content = out.finish()?;
        }
        Ok(content)
    }

    /// Sets modes, owners and times last: writing into a folder changes its time, and a mode may
    /// close it.
    fn settle(&self, file: &TestFile) -> std::io::Result<()> {
        let mut folders = vec![self.root.join("htdocs")];
        for entry in file.tree.iter().rev() {
            let path = self.root.join(&entry.path);
            let [uid, gid] = ["uid", "gid"].map(|name| option(entry, name)?.parse().ok());
            if uid.or(gid).is_some() {
                lchown(&path, uid, gid)?;
            }
            if entry.link.is_some() {
                continue;
            }
            set_time(&path, option(entry, "mtime").map_or(Some(DEFAULT_MTIME_S), parse_time))?;
            if let Some(mode) = option(entry, "mode") {
                let mode = u32::from_str_radix(mode, 8).map_err(std::io::Error::other)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
            }
            let mut parent = path.parent();
            while let Some(folder) = parent.filter(|folder| *folder != self.root) {
                if !folders.iter().any(|known| known == folder) {
                    folders.push(folder.to_owned());
                }
                parent = folder.parent();
            }
        }
        let named = |path: &Path| file.tree.iter().any(|entry| self.root.join(&entry.path) == path);
        folders.retain(|folder| !named(folder));
        folders.iter().try_for_each(|folder| set_time(folder, Some(DEFAULT_MTIME_S)))
    }

    /// Changes the tree, but no backend, while the server runs.
    pub fn change(&self, change: &Change) -> std::io::Result<()> {
        match change {
            Change::Write(path, content) => {
                let path = self.root.join(path);
                fs::write(&path, self.fill_bytes(content))?;
                set_time(&path, Some(DEFAULT_MTIME_S))
            }
            Change::Rename(from, to) => fs::rename(self.root.join(from), self.root.join(to)),
            // The threads that play the backends do this.
            Change::Stop(_) | Change::Start(_) => Ok(()),
            Change::Remove(path) if path.ends_with('/') => fs::remove_dir_all(self.root.join(path)),
            Change::Remove(path) => fs::remove_file(self.root.join(path)),
        }
    }

    /// Replaces `@ROOT@`, `@PORT@` and so on by their values.
    pub fn fill_text(&self, text: &str) -> String {
        let mut text = text.replace("@ROOT@", &self.root.display().to_string());
        for (name, port) in self.port_names() {
            text = text.replace(&name, &port);
        }
        text
    }

    /// The same for bytes to send.
    pub fn fill_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.fill_text(text).into_bytes(),
            Err(_) => {
                let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
                let filled = self.fill_text(&text);
                filled.chars().filter_map(|byte| u8::try_from(byte).ok()).collect()
            }
        }
    }

    /// Replaces the values by `@ROOT@`, `@PORT@` and so on.
    pub fn unfill(&self, text: &str) -> String {
        let mut text = text.replace(&self.root.display().to_string(), "@ROOT@");
        for (name, port) in self.port_names() {
            text = replace_number(&text, &port, &name);
        }
        // As recorded, if the files run under another MPM.
        match MPM.get().filter(|_| !self.names_mpm) {
            Some(mpm) => text.replace(mpm.as_str(), "mpm_event").replace("AH00292", "AH00489"),
            None => text,
        }
    }

    fn port_names(&self) -> impl Iterator<Item = (String, String)> {
        let ports = self.ports.iter().enumerate().map(|(at, port)| {
            let name = if at == 0 { "@PORT@".into() } else { format!("@PORT{}@", at + 1) };
            (name, port.to_string())
        });
        ports.chain(self.backends.iter().flat_map(Backend::names))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        match std::env::var_os("KEEP") {
            Some(_) => println!("kept: {}", self.root.display()),
            None => remove(&self.root),
        }
    }
}

/// The prefix of the names of this process's folders, below a parent.
pub fn prefix() -> String {
    format!("{FOLDERS}{:07}.", std::process::id() % 10_000_000)
}

/// Removes a place's folder.
pub fn remove(root: &Path) {
    let _ = open_up(root);
    let _ = fs::remove_dir_all(root);
}

/// Digits of a hexadecimal number that is long enough to be a digest.
const DIGEST_DIGITS: usize = 20;

/// Replaces `number` by `name`, except as a part of a longer number such as a time or a digest, and
/// as the number of a process or thread in a log.
fn replace_number(text: &str, number: &str, name: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(number) {
        let (before, found) = rest.split_at(at);
        let (found, after) = found.split_at(number.len());
        replaced.push_str(before);
        // Behind a host it ends where its length says, as in a text that goes on with a digest.
        let is_behind_host = ["localhost:", ".test:"].iter().any(|host| replaced.ends_with(host));
        let is_part = replaced.ends_with(|last: char| last.is_ascii_digit())
            || !is_behind_host && after.starts_with(|first: char| first.is_ascii_digit());
        let is_hex = |letter: &char| letter.is_ascii_hexdigit();
        let digits_beside = replaced.chars().rev().take_while(is_hex).count()
            + after.chars().take_while(is_hex).count();
        let is_in_digest = digits_beside + number.len() >= DIGEST_DIGITS;
        let is_part = is_part || !is_behind_host && is_in_digest;
        // In a log, and on the page of mod_status.
        let before_threads = ["[pid ", ":tid ", "</b> ("];
        let is_thread = before_threads.iter().any(|before| replaced.ends_with(before));
        replaced.push_str(if is_part || is_thread { found } else { name });
        rest = after;
    }
    replaced + rest
}

fn option<'a>(entry: &'a Entry, key: &str) -> Option<&'a str> {
    entry.options.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

fn set_time(path: &Path, seconds: Option<u64>) -> std::io::Result<()> {
    let seconds =
        seconds.ok_or_else(|| std::io::Error::other("mtime is not YYYY-MM-DDThh:mm:ss"))?;
    fs::File::open(path)?.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Makes folders accessible that a test closed, so that they can be removed.
fn open_up(folder: &Path) -> std::io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

/// Copies a folder with its contents; links stay links.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, target)?;
        } else if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Converts `YYYY-MM-DDThh:mm:ss` (UTC) to seconds since 1970.
fn parse_time(text: &str) -> Option<u64> {
    let numbers: Vec<i64> =
        text.split(['-', 'T', ':']).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let &[year, month, day, hour, minute, second] = numbers.as_slice() else {
        return None;
    };
    // Days since 1970 of a civil date, with years that begin in March.
    let shifted = if month <= 2 { year - 1 } else { year };
    let of_era = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + of_era - 719_468;
    u64::try_from(days * 86_400 + hour * 3_600 + minute * 60 + second).ok()
}

/// Whether it is one of the numbers that [`free_port`] returns.
pub fn is_port(number: &u16) -> bool {
    (FIRST_PORT..LAST_PORT).contains(number)
}

/// A port that could be bound just now, and is none of the others.
fn free_port(others: &[u16]) -> u16 {
    let span = LAST_PORT - FIRST_PORT;
    let offset = u16::try_from(std::process::id().wrapping_mul(97) % u32::from(span)).unwrap_or(0);
    loop {
        let step = NEXT_PORT.fetch_add(1, Ordering::Relaxed) % span;
        let port = FIRST_PORT + (offset + step) % span;
        if !others.contains(&port) && is_free(port) {
            return port;
        }
    }
}

/// Whether a server could bind the port. The socket of this check never listens: a program that
/// another thread starts meanwhile holds a copy of it until it is executed, and a listening copy
/// would keep the server from its port.
fn is_free(port: u16) -> bool {
    let bound = Socket::new(Domain::IPV4, Type::STREAM, None).and_then(|socket| {
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from(([0, 0, 0, 0], port)).into())
    });
    bound.is_ok()
}

const MIME_TYPES: &str = "\
# Types for the tests; the server's own file may know others.
text/html\t\t\thtml htm
text/plain\t\t\ttxt asc
text/css\t\t\tcss
text/javascript\t\tjs
text/xml\t\t\txml
image/png\t\t\tpng
image/gif\t\t\tgif
image/jpeg\t\t\tjpeg jpg
image/svg+xml\t\t\tsvg svgz
application/json\t\tjson
application/pdf\t\t\tpdf
application/octet-stream\tbin
application/x-tar\t\ttar
application/zip\t\t\tzip
";

#[cfg(test)]
mod tests {
    use super::{FIRST_PORT, LAST_PORT, free_port, parse_time, replace_number};

    #[test]
    fn a_port_is_no_part_of_a_time() {
        let text = "1795283515 at :17952, 17952 and 817952; http://127.0.0.1:17952/";
        let expected = "1795283515 at :@PORT@, @PORT@ and 817952; http://127.0.0.1:@PORT@/";
        assert_eq!(replace_number(text, "17952", "@PORT@"), expected);
    }

    #[test]
    fn a_port_is_no_part_of_a_digest() {
        let digest = "a17952f0e4b2c6d8a0b1c3d5e7f9a1b3c5d7e9f1";
        let text = format!("nonce={digest} %3a17952%2f localhost:17952{digest}");
        let expected = format!("nonce={digest} %3a@PORT@%2f localhost:@PORT@{digest}");
        assert_eq!(replace_number(&text, "17952", "@PORT@"), expected);
    }

    #[test]
    fn a_port_is_no_thread() {
        let text = "[pid 17952:tid 17952] 17952 <b>Server 0-0</b> (17952)";
        let expected = "[pid 17952:tid 17952] @PORT@ <b>Server 0-0</b> (17952)";
        assert_eq!(replace_number(text, "17952", "@PORT@"), expected);
    }

    #[test]
    fn a_port_is_no_number_of_the_file() {
        let text = format!("# {LAST_PORT}1\n\nconnection T\nget /{FIRST_PORT}\n");
        let file = crate::parse::parse(&text).unwrap_or_default();
        assert_eq!(file.numbers, [FIRST_PORT]);
        let others: Vec<u16> = (FIRST_PORT..LAST_PORT).filter(|port| port % 1000 != 7).collect();
        assert_eq!(free_port(&others) % 1000, 7);
    }

    #[test]
    fn a_date_becomes_seconds() {
        assert_eq!(parse_time("1970-01-01T00:00:00"), Some(0));
        assert_eq!(parse_time("2022-01-01T00:00:00"), Some(super::DEFAULT_MTIME_S));
        assert_eq!(parse_time("2024-02-29T12:00:01"), Some(1_709_208_001));
        assert_eq!(parse_time("yesterday"), None);
    }
}
