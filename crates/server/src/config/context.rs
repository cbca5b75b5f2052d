//! The contexts of directives, and the `AllowOverride` classes that allow them in `.htaccess`.

use std::fmt;

/// A set of contexts, as in the manual's "Context" line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places(u8);

impl Places {
    /// "server config": outside every container.
    pub const SERVER: Places = Places(1);
    /// "virtual host": directly in `<VirtualHost>`.
    pub const VHOST: Places = Places(2);
    /// "directory": in `<Directory>`, `<Location>`, `<Files>`, `<If>` and similar.
    pub const DIRECTORY: Places = Places(4);
    /// ".htaccess".
    pub const HTACCESS: Places = Places(8);
    /// "proxy section": in `<Proxy>` and `<ProxyMatch>` (`PROXY_CONF`), where those for directories
    /// are allowed, too.
    pub const PROXY: Places = Places(16);
    /// "server config, virtual host" (`RSRC_CONF`).
    pub const HOST: Places = Places(1 | 2);
    /// "server config, virtual host, directory".
    pub const NOT_HTACCESS: Places = Places(1 | 2 | 4);
    /// "directory, .htaccess" (`OR_AUTHCFG` and similar without the server level).
    pub const PER_DIR: Places = Places(4 | 8);
    /// "server config, virtual host, directory, .htaccess".
    pub const ALL: Places = Places(15);

    /// The union of the sets.
    pub const fn or(self, other: Places) -> Places {
        Places(self.0 | other.0)
    }

    /// Whether this set contains every context of `other`.
    pub const fn contains(self, other: Places) -> bool {
        self.0 & other.0 == other.0
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Places::SERVER, "server config"),
            (Places::VHOST, "virtual host"),
            (Places::DIRECTORY, "directory"),
            (Places::HTACCESS, ".htaccess"),
            (Places::PROXY, "proxy section"),
        ];
        let mut first = true;
        for (_, name) in names.iter().filter(|(place, _)| self.contains(*place)) {
            if !first {
                f.write_str(", ")?;
            }
            first = false;
            f.write_str(name)?;
        }
        Ok(())
    }
}

/// The classes of `AllowOverride` (manual: core, AllowOverride), as a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Override(u8);

impl Override {
    /// No class: the directive is not subject to AllowOverride, or nothing is allowed.
    pub const NONE: Override = Override(0);
    /// `AuthConfig`
    pub const AUTH_CONFIG: Override = Override(1);
    /// `FileInfo`
    pub const FILE_INFO: Override = Override(2);
    /// `Indexes`
    pub const INDEXES: Override = Override(4);
    /// `Limit`
    pub const LIMIT: Override = Override(8);
    /// `Options`
    pub const OPTIONS: Override = Override(16);
    /// `All`: every class.
    pub const ALL: Override = Override(31);

    /// The union of the sets.
    pub const fn or(self, other: Override) -> Override {
        Override(self.0 | other.0)
    }

    /// Whether this set contains any class of `other`.
    pub const fn intersects(self, other: Override) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set is empty.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Override::ALL {
            return f.write_str("All");
        }
        let names = [
            (Override::AUTH_CONFIG, "AuthConfig"),
            (Override::FILE_INFO, "FileInfo"),
            (Override::INDEXES, "Indexes"),
            (Override::LIMIT, "Limit"),
            (Override::OPTIONS, "Options"),
        ];
        let mut first = true;
        for (_, name) in names.iter().filter(|(class, _)| self.intersects(*class)) {
            if !first {
                f.write_str(" ")?;
            }
            first = false;
            f.write_str(name)?;
        }
        Ok(())
    }
}
