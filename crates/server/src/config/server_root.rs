//! `ServerRoot`: what relative file names are relative to.

use std::path::PathBuf;

use conf::Arg;
use conf::values::relative_to;
use mpm::pipes::PipeSpec;

use super::build::Build;
use crate::api::directive::Fault;
use crate::files::path::as_path;
use crate::log::sinks::{SinkId, Target};

impl Build {
    /// A file name, relative to ServerRoot unless absolute, without `..`
    /// (`ap_server_root_relative`).
    pub fn path(&self, name: &[u8]) -> PathBuf {
        relative_to(&self.server_root, name).unwrap_or_else(|| as_path(name).to_owned())
    }

    /// The sink of a log that is a file, or a pipe to a program (`|program`).
    pub fn log_sink(&mut self, target: &Arg) -> Result<SinkId, Fault> {
        let found = match target.text.first() {
            Some(b'|') => {
                let spec = PipeSpec::parse(&target.text);
                Target::Pipe(spec.ok_or_else(|| Fault::new("the pipe has no program").at(target))?)
            }
            _ => Target::File(self.path(&target.text)),
        };
        Ok(self.sinks.register(found))
    }
}
