//! Request targets and URL paths: splits, unescapes and normalises them.

mod normalize;
mod target;
mod unescape;

pub use normalize::{
    Normalize, directory_slashes, no_double_slashes, normalize_path, resolve_dots,
};
pub use target::{Target, TargetError};
pub use unescape::{Slashes, UnescapeError, unescape_path, unescape_query, unescape_url};
