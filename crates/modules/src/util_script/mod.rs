//! What modules that run programs, or ask servers for programs, have in common
//! (`server/util_script.c`).

pub(crate) mod environment;
pub(crate) mod head;
pub(crate) mod program;
pub(crate) mod redirect;
pub(crate) mod variables;
