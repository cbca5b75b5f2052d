//! PHP-FPM and mariadbd in a folder of their own, on sockets in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::packages::below;
use crate::site::{Site, is_root};

pub const FPM: &str = "/usr/sbin/php-fpm8.2";
/// Debian's pool, and the socket in it.
pub const POOL: &str = "/etc/php/8.2/fpm/pool.d/www.conf";
pub const FPM_SOCKET: &str = "/run/php/php8.2-fpm.sock";
pub const MARIADB: &str = "/usr/sbin/mariadbd";
/// Creates the tables of the server itself.
pub const MARIADB_INSTALL: &str = "/usr/bin/mariadb-install-db";
/// A program of the client's package that the installer calls.
pub const PRINT_DEFAULTS: &str = "/usr/bin/my_print_defaults";
/// The extension of PHP that asks it.
pub const MYSQLI: &str = "/etc/php/8.2/fpm/conf.d/20-mysqli.ini";
const MARIADB_SOCKET: &str = "/run/mysqld/mysqld.sock";

/// The account of the applications in the database.
pub const DATABASE: &str = "shop";
pub const DATABASE_PASSWORD: &str = "pass word";

/// A program that runs until it is dropped.
pub struct Service(Child);

impl Drop for Service {
    /// A killed PHP-FPM would leave its children behind; asked to end, it ends them.
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

impl Service {
    fn start(site: &Site, name: &str, command: &mut Command) -> Service {
        let log = fs::File::create(site.path("logs").join(name)).unwrap();
        let also = log.try_clone().unwrap();
        Service(command.stdin(Stdio::null()).stdout(log).stderr(also).spawn().unwrap())
    }
}

/// Starts PHP-FPM with Debian's pool and more lines for it.
pub fn start_fpm(site: &Site, more: &str) -> Service {
    let socket = below(&site.root, FPM_SOCKET);
    folder(&site.root, "run/php", 0o755);
    folder(&site.root, "tmp", 0o777);
    let root = site.root.display();
    let mut pool = fs::read_to_string(POOL).unwrap();
    pool = pool.replace(FPM_SOCKET, &socket.display().to_string());
    if !is_root() {
        pool = pool.replace("\nlisten.owner", "\n;").replace("\nlisten.group", "\n;");
    }
    let database = below(&site.root, MARIADB_SOCKET);
    let text = format!(
        "[global]\ndaemonize = no\nerror_log = {root}/logs/fpm.log\n{pool}\n\
         php_admin_value[session.save_path] = {root}/tmp\n\
         php_admin_value[upload_tmp_dir] = {root}/tmp\n\
         php_admin_value[sys_temp_dir] = {root}/tmp\n\
         php_admin_value[sendmail_path] = /bin/true\n\
         php_admin_value[opcache.revalidate_freq] = 0\n\
         php_admin_value[mysqli.default_socket] = {}\n{more}",
        database.display()
    );
    site.write("fpm.conf", &text);
    let mut command = Command::new(FPM);
    command.arg("-y").arg(site.path("fpm.conf")).args(["-F", "-O"]);
    let service = Service::start(site, "fpm.out", &mut command);
    site.wait_until("PHP-FPM", || socket.exists());
    service
}

/// Starts mariadbd with an empty database, and an account that may do everything in it.
pub fn start_mariadb(site: &Site) -> Service {
    let socket = below(&site.root, MARIADB_SOCKET);
    folder(&site.root, "run/mysqld", 0o755);
    folder(&site.root, "tmp", 0o777);
    let options = |program: &str| {
        let mut command = Command::new(program);
        // Each server removes what it takes for its own leftovers there.
        command.env("TMPDIR", site.path("tmp"));
        command.arg("--no-defaults").arg(format!("--datadir={}", site.path("database").display()));
        if is_root() {
            command.arg("--user=root");
        }
        command
    };
    let mut install = options(MARIADB_INSTALL);
    install.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
    install.args(["--innodb-log-file-size=32M", "--innodb-flush-method=nosync"]);
    let said = install.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    site.write(
        "init.sql",
        &format!(
            "CREATE DATABASE {DATABASE};\nCREATE USER {DATABASE}@localhost IDENTIFIED BY \
             '{DATABASE_PASSWORD}';\nGRANT ALL ON {DATABASE}.* TO {DATABASE}@localhost;\n"
        ),
    );
    let mut command = options(MARIADB);
    command.args(["--skip-networking", "--max-allowed-packet=64M", "--innodb-log-file-size=32M"]);
    command.args(["--innodb-flush-method=nosync", "--innodb-buffer-pool-size=64M"]);
    command.arg(format!("--socket={}", socket.display()));
    command.arg(format!("--init-file={}", site.path("init.sql").display()));
    let service = Service::start(site, "mariadb", &mut command);
    let log = site.path("logs/mariadb");
    site.wait_until("mariadbd", || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("ready for connections"))
    });
    service
}

/// Creates a folder.
pub fn folder(root: &Path, path: &str, mode: u32) {
    let path = root.join(path);
    fs::create_dir_all(&path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
