//! Simpler forms of a case from which nothing can be removed.

use crate::site::{Case, Content, Node, Request};

/// Slightly simpler cases, the boldest first.
pub fn candidates(case: &Case) -> Vec<Case> {
    let mut out = Vec::new();
    let Some(last) = case.requests.last() else {
        return out;
    };
    for request in simpler_requests(last) {
        let mut simpler = case.clone();
        simpler.requests.pop();
        simpler.requests.push(request);
        out.push(simpler);
    }
    if !case.site.global.is_empty() {
        let mut simpler = case.clone();
        let mut nodes = std::mem::take(&mut simpler.site.global);
        nodes.append(&mut simpler.site.config);
        simpler.site.config = nodes;
        out.push(simpler);
    }
    for config in simpler_nodes(&case.site.config) {
        let mut simpler = case.clone();
        simpler.site.config = config;
        out.push(simpler);
    }
    for (at, file) in case.site.files.iter().enumerate() {
        let contents = match &file.content {
            Content::Htaccess(nodes) => {
                simpler_nodes(nodes).into_iter().map(Content::Htaccess).collect()
            }
            Content::Text(text) if text.len() > 2 && text.starts_with("x") => Vec::new(),
            Content::Text(text) if text != "x\n" => vec![Content::Text("x\n".to_owned())],
            Content::Size(_) => vec![Content::Text("x\n".to_owned()), Content::Size(100)],
            Content::Gzip(_) => vec![Content::Text("x\n".to_owned())],
            _ => Vec::new(),
        };
        for content in contents.into_iter().filter(|content| *content != file.content) {
            let mut simpler = case.clone();
            if let Some(file) = simpler.site.files.get_mut(at) {
                file.content = content;
            }
            out.push(simpler);
        }
    }
    out
}

/// A request with another method or version, or with a shorter target or fields.
fn simpler_requests(request: &Request) -> Vec<Request> {
    let mut out = Vec::new();
    let mut with = |change: &dyn Fn(&mut Request)| {
        let mut simpler = request.clone();
        change(&mut simpler);
        if simpler != *request {
            out.push(simpler);
        }
    };
    with(&|request| "HTTP/1.1".clone_into(&mut request.version));
    with(&|request| {
        request.body.clear();
        request.fields.retain(|(name, _)| name != "Content-Length" && name != "Transfer-Encoding");
    });
    if request.body.is_empty() {
        with(&|request| "GET".clone_into(&mut request.method));
    }
    for target in shorter(&request.target) {
        with(&|request| request.target.clone_from(&target));
    }
    for (at, (_, value)) in request.fields.iter().enumerate() {
        for value in shorter(value).into_iter().filter(|value| !value.is_empty()) {
            with(&|request| {
                if let Some((_, old)) = request.fields.get_mut(at) {
                    old.clone_from(&value);
                }
            });
        }
    }
    out
}

/// A text without some of its pieces, from halves down to single bytes.
fn shorter(text: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut size = text.len().div_ceil(2);
    while size > 0 {
        for from in (0..text.len()).step_by(size) {
            let end = (from + size).min(text.len());
            let mut left = text.get(..from).unwrap_or_default().to_vec();
            left.extend_from_slice(text.get(end..).unwrap_or_default());
            out.push(left);
        }
        // Long texts are not tried byte by byte.
        size = if size == 1 || text.len() / size > 64 { 0 } else { size / 2 };
    }
    out
}

/// Nodes with one section replaced by its contents, or with fewer words in one place.
fn simpler_nodes(nodes: &[Node]) -> Vec<Vec<Node>> {
    let mut out = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let mut replaced = |with: Vec<Node>| {
            let mut simpler = nodes.to_vec();
            simpler.splice(at..=at, with);
            out.push(simpler);
        };
        if let Some(children) = &node.children {
            if !children.is_empty() {
                replaced(children.clone());
            }
            for inner in simpler_nodes(children) {
                replaced(vec![Node { children: Some(inner), ..node.clone() }]);
            }
        }
        for words in fewer_words(&node.words) {
            replaced(vec![Node { words, ..node.clone() }]);
        }
    }
    out
}

/// The words without one of them, and without the sides of an expression's operators.
fn fewer_words(words: &str) -> Vec<String> {
    let mut out = Vec::new();
    for separator in [" && ", " || ", " "] {
        let pieces: Vec<&str> = words.split(separator).collect();
        if pieces.len() < 2 {
            continue;
        }
        for skipped in 0..pieces.len() {
            let left: Vec<&str> = pieces
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != skipped)
                .map(|(_, piece)| *piece)
                .collect();
            let mut left = left.join(separator);
            // The outer quotes stay.
            if words.starts_with('"') && words.ends_with('"') {
                left = format!("\"{}\"", left.trim_matches('"'));
            }
            if left != words && !left.is_empty() {
                out.push(left);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{candidates, fewer_words};
    use crate::site::{Case, Node, Request, Site};

    #[test]
    fn a_section_gives_way_to_what_is_in_it() {
        let inner = vec![Node::directive("Options", "None")];
        let config = vec![Node::section("Location", "/", inner.clone())];
        let site = Site { config, ..Site::default() };
        let request = Request { target: b"/".to_vec(), ..Request::default() };
        let case = Case { site, requests: vec![request] };
        assert!(candidates(&case).iter().any(|case| case.site.config == inner));
        assert!(candidates(&case).iter().any(|case| case.requests[0].version == "HTTP/1.1"));
    }

    #[test]
    fn an_expression_loses_one_side() {
        let fewer = fewer_words("\"true && false\"");
        assert!(fewer.contains(&"\"true\"".to_owned()) && fewer.contains(&"\"false\"".to_owned()));
    }
}
