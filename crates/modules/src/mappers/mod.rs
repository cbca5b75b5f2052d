//! Apache's `modules/mappers`.

pub mod mod_actions;
pub mod mod_alias;
pub mod mod_dir;
pub mod mod_imagemap;
pub mod mod_negotiation;
pub mod mod_rewrite;
pub mod mod_speling;
pub mod mod_userdir;
pub mod mod_vhost_alias;

use server::request::Request;

/// Parses the number at the start of a text, as `atoi`, saturating.
fn number(text: &[u8]) -> u16 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits
        .fold(0u16, |value, digit| value.saturating_mul(10).saturating_add(u16::from(digit - b'0')))
}

/// Sets `CONTEXT_PREFIX` and `CONTEXT_DOCUMENT_ROOT` (`ap_set_context_info`).
fn set_context(request: &mut Request, prefix: Option<&[u8]>, document_root: Option<&[u8]>) {
    if let Some(prefix) = prefix {
        request.notes.set(b"CONTEXT_PREFIX", prefix);
    }
    if let Some(root) = document_root {
        request.notes.set(b"CONTEXT_DOCUMENT_ROOT", root);
    }
}
