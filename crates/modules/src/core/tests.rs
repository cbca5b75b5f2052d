//! Configurations as text, and the errors of invalid ones.

mod vhosts;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bstr::ByteSlice;
use server::core::OptionFlags;
use server::host::Server;
use server::registry::Registry;

use super::*;
use crate::http::http_core::HttpCore;
use server::build::Build;
use server::module::module;

struct Questions(Arc<Registry>);

impl conf::Host for Questions {
    fn module_active(&self, name: &conf::BStr) -> bool {
        self.0.is_active(&name.to_string())
    }
    fn directive_known(&self, name: &conf::BStr) -> bool {
        let name = name.strip_prefix(b"<").unwrap_or(name);
        self.0.row(&name.to_str_lossy()).is_some()
    }
    fn load_module(
        &mut self,
        _: &conf::Arg,
        _: &std::path::Path,
    ) -> Result<(), Box<conf::Diagnostic>> {
        Ok(())
    }
}

/// Reads a configuration with only the core: the server, and the messages.
fn read(text: &str) -> (Option<Server>, Vec<String>) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("tamarack-core-{}-{number}.conf", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).unwrap();
    let registry = Arc::new(Registry::new(vec![module::<Core>(), module::<HttpCore>()]));
    let options = conf::Options { server_root: "/tmp".into(), ..conf::Options::default() };
    let (tree, mut found) = conf::read_config(&path, &options, &mut Questions(registry.clone()));
    let _ = std::fs::remove_file(&path);
    let (server, more, _) = Build::new(registry, &tree, false).finish(&tree.nodes);
    found.extend(more);
    (server, found.into_iter().map(|one| one.message).collect())
}

/// The server of a valid configuration.
fn server(text: &str) -> Server {
    let (server, messages) = read(text);
    server.unwrap_or_else(|| unreachable!("{messages:?}"))
}

#[test]
fn faults_are_told_in_apaches_words() {
    let told = |text: &str, wanted: &str| {
        let (_, messages) = read(text);
        assert!(messages.iter().any(|message| message == wanted), "{text}: {messages:?}");
    };
    told(
        "Options Indexes +ExecCGI",
        "Either all Options must start with + or -, or no Option may.",
    );
    told("Options Foo", "Illegal option Foo");
    told("Options Indexes All", "'Options All' must be the first option given.");
    told("ServerAlias x", "ServerAlias only used in <VirtualHost>");
    told("KeepAlive maybe", "KeepAlive must be On or Off");
    told("KeepAliveTimeout x", "KeepAliveTimeout has wrong format");
    told("LimitRequestBody x", "LimitRequestBody requires a non-negative integer.");
    told("LimitInternalRecursion 5 0", "The recursion limit must be greater than zero.");
    told("ErrorDocument 299 x", "Unsupported HTTP response code 299");
    told("FileETag -All", "FileETag keyword 'All' cannot be used with '+' or '-'");
    told("TraceEnable foo", "TraceEnable must be one of 'on', 'off', or 'extended'");
    told("ErrorLogFormat \"%t\"", "main ErrorLogFormat must contain message format string '%M'");
    told("LogLevel foo:debug", "Cannot find module foo");
    told(
        "ServerName a:70000",
        "The port number \"a:70000\" is outside the appropriate range (i.e., 1..65535).",
    );
    told("<Directory /a /b>\n</Directory>", "Multiple <Directory> arguments not (yet) supported.");
    told("<Directory ~ \"a(\">\n</Directory>", "Regex could not be compiled");
    told(
        "<Location /a>\n<Files b>\n</Files>\n</Location>",
        "<Files> cannot occur within <Location> section",
    );
    told(
        "<Directory /a>\n<Limit TRACE>\n</Limit>\n</Directory>",
        "TRACE cannot be controlled by <Limit>, see TraceEnable",
    );
    told("<Else foo>\n</Else>", "<Else> does not take an argument");
    told(
        "<Else>\n</Else>",
        "<Else> or <ElseIf> section without previous <If> or <ElseIf> section in same scope",
    );
    told(
        "<VirtualHost *:80>\nPidFile x\n</VirtualHost>",
        "PidFile cannot occur within <VirtualHost> section",
    );
}

#[test]
fn values_are_inherited() {
    let server = server(
        "Timeout 7\nKeepAlive Off\nOptions Indexes\nLogLevel info core:debug\n\
         <VirtualHost *:80>\nTimeout 9\nOptions +ExecCGI\n</VirtualHost>\n",
    );
    let [main, host] = server.hosts.as_slice() else { unreachable!() };
    assert_eq!(main.core.timeout().as_secs(), 7);
    assert_eq!(host.core.timeout().as_secs(), 9);
    assert_eq!(host.core.keep_alive.get(), Some(&false));
    assert_eq!(host.core.log.of("core.c"), server::log::Level::Debug);
    let dir = host.dir.get::<CoreDir>(0).unwrap();
    assert!(dir.options.flags().has(OptionFlags::INDEXES));
    assert!(dir.options.flags().has(OptionFlags::EXEC_CGI));
}

#[test]
fn every_row_is_documented_once() {
    let mut names: Vec<&str> = Core::DIRECTIVES.iter().map(|row| row.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(Core::DIRECTIVES.iter().all(|row| row.doc.ends_with('.')));
}
