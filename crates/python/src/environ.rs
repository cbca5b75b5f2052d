//! Environs: most of one is as in the request before, so that it begins as a copy of that.

use pyo3_ffi as py;

use crate::held::{Ref, latin1};

/// Environs that are remembered: those of some hosts and clients.
const TEMPLATES_MAX: usize = 8;

/// Values that differ from the template beyond which it is replaced.
const CHANGES_MAX: usize = 12;

/// Variables whose values are names of files.
const FILES: [&[u8]; 3] = [b"DOCUMENT_ROOT", b"SCRIPT_FILENAME", b"CONTEXT_DOCUMENT_ROOT"];

/// What is remembered of earlier requests.
#[derive(Default)]
pub(crate) struct Templates {
    /// The one that was used last comes first.
    known: Vec<Template>,
    /// Texts of the head that precede the environ.
    texts: Vec<(Vec<u8>, Ref)>,
}

struct Template {
    /// Names and values, separated by NUL.
    text: Vec<u8>,
    variables: Vec<Variable>,
    environ: Ref,
}

struct Variable {
    /// Where the name begins in the text, where its NUL is, and where the value ends.
    start: usize,
    name_end: usize,
    end: usize,
    /// `None` for what only decides the scheme.
    key: Option<Ref>,
}

impl Templates {
    /// A text that is often the same as at this place of the request before.
    ///
    /// # Safety
    /// With the lock of Python.
    pub unsafe fn text(&mut self, place: usize, text: &[u8]) -> Option<Ref> {
        if let Some((known, object)) = self.texts.get(place)
            && known == text
        {
            return Some(object.clone());
        }
        // SAFETY: as the caller promises.
        let object = unsafe { latin1(text)? };
        let entry = (text.to_vec(), object.clone());
        if let Some(known) = self.texts.get_mut(place) {
            *known = entry;
        } else if place == self.texts.len() {
            self.texts.push(entry);
        }
        Some(object)
    }

    /// The environ of these names and values, which are separated by NUL, and of what all environs
    /// have; `None` with an error of Python.
    ///
    /// # Safety
    /// With the lock of Python.
    pub unsafe fn environ(&mut self, text: &[u8], constants: Option<&Ref>) -> Option<Ref> {
        for place in 0..self.known.len() {
            let Some(changes) = self.known.get(place).and_then(|known| known.changes(text)) else {
                continue;
            };
            if changes.len() > CHANGES_MAX {
                self.known.remove(place);
                break;
            }
            if let Some(first) = self.known.get_mut(..=place) {
                first.rotate_right(1);
            }
            let template = self.known.first()?;
            // SAFETY: as the caller promises.
            return unsafe { template.copy(&changes) };
        }
        // SAFETY: as the caller promises.
        unsafe {
            let template = Template::new(text, constants)?;
            let environ = template.copy(&[])?;
            self.known.truncate(TEMPLATES_MAX - 1);
            self.known.insert(0, template);
            Some(environ)
        }
    }
}

impl Template {
    unsafe fn new(text: &[u8], constants: Option<&Ref>) -> Option<Template> {
        // SAFETY: as the caller promises, with the lock of Python.
        unsafe {
            let environ = Ref::own(py::PyDict_New())?;
            let mut variables = Vec::new();
            let mut scheme = c"http";
            let mut parts = text.split(|byte| *byte == 0);
            let mut start = 0;
            while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
                let mut key = None;
                if name == b"HTTPS" {
                    scheme = c"https";
                } else {
                    let mut text = latin1(name)?.into_ptr();
                    py::PyUnicode_InternInPlace(&raw mut text);
                    let text = Ref::own(text)?;
                    let value = decoded(name, value)?;
                    if py::PyDict_SetItem(environ.as_ptr(), text.as_ptr(), value.as_ptr()) < 0 {
                        return None;
                    }
                    key = Some(text);
                }
                let name_end = start + name.len();
                let end = name_end + 1 + value.len();
                variables.push(Variable { start, name_end, end, key });
                start = end + 1;
            }
            let scheme = Ref::own(py::PyUnicode_FromString(scheme.as_ptr()))?;
            let name = c"wsgi.url_scheme".as_ptr();
            if py::PyDict_SetItemString(environ.as_ptr(), name, scheme.as_ptr()) < 0 {
                return None;
            }
            if let Some(constants) = constants
                && py::PyDict_Update(environ.as_ptr(), constants.as_ptr()) < 0
            {
                return None;
            }
            Some(Template { text: text.to_vec(), variables, environ })
        }
    }

    /// The variables whose values differ, with the values; `None` if the names do.
    fn changes<'t>(&self, text: &'t [u8]) -> Option<Vec<(usize, &'t [u8])>> {
        let mut changes = Vec::with_capacity(CHANGES_MAX);
        // What is left of both begins with the same variable.
        let (mut start, mut left, mut place) = (0, text, 0);
        loop {
            let known = self.text.get(start..)?;
            let same = common(known, left);
            if same == known.len() && same == left.len() {
                return Some(changes);
            }
            let at = start + same;
            place += self.variables.get(place..)?.partition_point(|variable| variable.end < at);
            let variable = self.variables.get(place)?;
            if at <= variable.name_end {
                return None;
            }
            let value = left.get(variable.name_end + 1 - start..)?;
            let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
            changes.push((place, value.get(..end)?));
            place += 1;
            let Some(next) = self.variables.get(place) else {
                return (end == value.len()).then_some(changes);
            };
            (start, left) = (next.start, value.get(end + 1..)?);
        }
    }

    unsafe fn copy(&self, changes: &[(usize, &[u8])]) -> Option<Ref> {
        // SAFETY: as the caller promises, with the lock of Python.
        unsafe {
            let environ = Ref::own(py::PyDict_Copy(self.environ.as_ptr()))?;
            for (place, value) in changes {
                let variable = self.variables.get(*place)?;
                let Some(key) = &variable.key else { continue };
                let name = self.text.get(variable.start..variable.name_end)?;
                let value = decoded(name, value)?;
                if py::PyDict_SetItem(environ.as_ptr(), key.as_ptr(), value.as_ptr()) < 0 {
                    return None;
                }
            }
            Some(environ)
        }
    }
}

/// How many bytes both begin with.
fn common(one: &[u8], other: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let blocks = one.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK));
    let whole = blocks.take_while(|(one, other)| one == other).count() * BLOCK;
    let rest = one.iter().zip(other).skip(whole);
    whole + rest.take_while(|(one, other)| one == other).count()
}

/// A value as applications expect it.
unsafe fn decoded(name: &[u8], value: &[u8]) -> Option<Ref> {
    // SAFETY: as the caller promises, with the lock of Python; the bytes are copied.
    unsafe {
        if !value.is_ascii() && FILES.contains(&name) {
            let len = value.len().cast_signed();
            return Ref::own(py::PyUnicode_DecodeFSDefaultAndSize(value.as_ptr().cast(), len));
        }
        latin1(value)
    }
}
