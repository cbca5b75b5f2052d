//! Priorities of responses (RFC 9218).

/// The least urgent level.
const URGENCY_MOST: u8 = 7;

/// How urgent a response is, by the client's wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// From 0, the most urgent, to 7.
    pub urgency: u8,
    /// Whether parts of it are of use: it shares the connection with others like it.
    pub is_incremental: bool,
}

impl Default for Priority {
    /// That of a response of which the client has said nothing. By RFC 9218 it is not incremental;
    /// clients that know nothing of priorities get their responses side by side.
    fn default() -> Priority {
        Priority { urgency: 3, is_incremental: true }
    }
}

impl Priority {
    /// Parses the value of a `priority` field, a dictionary of RFC 8941; what can't be understood
    /// counts for nothing.
    pub fn parse(value: &[u8]) -> Priority {
        let mut priority = Priority { urgency: 3, is_incremental: false };
        for member in value.split(|byte| *byte == b',') {
            // Parameters of a member mean nothing.
            let member = member.split(|byte| *byte == b';').next().unwrap_or_default();
            match member.trim_ascii() {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.is_incremental = true,
                b"i=?0" => priority.is_incremental = false,
                _ => {}
            }
        }
        debug_assert!(priority.urgency <= URGENCY_MOST);
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::Priority;

    #[test]
    fn fields_are_parsed() {
        let of = |value: &str| {
            let Priority { urgency, is_incremental } = Priority::parse(value.as_bytes());
            (urgency, is_incremental)
        };
        assert_eq!(of(""), (3, false));
        assert_eq!(of("u=0"), (0, false));
        assert_eq!(of("u=5, i"), (5, true));
        assert_eq!(of("i=?0,u=7"), (7, false));
        assert_eq!(of("u=8, i=1, x=2"), (3, false));
        assert_eq!(of("u=1;p=2"), (1, false));
        assert_eq!(Priority::default(), Priority { urgency: 3, is_incremental: true });
    }
}
