//! A parser of requests as RFC 9112 defines them.

/// Who reads: the backend accepts what a sender may write, and the reader of a client's bytes also
/// what a recipient may accept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// Section 5.2 allows no line folding, section 2.2 no bare LF to it.
    Backend,
    /// Sections 2.2, 5.2 and 7.1.1 allow empty lines before a request, bare LF, line folding and
    /// blanks after the size of a chunk; a version that is unknown frames as 1.1 does.
    Client,
}

/// What the input begins with.
#[derive(Debug)]
pub enum Parsed {
    /// A request, the target of which is shown, and its length.
    Whole(Vec<u8>, usize),
    /// The beginning of one.
    Part,
    /// Anything else, by the rule that it breaks.
    Broken(&'static str),
}

/// A name and a value.
type Field = (Vec<u8>, Vec<u8>);
/// The rule that is broken; `None` if bytes are missing.
type Rule<T> = Result<T, Option<&'static str>>;

/// Reads the first request.
pub fn request(input: &[u8], reader: Reader) -> Parsed {
    let mut cursor = Cursor { input, at: 0, reader };
    match cursor.request() {
        Ok(target) => Parsed::Whole(target, cursor.at),
        Err(None) => Parsed::Part,
        Err(Some(rule)) => Parsed::Broken(rule),
    }
}

/// The targets of all whole requests, until one is incomplete or broken.
pub fn targets(mut input: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while let Parsed::Whole(target, length) = request(input, Reader::Client) {
        found.push(target);
        input = &input[length..];
    }
    found
}

struct Cursor<'a> {
    input: &'a [u8],
    at: usize,
    reader: Reader,
}

impl<'a> Cursor<'a> {
    fn request(&mut self) -> Rule<Vec<u8>> {
        let mut line = self.line()?;
        while line.is_empty() && self.reader == Reader::Client {
            line = self.line()?;
        }
        let (target, is_new) = request_line(line, self.reader)?;
        let fields = self.fields()?;
        let of = |name: &str| -> Vec<&[u8]> {
            let is_it = |field: &&Field| field.0 == name.as_bytes();
            fields.iter().filter(is_it).map(|field| field.1.as_slice()).collect()
        };
        match of("host").len() {
            0 if is_new => return broken("no Host"),
            0 | 1 => {}
            _ => return broken("two Hosts"),
        }
        let (lengths, codings) = (of("content-length"), of("transfer-encoding"));
        match (lengths.as_slice(), codings.as_slice()) {
            ([], []) => {}
            ([length], []) => self.skip(number(length, 10)?)?,
            ([], [coding]) if is_new && coding.eq_ignore_ascii_case(b"chunked") => self.chunks()?,
            ([], _) => return broken("Transfer-Encoding"),
            (_, []) => return broken("several Content-Lengths"),
            _ => return broken("Content-Length and Transfer-Encoding"),
        }
        Ok(target)
    }

    /// A line without its end.
    fn line(&mut self) -> Rule<&'a [u8]> {
        let rest = &self.input[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\n');
        let part = end.map_or(rest, |end| &rest[..end]);
        let line = match part.strip_suffix(b"\r") {
            Some(line) => line,
            None if end.is_some() && self.reader == Reader::Backend => return broken("a bare LF"),
            None => part,
        };
        if line.contains(&b'\r') {
            return broken("a bare CR");
        }
        self.at += end.ok_or(None)? + 1;
        Ok(line)
    }

    /// Fields and the empty line, names in lower case.
    fn fields(&mut self) -> Rule<Vec<Field>> {
        let mut fields = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(fields);
            }
            if matches!(line.first(), Some(b' ' | b'\t')) {
                let last = fields.last_mut().filter(|_| self.reader == Reader::Client);
                let Some((_, value)): Option<&mut Field> = last else {
                    return broken("a folded line");
                };
                let joined = [value, b" ".as_slice(), line.trim_ascii()].concat();
                *value = joined.trim_ascii().to_vec();
                continue;
            }
            let colon = line.iter().position(|&byte| byte == b':');
            let Some(colon) = colon else { return broken("a field without a colon") };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if !is_token(name) {
                return broken("the name of a field");
            }
            if value.iter().any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
                return broken("a control character in a value");
            }
            fields.push((name.to_ascii_lowercase(), value.to_vec()));
        }
    }

    fn chunks(&mut self) -> Rule<()> {
        loop {
            let line = self.line()?;
            let end = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
            let size = number(&line[..end], 16)?;
            let extension = line[end..].trim_ascii_start();
            let is_blank = extension.is_empty() && end < line.len();
            if is_blank && self.reader == Reader::Backend {
                return broken("a blank after the size of a chunk");
            }
            if !extension.is_empty() && !extension.starts_with(b";") {
                return broken("the size of a chunk");
            }
            if extension.iter().any(|&byte| byte < b' ' && byte != b'\t') {
                return broken("a control character in an extension");
            }
            if size == 0 {
                return self.fields().map(drop);
            }
            self.skip(size)?;
            if !self.line()?.is_empty() {
                return broken("the end of a chunk");
            }
        }
    }

    fn skip(&mut self, count: usize) -> Rule<()> {
        if count > self.input.len() - self.at {
            return Err(None);
        }
        self.at += count;
        Ok(())
    }
}

fn broken<T>(rule: &'static str) -> Rule<T> {
    Err(Some(rule))
}

/// The target, and whether the version is 1.1.
fn request_line(line: &[u8], reader: Reader) -> Rule<(Vec<u8>, bool)> {
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let [method, target, version] = words.as_slice() else { return broken("the request line") };
    let is_new = match *version {
        b"HTTP/1.1" => true,
        b"HTTP/1.0" => false,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if reader == Reader::Client => {
            if !(major.is_ascii_digit() && minor.is_ascii_digit()) {
                return broken("the version");
            }
            (*major, *minor) > (b'1', b'0')
        }
        _ => return broken("the version"),
    };
    if !is_token(method) {
        return broken("the method");
    }
    // Bytes beyond ASCII frame nothing, and Apache forwards them in queries.
    if target.is_empty() || !target.iter().all(|byte| byte.is_ascii_graphic() || *byte >= 0x80) {
        return broken("the target");
    }
    Ok((target.to_vec(), is_new))
}

fn is_token(name: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(is_part)
}

fn number(digits: &[u8], radix: u32) -> Rule<usize> {
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    let text = std::str::from_utf8(digits).ok().filter(|_| digits.iter().all(is_digit));
    match text.map(|text| usize::from_str_radix(text, radix)) {
        Some(Ok(number)) => Ok(number),
        _ => broken("a number"),
    }
}
