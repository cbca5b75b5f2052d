//! Shrinks a difference to the smallest case that still shows it.
//!
//! Many smaller cases are tried in one start of the servers, each as a virtual host, so that a
//! round costs little more than a single case.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::answers;
use crate::pair::Servers;
use crate::simplify;
use crate::site::{Case, Content, Edit, Node};
use crate::verdict::Signature;

/// Cases that are tried at once.
const AT_ONCE: usize = 48;
/// Most rounds for a case.
const ROUNDS_MAX: usize = 200;

/// The smallest case found until the end whose last request shows the difference. The first tries,
/// whether it shows again at all, have no end.
pub fn shrink(
    case: &Case,
    signature: &Signature,
    servers: &mut dyn Servers,
    end: Instant,
) -> Option<Case> {
    let mut shrinker = Shrinker { signature: signature.clone(), servers, rounds: 0, end };
    let mut best = case.clone();
    // The last request alone, if earlier ones do not matter.
    if let Some(last) = case.requests.last() {
        let alone = Case { requests: vec![last.clone()], site: case.site.clone() };
        match shrinker.first_that_shows(vec![alone]) {
            Some(alone) => best = alone,
            None => best = shrinker.first_that_shows(vec![best])?,
        }
    }
    while !shrinker.is_over() {
        let before = best.clone();
        best = shrinker.remove(best);
        while !shrinker.is_over()
            && let Some(simpler) = shrinker.first_that_shows(simplify::candidates(&best))
        {
            best = simpler;
        }
        if best == before {
            break;
        }
    }
    Some(best)
}

struct Shrinker<'a> {
    signature: Signature,
    servers: &'a mut dyn Servers,
    rounds: usize,
    end: Instant,
}

impl Shrinker<'_> {
    fn is_over(&self) -> bool {
        self.rounds > ROUNDS_MAX || Instant::now() >= self.end
    }

    /// Which of the cases show the difference, of those that there is time for. Their global parts
    /// may differ.
    fn show(&mut self, cases: &[Case]) -> Vec<bool> {
        let mut shown = Vec::with_capacity(cases.len());
        let same = |one: &Case, other: &Case| one.site.global == other.site.global;
        for group in cases.chunk_by(same) {
            for some in group.chunks(AT_ONCE) {
                if !shown.is_empty() && self.is_over() {
                    shown.extend(some.iter().map(|_| false));
                    continue;
                }
                self.rounds += 1;
                let verdicts = self.servers.ask(some);
                shown.extend(some.iter().zip(&verdicts).map(|(case, verdict)| {
                    let last = case.requests.len().saturating_sub(1);
                    verdict.at(last).is_some_and(|found| self.signature.covers(&found))
                }));
            }
        }
        shown
    }

    fn first_that_shows(&mut self, cases: Vec<Case>) -> Option<Case> {
        for some in cases.chunks(AT_ONCE) {
            let shown = self.show(some);
            if let Some(at) = shown.iter().position(|&shows| shows) {
                return some.get(at).cloned();
            }
        }
        None
    }

    /// Removes parts that the difference does not need, in ever smaller pieces.
    fn remove(&mut self, mut best: Case) -> Case {
        let mut size = parts(&best).div_ceil(2);
        while size > 0 && !self.is_over() {
            let all = parts(&best);
            let pieces: Vec<BTreeSet<usize>> = (0..all)
                .step_by(size)
                .map(|from| (from..(from + size).min(all)).collect())
                .collect();
            let smaller: Vec<Case> = pieces.iter().map(|piece| without(&best, piece)).collect();
            let shown = self.show(&smaller);
            let needless: Vec<&BTreeSet<usize>> = pieces
                .iter()
                .zip(&shown)
                .filter(|(_, shows)| **shows)
                .map(|(piece, _)| piece)
                .collect();
            if needless.is_empty() {
                size /= 2;
                continue;
            }
            // All at once if they are independent, otherwise as many as possible.
            let together = needless.iter().flat_map(|piece| piece.iter().copied()).collect();
            let mut next = vec![without(&best, &together)];
            if let (true, Some(half)) = (needless.len() > 3, needless.get(..needless.len() / 2)) {
                let half = half.iter().flat_map(|piece| piece.iter().copied()).collect();
                next.push(without(&best, &half));
            }
            next.extend(needless.first().map(|piece| without(&best, piece)));
            match self.first_that_shows(next) {
                Some(smaller) => best = smaller,
                None => size /= 2,
            }
            size = size.min(parts(&best));
        }
        best
    }
}

/// The number of removable parts of a case.
pub fn parts(case: &Case) -> usize {
    let mut counter = Cutter { at: 0, cut: &BTreeSet::new() };
    counter.case(case);
    counter.at
}

/// The case without some of its parts, numbered in order.
pub fn without(case: &Case, cut: &BTreeSet<usize>) -> Case {
    Cutter { at: 0, cut }.case(case)
}

struct Cutter<'a> {
    at: usize,
    cut: &'a BTreeSet<usize>,
}

