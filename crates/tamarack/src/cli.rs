//! httpd's command line. Its flags do not fit clap (`-DNAME`, `-k start`, repeated `-C`), so they
//! are parsed by hand, like `apr_getopt`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use mpm::order::ServerOrder;
use server::log::{Level, LogLevels};

/// The options with a value, as in httpd's `AP_SERVER_BASEARGS`.
const WITH_VALUE: &[u8] = b"DCcdfekE";
/// The options without a value.
const FLAGS: &[u8] = b"vVlLtTSMhX?";

/// The names of `-D` that request a dump, even without `-t`.
const DUMPS: [&str; 6] =
    ["DUMP_VHOSTS", "DUMP_RUN_CFG", "DUMP_MODULES", "DUMP_INCLUDES", "DUMP_CONFIG", "DUMP_CPU"];

/// The action to perform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Serve.
    #[default]
    Start,
    /// `-k start`: serve, unless a server with this pid file is running.
    StartOnce,
    /// Check the configuration, and print the dumps that `-D DUMP_…` requests.
    Check,
    /// `-k`: signal a running server.
    Signal(ServerOrder),
    /// `-v`
    Version,
    /// `-V`
    Settings,
    /// `-l`
    Modules,
    /// `-L`
    Directives,
    /// `-h`
    Usage,
}

impl Action {
    fn is_immediate(&self) -> bool {
        matches!(self, Self::Version | Self::Modules | Self::Directives | Self::Usage)
    }
}

/// The command line.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The action to perform.
    pub action: Action,
    /// Whether `-k` was given.
    pub is_ordered: bool,
    /// `-d`
    pub server_root: Option<PathBuf>,
    /// `-f`
    pub file: Option<PathBuf>,
    /// `-D`
    pub defines: Vec<Vec<u8>>,
    /// `-C`
    pub before: Vec<Vec<u8>>,
    /// `-c`
    pub after: Vec<Vec<u8>>,
    /// `-e`: the log level of startup messages.
    pub startup_level: Option<Level>,
    /// `-E`: the file for startup messages.
    pub startup_log: Option<PathBuf>,
    /// `-X`
    pub one_process: bool,
    /// `-T`: skip the check of document roots.
    pub skip_document_root: bool,
}

impl Arguments {
    /// Parses the words after the program's name.
    ///
    /// The error is httpd's message, which the usage follows.
    pub fn parse(words: &[OsString]) -> Result<Arguments, String> {
        let mut arguments = Arguments::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut letters = match word.as_bytes() {
                b"--help" => b"h".as_slice(),
                b"--version" => b"v".as_slice(),
                [b'-', letters @ ..] if !letters.is_empty() => letters,
                // `apr_getopt` ends here, and httpd prints only its usage.
                _ => return Err(String::new()),
            };
            while let [letter, rest @ ..] = letters {
                letters = rest;
                if WITH_VALUE.contains(letter) {
                    let joined = (!rest.is_empty()).then(|| rest.to_vec());
                    let value = joined.or_else(|| words.next().map(|w| w.as_bytes().to_vec()));
                    arguments.set(*letter, value.ok_or_else(|| missing(*letter))?)?;
                    letters = &[];
                } else if FLAGS.contains(letter) {
                    arguments.flag(*letter);
                    // httpd performs these as it comes to them, and exits.
                    if arguments.action.is_immediate() {
                        return Ok(arguments);
                    }
                } else {
                    return Err(format!("illegal option -- {}", char::from(*letter)));
                }
            }
        }
        Ok(arguments)
    }

    fn set(&mut self, letter: u8, value: Vec<u8>) -> Result<(), String> {
        match letter {
            b'D' => {
                if DUMPS.iter().any(|dump| dump.as_bytes() == value) {
                    self.check();
                }
                self.defines.push(value);
            }
            b'C' => self.before.push(value),
            b'c' => self.after.push(value),
            b'd' => self.server_root = Some(OsString::from_vec(value).into()),
            b'f' => self.file = Some(OsString::from_vec(value).into()),
            b'E' => self.startup_log = Some(OsString::from_vec(value).into()),
            b'e' => self.startup_level = Some(Level::parse(&value).ok_or_else(String::new)?),
            _ => self.order(&value)?,
        }
        Ok(())
    }

    fn flag(&mut self, letter: u8) {
        match letter {
            b'v' => self.action = Action::Version,
            b'V' => self.action = Action::Settings,
            b'l' => self.action = Action::Modules,
            b'L' => self.action = Action::Directives,
            b't' => self.check(),
            b'T' => self.skip_document_root = true,
            b'S' => self.dump(&["DUMP_VHOSTS", "DUMP_RUN_CFG"]),
            b'M' => self.dump(&["DUMP_MODULES"]),
            b'X' => self.one_process = true,
            _ => self.action = Action::Usage,
        }
    }

    fn dump(&mut self, names: &[&str]) {
        self.check();
        self.defines.extend(names.iter().map(|name| name.as_bytes().to_vec()));
    }

    fn check(&mut self) {
        if self.action != Action::Settings {
            self.action = Action::Check;
        }
    }

    /// `-k`, which may be given once, and yields to a check or a dump.
    fn order(&mut self, word: &[u8]) -> Result<(), String> {
        let ordered = order(word)?;
        if std::mem::replace(&mut self.is_ordered, true) {
            return Err(missing(b'k'));
        }
        if self.action == Action::Start {
            self.action = ordered;
        }
        Ok(())
    }

    /// Whether `-D name` was given.
    pub fn is_defined(&self, name: &str) -> bool {
        self.defines.iter().any(|defined| defined == name.as_bytes())
    }

    /// `-e`, by default `warn`.
    pub fn least_level(&self) -> Level {
        self.startup_level.unwrap_or(LogLevels::DEFAULT)
    }

    /// The configuration file: `-f` relative to `-d`, or the default below the server root.
    pub fn config_file(&self) -> PathBuf {
        let root = self.server_root();
        match &self.file {
            Some(file) => root.join(file),
            None => {
                let of_debian = root.join("apache2.conf");
                if of_debian.exists() { of_debian } else { root.join("conf/httpd.conf") }
            }
        }
    }

    /// `-d`, by default Debian's.
    pub fn server_root(&self) -> PathBuf {
        let root = self.server_root.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_ROOT));
        std::path::absolute(&root).unwrap_or(root)
    }
}

