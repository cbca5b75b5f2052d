//! Sections in which a directive is not allowed, at any depth.
//!
//! Source: `ap_check_cmd_context` (server/core.c).

use crate::api::directive::{Cx, Fault};
use crate::api::module::Module;

/// Sections that a directive may forbid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// `<Limit>` and `<LimitExcept>` (`NOT_IN_LIMIT`).
    Limit,
    /// `<Directory>` (`NOT_IN_DIRECTORY`).
    Directory,
    /// `<Location>` (`NOT_IN_LOCATION`).
    Location,
    /// `<Files>`, and with it `<If>` and its alternatives (`NOT_IN_FILES`).
    Files,
}

impl Within {
    /// The sections, in the order in which Apache checks them.
    const fn names(self) -> &'static [&'static str] {
        match self {
            Within::Limit => &["Limit", "LimitExcept"],
            Within::Directory => &["Directory", "DirectoryMatch"],
            Within::Location => &["Location", "LocationMatch"],
            Within::Files => &["Files", "FilesMatch", "If", "ElseIf", "Else"],
        }
    }
}

impl<M: Module> Cx<'_, '_, M> {
    /// Returns an error if any section around the directive `shown` is one of `forbidden`, in the
    /// order in which Apache checks them.
    pub fn not_within(&self, shown: &str, forbidden: &[Within]) -> Result<(), Fault> {
        let around = &self.target.build.around;
        for kind in forbidden {
            let found = match kind {
                Within::Limit => {
                    self.target.limited.as_ref().map(|_| "<Limit> or <LimitExcept>".into())
                }
                _ => kind
                    .names()
                    .iter()
                    .find(|name| around.contains(name))
                    .map(|name| format!("<{name}>")),
            };
            if let Some(section) = found {
                return Err(format!("{shown} cannot occur within {section} section").into());
            }
        }
        Ok(())
    }
}
