//! `tamarack serve DIRECTORY [ADDRESS:PORT]`: serves a folder without a configuration.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use conf::Options;
use mpm::Mode;

use crate::load::{self, How, Loaded};
use crate::program::{self, Source};

/// The default address.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// The program's name in messages.
const NAME: &str = "tamarack serve";

const USAGE: &str = "usage: tamarack serve DIRECTORY [ADDRESS:PORT]";

/// Serves a folder in the foreground, and returns the exit status.
pub fn serve(words: &[OsString]) -> i32 {
    let (directory, address) = match words {
        [directory] => (directory, Ok(DEFAULT_ADDRESS)),
        [directory, address] => (directory, parse_address(&address.to_string_lossy())),
        _ => {
            eprintln!("{USAGE}");
            return 1;
        }
    };
    if directory.as_bytes().starts_with(b"-") {
        eprintln!("{USAGE}");
        return i32::from(directory != "--help" && directory != "-h");
    }
    let prepared = address.and_then(|address| {
        let directory = folder(Path::new(directory))?;
        is_free(address)?;
        let text = configuration(&directory, address)?;
        let state = state_file(&text)
            .map_err(|error| format!("cannot create a temporary folder: {}", reason(&error)))?;
        Ok((directory, address, state))
    });
    let (directory, address, state) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => {
            eprintln!("{NAME}: {why}");
            return 1;
        }
    };
    println!(
        "Serving {} on http://{}/ (press Ctrl-C to stop)",
        directory.display(),
        shown(address)
    );
    let file = state.clone();
    let source = Source::Text(Box::new(move || read(&file)));
    let status = program::run(NAME, source, Mode::Foreground);
    if let Some(folder) = state.parent() {
        let _ = std::fs::remove_dir_all(folder);
    }
    status
}

/// Parses `ADDRESS:PORT`, `:PORT` or `PORT`.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::new(DEFAULT_ADDRESS.ip(), port));
    }
    let named = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let wrong = || format!("invalid address '{text}': expected ADDRESS:PORT");
    named.as_deref().unwrap_or(text).parse().map_err(|_| wrong())
}

/// The address for a browser on this machine.
fn shown(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        ip if ip.is_unspecified() => SocketAddr::new(DEFAULT_ADDRESS.ip(), address.port()),
        _ => address,
    }
}

fn folder(name: &Path) -> Result<PathBuf, String> {
    match std::fs::canonicalize(name) {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(path) => Err(format!("{} is not a directory", path.display())),
        Err(error) => Err(format!("{}: {}", name.display(), reason(&error))),
    }
}

/// Checks early that the address is free, for a better message than the supervisor's.
fn is_free(address: SocketAddr) -> Result<(), String> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(format!(
            "{address} is in use by another program; choose another address: tamarack serve \
             DIRECTORY ADDRESS:PORT"
        )),
        Err(error) => Err(format!("{address}: {}", reason(&error))),
    }
}

/// The system's message without its number.
fn reason(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => nix::errno::Errno::from_raw(number).desc().to_owned(),
        None => error.to_string(),
    }
}

fn read(file: &Path) -> Loaded {
    let how = How { for_real: true, check_document_root: true, is_restart: false };
    load::read(NAME, file, &Options::default(), how)
}

/// The modules that a folder needs; others would print remarks of their own.
const MODULES: [&str; 4] = ["authz_core", "autoindex", "dir", "mime"];

/// The configuration for a folder: its files, index, and a listing if there is no index.
fn configuration(directory: &Path, address: SocketAddr) -> Result<String, String> {
    let Some(directory) = directory.to_str().filter(|name| !name.contains(['"', '\n'])) else {
        return Err("the directory's name cannot be used in a configuration".to_owned());
    };
    let types = ["/etc/mime.types", "/etc/apache2/mime.types"];
    let types = types.iter().find(|file| Path::new(file).exists());
    let types = types.map_or(String::new(), |file| format!("TypesConfig {file}\n"));
    let modules: String =
        MODULES.iter().map(|name| format!("LoadModule {name}_module mod_{name}.so\n")).collect();
    Ok(format!(
        "{modules}ServerName localhost\nListen {address}\nPidFile run.pid\n\
         ErrorLog /dev/stderr\n{types}DocumentRoot \"{directory}\"\n\
         <Directory />\n  AllowOverride None\n</Directory>\n\
         <Directory \"{directory}\">\n  Options Indexes FollowSymLinks\n</Directory>\n\
         DirectoryIndex index.html\n\
         IndexOptions FancyIndexing HTMLTable VersionSort NameWidth=* Charset=UTF-8\n"
    ))
}

/// Writes the configuration to a file that only this user can read; its folder is the server root.
fn state_file(text: &str) -> std::io::Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("tamarack-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let path = folder.join("httpd.conf");
    let mut file = std::fs::File::create_new(&path)?;
    writeln!(file, "ServerRoot \"{}\"", folder.display())?;
    file.write_all(text.as_bytes())?;
    Ok(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_be_short() {
        let parsed = |text: &str| parse_address(text).map(|address| address.to_string());
        assert_eq!(parsed("81").unwrap(), "127.0.0.1:81");
        assert_eq!(parsed(":81").unwrap(), "127.0.0.1:81");
        assert_eq!(parsed("localhost:81").unwrap(), "127.0.0.1:81");
        assert_eq!(parsed("[::]:81").unwrap(), "[::]:81");
        assert!(parsed("99999").is_err() && parsed("a b").is_err());
    }
}
