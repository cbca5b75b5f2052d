//! The fields of a shared response as bytes.

use std::ops::Range;

use server::request::{Expiry, ExpiryTime, FileInfo, FileKind};

use super::response::Authority;
use super::texts::{Offsets, TEXTS, Texts};
use super::timed::TimedFields;

/// Writes fields one behind the other.
pub(super) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_ne_bytes());
    }

    pub fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text);
    }

    pub fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Writer, T)) {
        self.number(value.is_some().into());
        if let Some(value) = value {
            write(self, value);
        }
    }

    pub fn texts(&mut self, texts: &Texts) {
        let Offsets { present, ends, .. } = texts.offsets;
        self.number(present.into());
        ends.iter().for_each(|end| self.0.extend_from_slice(&end.to_ne_bytes()));
        self.0.extend_from_slice(texts.all());
    }

    pub fn file(&mut self, file: &FileInfo) {
        let FileInfo { kind, size, mtime_us, ctime_us, inode, device, mode, uid, gid, links } =
            *file;
        let kind = match kind {
            FileKind::None => 0,
            FileKind::Regular => 1,
            FileKind::Directory => 2,
            FileKind::Other => 3,
        };
        let small = [mode, uid, gid].map(u64::from);
        for number in [kind, size, mtime_us, ctime_us, inode, device, links].iter().chain(&small) {
            self.number(*number);
        }
    }

    pub fn range(&mut self, range: &Range<usize>) {
        self.number(range.start as u64);
        self.number(range.end as u64);
    }

    pub fn timed(&mut self, TimedFields { expiry, date_at, age_at }: &TimedFields) {
        let (is_after, time) = match expiry.time {
            ExpiryTime::AfterRequest(seconds) => (true, i64::from(seconds)),
            ExpiryTime::At(time) => (false, time),
        };
        self.number(is_after.into());
        self.number(time.cast_unsigned());
        self.number(expiry.moves_date.into());
        self.number(expiry.moves_age.into());
        self.option(date_at.as_ref(), Writer::range);
        self.option(age_at.as_ref(), Writer::range);
    }

    pub fn authority(&mut self, authority: &Authority) {
        self.option(authority.name.as_deref(), Writer::text);
        self.option(authority.named_port, |out, port| out.number(port.into()));
        self.number(authority.port.into());
        self.number(authority.is_secure.into());
        let address = authority.address.map(|address| address.to_string().into_bytes());
        self.option(address.as_deref(), Writer::text);
    }
}

/// Reads them again, from bytes that another process may have damaged.
pub(super) struct Reader<'v>(pub &'v [u8]);

impl<'v> Reader<'v> {
    fn take(&mut self, count: usize) -> Option<&'v [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn number(&mut self) -> Option<u64> {
        self.take(size_of::<u64>())?.try_into().ok().map(u64::from_ne_bytes)
    }

    pub fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.number()?.try_into().ok()
    }

    pub fn text(&mut self) -> Option<&'v [u8]> {
        let length = self.small()?;
        self.take(length)
    }

    #[expect(clippy::option_option, reason = "a value that is absent, and one that can't be read")]
    pub fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Reader<'v>) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.number()? {
            0 => Some(None),
            _ => read(self).map(Some),
        }
    }

    /// The offsets of texts, which end with a block of `length` bytes.
    pub fn offsets(&mut self, length: usize) -> Option<Offsets> {
        let present = self.small()?;
        let mut ends = [0; TEXTS];
        for end in &mut ends {
            *end = u32::from_ne_bytes(self.take(size_of::<u32>())?.try_into().ok()?);
        }
        Offsets::new(length - self.0.len(), ends, present)
    }

    pub fn file(&mut self) -> Option<FileInfo> {
        let kind = match self.number()? {
            0 => FileKind::None,
            1 => FileKind::Regular,
            2 => FileKind::Directory,
            _ => FileKind::Other,
        };
        let [size, mtime_us, ctime_us] = [self.number()?, self.number()?, self.number()?];
        let [inode, device, links] = [self.number()?, self.number()?, self.number()?];
        let [mode, uid, gid] = [self.small()?, self.small()?, self.small()?];
        Some(FileInfo { kind, size, mtime_us, ctime_us, inode, device, mode, uid, gid, links })
    }

    pub fn range(&mut self) -> Option<Range<usize>> {
        Some(self.small()?..self.small()?)
    }

    pub fn timed(&mut self) -> Option<TimedFields> {
        let (is_after, time) = (self.number()? != 0, self.number()?.cast_signed());
        let time = match is_after {
            true => ExpiryTime::AfterRequest(time.try_into().ok()?),
            false => ExpiryTime::At(time),
        };
        let (moves_date, moves_age) = (self.number()? != 0, self.number()? != 0);
        let expiry = Expiry { time, moves_date, moves_age };
        let (date_at, age_at) = (self.option(Reader::range)?, self.option(Reader::range)?);
        Some(TimedFields { expiry, date_at, age_at })
    }

    pub fn authority(&mut self) -> Option<Authority> {
        let name = self.option(Reader::text)?.map(Into::into);
        let named_port = self.option(Reader::small)?;
        let (port, is_secure) = (self.small()?, self.number()? != 0);
        let address = match self.option(Reader::text)? {
            Some(text) => Some(std::str::from_utf8(text).ok()?.parse().ok()?),
            None => None,
        };
        Some(Authority { name, named_port, port, is_secure, address })
    }
}

#[cfg(test)]
mod tests {
    use super::super::texts::Text;
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_behind_the_end() {
        let texts = Texts::of([Some(b"text"); TEXTS]).with(Text::Content, b"content");
        let file = FileInfo {
            kind: FileKind::Directory,
            size: 1,
            mtime_us: 2,
            ctime_us: 3,
            inode: 4,
            device: 5,
            mode: 6,
            uid: 7,
            gid: 8,
            links: 9,
        };
        let authority = Authority {
            name: Some((*b"a").into()),
            named_port: None,
            port: 80,
            is_secure: true,
            address: Some([127, 0, 0, 1].into()),
        };
        let expiry =
            Expiry { time: ExpiryTime::AfterRequest(-7), moves_date: true, moves_age: false };
        let timed = TimedFields { expiry, date_at: Some(3..5), age_at: None };
        let mut out = Writer(Vec::new());
        out.timed(&timed);
        out.file(&file);
        out.authority(&authority);
        let end = out.0.len();
        out.texts(&texts);
        let read = |bytes: &[u8]| {
            let mut from = Reader(bytes);
            let (timed, file, authority) = (from.timed()?, from.file()?, from.authority()?);
            let offsets = from.offsets(bytes.len())?;
            Some(((timed, file, authority), Texts { block: bytes.to_vec(), offsets }))
        };
        let (fields_read, texts_read) = read(&out.0).unwrap();
        assert!(fields_read == (timed, file, authority));
        assert_eq!(texts_read.get(Text::Content), b"content");
        assert_eq!(texts_read.all(), texts.all());
        for end in 0..=end {
            assert!(read(&out.0[..end]).is_none(), "{end}");
        }
        for end in end..out.0.len() {
            let cut = read(&out.0[..end]);
            assert!(cut.is_none_or(|(.., texts)| texts.get(Text::Handler).is_empty()), "{end}");
        }
        let mut long = Writer(Vec::new());
        long.number(u64::MAX);
        assert!(Reader(&long.0).text().is_none());
    }
}
