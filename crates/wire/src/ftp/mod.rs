//! FTP as a client of servers sees it: replies, what they say, and listings of folders.
//!
//! Specifications: RFC 959, RFC 2428 (EPSV), RFC 3659 (SIZE, MDTM). Source: mod_proxy_ftp.c.

mod listing;
mod passive;
mod reply;
mod text;
mod time;

pub use listing::{ListingWriter, Unreadable};
pub use passive::{epsv_port, pasv_address};
pub use reply::{Reply, ReplyFault, ReplyParser, ReplyProgress};
pub use text::{decode, escape_wildcards, has_wildcards, is_clean};
pub use time::modified;
