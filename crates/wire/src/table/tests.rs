use super::*;

fn values<'a>(table: &'a Table, key: &'a [u8]) -> Vec<&'a [u8]> {
    table.get_all(key).collect()
}

#[test]
fn set_replaces_the_first_and_drops_the_rest() {
    let mut table = Table::new();
    table.add(b"Accept", b"a");
    table.add(b"Host", b"h");
    table.add(b"aCCEPT", b"b");
    table.set(b"accept", b"longer than before");
    assert_eq!(values(&table, b"ACCEPT"), [b"longer than before".as_slice()]);
    let keys: Vec<_> = table.iter().map(|pair| pair.0.to_vec()).collect();
    assert_eq!(keys, [b"Accept".to_vec(), b"Host".to_vec()]);
}

#[test]
fn merge_joins_the_first() {
    let mut table = Table::new();
    table.merge(b"Vary", b"Host");
    table.add(b"X", b"1");
    table.merge(b"vary", b"Accept");
    table.merge(b"vary", b"Cookie");
    assert_eq!(table.get(b"Vary"), Some(b"Host, Accept, Cookie".as_slice()));
    assert_eq!(table.get(b"x"), Some(b"1".as_slice()));
}

#[test]
fn compress_keeps_the_first_place() {
    let pairs: [(&[u8], &[u8]); 4] = [(b"a", b"1"), (b"b", b"2"), (b"A", b"3"), (b"a", b"4")];
    let mut merged: Table = pairs.into_iter().collect();
    merged.compress(Overlap::Merge);
    assert_eq!(merged.get(b"a"), Some(b"1, 3, 4".as_slice()));
    assert_eq!(merged.at(0), Some((b"a".as_slice(), b"1, 3, 4".as_slice())));
    assert_eq!(merged.len(), 2);
    let mut set: Table = pairs.into_iter().collect();
    set.compress(Overlap::Set);
    assert_eq!(values(&set, b"a"), [b"4".as_slice()]);
}

#[test]
fn large_tables_compress_as_small_ones() {
    for how in [Overlap::Set, Overlap::Merge] {
        let mut scanned = Table::new();
        for n in 0..60u32 {
            let key = format!("{}{}", if n % 2 == 0 { 'k' } else { 'K' }, n % 7);
            scanned.add(key.as_bytes(), n.to_string().as_bytes());
        }
        let mut sorted = scanned.clone();
        sorted.compress_sorted(how);
        scanned.compress(how);
        assert_eq!(scanned, sorted);
        assert_eq!(sorted.len(), 7);
    }
}

#[test]
fn overlap_sets_or_merges() {
    let mut base: Table = [(b"k".as_slice(), b"1".as_slice())].into_iter().collect();
    let over: Table = [(b"K".as_slice(), b"2".as_slice())].into_iter().collect();
    let mut merged = base.clone();
    merged.overlap(&over, Overlap::Merge);
    base.overlap(&over, Overlap::Set);
    assert_eq!(base.get(b"k"), Some(b"2".as_slice()));
    assert_eq!(merged.get(b"k"), Some(b"1, 2".as_slice()));
}

#[test]
fn memory_is_kept_and_bounded_under_churn() {
    let mut table = Table::new();
    for round in 0..100_000u32 {
        let value = vec![b'x'; 1 + (round % 97) as usize];
        table.set(b"note", &value);
        table.unset(b"gone");
        table.add(b"gone", b"y");
    }
    assert_eq!(table.len(), 2);
    assert!(table.capacity_bytes() < 64 * 1024, "{}", table.capacity_bytes());
}

#[test]
fn retain_drops_what_is_not_wanted() {
    let mut table: Table =
        [(b"a".as_slice(), b"1".as_slice()), (b"b", b"2"), (b"c", b"3")].into_iter().collect();
    table.retain(|key, _| key != b"b");
    assert_eq!(table.len(), 2);
    assert!(!table.contains(b"B"));
}
