//! The status of a worker, as `status=` and balancer-manager set it.

/// A set of `PROXY_WORKER_*` bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status(u16);

/// The letters of `status=`, each with its bit.
const LETTERS: [(u8, Status); 8] = [
    (b'D', Status::DISABLED),
    (b'S', Status::STOPPED),
    (b'E', Status::IN_ERROR),
    (b'I', Status::IGNORE_ERRORS),
    (b'H', Status::HOT_STANDBY),
    (b'N', Status::DRAIN),
    (b'C', Status::HC_FAIL),
    (b'R', Status::HOT_SPARE),
];

impl Status {
    /// `D`: gets no requests but sticky ones.
    pub const DISABLED: Status = Status(1);
    /// `S`: gets no requests.
    pub const STOPPED: Status = Status(2);
    /// `E`: has failed.
    pub const IN_ERROR: Status = Status(4);
    /// `I`: is used in spite of errors.
    pub const IGNORE_ERRORS: Status = Status(8);
    /// `H`: is used if no other can be.
    pub const HOT_STANDBY: Status = Status(16);
    /// `N`: gets only sticky requests.
    pub const DRAIN: Status = Status(32);
    /// `C`: a health check has failed.
    pub const HC_FAIL: Status = Status(64);
    /// `R`: replaces another that can't be used.
    pub const HOT_SPARE: Status = Status(128);

    /// What gets no requests at all.
    const UNUSABLE: Status = Status(1 | 2 | 4 | 64);

    /// The bits as pages show them, each with a blank behind it: what can be used is `Ok`
    /// (`ap_proxy_parse_wstatus`).
    pub fn words(self) -> String {
        const WORDS: [(Status, &str); 8] = [
            (Status::IGNORE_ERRORS, "Ign "),
            (Status::DRAIN, "Drn "),
            (Status::DISABLED, "Dis "),
            (Status::STOPPED, "Stop "),
            (Status::IN_ERROR, "Err "),
            (Status::HOT_STANDBY, "Stby "),
            (Status::HOT_SPARE, "Spar "),
            (Status::HC_FAIL, "HcFl "),
        ];
        let words = WORDS.iter().filter(|(bit, _)| self.has(*bit)).map(|(_, word)| *word);
        // Workers are initialized when processes start.
        let mut shown: String = std::iter::once("Init ").chain(words).collect();
        if self.is_usable() {
            shown.push_str("Ok ");
        }
        shown
    }

    /// The status of these bits.
    pub const fn of_bits(bits: u16) -> Status {
        Status(bits)
    }

    /// Its bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The status without the bits of `other`.
    pub const fn without(self, other: Status) -> Status {
        Status(self.0 & !other.0)
    }

    /// Whether requests may go to the worker (`PROXY_WORKER_IS_USABLE`).
    pub const fn is_usable(self) -> bool {
        self.0 & Status::UNUSABLE.0 == 0
    }

    /// Whether all bits of `other` are set.
    pub fn has(self, other: Status) -> bool {
        self.0 & other.0 == other.0
    }

    /// Changes the bits that `letters` name: they are set, after `-` cleared. Returns `None` for an
    /// unknown letter. Source: `ap_proxy_set_wstatus`, `set_worker_param`.
    pub fn changed(self, letters: &[u8]) -> Option<Status> {
        let mut status = self;
        let mut sets = true;
        let mut rest = letters;
        while let [letter, after @ ..] = rest {
            rest = after;
            if matches!(letter, b'+' | b'-') {
                sets = *letter == b'+';
                let (next, after) = rest.split_first()?;
                rest = after;
                status = status.with(*next, sets)?;
                sets = true;
                continue;
            }
            status = status.with(*letter, sets)?;
        }
        Some(status)
    }

    fn with(self, letter: u8, sets: bool) -> Option<Status> {
        let letter = letter.to_ascii_uppercase();
        let (_, bit) = LETTERS.iter().find(|(known, _)| *known == letter)?;
        Some(Status(if sets { self.0 | bit.0 } else { self.0 & !bit.0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_show_words() {
        assert_eq!(Status::default().words(), "Init Ok ");
        assert_eq!(Status::HOT_STANDBY.words(), "Init Stby Ok ");
        let all = Status(255 & !Status::HOT_STANDBY.0);
        assert_eq!(all.words(), "Init Ign Drn Dis Stop Err Spar HcFl ");
    }

    #[test]
    fn letters_set_and_clear() {
        let none = Status::default();
        let all = none.changed(b"dsirhnec").unwrap();
        assert_eq!(all, Status(255));
        assert!(all.has(Status::DISABLED) && !none.has(Status::DISABLED));
        assert_eq!(all.changed(b"-D-S+DN"), Some(Status(253)));
        for bad in ["X", "+", "-", "D+", "%"] {
            assert_eq!(none.changed(bad.as_bytes()), None, "{bad}");
        }
    }
}
