//! Pages of SDBM files, which rules, users and caches have in common.
//!
//! Source: APR's `sdbm_pair.c`.

use std::ops::Range;

/// The size of a page (`PBLKSIZ`).
pub const PAGE_BYTES: usize = 1024;

/// The places of keys and values in a page; `None` if it is not valid: none of it is used then
/// (`chkpage`).
pub fn pairs(page: &[u8]) -> Option<Vec<(Range<usize>, Range<usize>)>> {
    let number = |at: usize| -> Option<usize> {
        let two = page.get(2 * at..2 * at + 2)?;
        usize::try_from(i16::from_ne_bytes(two.try_into().ok()?)).ok()
    };
    let count = number(0)?;
    let mut pairs = Vec::with_capacity(count.min(PAGE_BYTES) / 2);
    let mut end = PAGE_BYTES.min(page.len());
    for at in (1..=count).step_by(2) {
        let (key, value) = (number(at)?, number(at + 1)?);
        if value > key || key > end {
            return None;
        }
        // A last offset without its pair is checked alone.
        if at < count {
            pairs.push((key..end, value..key));
        }
        end = value;
    }
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::{PAGE_BYTES, pairs};

    fn page(offsets: &[i16]) -> Vec<u8> {
        let mut page: Vec<u8> = offsets.iter().flat_map(|number| number.to_ne_bytes()).collect();
        page.resize(PAGE_BYTES, 0);
        page
    }

    #[test]
    fn a_page_with_a_wrong_offset_has_no_pairs() {
        assert_eq!(pairs(&page(&[2, 1023, 1000])), Some(vec![(1023..1024, 1000..1023)]));
        for wrong in [&[4, 1023, 1000, 999, -1][..], &[2, 1000, 1023], &[2, 1025, 1000], &[-2]] {
            assert_eq!(pairs(&page(wrong)), None, "{wrong:?}");
        }
        assert_eq!(pairs(&page(&[3, 1023, 1000, 999, 900])).map(|pairs| pairs.len()), Some(1));
        assert_eq!(pairs(&[]), None);
    }
}
