//! The client's choices: order, format, version sort, pattern.

use conf::values::percent_decoded;
use wire::escape;

use super::options::Flags;

/// The column to sort by, with its letter in queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Column {
    /// The name.
    Name = b'N',
    /// The modification time.
    Modified = b'M',
    /// The size.
    Size = b'S',
    /// The description.
    Description = b'D',
}

/// The sort column and direction (`IndexOrderDefault`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The column.
    pub column: Column,
    /// From small to large.
    pub ascending: bool,
}

impl Default for Order {
    fn default() -> Order {
        Order { column: Column::Name, ascending: true }
    }
}

/// A listing as requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The options, including the client's changes.
    pub flags: Flags,
    /// The order.
    pub order: Order,
    /// `P=`: only matching names.
    pub pattern: Option<Vec<u8>>,
    /// The query to append to the headings' links, so that choices persist.
    pub carried: Vec<u8>,
}

impl Wanted {
    /// Applies `query` to the configured options and order. Parsing ends at an unknown argument.
    pub fn read(flags: Flags, order: Order, query: Option<&[u8]>) -> Wanted {
        let mut wanted = Wanted { flags, order, pattern: None, carried: Vec::new() };
        if flags.has(Flags::IGNORE_CLIENT) {
            wanted.flags = flags.with(Flags::NO_SORTING);
            return wanted;
        }
        let (mut format, mut version, mut shown) = (Vec::new(), Vec::new(), Vec::new());
        let mut rest = query.unwrap_or_default();
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| matches!(byte, b'&' | b';'));
            let (argument, next) = match end {
                Some(end) => (rest.get(..end), rest.get(end + 1..)),
                None => (Some(rest), None),
            };
            match argument.unwrap_or_default() {
                [b'P', b'=', pattern @ ..] => {
                    wanted.pattern = Some(pattern)
                        .filter(|pattern| !pattern.is_empty() && !hides_separator(pattern))
                        .and_then(percent_decoded);
                    if let Some(pattern) = &wanted.pattern {
                        shown = b";P=".to_vec();
                        escape::path(&mut shown, pattern);
                    }
                }
                [b'C', b'=', letter] => match column(*letter) {
                    Some(column) => wanted.order.column = column,
                    None => break,
                },
                [b'O', b'=', letter @ (b'A' | b'D')] => wanted.order.ascending = *letter == b'A',
                [b'F', b'=', digit @ b'0'..=b'2'] => {
                    let both = Flags::FANCY.with(Flags::TABLE);
                    wanted.flags = match digit {
                        b'0' => wanted.flags.without(both),
                        b'1' => wanted.flags.without(both).with(Flags::FANCY),
                        _ => wanted.flags.with(both),
                    };
                    format = vec![b';', b'F', b'=', *digit];
                }
                [b'V', b'=', digit @ (b'0' | b'1')] => {
                    wanted.flags = match digit {
                        b'0' => wanted.flags.without(Flags::VERSION_SORT),
                        _ => wanted.flags.with(Flags::VERSION_SORT),
                    };
                    version = vec![b';', b'V', b'=', *digit];
                }
                _ => break,
            }
            rest = next.unwrap_or_default();
        }
        wanted.carried = [format, version, shown].concat();
        wanted
    }
}

/// Whether an escape stands for a slash or a zero, which `ap_unescape_url` refuses.
fn hides_separator(text: &[u8]) -> bool {
    text.windows(3).any(|three| matches!(three, b"%2f" | b"%2F" | b"%00"))
}

fn column(letter: u8) -> Option<Column> {
    let all = [Column::Name, Column::Modified, Column::Size, Column::Description];
    all.into_iter().find(|column| *column as u8 == letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Wanted {
        Wanted::read(Flags::FANCY, Order::default(), Some(query.as_bytes()))
    }

    #[test]
    fn arguments_are_read_up_to_the_first_unknown_one() {
        let wanted = read("C=S&O=D;V=1;F=2;P=%3f.*");
        assert_eq!(wanted.order, Order { column: Column::Size, ascending: false });
        assert!(wanted.flags.has(Flags::TABLE) && wanted.flags.has(Flags::VERSION_SORT));
        assert_eq!(wanted.pattern.as_deref(), Some(&b"?.*"[..]));
        assert_eq!(wanted.carried, b";F=2;V=1;P=%3f.*");
        assert_eq!(read("C=X;O=D").order, Order::default());
        assert_eq!(read("O=D;zzz;C=S").order, Order { column: Column::Name, ascending: false });
        assert_eq!(read("P=%zz").pattern, None);
    }

    #[test]
    fn a_client_that_is_ignored_gets_no_links() {
        let flags = Flags::FANCY.with(Flags::IGNORE_CLIENT);
        let wanted = Wanted::read(flags, Order::default(), Some(b"C=S;O=D"));
        assert_eq!(wanted.order, Order::default());
        assert!(wanted.flags.has(Flags::NO_SORTING) && wanted.carried.is_empty());
    }
}
