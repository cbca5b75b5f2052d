//! The order to start a program, as a message: what an asker writes and the spawner reads.

use std::ffi::CStr;

/// What a program may use: the soft and the hard limit; `None` leaves the server's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Seconds of CPU time.
    pub cpu_seconds: Limit,
    /// Bytes of address space.
    pub memory_bytes: Limit,
    /// Processes of its user.
    pub processes: Limit,
}

/// A soft and a hard limit of a resource. `RLIM_INFINITY` is no limit.
pub type Limit = (Option<u64>, Option<u64>);

/// An order to start a program.
#[derive(Debug, PartialEq, Eq)]
pub struct StartOrder<'m> {
    /// The asker's name for the program, of those of all askers that run; at most [`KEY_MAX`].
    pub key: u64,
    /// Its working directory.
    pub directory: &'m CStr,
    /// The file to execute.
    pub program: &'m CStr,
    /// Its arguments, the first of which is its name.
    pub words: Vec<&'m CStr>,
    /// `NAME=value`
    pub environment: Vec<&'m CStr>,
    /// What it may use.
    pub limits: Limits,
}

/// The largest key.
pub const KEY_MAX: u64 = u64::MAX >> 2;

/// The bytes of the numbers at the beginning of a message: the key, six limits, each with a byte
/// that tells whether it is set, and the number of words.
const NUMBERS: usize = 8 + 6 * 9 + 4;

/// Writes an order: strings up to their first NUL byte, as the C strings that they become.
#[derive(Debug)]
pub struct OrderWriter {
    message: Vec<u8>,
}

impl OrderWriter {
    /// Begins an order.
    pub fn new(limits: &Limits, directory: &[u8], program: &[u8], words: &[&[u8]]) -> OrderWriter {
        let mut message = Vec::with_capacity(2048);
        message.extend_from_slice(&0_u64.to_ne_bytes());
        for (soft, hard) in [limits.cpu_seconds, limits.memory_bytes, limits.processes] {
            for limit in [soft, hard] {
                message.push(u8::from(limit.is_some()));
                message.extend_from_slice(&limit.unwrap_or(0).to_ne_bytes());
            }
        }
        message.extend_from_slice(&u32::try_from(words.len()).unwrap_or(u32::MAX).to_ne_bytes());
        let mut writer = OrderWriter { message };
        writer.string(&[directory]);
        writer.string(&[program]);
        words.iter().for_each(|word| writer.string(&[word]));
        writer
    }

    /// Adds a variable.
    pub fn variable(&mut self, name: &[u8], value: &[u8]) {
        self.string(&[name, b"=", value]);
    }

    /// The message. Its key is 0 until [`set_key`] sets another.
    pub fn finish(self) -> Vec<u8> {
        self.message
    }

    fn string(&mut self, parts: &[&[u8]]) {
        for part in parts {
            let end = part.iter().position(|byte| *byte == 0).unwrap_or(part.len());
            self.message.extend_from_slice(part.get(..end).unwrap_or_default());
        }
        self.message.push(0);
    }
}

/// Sets the key of a message that [`OrderWriter`] wrote.
pub fn set_key(message: &mut [u8], key: u64) {
    if let Some(place) = message.first_chunk_mut() {
        *place = key.to_ne_bytes();
    }
}

impl<'m> StartOrder<'m> {
    /// Reads a message; `None` if [`OrderWriter`] did not write it.
    pub fn read(message: &'m [u8]) -> Option<StartOrder<'m>> {
        let (mut numbers, strings) = message.split_at_checked(NUMBERS)?;
        let (key, rest) = numbers.split_first_chunk()?;
        let key = u64::from_ne_bytes(*key);
        numbers = rest;
        let mut limit = || -> Option<Option<u64>> {
            let (is_set, rest) = numbers.split_first()?;
            let (value, rest) = rest.split_first_chunk()?;
            numbers = rest;
            Some((*is_set != 0).then(|| u64::from_ne_bytes(*value)))
        };
        let mut pair = || Some((limit()?, limit()?));
        let (cpu_seconds, memory_bytes, processes) = (pair()?, pair()?, pair()?);
        let limits = Limits { cpu_seconds, memory_bytes, processes };
        let count = usize::try_from(u32::from_ne_bytes(numbers.try_into().ok()?)).ok()?;
        let mut strings = strings
            .split_inclusive(|byte| *byte == 0)
            .map(|text| CStr::from_bytes_with_nul(text).ok());
        let (directory, program) = (strings.next()??, strings.next()??);
        let words: Vec<&CStr> = strings.by_ref().take(count).collect::<Option<_>>()?;
        let environment: Vec<&CStr> = strings.collect::<Option<_>>()?;
        let is_whole = words.len() == count && count > 0 && key <= KEY_MAX;
        is_whole.then_some(StartOrder { key, directory, program, words, environment, limits })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let limits = Limits {
            cpu_seconds: (Some(7), None),
            memory_bytes: (None, Some(u64::MAX)),
            processes: (Some(0), Some(3)),
        };
        let mut writer = OrderWriter::new(&limits, b"/d", b"/d/p", &[b"p", b"", b"cut\0off"]);
        writer.variable(b"A", b"b=c");
        writer.variable(b"EMPTY", b"");
        let mut message = writer.finish();
        set_key(&mut message, 5);
        let expected = StartOrder {
            key: 5,
            directory: c"/d",
            program: c"/d/p",
            words: vec![c"p", c"", c"cut"],
            environment: vec![c"A=b=c", c"EMPTY="],
            limits,
        };
        assert_eq!(StartOrder::read(&message), Some(expected));
        for end in 0..message.len() {
            // Whole variables may be missing; nothing else is an order.
            let cut = StartOrder::read(message.get(..end).unwrap());
            assert!(cut.is_none_or(|order| order.words.len() == 3), "{end}");
        }
        set_key(&mut message, KEY_MAX + 1);
        assert_eq!(StartOrder::read(&message), None);
    }

    proptest! {
        #[test]
        fn any_message_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = StartOrder::read(&bytes);
        }
    }
}
