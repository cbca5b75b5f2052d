//! Which item a `%` letter stands for.
//!
//! Source: `log_pre_config` (modules/loggers/mod_log_config.c).

use server::registry::Registry;

use super::item::{Item, LogItem, Port, Process};
use super::time::Time;

impl Item {
    /// The item of a letter, and whether it uses the original request by default.
    pub fn named(
        name: &[u8],
        argument: &[u8],
        registry: &Registry,
    ) -> Result<(Item, bool), String> {
        let owned = || argument.to_vec();
        let of_connection = argument == b"c";
        let item = match name {
            b"a" => Item::ClientAddress { of_connection },
            b"h" => Item::ClientName { of_connection },
            b"A" => Item::LocalAddress,
            b"B" => Item::BodyBytes { dash: false },
            b"b" => Item::BodyBytes { dash: true },
            b"C" => Item::Cookie(owned()),
            b"D" => return Ok((Item::Duration(1), true)),
            b"T" => return Ok((duration(argument), true)),
            b"e" => Item::Env(owned()),
            b"f" => Item::Filename,
            b"H" => Item::Protocol,
            b"i" => Item::HeaderIn(owned()),
            b"k" => Item::KeepAlives,
            b"l" => Item::RemoteLogname,
            b"L" => Item::LogId { of_connection },
            b"m" => Item::Method,
            b"n" => Item::Note(owned()),
            b"o" => Item::HeaderOut(owned()),
            b"p" => match argument.to_ascii_lowercase().as_slice() {
                b"" | b"canonical" => Item::Port(Port::Canonical),
                b"local" => Item::Port(Port::Local),
                b"remote" => Item::Port(Port::Remote),
                _ => Item::Argument(owned()),
            },
            b"P" => match argument.to_ascii_lowercase().as_slice() {
                b"" | b"pid" => Item::Process(Process::Pid),
                b"tid" => Item::Process(Process::Tid),
                b"hextid" => Item::Process(Process::HexTid),
                _ => Item::Argument(owned()),
            },
            b"q" => Item::Query,
            b"r" => return Ok((Item::RequestLine, true)),
            b"R" => return Ok((Item::Handler, true)),
            b"s" => return Ok((Item::Status, true)),
            b"t" => Item::Time(Time::parse(argument)),
            b"u" => Item::User,
            b"U" => return Ok((Item::Path, true)),
            b"v" => Item::ServerName,
            b"V" => Item::CanonicalName,
            b"X" => Item::Connection,
            b"^ti" => Item::TrailerIn(owned()),
            b"^to" => Item::TrailerOut(owned()),
            _ => {
                let letter = String::from_utf8_lossy(name);
                let offered = registry.hooks.provider::<LogItem>("log_item", &letter);
                let offered =
                    offered.ok_or_else(|| format!("Unrecognized LogFormat directive %{letter}"))?;
                Item::Other(offered, owned())
            }
        };
        Ok((item, false))
    }
}

/// `%T`, `%{ms}T`, `%{us}T`, `%{s}T`; another unit is logged as it is written.
fn duration(argument: &[u8]) -> Item {
    Item::Duration(match argument.to_ascii_lowercase().as_slice() {
        b"" | b"s" => 1_000_000,
        b"ms" => 1000,
        b"us" => 1,
        _ => return Item::Argument(argument.to_vec()),
    })
}
