//! The command line of `tamarack explain`.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use clap::{ArgAction, Parser};

use crate::cli::Arguments;

/// Shows what the server would respond to a request, and why.
///
/// The server's own code runs on the configuration as it stands, for a request that no client
/// sends. Nothing is written, connected to or started: a name that would have to be looked up
/// counts as unknown, and is shown as "not asked". If root runs the program, access to files is
/// checked as User and Group.
#[derive(Clone, Debug, Parser)]
#[command(name = "tamarack explain", version, after_help = EXAMPLES)]
pub struct Options {
    /// The address: a URL, or a path of the main server.
    #[arg(value_name = "URL", required_unless_present = "expect")]
    pub url: Option<String>,
    /// Add a header field to the request.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// The method; by default GET, or POST with a body.
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub method: Option<String>,
    /// Send this file as the request body.
    #[arg(long, value_name = "FILE", conflicts_with = "expect")]
    pub body: Option<PathBuf>,
    /// The client's address.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1", value_parser = address)]
    pub from: IpAddr,
    /// The server's address, if the URL and the configuration do not determine it.
    #[arg(long, value_name = "IP:PORT", value_parser = address_with_port)]
    pub to: Option<SocketAddr>,
    /// The connection uses TLS of this version, as with https.
    #[arg(long, value_name = "VERSION", num_args = 0..=1, default_missing_value = "1.3",
          require_equals = true, value_parser = ["1.2", "1.3"])]
    pub tls: Option<String>,
    /// The version of HTTP; 2 as the host offers it, over TLS or in clear.
    #[arg(long, value_name = "VERSION", default_value = "1.1", value_parser = ["1.0", "1.1", "2"])]
    pub http: String,
    /// Treat the client as this user, without a password.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// The configuration file, instead of the installed one.
    #[arg(long, short = 'f', value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The initial ServerRoot.
    #[arg(short = 'd', long, value_name = "FOLDER")]
    pub server_root: Option<PathBuf>,
    /// Define a name for <IfDefine>.
    #[arg(short = 'D', long = "define", value_name = "NAME")]
    pub defines: Vec<OsString>,
    /// Show only what is responsible for the status, a field of the response, or a directive.
    #[arg(long, value_name = "HEADER|directive|status", conflicts_with_all = ["json", "quiet"])]
    pub why: Option<String>,
    /// Show only the differences from the response under another configuration file.
    #[arg(long, value_name = "OLD", conflicts_with_all = ["json", "quiet", "why"])]
    pub diff: Option<PathBuf>,
    /// Compare with a file of lines such as `GET /x → 301 /y`, and print TAP.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "json", "why", "diff", "record"])]
    pub expect: Option<PathBuf>,
    /// Append the response to a file for --expect.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
    /// Print Markdown, for tickets.
    #[arg(long, conflicts_with_all = ["json", "quiet", "why", "diff", "expect"])]
    pub md: bool,
    /// Show all directives that apply to the request, not only those that several places set.
    #[arg(long, conflicts_with_all = ["json", "quiet", "why", "expect"])]
    pub all: bool,
    /// Also show where the response may differ from that of another server: apache.
    #[arg(long = "as", value_name = "SERVER", value_parser = ["apache"],
          conflicts_with_all = ["json", "quiet", "why", "diff", "expect"])]
    pub as_server: Option<String>,
    /// Print only the first line.
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Also show steps without an effect: hooks that declined, sections that did not match.
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  tamarack explain https://example.org/blog/hello?x=1
  tamarack explain -H 'Accept-Encoding: gzip' http://localhost/style.css
  tamarack explain --from 203.0.113.9 --user alice http://localhost/admin/

  tamarack explain --body form.txt -H 'Content-Type: text/plain' http://localhost/form
  tamarack explain --why X-Frame-Options http://localhost/
  tamarack explain --diff /etc/apache2.old/apache2.conf http://localhost/

Exit status: 0 if there is an answer, whatever its status; 1 if the configuration has errors, or an
expectation is not fulfilled; 2 if the command line is wrong.";

impl Options {
    /// The method.
    pub fn method(&self) -> &str {
        match (&self.method, &self.body) {
            (Some(method), _) => method,
            (None, Some(_)) => "POST",
            (None, None) => "GET",
        }
    }

    /// The arguments of the server that name a configuration file, or the installed one.
    pub fn arguments(&self, file: Option<PathBuf>) -> Arguments {
        Arguments {
            server_root: self.server_root.clone(),
            // A file on this command line is relative to the working directory.
            file: file.map(|file| std::path::absolute(&file).unwrap_or(file)),
            defines: self.defines.iter().cloned().map(OsString::into_vec).collect(),
            skip_document_root: true,
            ..Arguments::default()
        }
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    let wrong = |_| "expected an address such as 203.0.113.9 or 2001:db8::1".to_owned();
    text.parse().map_err(wrong)
}

fn address_with_port(text: &str) -> Result<SocketAddr, String> {
    let wrong = |_| "expected address and port, such as 192.0.2.1:443 or [2001:db8::1]:443";
    text.parse().map_err(wrong).map_err(str::to_owned)
}
