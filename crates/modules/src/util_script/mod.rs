//! What modules that run programs, or ask servers for programs, have in common
//! (`server/util_script.c`).

pub(crate) mod environment;
pub(crate) mod error_lines;
pub(crate) mod exchange;
pub(crate) mod head;
mod left_errors;
pub(crate) mod program;
pub(crate) mod prompt;
pub(crate) mod redirect;
pub(crate) mod variables;

/// Puts a backslash before each byte that means something to a shell.
///
/// Source: `ap_escape_shell_cmd`
pub(crate) fn shell_escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if b"&;`'\"|*?~<>^()[]{}$\\\n".contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}