/// The default ServerRoot, which is Debian's.
pub const DEFAULT_ROOT: &str = "/etc/apache2";

/// `apr_getopt`'s message; `-k` belongs to the MPM, whose message is shorter.
fn missing(letter: u8) -> String {
    match letter {
        b'k' => "illegal option -- k".to_owned(),
        _ => format!("option requires an argument -- {}", char::from(letter)),
    }
}

fn order(word: &[u8]) -> Result<Action, String> {
    Ok(match word {
        b"start" => Action::StartOnce,
        b"restart" => Action::Signal(ServerOrder::Restart),
        b"graceful" => Action::Signal(ServerOrder::Graceful),
        b"upgrade" => Action::Signal(ServerOrder::Upgrade),
        b"graceful-stop" => Action::Signal(ServerOrder::GracefulStop),
        b"stop" => Action::Signal(ServerOrder::Stop),
        _ => return Err("illegal option -- k".to_owned()),
    })
}

/// The program's name in messages.
pub fn program_name(path: &OsStr) -> String {
    let name = Path::new(path).file_name().unwrap_or(OsStr::new("tamarack"));
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Arguments, String> {
        Arguments::parse(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn values_may_be_joined_or_apart() {
        let arguments = parse(&["-DFOREGROUND", "-D", "X", "-tf", "a.conf", "-d/x"]).unwrap();
        assert!(arguments.is_defined("FOREGROUND") && arguments.is_defined("X"));
        assert_eq!(arguments.action, Action::Check);
        assert_eq!(arguments.config_file(), Path::new("/x/a.conf"));
    }

    #[test]
    fn wrong_words_are_named() {
        assert_eq!(parse(&["-z"]).unwrap_err(), "illegal option -- z");
        assert_eq!(parse(&["-f"]).unwrap_err(), "option requires an argument -- f");
        assert_eq!(parse(&["-e", "loud"]).unwrap_err(), "");
        assert_eq!(parse(&["start"]).unwrap_err(), "");
        assert_eq!(parse(&["-k", "dance"]).unwrap_err(), "illegal option -- k");
    }

    #[test]
    fn orders() {
        assert_eq!(parse(&["-k", "stop"]).unwrap().action, Action::Signal(ServerOrder::Stop));
        assert_eq!(parse(&["-kupgrade"]).unwrap().action, Action::Signal(ServerOrder::Upgrade));
        assert_eq!(parse(&["-S"]).unwrap().action, Action::Check);
        assert_eq!(parse(&["-DDUMP_INCLUDES"]).unwrap().action, Action::Check);
        assert_eq!(parse(&["-k", "start"]).unwrap().action, Action::StartOnce);
    }

    #[test]
    fn checks_and_dumps_come_before_orders() {
        for word in ["-t", "-S", "-M", "-DDUMP_RUN_CFG"] {
            assert_eq!(parse(&[word, "-k", "stop"]).unwrap().action, Action::Check);
            assert_eq!(parse(&["-k", "start", word]).unwrap().action, Action::Check);
        }
        assert_eq!(parse(&["-k", "graceful", "-v", "-t", "-Z"]).unwrap().action, Action::Version);
        assert_eq!(parse(&["-V", "-t", "-k", "stop"]).unwrap().action, Action::Settings);
        assert_eq!(parse(&["-k", "stop", "-k", "start"]).unwrap_err(), "illegal option -- k");
    }
}
