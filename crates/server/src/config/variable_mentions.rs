//! Whether directives read variables (`subprocess_env`) that programs and pages get.
//!
//! mod_include gives a page the variables of a program, which differ with each request. If no
//! directive reads them, the response of a page that does not read them either can be cached.

/// What shows that a directive's arguments name a variable: `env=NAME`, `Require env NAME`,
/// `%{ENV:NAME}`, `reqenv('NAME')`; `%{NAME}e`.
const READS: [&[u8]; 2] = [b"env", b"}e"];

/// Parts of the names of variables that programs and pages get.
const OF_PROGRAMS: [&[u8]; 16] = [
    b"auth_type",
    b"content_",
    b"context_",
    b"date_",
    b"document_",
    b"gateway_",
    b"http_",
    b"last_modified",
    b"path",
    b"query_string",
    b"redirect_",
    b"remote_",
    b"request_",
    b"script_",
    b"server_",
    b"user_name",
];

/// Whether the arguments of a directive may name such a variable.
pub(super) fn is_in(arguments: &[u8]) -> bool {
    let text = arguments.to_ascii_lowercase();
    let has = |part: &&[u8]| text.windows(part.len()).any(|window| window == *part);
    READS.iter().any(has) && OF_PROGRAMS.iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_by_the_ways_to_read_them() {
        for text in [
            "set X \"%{DOCUMENT_NAME}e\"",
            "env REMOTE_USER",
            "%{ENV:REMOTE_PORT} =80",
            "\"reqenv('HTTP_X') == 'a'\"",
            "logs/a.log common env=!HTTP_X",
        ] {
            assert!(is_in(text.as_bytes()), "{text}");
        }
        for text in [
            "\"%h %u %t \\\"%r\\\" %>s %O\" common",
            "logs/a.log common env=!dontlog",
            "%{REQUEST_URI} ^/a",
        ] {
            assert!(!is_in(text.as_bytes()), "{text}");
        }
    }
}
