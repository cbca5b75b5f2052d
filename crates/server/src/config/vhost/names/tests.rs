use super::*;

/// A host for [`Names::of`].
struct Named {
    name: Vec<u8>,
    aliases: Vec<Vec<u8>>,
}

fn index(hosts: &[Named]) -> Names {
    Names::of(hosts.iter().map(|host| (&*host.name, &*host.aliases)))
}

/// `matches_aliases` (server/vhost.c), host by host.
fn scan(hosts: &[Named], name: &[u8]) -> Option<usize> {
    hosts.iter().position(|host| {
        host.name.eq_ignore_ascii_case(name)
            || host.aliases.iter().any(|alias| match is_wild(alias) {
                true => matches_wildcard(alias, name),
                false => alias.eq_ignore_ascii_case(name),
            })
    })
}

/// Pseudo-random numbers (xorshift64): the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn text(&mut self, letters: &[u8], longest: usize) -> Vec<u8> {
        (0..self.below(longest + 1)).map(|_| letters[self.below(letters.len())]).collect()
    }

    fn hosts(&mut self) -> Vec<Named> {
        let many = self.below(16);
        let host = |random: &mut Random| Named {
            name: random.text(b"aAb.*", 5),
            aliases: (0..random.below(4)).map(|_| random.text(b"aaBb..**?", 6)).collect(),
        };
        (0..many).map(|_| host(self)).collect()
    }

    /// A name that is likely to match: some pattern with its wildcards filled in.
    fn name(&mut self, hosts: &[Named]) -> Vec<u8> {
        let all: Vec<&Vec<u8>> = hosts.iter().flat_map(|host| &host.aliases).collect();
        if all.is_empty() || self.below(3) == 0 {
            return self.text(b"aAbB.", 7);
        }
        let mut name = Vec::new();
        for byte in all[self.below(all.len())] {
            match byte {
                b'*' => name.extend(self.text(b"abC.", 3)),
                b'?' => name.push(b"aB."[self.below(3)]),
                _ if self.below(12) == 0 => name.push(b'b'),
                byte => name.push(*byte),
            }
        }
        name
    }
}

#[test]
fn a_look_up_finds_what_a_scan_in_order_finds() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut found = 0;
    for _ in 0..4_000 {
        let hosts = random.hosts();
        let names = index(&hosts);
        for _ in 0..256 {
            let name = random.name(&hosts);
            let place = names.find(&name);
            assert_eq!(place, scan(&hosts, &name), "{:?}", bstr::BStr::new(&name));
            found += usize::from(place.is_some());
        }
    }
    assert!(found > 200_000, "{found} names of a million were some host's");
}

#[test]
fn names_of_any_length_are_compared_whole() {
    for length in [SHORT - 1, SHORT, SHORT + 1, 8_000] {
        let long = vec![b'X'; length];
        let alias = [b"*.", &*long].concat();
        let hosts = [Named { name: long.clone(), aliases: vec![alias] }];
        let names = index(&hosts);
        assert_eq!(names.find(&long.to_ascii_lowercase()), Some(0));
        assert_eq!(names.find(&[b"a.", &*long].concat()), Some(0));
        assert_eq!(names.find(&[&*long, b"y"].concat()), None);
        assert_eq!(names.find(&long[1..]), None);
    }
}

#[test]
fn no_two_of_many_patterns_share_a_bucket() {
    let host = |number: usize| Named {
        name: format!("h{number}.test").into_bytes(),
        aliases: [
            format!("*.h{number}.test"),
            format!("m{number}.*"),
            format!("*.k{number}.org"),
            // All share each end, and each beginning is unique; and vice versa.
            format!("n{number}-*.example.org"),
            format!("www.*.o{number}"),
        ]
        .map(String::into_bytes)
        .to_vec(),
    };
    let hosts: Vec<Named> = (0..5_000).map(host).collect();
    let names = index(&hosts);
    let buckets = names.beginnings.by_literal.values().chain(names.ends.by_literal.values());
    assert!(buckets.map(Vec::len).all(|patterns| patterns == 1));
    assert!(names.floating.is_empty());
    assert!(names.ends.lengths.len() + names.beginnings.lengths.len() < 24);
    assert_eq!(names.find(b"x.h4999.test"), Some(4_999));
    assert_eq!(names.find(b"n4998-a.example.org"), Some(4_998));
    assert_eq!(names.find(b"www.a.o4997"), Some(4_997));
}
