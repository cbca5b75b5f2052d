//! Groups of the key exchange in OpenSSL's words, as `SSLOpenSSLConfCmd Groups` and `Curves` have
//! them. Source: `SSL_CONF_cmd`, `SSL_CTX_set1_groups_list`.

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::kx_group;

use crate::Finding;

const DIRECTIVE: &str = "SSLOpenSSLConfCmd";

/// The groups that a host offers, in its order of preference.
#[derive(Clone, Debug)]
pub struct Groups(pub Vec<&'static dyn SupportedKxGroup>);

/// Every group that rustls has, by each of OpenSSL's names for it.
static KNOWN: &[(&[&str], &dyn SupportedKxGroup)] = &[
    (&["X25519"], kx_group::X25519),
    (&["prime256v1", "P-256", "secp256r1"], kx_group::SECP256R1),
    (&["secp384r1", "P-384"], kx_group::SECP384R1),
    (&["X25519MLKEM768"], kx_group::X25519MLKEM768),
    (&["SecP256r1MLKEM768"], kx_group::SECP256R1MLKEM768),
    (&["MLKEM768"], kx_group::MLKEM768),
    (&["MLKEM1024"], kx_group::MLKEM1024),
];

/// Groups that OpenSSL has and rustls has not: their absence makes nothing weaker.
const UNAVAILABLE: [&str; 9] = [
    "secp521r1",
    "P-521",
    "X448",
    "secp256k1",
    "secp224r1",
    "P-224",
    "prime192v1",
    "MLKEM512",
    "SecP384r1MLKEM1024",
];

/// The same, by how their names begin.
const UNAVAILABLE_KINDS: [&str; 5] = ["ffdhe", "brainpool", "sect", "B-", "K-"];

/// Reads a list of groups: names between colons, or slashes where the first of several kinds
/// counts. `?` leaves out what does not exist, `*` names a group to guess (there is no guessing
/// for a server), `-` takes one away again, `DEFAULT` is what counts without a list.
///
/// # Errors
/// A word that is no group, or a list of which nothing is available.
pub fn parse(spec: &str) -> Result<(Groups, Vec<Finding>), Finding> {
    let mut chosen: Vec<&'static dyn SupportedKxGroup> = Vec::new();
    let mut findings = Vec::new();
    for written in spec.split([':', '/']).map(str::trim) {
        let name = written.trim_start_matches(['?', '*', '-']);
        let prefix = &written[..written.len() - name.len()];
        if name.eq_ignore_ascii_case("DEFAULT") && prefix.is_empty() {
            crate::provider().kx_groups.into_iter().for_each(|group| add(&mut chosen, group));
            continue;
        }
        match find(name) {
            Some(group) if prefix.contains('-') => {
                chosen.retain(|known| known.name() != group.name());
            }
            Some(group) => add(&mut chosen, group),
            None if prefix.contains(['?', '-']) && !name.is_empty() => {}
            None if is_unavailable(name) => {
                let message = format!("group {name} is not available and is left out");
                findings.push(Finding::warning(DIRECTIVE, message));
            }
            None => {
                let message = format!("'{name}' is no group of the key exchange");
                return Err(Finding::error(DIRECTIVE, message));
            }
        }
    }
    if chosen.is_empty() {
        let message = format!("no group of '{spec}' is available");
        return Err(Finding::error(DIRECTIVE, message));
    }
    Ok((Groups(chosen), findings))
}

fn add(chosen: &mut Vec<&'static dyn SupportedKxGroup>, group: &'static dyn SupportedKxGroup) {
    if chosen.iter().all(|known| known.name() != group.name()) {
        chosen.push(group);
    }
}

fn find(name: &str) -> Option<&'static dyn SupportedKxGroup> {
    let is_named = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    KNOWN.iter().find(|(names, _)| is_named(names)).map(|(_, group)| *group)
}

fn is_unavailable(name: &str) -> bool {
    let begins =
        |kind: &str| name.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind));
    UNAVAILABLE.iter().any(|known| known.eq_ignore_ascii_case(name))
        || UNAVAILABLE_KINDS.into_iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(spec: &str) -> (Vec<String>, usize) {
        let (groups, findings) = parse(spec).unwrap();
        let names = groups.0.iter().map(|group| format!("{:?}", group.name()));
        (names.collect(), findings.len())
    }

    #[test]
    fn openssls_names_and_order() {
        let expected = ["X25519", "secp256r1", "secp384r1"].map(str::to_owned).to_vec();
        for spec in ["X25519:prime256v1:secp384r1", "x25519:P-256:P-384", "X25519:secp256r1:p-384"]
        {
            assert_eq!(names(spec), (expected.clone(), 0), "{spec}");
        }
        assert_eq!(names("P-384:X25519:P-384").0, ["secp384r1", "X25519"]);
        assert_eq!(names("X25519MLKEM768:X25519").0, ["X25519MLKEM768", "X25519"]);
    }

    #[test]
    fn prefixes_and_tuples_of_newer_versions() {
        let expected = ["X25519MLKEM768", "X25519", "secp256r1"].map(str::to_owned).to_vec();
        assert_eq!(names("?*X25519MLKEM768 / ?*X25519:?nonsense / ?P-256"), (expected, 0));
        assert_eq!(names("DEFAULT:-X25519MLKEM768:-X448").0, ["X25519", "secp256r1", "secp384r1"]);
    }

    #[test]
    fn what_there_is_not_is_left_out_with_a_word() {
        assert_eq!(
            names("X448:P-521:ffdhe2048:brainpoolP256r1:X25519"),
            (vec!["X25519".into()], 4)
        );
        for wrong in ["nonsense", "X25519:", "", "X448", "X25519 P-256", "X25519:-X25519", "auto"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
