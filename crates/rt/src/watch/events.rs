//! inotify events as read(2) returns them: inotify(7), "Reading events".

use rustix::fs::inotify::ReadFlags;

/// A record's fixed part: watch descriptor, mask, cookie, length of the name.
const HEAD_BYTES: usize = 16;
/// The largest record: a name of NAME_MAX bytes and its terminating NUL, rounded up.
pub(super) const RECORD_BYTES_MAX: usize = HEAD_BYTES + 256 + HEAD_BYTES;

/// One event.
#[derive(Debug, PartialEq)]
pub(super) struct Event<'b> {
    /// The watch descriptor; -1 for an overflow of the queue.
    pub directory: i32,
    pub kinds: ReadFlags,
    /// The directory entry that the event is about; `None` for the directory itself.
    pub name: Option<&'b [u8]>,
}

/// The events of a single read.
pub(super) struct Events<'b>(pub &'b [u8]);

impl<'b> Iterator for Events<'b> {
    type Item = Event<'b>;

    fn next(&mut self) -> Option<Event<'b>> {
        let (head, rest) = self.0.split_at_checked(HEAD_BYTES)?;
        let word = |place: usize| -> Option<u32> {
            let bytes = head.get(place..place + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        let (padded, rest) = rest.split_at_checked(usize::try_from(word(12)?).ok()?)?;
        self.0 = rest;
        let name = padded.split(|byte| *byte == 0).next().filter(|name| !name.is_empty());
        Some(Event {
            directory: word(0)?.cast_signed(),
            kinds: ReadFlags::from_bits_retain(word(4)?),
            name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(directory: i32, mask: u32, name: &[u8]) -> Vec<u8> {
        let len = u32::try_from(name.len()).unwrap();
        let words = [directory.cast_unsigned(), mask, 0, len];
        words.iter().flat_map(|word| word.to_ne_bytes()).chain(name.iter().copied()).collect()
    }

    #[test]
    fn splits_a_read_into_its_events() {
        let bytes = [
            record(3, ReadFlags::MODIFY.bits(), b"page\0\0\0\0"),
            record(-1, ReadFlags::QUEUE_OVERFLOW.bits(), b""),
        ]
        .concat();
        let events: Vec<Event<'_>> = Events(&bytes).collect();
        let page = Event { directory: 3, kinds: ReadFlags::MODIFY, name: Some(b"page") };
        let overflow = Event { directory: -1, kinds: ReadFlags::QUEUE_OVERFLOW, name: None };
        assert_eq!(events, [page, overflow]);
        assert_eq!(Events(&bytes[..bytes.len() - 1]).count(), 1);
        assert_eq!(Events(&[]).count(), 0);
    }
}
