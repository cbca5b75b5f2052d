//! Apache's modules that are not implemented yet, with their directives as listed by mod_info of
//! the installed Apache 2.4.71, and those that only its manual has.

mod aaa;
mod cache;
mod content;
mod server;

use ::server::missing::Missing;
use ::server::module::ErasedModule;

const FAMILIES: [&[Missing]; 4] = [aaa::FAMILY, cache::FAMILY, content::FAMILY, server::FAMILY];

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Missing> {
    FAMILIES.into_iter().flatten()
}

/// All of them, as entries of a registry.
pub fn erased() -> impl Iterator<Item = &'static dyn ErasedModule> {
    all().map(|module| module as &'static dyn ErasedModule)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    /// The directives that Apache has on other systems only.
    const ELSEWHERE: [&str; 5] =
        ["mod_isapi", "mod_nw_ssl", "mod_privileges", "mpm_common", "mpm_netware"];

    #[test]
    fn every_directive_of_apache_is_known_once() {
        let built: HashSet<String> = crate::all()
            .iter()
            .flat_map(|module| module.rows(0))
            .map(|row| row.name.to_ascii_lowercase())
            .collect();
        let mut missing = HashSet::new();
        for module in super::all() {
            for name in module.directives() {
                let lower = name.trim_start_matches('<').to_ascii_lowercase();
                assert!(!built.contains(&lower), "{name} is here");
                missing.insert((module.of_manual(), lower));
            }
        }
        let list = include_str!("../../../../docs/reference/directives.csv");
        for line in list.lines().skip(1) {
            let [module, name, ..] = line.split(',').collect::<Vec<_>>()[..] else { continue };
            let lower = name.trim_matches(['<', '>']).to_ascii_lowercase();
            let is_missing = missing.iter().any(|(_, known)| *known == lower);
            assert!(
                built.contains(&lower) || is_missing || ELSEWHERE.contains(&module),
                "{module}: {name}"
            );
        }
    }

    #[test]
    fn a_module_is_here_or_missing() {
        let built: HashSet<&str> = crate::all().iter().map(|module| module.name()).collect();
        let names: Vec<String> = super::all().map(|module| module.of_manual()).collect();
        let unique: HashSet<&String> = names.iter().collect();
        assert_eq!(names.len(), unique.len());
        for module in super::erased() {
            assert!(!built.contains(module.name()), "{} is here", module.name());
        }
    }

    #[test]
    fn the_readme_names_modules_that_are_missing() {
        let readme = include_str!("../../../../README.md");
        let (_, rest) = readme.split_once("<!-- missing:begin -->").unwrap();
        let (list, _) = rest.split_once("<!-- missing:end -->").unwrap();
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let names: HashSet<String> = super::all().map(|module| module.of_manual()).collect();
        let named: Vec<&str> =
            list.split(|letter| !is_part(letter)).filter(|word| word.starts_with("mod_")).collect();
        assert!(named.len() > 10, "{named:?}");
        assert!(named.iter().all(|name| names.contains(*name)), "{named:?}");
    }

    #[test]
    fn what_is_said_of_directives_names_directives() {
        for module in super::all() {
            let own: Vec<&str> = module.directives().collect();
            for name in module.inert_directives().chain(module.satisfied_directives()) {
                assert!(own.contains(&name), "{}: {name}", module.of_manual());
            }
        }
    }
}
