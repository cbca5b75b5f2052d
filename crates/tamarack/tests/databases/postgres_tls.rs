//! PostgreSQL with TLS, and passwords from files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::postgres::{SECRET, make_users, site};
use crate::services::{Cluster, KEYS, POSTGRES};
use crate::{ALICE, is_missing, log_in};

/// Whether PostgreSQL lets a user with these parameters in, and what the error log says otherwise.
fn outcome(parameters: &str) -> Result<(), String> {
    let site = site("loop", parameters);
    match log_in(&site, "/in.html", ALICE) {
        200 => Ok(()),
        500 => Err(site.error_log()),
        other => panic!("{other}"),
    }
}

fn fails(parameters: &str, why: &str) {
    let found = outcome(parameters);
    let expected = format!("AH00629: Can't connect to pgsql: {why}");
    assert!(found.as_ref().is_err_and(|log| log.contains(&expected)), "{parameters}: {found:?}");
}

#[test]
fn tls_is_used_as_sslmode_asks() {
    if is_missing("postgresql", POSTGRES) {
        return;
    }
    let cluster = Cluster::new("tls", "trust");
    let service = cluster.start_with_tls();
    make_users(&cluster);
    let port = cluster.port;
    let with = |more: &str| format!("port={port} user=www dbname=postgres {more}");
    let ca = format!("sslrootcert={KEYS}/ca.pem");
    let other = format!("sslrootcert={KEYS}/other-ca.pem");
    cluster.allow("hostssl all all all trust");
    for more in [
        "host=localhost",
        "host=127.0.0.1 sslmode=allow",
        "host=localhost sslmode=require ssl_min_protocol_version=TLSv1.3",
        "host=localhost sslmode=require ssl_max_protocol_version=TLSv1.2",
        &format!("host=localhost sslmode=verify-full {ca}"),
        &format!("host=db.invalid hostaddr=127.0.0.1 sslmode=verify-ca {ca}"),
    ] {
        assert_eq!(outcome(&with(more)), Ok(()), "{more}");
    }
    fails(&with("host=localhost sslmode=disable"), "FATAL:  no pg_hba.conf entry");
    fails(&with("host=localhost sslmode=verify-ca sslrootcert=/nowhere"), "root certificate file");
    let wrong = [
        format!("host=db.invalid hostaddr=127.0.0.1 sslmode=verify-full {ca}"),
        format!("host=localhost sslmode=verify-ca {other}"),
        format!("host=localhost sslmode=require {other}"),
    ];
    for more in wrong {
        fails(&with(&more), "SSL error: ");
    }
    cluster.allow("hostnossl all all all trust");
    assert_eq!(outcome(&with("host=localhost")), Ok(()));
    fails(&with("host=localhost sslmode=require"), "FATAL:  no pg_hba.conf entry");
    drop(service);
    // Without TLS.
    let _service = cluster.start();
    assert_eq!(outcome(&with("host=localhost sslmode=prefer")), Ok(()));
    fails(&with("host=localhost sslmode=require"), "server does not support SSL");
}

#[test]
fn a_client_certificate_logs_in() {
    if is_missing("postgresql", POSTGRES) {
        return;
    }
    let cluster = Cluster::new("certificate", "trust");
    let _service = cluster.start_with_tls();
    make_users(&cluster);
    cluster.sql("CREATE USER \"Alice\"; GRANT ALL ON users TO \"Alice\"").unwrap();
    cluster.allow("hostssl all all all cert");
    let key = cluster.folder().join("alice.key");
    fs::copy(format!("{KEYS}/alice.key"), &key).unwrap();
    let port = cluster.port;
    let uri = format!(
        "postgresql://Alice@localhost:{port}/postgres?sslmode=require&sslcert={KEYS}/alice.pem\
         &sslkey={}",
        key.display()
    );
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    fails(&uri, "private key file");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(outcome(&uri), Ok(()));
    fails(&uri.replace("//Alice", "//www"), "FATAL:  certificate authentication failed");
    let without = format!("host=localhost port={port} user=Alice dbname=postgres");
    fails(&format!("{without} sslmode=require"), "FATAL:");
}

#[test]
fn a_password_comes_from_a_file() {
    if is_missing("postgresql", POSTGRES) {
        return;
    }
    let cluster = Cluster::new("passfile", "scram-sha-256");
    let _service = cluster.start();
    make_users(&cluster);
    let (port, file) = (cluster.port, cluster.folder().join("passwords"));
    let parameters =
        format!("host=127.0.0.1 port={port} user=www dbname=postgres passfile={}", file.display());
    let write = |line: &str| {
        fs::write(&file, format!("# comment\n{line}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write(&format!("127.0.0.1:{port}:postgres:www:{SECRET}"));
    assert_eq!(outcome(&parameters), Ok(()));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    fails(&parameters, "password file");
    write(&format!("127.0.0.1:{port}:other:www:{SECRET}"));
    fails(&parameters, "fe_sendauth: no password supplied");
}
