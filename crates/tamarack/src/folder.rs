//! `tamarack serve DIRECTORY [ADDRESS:PORT]`: a folder, served with no configuration at all.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use conf::Options;
use mpm::Mode;

use crate::load::{self, How, Loaded};
use crate::program::{self, Source};

/// Where a folder is served, unless told otherwise.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

/// The program's name in messages.
const NAME: &str = "tamarack serve";

const USAGE: &str = "usage: tamarack serve DIRECTORY [ADDRESS:PORT]";

/// Serves a folder in the foreground; the exit status.
pub fn serve(words: &[OsString]) -> i32 {
    let (directory, address) = match words {
        [directory] => (directory, DEFAULT_ADDRESS.to_owned()),
        [directory, address] => (directory, address.to_string_lossy().into_owned()),
        _ => {
            eprintln!("{USAGE}");
            return 1;
        }
    };
    let directory = match std::fs::canonicalize(directory) {
        Ok(path) if path.is_dir() => path,
        Ok(path) => return fail(&format!("{} is no directory", path.display())),
        Err(error) => return fail(&format!("{}: {error}", Path::new(directory).display())),
    };
    let text = match configuration(&directory, &address) {
        Ok(text) => text,
        Err(why) => return fail(&why),
    };
    let state = match state_file(&text) {
        Ok(file) => file,
        Err(error) => return fail(&format!("no place for temporary files: {error}")),
    };
    println!("Serving {} on http://{address}/ (Ctrl-C ends it)", directory.display());
    let file = state.clone();
    let source = Source::Text(Box::new(move || read(&file)));
    let status = program::run(NAME, source, Mode::Foreground);
    if let Some(folder) = state.parent() {
        let _ = std::fs::remove_dir_all(folder);
    }
    status
}

fn fail(why: &str) -> i32 {
    eprintln!("tamarack serve: {why}");
    1
}

fn read(file: &Path) -> Loaded {
    let how = How { for_real: true, check_document_root: true };
    load::read(NAME, file, &Options::default(), how)
}

/// The configuration that serves a folder: its files, its index, a listing where there is none.
fn configuration(directory: &Path, address: &str) -> Result<String, String> {
    let Some(directory) = directory.to_str().filter(|name| !name.contains(['"', '\n'])) else {
        return Err("the directory's name can't be written into a configuration".to_owned());
    };
    if address.contains(char::is_whitespace) {
        return Err(format!("'{address}' is no ADDRESS:PORT"));
    }
    let types = ["/etc/mime.types", "/etc/apache2/mime.types"];
    let types = types.iter().find(|file| Path::new(file).exists());
    let types = types.map_or(String::new(), |file| format!("TypesConfig {file}\n"));
    Ok(format!(
        "ServerName localhost\nListen {address}\nPidFile run.pid\nErrorLog /dev/stderr\n{types}\
         DocumentRoot \"{directory}\"\n<Directory \"{directory}\">\n  Options Indexes \
         FollowSymLinks\n  AllowOverride None\n  Require all granted\n</Directory>\n\
         DirectoryIndex index.html\nIndexOptions FancyIndexing HTMLTable VersionSort \
         NameWidth=*\n"
    ))
}

/// Writes the configuration where only we can read it; its folder is the server root.
fn state_file(text: &str) -> std::io::Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("tamarack-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let path = folder.join("httpd.conf");
    let mut file = std::fs::File::create_new(&path)?;
    writeln!(file, "ServerRoot \"{}\"", folder.display())?;
    file.write_all(text.as_bytes())?;
    Ok(path)
}
