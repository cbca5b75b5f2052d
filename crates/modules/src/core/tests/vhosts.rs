//! Virtual hosts by address and name.

use server::vhost::VhostTable;

use super::server;

const CONFIGURATION: &str = "ServerName main.test
<VirtualHost *:80>
ServerName one.test
ServerAlias w*.one.test al.test
</VirtualHost>
<VirtualHost *:80>
ServerName two.test:99
ServerPath /two
</VirtualHost>
<VirtualHost 127.0.0.2:80 [::1]:80>
</VirtualHost>
<VirtualHost _default_:*>
ServerName star.test
</VirtualHost>
<VirtualHost 127.0.0.2:80>
ServerName z.test
ServerAlias q.*
</VirtualHost>
";

fn by_address(table: &VhostTable, local: &str) -> Vec<u8> {
    table.by_address(local.parse().unwrap()).name().to_vec()
}

fn by_name(table: &VhostTable, local: &str, name: &str) -> Option<Vec<u8>> {
    let host = table.named(local.parse().unwrap(), name.as_bytes());
    host.map(|host| host.name().to_vec())
}

#[test]
fn an_address_selects_its_port_first_then_any_then_wildcards() {
    let server = server(CONFIGURATION);
    let table = &server.vhosts;
    assert_eq!(by_address(table, "10.0.0.1:80"), b"one.test");
    assert_eq!(by_address(table, "10.0.0.1:81"), b"star.test");
    assert_eq!(by_address(table, "127.0.0.2:81"), b"star.test");
    assert_eq!(by_address(table, "[::ffff:127.0.0.2]:80"), b"127.0.0.2");
}

#[test]
fn names_are_compared_in_order() {
    let server = server(CONFIGURATION);
    let table = &server.vhosts;
    let name = |local, name| by_name(table, local, name);
    assert_eq!(name("10.0.0.1:80", "TWO.test"), Some(b"two.test".to_vec()));
    assert_eq!(name("10.0.0.1:80", "wx.one.test"), Some(b"one.test".to_vec()));
    assert_eq!(name("10.0.0.1:80", "al.test"), Some(b"one.test".to_vec()));
    assert_eq!(name("10.0.0.1:80", "z.test"), None);
    assert_eq!(name("127.0.0.2:80", "q.x"), Some(b"z.test".to_vec()));
    let local = "10.0.0.1:80".parse().unwrap();
    assert_eq!(table.by_path(local, b"/two/x").unwrap().name(), b"two.test");
    assert!(table.by_path(local, b"/twox").is_none());
}

#[test]
fn the_dump_has_apaches_layout() {
    let server = server(CONFIGURATION);
    let dump = server.vhosts.dump();
    assert!(dump.starts_with("VirtualHost configuration:\n"));
    assert!(dump.contains("\n127.0.0.2:80           is a Name"));
    assert!(dump.contains("         port 80 namevhost z.test ("));
    assert!(dump.contains("                 wild alias q.*\n"));
    assert!(
        dump.contains("*:80                   is a NameVirtualHost\n         default server one")
    );
    assert!(dump.contains("*:*                    star.test ("));
}

#[test]
fn a_port_in_server_name_counts_before_the_address() {
    let server = server(CONFIGURATION);
    let ports: Vec<u16> = server.hosts.iter().map(|host| host.identity.port).collect();
    assert_eq!(ports, [0, 0, 99, 80, 0, 0]);
}
