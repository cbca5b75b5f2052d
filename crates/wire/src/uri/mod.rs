//! Request targets and URL paths: splitting, unescaping, normalising.

mod normalize;
mod target;
mod unescape;

pub use normalize::{
    Normalize, directory_slashes, no_double_slashes, normalize_path, resolve_dots,
};
pub use target::{Target, TargetError};
pub use unescape::{Slashes, UnescapeError, unescape_path, unescape_query, unescape_url};
