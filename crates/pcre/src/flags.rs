//! Options for compiling a pattern.

/// Options of a pattern. [`Flags::default`] is Apache's: a dot matches newlines, `$` only the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flags {
    /// Letters match either case (`i`).
    pub caseless: bool,
    /// `.` matches a newline too (`s`). Apache's default since 2.4.30.
    pub dotall: bool,
    /// `$` matches only at the very end, not before a last newline. Apache's default.
    pub dollar_endonly: bool,
    /// `^` and `$` match at every line (`m`).
    pub multi_line: bool,
    /// Whitespace and `#` comments in the pattern are ignored (`x`).
    pub extended: bool,
    /// Groups are not captured, except `$0`.
    pub no_sub: bool,
    /// No machine code is generated. For patterns in files that are not the administrator's, and
    /// are read while requests wait.
    pub interpreted: bool,
}

impl Flags {
    /// No options: the result of `RegexDefaultOptions None`.
    pub const NONE: Flags = Flags {
        caseless: false,
        dotall: false,
        dollar_endonly: false,
        multi_line: false,
        extended: false,
        no_sub: false,
        interpreted: false,
    };

    /// These options with `caseless` set.
    #[must_use]
    pub const fn ignoring_case(mut self) -> Flags {
        self.caseless = true;
        self
    }

    pub(crate) fn bits(self) -> u32 {
        let table = [
            (self.caseless, pcre2_sys::PCRE2_CASELESS),
            (self.dotall, pcre2_sys::PCRE2_DOTALL),
            (self.dollar_endonly, pcre2_sys::PCRE2_DOLLAR_ENDONLY),
            (self.multi_line, pcre2_sys::PCRE2_MULTILINE),
            (self.extended, pcre2_sys::PCRE2_EXTENDED),
            (self.no_sub, pcre2_sys::PCRE2_NO_AUTO_CAPTURE),
        ];
        table.iter().filter(|(on, _)| *on).fold(0, |bits, (_, bit)| bits | bit)
    }
}

impl Default for Flags {
    fn default() -> Flags {
        Flags { dotall: true, dollar_endonly: true, ..Flags::NONE }
    }
}
