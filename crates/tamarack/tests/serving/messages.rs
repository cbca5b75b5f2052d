//! The format of configuration errors: with the source line at a terminal, otherwise as Apache's
//! lines.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use crate::site::Site;

/// Two unknown directives, one of them nearly correct, and a missing module.
fn broken() -> Site {
    let site = Site::new("messages");
    site.configure(
        "LoadModule dialup_module modules/mod_dialup.so\nFrobnicate\n  DocumntRoot /nowhere",
    );
    site
}

/// The line of the last directive.
fn last_line(site: &Site) -> usize {
    std::fs::read_to_string(site.path("httpd.conf")).unwrap().lines().count()
}

/// The output of `-t` to a terminal.
fn at_a_terminal(site: &Site) -> String {
    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut command = site.command();
    command.arg("-t").stdout(Stdio::null()).stderr(terminal.slave);
    let mut child = command.spawn().unwrap();
    // The terminal closes with its last writer.
    drop(command);
    let mut said = Vec::new();
    let mut master = File::from(terminal.master);
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = master.read(&mut piece) {
        said.extend_from_slice(&piece[..count]);
    }
    assert!(!child.wait().unwrap().success());
    String::from_utf8(said).unwrap()
}

#[test]
fn a_terminal_shows_the_source_line_with_a_caret() {
    let site = broken();
    let said = at_a_terminal(&site);
    let place = format!("httpd.conf:{}:3", last_line(&site));
    for part in [&place, "  DocumntRoot /nowhere", "^^^^^^^^^^^", "did you mean", "AH20120"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("Syntax error on line"), "{said}");
}

#[test]
fn a_pipe_gets_the_lines_of_apache() {
    let site = broken();
    let output = site.run(&["-t"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let (line, file) = (last_line(&site), site.path("httpd.conf"));
    let place = format!("AH00526: Syntax error on line {line} of {}:\n", file.display());
    let invalid = "Invalid command 'DocumntRoot', perhaps misspelled or defined by a module not \
                   included in the server configuration\n  help: did you mean DocumentRoot?\n";
    assert!(said.contains(&(place + invalid)), "{said}");
    let warned = format!(
        "AH20120: Tamarack does not have mod_dialup yet: its directives are errors \
                          (line {} of {})\n",
        line - 2,
        file.display()
    );
    assert!(said.contains(&warned), "{said}");
    assert!(!said.contains('^') && !said.contains('\u{1b}'), "{said}");
}

#[test]
fn what_is_not_here_is_named_with_its_module() {
    let yet = "which Tamarack does not have yet\n";
    for (line, hint) in [
        ("ModemStandard V.21", format!("ModemStandard belongs to mod_dialup, {yet}")),
        ("<MDomain x>\n</MDomain>", format!("<MDomain> belongs to mod_md, {yet}")),
        ("CacheEnabl disk /", format!("did you mean CacheEnable? It belongs to mod_cache, {yet}")),
        ("<Location />\nRequire ldap-user x\n</Location>", format!("mod_authnz_ldap, {yet}")),
        (
            "<Location />\nAuthBasicProvider ldap\n</Location>",
            format!("ldap belongs to mod_authnz_ldap, {yet}"),
        ),
        ("LoadModule rewite_module x.so", "did you mean rewrite_module?\n".to_owned()),
        ("LoadModule php_module x.so", "www.sock|fcgi://localhost\"\n".to_owned()),
        ("LoadModule perl_module x.so", "see docs/refused.md\n".to_owned()),
        (
            "LoadModule alias_module x.so\nDirectoryIndex a",
            "DirectoryIndex belongs to mod_dir, which requires LoadModule dir_module\n".to_owned(),
        ),
    ] {
        let site = Site::new("hints");
        site.configure(line);
        let output = site.run(&["-t"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(&hint), "{line}: {said}");
    }
}