impl Cutter<'_> {
    fn stays(&mut self) -> bool {
        self.at += 1;
        !self.cut.contains(&(self.at - 1))
    }

    fn case(&mut self, case: &Case) -> Case {
        let mut left = Case::default();
        left.site.is_tls = case.site.is_tls;
        let last = case.requests.len().saturating_sub(1);
        for (at, request) in case.requests.iter().enumerate() {
            // The last one shows the difference.
            let stays = at == last || self.stays();
            let mut request = request.clone();
            request.fields.retain(|_| self.stays());
            if let Some(Edit::Htaccess(_, nodes)) = &mut request.change {
                *nodes = self.nodes(nodes);
            }
            if request.change.is_some() && !self.stays() {
                request.change = None;
            }
            request.is_pipelined = request.is_pipelined && self.stays();
            request.waits = request.waits && self.stays();
            request.script.retain(|line| !answers::is_field(line) || self.stays());
            if !request.script.is_empty() && !self.stays() {
                request.script.clear();
            }
            if stays {
                left.requests.push(request);
            }
        }
        left.site.global = self.nodes(&case.site.global);
        left.site.config = self.nodes(&case.site.config);
        for file in &case.site.files {
            let stays = self.stays();
            let mut file = file.clone();
            if let Content::Htaccess(nodes) = &mut file.content {
                *nodes = self.nodes(nodes);
            }
            file.options.retain(|_| self.stays());
            if stays {
                left.site.files.push(file);
            }
        }
        left
    }

    fn nodes(&mut self, nodes: &[Node]) -> Vec<Node> {
        let mut left = Vec::new();
        for node in nodes {
            let stays = self.stays();
            let children = node.children.as_ref().map(|children| self.nodes(children));
            if stays {
                left.push(Node { children, ..node.clone() });
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::shrink;
    use crate::generate;
    use crate::pair::Servers;
    use crate::site::{Case, Node, Request};
    use crate::verdict::{Exchange, Signature, Verdict};

    /// A pair of servers with a planted difference: a site with `IndexOptions` inside a
    /// `<Directory>`, and a request with `%2e` and a Range.
    struct Planted;

    fn signature() -> Signature {
        let line = |status: &str| vec![format!("< HTTP/1.1 {status}")];
        Signature::new(&line("200 OK"), &line("206 Partial Content"))
    }

    fn is_planted(case: &Case, request: &Request) -> bool {
        let mut is_there = false;
        Node::walk(&case.site.config, &mut |node| {
            let inner = node.children.as_deref().unwrap_or_default();
            let has = |node: &Node| node.name == "IndexOptions";
            is_there |= node.name == "Directory" && inner.iter().any(has);
        });
        let has_range = request.fields.iter().any(|(name, _)| name == "Range");
        is_there && has_range && request.target.windows(3).any(|part| part == b"%2e")
    }

    impl Servers for Planted {
        fn ask(&mut self, cases: &[Case]) -> Vec<Verdict> {
            let exchange = |case: &Case, request: &Request| Exchange {
                signature: is_planted(case, request).then(signature),
                ..Exchange::default()
            };
            let verdict = |case: &Case| Verdict {
                exchanges: case.requests.iter().map(|request| exchange(case, request)).collect(),
                ..Verdict::default()
            };
            cases.iter().map(verdict).collect()
        }
    }

    fn first() -> (Case, Signature) {
        let found = (0..400).flat_map(|number| generate::batch(1, number)).find_map(|mut case| {
            let verdict = Planted.ask(std::slice::from_ref(&case)).pop()?;
            let at = (0..case.requests.len()).find(|&at| verdict.at(at).is_some())?;
            case.requests.truncate(at + 1);
            Some((case, verdict.at(at)?))
        });
        let Some(found) = found else { unreachable!("the generator makes such sites") };
        found
    }

    #[test]
    fn without_time_a_difference_is_shown_as_it_is() {
        let (case, signature) = first();
        let Some(small) = shrink(&case, &signature, &mut Planted, Instant::now()) else {
            unreachable!("it shows each time")
        };
        assert_eq!(small.site, case.site);
        assert!(is_planted(&small, &small.requests[small.requests.len() - 1]));
    }

    #[test]
    fn a_planted_difference_is_found_and_shrunk() {
        let (case, signature) = first();
        let end = Instant::now() + Duration::from_secs(600);
        let Some(small) = shrink(&case, &signature, &mut Planted, end) else {
            unreachable!("it shows each time")
        };
        assert_eq!(small.requests.len(), 1);
        assert_eq!(small.requests[0].fields.len(), 1);
        assert_eq!(small.site.files.len() + small.site.global.len(), 0);
        assert_eq!(small.site.config.len(), 1, "{:?}", small.site.config);
        let inner = small.site.config[0].children.as_deref().unwrap_or_default();
        assert_eq!(inner.len(), 1);
        assert_eq!(small.requests[0].target, b"%2e");
    }
}
