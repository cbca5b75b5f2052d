//! Look-ups in maps.
//!
//! Source: `lookup_map`.

use std::sync::Arc;

use bstr::BStr;
use messages::Message;
use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;

use super::Rewrite;
use super::expand::Scope;
use super::flags::Escape;
use super::map::{Asked, DatabaseMap, Found, Internal, Kind, Map, MapFile, MapProgram};
use super::template::LookUp;
use crate::random;

impl Scope<'_> {
    /// Looks up a key in a map; the default if there is no value.
    ///
    /// # Errors
    /// The status that ends the request.
    pub async fn look_up(
        &mut self,
        request: &mut Request,
        look_up: &LookUp,
        escape: Option<&Escape>,
    ) -> Result<Vec<u8>, u16> {
        let key = self.fill(request, &look_up.key, escape).await?.text;
        let found = match self.settings.maps.get(&look_up.map).map(AsRef::as_ref) {
            None => None,
            Some(Map::Internal(function)) => {
                Some(self.of_function(request, &look_up.map, *function, &key))
            }
            Some(Map::File(map)) => self.of_file(request, &look_up.map, map, &key).await,
            Some(Map::Program(map)) => self.of_program(request, &look_up.map, map, &key).await?,
            Some(Map::Database(map)) => self.of_database(request, &look_up.map, map, &key).await,
        };
        match (found, &look_up.default) {
            (Some(found), _) => Ok(found),
            (None, Some(default)) => Ok(self.fill(request, default, escape).await?.text),
            (None, None) => Ok(Vec::new()),
        }
    }

    fn of_function(
        &self,
        request: &Request,
        map: &[u8],
        function: Internal,
        key: &[u8],
    ) -> Vec<u8> {
        let value = function.value(key);
        let key = if function.overwrites() { &value } else { key };
        let (map, key, shown) = (Verbatim::new(map), Verbatim::new(key), Verbatim::new(&value));
        let line = format_args!("map lookup OK: map={map} key={key} -> val={shown}");
        self.trace.line(request, Level::Trace5, None, line);
        value
    }

    async fn of_program(
        &self,
        request: &mut Request,
        name: &[u8],
        map: &MapProgram,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, u16> {
        request.depends.pure = false;
        if let Some(recorder) = &request.engine.recorder {
            recorder.not_asked(&format!("the program of RewriteMap {}", BStr::new(name)));
            return Ok(None);
        }
        let found = map.find(request, key).await.map_err(|why| {
            let (name, number) = (Verbatim::new(name), Message::MapUnanswered.number());
            let text = format_args!("mod_rewrite: map {name}: {why}");
            request.log::<Rewrite>(Level::Error, number, text);
            500u16
        })?;
        let (name, key) = (Verbatim::new(name), Verbatim::new(key));
        match &found {
            Some(value) => {
                let value = Verbatim::new(value);
                let line = format_args!("map lookup OK: map={name} key={key} -> val={value}");
                self.trace.line(request, Level::Trace5, None, line);
            }
            None => {
                let line = format_args!("map lookup FAILED: map={name} key={key}");
                self.trace.line(request, Level::Trace5, None, line);
            }
        }
        Ok(found)
    }

    async fn of_database(
        &self,
        request: &mut Request,
        name: &[u8],
        map: &DatabaseMap,
        key: &[u8],
    ) -> Option<Vec<u8>> {
        request.depends.pure = false;
        let found = map.find(request, key).await;
        let (name, key) = (Verbatim::new(name), Verbatim::new(key));
        let write = |level, text: std::fmt::Arguments<'_>| {
            self.trace.line(request, level, None, text);
        };
        if map.is_fast() && !found.is_known {
            write(Level::Trace6, format_args!("cache lookup FAILED, forcing new map lookup"));
        }
        if found.is_chosen {
            write(Level::Trace3, format_args!("Multiple values found for {key}"));
        }
        let Found { value, is_known, .. } = found;
        match (&value, is_known) {
            (_, true) => {
                let value = Verbatim::new(value.as_deref().unwrap_or_default());
                let text = "cache lookup OK";
                write(
                    Level::Trace5,
                    format_args!("{text}: map={name}[SQL] key={key}, val={value}"),
                );
            }
            (Some(value), false) => {
                let value = Verbatim::new(value);
                let text = format_args!("SQL map lookup OK: map {name} key={key}, val={value}");
                write(Level::Trace5, text);
            }
            (None, false) => {
                write(Level::Trace5, format_args!("SQL map lookup FAILED: map {name} key={key}"));
            }
        }
        // `fastdbd:` remembers an empty value as none, and finds it the first time.
        value.filter(|value| !is_known || !value.is_empty())
    }

    async fn of_file(
        &self,
        request: &mut Request,
        name: &[u8],
        map: &Arc<MapFile>,
        key: &[u8],
    ) -> Option<Vec<u8>> {
        let notes = self.trace.writes(Level::Trace5);
        let asked = match map.find(request, key, notes).await {
            Ok(asked) => asked,
            Err((error, number, file)) => {
                log_failure(request, error, number, file);
                return None;
            }
        };
        if notes {
            self.trace_look_up(request, name, map, key, &asked);
        }
        let value = asked.value.filter(|value| !value.is_empty())?;
        if map.kind != Kind::Random {
            return Some(value);
        }
        request.depends.pure = false;
        let parts: Vec<&[u8]> = value.split(|byte| *byte == b'|').collect();
        let chosen = parts.get(random::below(parts.len())).copied().unwrap_or_default();
        let shown = Verbatim::new(chosen);
        let line = format_args!("randomly chosen the subvalue `{shown}'");
        self.trace.line(request, Level::Trace5, None, line);
        Some(chosen.to_vec()).filter(|chosen| !chosen.is_empty())
    }

    /// Logs like Apache, which looks a key up once and caches it until the file changes.
    fn trace_look_up(
        &self,
        request: &Request,
        name: &[u8],
        map: &MapFile,
        key: &[u8],
        asked: &Asked,
    ) {
        let kind = if map.is_dbm() { "dbm" } else { "txt" };
        let (name, key) = (Verbatim::new(name), Verbatim::new(key));
        let value = Verbatim::new(asked.value.as_deref().unwrap_or_default());
        let write = |level, text: std::fmt::Arguments<'_>| {
            self.trace.line(request, level, None, text);
        };
        if asked.is_known {
            let what = "cache lookup OK";
            let line = format_args!("{what}: map={name}[{kind}] key={key} -> val={value}");
            return write(Level::Trace5, line);
        }
        let what = "cache lookup FAILED, forcing new map lookup";
        write(Level::Trace6, format_args!("{what}"));
        match asked.value {
            Some(_) => {
                let what = "map lookup OK";
                let line = format_args!("{what}: map={name}[{kind}] key={key} -> val={value}");
                write(Level::Trace5, line);
            }
            None => {
                let line = format_args!("map lookup FAILED: map={name}[{kind}] key={key}");
                write(Level::Trace5, line);
            }
        }
    }
}

fn log_failure(request: &Request, error: rustix::io::Errno, number: u32, file: &[u8]) {
    let what = match number {
        655 => "can't open text RewriteMap file",
        656 => "can't open DBM RewriteMap",
        661 => "can't access text RewriteMap file",
        _ => "can't access DBM RewriteMap file",
    };
    let file = Verbatim::new(file);
    let text = format_args!("mod_rewrite: {what} {file}");
    request.log_error::<Rewrite>(Level::Error, number, error, text);
}
