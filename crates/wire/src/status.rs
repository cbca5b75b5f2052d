//! Status codes and their status lines, as in Apache's `status_lines`.

/// A response's status code, 100 to 599. Modules may produce other values, which are checked later.
pub type Status = u16;

/// Code and status line (code, space, reason) of every status that Apache knows.
const LINES: [(Status, &str); 60] = [
    (100, "100 Continue"),
    (101, "101 Switching Protocols"),
    (102, "102 Processing"),
    (103, "103 Early Hints"),
    (200, "200 OK"),
    (201, "201 Created"),
    (202, "202 Accepted"),
    (203, "203 Non-Authoritative Information"),
    (204, "204 No Content"),
    (205, "205 Reset Content"),
    (206, "206 Partial Content"),
    (207, "207 Multi-Status"),
    (208, "208 Already Reported"),
    (226, "226 IM Used"),
    (300, "300 Multiple Choices"),
    (301, "301 Moved Permanently"),
    (302, "302 Found"),
    (303, "303 See Other"),
    (304, "304 Not Modified"),
    (305, "305 Use Proxy"),
    (307, "307 Temporary Redirect"),
    (308, "308 Permanent Redirect"),
    (400, "400 Bad Request"),
    (401, "401 Unauthorized"),
    (402, "402 Payment Required"),
    (403, "403 Forbidden"),
    (404, "404 Not Found"),
    (405, "405 Method Not Allowed"),
    (406, "406 Not Acceptable"),
    (407, "407 Proxy Authentication Required"),
    (408, "408 Request Timeout"),
    (409, "409 Conflict"),
    (410, "410 Gone"),
    (411, "411 Length Required"),
    (412, "412 Precondition Failed"),
    (413, "413 Request Entity Too Large"),
    (414, "414 Request-URI Too Long"),
    (415, "415 Unsupported Media Type"),
    (416, "416 Requested Range Not Satisfiable"),
    (417, "417 Expectation Failed"),
    (421, "421 Misdirected Request"),
    (422, "422 Unprocessable Entity"),
    (423, "423 Locked"),
    (424, "424 Failed Dependency"),
    (426, "426 Upgrade Required"),
    (428, "428 Precondition Required"),
    (429, "429 Too Many Requests"),
    (431, "431 Request Header Fields Too Large"),
    (451, "451 Unavailable For Legal Reasons"),
    (500, "500 Internal Server Error"),
    (501, "501 Not Implemented"),
    (502, "502 Bad Gateway"),
    (503, "503 Service Unavailable"),
    (504, "504 Gateway Timeout"),
    (505, "505 HTTP Version Not Supported"),
    (506, "506 Variant Also Negotiates"),
    (507, "507 Insufficient Storage"),
    (508, "508 Loop Detected"),
    (510, "510 Not Extended"),
    (511, "511 Network Authentication Required"),
];

/// The status line (`"404 Not Found"`) of a code that Apache knows (`ap_get_status_line_ex`).
pub fn known_line(status: Status) -> Option<&'static str> {
    if status == 200 {
        return Some("200 OK");
    }
    LINES.iter().find(|line| line.0 == status).map(|line| line.1)
}

/// The status line of a code; that of 500 if Apache does not know the code (`ap_get_status_line`).
pub fn line(status: Status) -> &'static str {
    known_line(status).unwrap_or("500 Internal Server Error")
}

/// The reason phrase alone, empty for unknown codes.
pub fn reason(status: Status) -> &'static str {
    known_line(status).and_then(|line| line.get(4..)).unwrap_or("")
}

/// Whether the code fits a status line: three digits, 100 to 999.
pub const fn is_valid(status: Status) -> bool {
    status >= 100 && status <= 999
}

/// Whether a program or a backend may respond with the code: 100 to 599
/// (`ap_is_HTTP_VALID_RESPONSE`).
pub const fn is_response(status: Status) -> bool {
    status >= 100 && status < 600
}

/// 1xx.
pub const fn is_info(status: Status) -> bool {
    status >= 100 && status < 200
}

/// 2xx.
pub const fn is_success(status: Status) -> bool {
    status >= 200 && status < 300
}

/// 3xx.
pub const fn is_redirect(status: Status) -> bool {
    status >= 300 && status < 400
}

/// 4xx or 5xx (`ap_is_HTTP_ERROR`).
pub const fn is_error(status: Status) -> bool {
    status >= 400 && status < 600
}

/// 4xx.
pub const fn is_client_error(status: Status) -> bool {
    status >= 400 && status < 500
}

/// 5xx.
pub const fn is_server_error(status: Status) -> bool {
    status >= 500 && status < 600
}

/// Whether the response never has a body: 1xx, 204, 304 (`AP_STATUS_IS_HEADER_ONLY`).
pub const fn is_header_only(status: Status) -> bool {
    is_info(status) || status == 204 || status == 304
}

/// Whether the connection closes after this status, since the request may not have been read
/// completely (`ap_status_drops_connection`).
pub const fn drops_connection(status: Status) -> bool {
    matches!(status, 400 | 408 | 411 | 413 | 414 | 500 | 501 | 503)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_begin_with_their_code() {
        for (status, line) in LINES {
            assert!(line.starts_with(&format!("{status} ")), "{line}");
        }
        assert_eq!(line(599), "500 Internal Server Error");
        assert_eq!(known_line(306), None);
        assert_eq!(reason(404), "Not Found");
    }
}
