//! The static table (RFC 7541 appendix A).

/// The fields, from index 1 on.
pub(super) static FIELDS: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// Most names of one length.
const PER_LENGTH: usize = 8;

/// One more than the length of the longest name.
const LENGTHS: usize = 28;

/// By length of a name: the indexes of the names of that length, the first of each name; the rest
/// is 0.
static BY_LENGTH: [[u8; PER_LENGTH]; LENGTHS] = by_length();

const fn by_length() -> [[u8; PER_LENGTH]; LENGTHS] {
    let mut all = [[0; PER_LENGTH]; LENGTHS];
    let mut index = 0;
    while index < FIELDS.len() {
        let name = FIELDS[index].0;
        // Only pseudo-header fields have more than one entry, one behind the other.
        if index == 0 || !is_same(name, FIELDS[index - 1].0) {
            let mut at = 0;
            while all[name.len()][at] != 0 {
                at += 1;
            }
            all[name.len()][at] = index as u8 + 1;
        }
        index += 1;
    }
    all
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The index of the first entry with this name, in lower case.
pub(super) fn index_of(name: &[u8]) -> Option<usize> {
    let same_length = BY_LENGTH.get(name.len())?;
    same_length
        .iter()
        .take_while(|index| **index != 0)
        .map(|index| usize::from(*index))
        .find(|index| FIELDS.get(index - 1).is_some_and(|field| field.0 == name))
}
