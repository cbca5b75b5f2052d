//! An application with its services and a web server, in one folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::free_port::free_port;
use crate::packages::{below, copy, correct};
use crate::services::{FPM_SOCKET, Service, folder, start_fpm, start_mariadb};
use crate::site::{Site, is_root};

/// What a stack is made of.
pub struct Application {
    pub name: &'static str,
    /// Files without which the test is skipped.
    pub needs: &'static [&'static str],
    /// The package's folders that are copied.
    pub folders: &'static [&'static str],
    /// Files with the paths in them that have to be those of the copy.
    pub naming: (&'static [&'static str], &'static [&'static str]),
    /// The folders that PHP may write.
    pub writable: &'static [&'static str],
    pub has_database: bool,
    pub runs: Runs,
    /// Of the virtual hosts; @ROOT@ is the stack's folder.
    pub configuration: &'static str,
    /// Does what an administrator does after the packages have been installed.
    pub prepare: fn(&Path),
}

/// What runs the application.
pub enum Runs {
    /// PHP-FPM, with these lines for its pool.
    Php(&'static str),
    /// Its own programs, by mod_cgid.
    Programs,
}

/// What Debian enables by itself, and what PHP-FPM, pretty links and pages with includes need.
const MODULES: &str = "access_compat alias auth_basic authn_core authn_file authz_core authz_host \
                       authz_user autoindex deflate dir env filter include mime mpm_event \
                       negotiation reqtimeout setenvif status rewrite";
const CONFIGURATIONS: &str =
    "charset localized-error-pages other-vhosts-access-log security serve-cgi-bin";

/// How Debian's PHP-FPM does it.
const DEBIAN: &str = "/etc/apache2/conf-available/php8.2-fpm.conf";

/// How Fedora's php.conf does it.
const FEDORA: &str = r#"
<Files ".user.ini">
    Require all denied
</Files>
AddType text/html .php
DirectoryIndex index.php
SetEnvIfNoCase ^Authorization$ "(.+)" HTTP_AUTHORIZATION=$1
<FilesMatch \.(php|phar)$>
    SetHandler "proxy:unix:@SOCKET@|fcgi://localhost"
</FilesMatch>
"#;

pub struct Stack {
    site: Site,
    fedora: u16,
    _services: Vec<Service>,
}

impl Stack {
    pub fn start(application: &Application, program: &str) -> Stack {
        let site = Site::new("apps");
        copy(&site.root, application.folders);
        copy(&site.root, &["/etc/apache2"]);
        let (files, paths) = application.naming;
        for file in files {
            correct(&site.root, file, paths);
        }
        (application.prepare)(&site.root);
        if is_root() {
            let writable = application.writable.iter().map(|path| below(&site.root, path));
            let mut command = Command::new("chown");
            assert!(command.args(["-R", "www-data:"]).args(writable).status().unwrap().success());
        }
        folder(&site.root, "run", 0o755);
        // mod_cgid's, which another user makes.
        folder(&site.root, "run/socks", 0o777);
        let mut services = Vec::new();
        if let Runs::Php(pool) = application.runs {
            services.push(start_fpm(&site, pool));
        }
        if application.has_database {
            services.push(start_mariadb(&site));
        }
        let mut stack = Stack { site, fedora: free_port(), _services: services };
        stack.configure(application);
        let mut command = stack.site.as_program(program);
        let root = stack.site.root.display().to_string();
        for (name, value) in [
            ("APACHE_RUN_USER", "www-data".to_owned()),
            ("APACHE_RUN_GROUP", "www-data".to_owned()),
            ("APACHE_PID_FILE", format!("{root}/run.pid")),
            ("APACHE_RUN_DIR", format!("{root}/run")),
            ("APACHE_LOCK_DIR", format!("{root}/run")),
            ("APACHE_LOG_DIR", format!("{root}/logs")),
        ] {
            command.env(name, value);
        }
        stack.site.start_by(command);
        stack
    }

    /// The ports of Debian's and of Fedora's way to PHP; both are the same to programs.
    pub fn ports(&self) -> [u16; 2] {
        [self.site.port, self.fedora]
    }

    /// An empty folder for programs of the client.
    pub fn client_folder(&self) -> PathBuf {
        let folder = self.site.path("client");
        fs::create_dir(&folder).unwrap();
        folder
    }

    /// What only this stack is called.
    pub fn names(&self) -> [String; 3] {
        let [debian, fedora] = self.ports().map(|port| format!("apps.test:{port}"));
        [self.site.root.display().to_string(), debian, fedora]
    }

    /// Debian's /etc/apache2 with the application.
    fn configure(&mut self, application: &Application) {
        let (root, port, fedora) = (&self.site.root, self.site.port, self.fedora);
        let etc = root.join("etc/apache2");
        let modules = match application.runs {
            Runs::Php(_) => format!("{MODULES} proxy proxy_fcgi"),
            Runs::Programs => format!("{MODULES} cgid"),
        };
        for (kind, names) in [("mods", &*modules), ("conf", CONFIGURATIONS), ("sites", "")] {
            let enabled = etc.join(format!("{kind}-enabled"));
            fs::remove_dir_all(&enabled).unwrap();
            fs::create_dir(&enabled).unwrap();
            for name in names.split(' ').filter(|name| !name.is_empty()) {
                enable(&etc, kind, name);
            }
        }
        correct(root, "/etc/apache2/apache2.conf", &["/usr/share"]);
        let ways = match application.runs {
            Runs::Php(_) => {
                correct(root, DEBIAN, &[FPM_SOCKET]);
                ["Include conf-available/php8.2-fpm.conf\n", FEDORA]
            }
            Runs::Programs => [""; 2],
        };
        let [debian_way, fedora_way] = ways;
        let ports = format!("Listen 127.0.0.1:{port}\nListen 127.0.0.1:{fedora}\n");
        fs::write(etc.join("ports.conf"), ports).unwrap();
        let own = application.configuration;
        let hosts = format!(
            "ServerName apps.test\n\
             <VirtualHost *:{port}>\n{debian_way}{own}</VirtualHost>\n\
             <VirtualHost *:{fedora}>\n{fedora_way}{own}</VirtualHost>\n"
        );
        let socket = below(root, FPM_SOCKET);
        let hosts = hosts.replace("@SOCKET@", socket.to_str().unwrap());
        let hosts = hosts.replace("@ROOT@", root.to_str().unwrap());
        fs::write(etc.join("sites-enabled/site.conf"), hosts).unwrap();
        // No client times out because a busy machine delays it.
        let patient = "KeepAliveTimeout 300\nRequestReadTimeout header=0 body=0\n";
        let main = format!("ServerRoot {0}\nInclude {0}/apache2.conf\n{patient}", etc.display());
        self.site.write("httpd.conf", &main);
    }
}

/// What a2enmod and a2enconf do.
fn enable(etc: &Path, kind: &str, name: &str) {
    for ending in ["load", "conf"] {
        let file = format!("{kind}-available/{name}.{ending}");
        if etc.join(&file).exists() {
            let link = etc.join(format!("{kind}-enabled/{name}.{ending}"));
            symlink(format!("../{file}"), link).unwrap();
        }
    }
}
