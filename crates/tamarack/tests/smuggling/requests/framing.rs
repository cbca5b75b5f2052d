//! Content-Length and Transfer-Encoding: conflicts, odd spellings, duplicates, lists.

use super::SMUGGLED;
use crate::join;
use crate::payload::{List, ODD};

/// Fields for a chunked body, or nearly. The names tell them apart.
const CODINGS: &[(&str, &str)] = &[
    ("plain", "Transfer-Encoding: chunked"),
    ("blank-before-name", " Transfer-Encoding: chunked"),
    ("tab-before-name", "\tTransfer-Encoding: chunked"),
    ("blank-after-name", "Transfer-Encoding : chunked"),
    ("no-blank", "Transfer-Encoding:chunked"),
    ("two-blanks", "Transfer-Encoding:  chunked"),
    ("blank-after", "Transfer-Encoding: chunked "),
    ("blanks-within", "Transfer-Encoding: chun ked"),
    ("x-before", "Transfer-Encoding: xchunked"),
    ("x-after", "Transfer-Encoding: chunkedx"),
    ("short", "Transfer-Encoding: chunk"),
    ("identity", "Transfer-Encoding: identity"),
    ("gzip", "Transfer-Encoding: gzip"),
    ("unknown", "Transfer-Encoding: cow"),
    ("chunked-identity", "Transfer-Encoding: chunked, identity"),
    ("identity-chunked", "Transfer-Encoding: identity, chunked"),
    ("gzip-chunked", "Transfer-Encoding: gzip, chunked"),
    ("chunked-gzip", "Transfer-Encoding: chunked, gzip"),
    ("twice-in-list", "Transfer-Encoding: chunked, chunked"),
    ("comma-after", "Transfer-Encoding: chunked,"),
    ("comma-before", "Transfer-Encoding: ,chunked"),
    ("comma-blank-before", "Transfer-Encoding: , chunked"),
    ("commas", "Transfer-Encoding: ,,chunked,,"),
    ("double-quotes", "Transfer-Encoding: \"chunked\""),
    ("single-quotes", "Transfer-Encoding: 'chunked'"),
    ("parameter", "Transfer-Encoding: chunked;q=1"),
    ("parameter-blank", "Transfer-Encoding: chunked; a=b"),
    ("semicolon", "Transfer-Encoding: chunked;"),
    ("upper", "Transfer-Encoding: CHUNKED"),
    ("mixed", "Transfer-Encoding: cHuNkEd"),
    ("name-lower", "transfer-encoding: chunked"),
    ("name-upper", "TRANSFER-ENCODING: chunked"),
    ("name-underscore", "Transfer_Encoding: chunked"),
    ("name-blank", "Transfer Encoding: chunked"),
    ("name-x", "X-Transfer-Encoding: chunked"),
    ("other-name", "Content-Encoding: chunked"),
    ("te", "TE: chunked"),
    ("no-colon", "Transfer-Encoding chunked"),
    ("equals", "Transfer-Encoding=chunked"),
    ("equals-value", "Transfer-Encoding: =chunked"),
    ("two-colons", "Transfer-Encoding:: chunked"),
    ("semicolon-name", "Transfer-Encoding;: chunked"),
    ("only-colon", ": chunked"),
    ("empty", "Transfer-Encoding:"),
    ("empty-blank", "Transfer-Encoding: "),
    ("null", "Transfer-Encoding: null"),
    ("folded", "Transfer-Encoding:\r\n chunked"),
    ("folded-tab", "Transfer-Encoding:\r\n\tchunked"),
    ("folded-twice", "Transfer-Encoding:\r\n \r\n chunked"),
    ("folded-within", "Transfer-Encoding: chu\r\n nked"),
    ("folded-after", "Transfer-Encoding: chunked\r\n "),
    ("folded-list", "Transfer-Encoding: identity,\r\n chunked"),
    ("folded-lf", "Transfer-Encoding:\n chunked"),
    ("in-other", "X: x\r\n Transfer-Encoding: chunked"),
    ("lf-before", "X: x\nTransfer-Encoding: chunked"),
    ("cr-before", "X: x\rTransfer-Encoding: chunked"),
    ("escaped", "X: x%0d%0aTransfer-Encoding: chunked"),
    ("two", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
    ("two-identity-last", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
    ("two-identity-first", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked"),
    ("two-unknown-last", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x"),
    ("two-unknown-first", "Transfer-Encoding: x\r\nTransfer-Encoding: chunked"),
    ("two-empty-first", "Transfer-Encoding:\r\nTransfer-Encoding: chunked"),
    ("two-empty-last", "Transfer-Encoding: chunked\r\nTransfer-Encoding:"),
    ("two-names", "Transfer-Encoding: chunked\r\ntransfer-encoding: x"),
    ("hop", "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked"),
    ("hop-length", "Connection: Content-Length\r\nTransfer-Encoding: chunked"),
];

/// Values of Content-Length.
const LENGTHS: &[(&str, &str)] = &[
    ("plain", "5"),
    ("plus", "+5"),
    ("minus", "-5"),
    ("zero", "0"),
    ("zeros", "00"),
    ("minus-zero", "-0"),
    ("plus-zero", "+0"),
    ("leading-zero", "05"),
    ("leading-zeros", "0000000000000000000000000005"),
    ("hex", "0x5"),
    ("letter-after", "5a"),
    ("letter-before", "a5"),
    ("word", "five"),
    ("fraction", "5.0"),
    ("exponent", "5e0"),
    ("underscore", "5_0"),
    ("empty", ""),
    ("blank", " "),
    ("blank-before", " 5"),
    ("blank-after", "5 "),
    ("tab-before", "\t5"),
    ("tab-after", "5\t"),
    ("two-words", "5 5"),
    ("list", "5, 5"),
    ("list-no-blank", "5,5"),
    ("list-differs", "5, 6"),
    ("list-zero", "0, 5"),
    ("list-comma", "5,"),
    ("list-comma-before", ",5"),
    ("semicolon", "5;"),
    ("quotes", "\"5\""),
    ("max-u63", "9223372036854775807"),
    ("over-u63", "9223372036854775808"),
    ("max-u64", "18446744073709551615"),
    ("wraps-u64", "18446744073709551621"),
    ("wraps-u32", "4294967301"),
    ("very-long", "99999999999999999999999999999999999999999999999999"),
    ("arabic", "\u{665}"),
    ("folded", "\r\n 5"),
    ("folded-after", "5\r\n "),
    ("folded-digit", "5\r\n 0"),
    ("folded-lf", "\n 5"),
    ("two", "5\r\nContent-Length: 5"),
    ("two-more", "5\r\nContent-Length: 6"),
    ("two-less", "6\r\nContent-Length: 5"),
    ("two-zero-last", "5\r\nContent-Length: 0"),
    ("two-zero-first", "0\r\nContent-Length: 5"),
    ("two-empty", "5\r\nContent-Length:"),
    ("two-empty-first", "\r\nContent-Length: 5"),
    ("two-zeros", "5\r\nContent-Length: 05"),
    ("two-names", "5\r\ncontent-length: 6"),
    ("three", "5\r\nContent-Length: 5\r\nContent-Length: 5"),
    ("other-name", "5\r\nContent_Length: 6"),
    ("odd-name", "5\r\nContent-Length : 6"),
    ("between", "5\r\nX: y\r\nContent-Length: 6"),
    ("lf", "5\nContent-Length: 6"),
    ("cr", "5\rContent-Length: 6"),
    ("hop", "5\r\nConnection: Content-Length"),
];

/// Heads around a coding, and bodies: what one reader takes for a body, another for a request.
fn shapes(list: &mut List, name: &str, coding: &[u8]) {
    const LINE: &str = "POST /tTTTT/x HTTP/1.1\r\nHost: localhost\r\n";
    let ended = join!("0\r\n\r\n", SMUGGLED);
    let length = ended.len().to_string();
    let mut add = |shape: &str, head: Vec<u8>, body: &[u8]| {
        list.add(format!("te.{name}.{shape}"), join!(head, "\r\n\r\n", body));
    };
    add("alone", join!(LINE, coding), &ended);
    add("cl-te", join!(LINE, "Content-Length: ", length, "\r\n", coding), &ended);
    add("te-cl", join!(LINE, coding, "\r\nContent-Length: ", length), &ended);
    let chunk = join!(format!("{:x}\r\n", SMUGGLED.len()), SMUGGLED, "\r\n0\r\n\r\n");
    add("chunk-cl", join!(LINE, "Content-Length: 4\r\n", coding), &chunk);
    add("zero-cl", join!(LINE, coding, "\r\nContent-Length: 0"), &chunk);
    add("get", join!(LINE.replace("POST", "GET"), coding), &ended);
    add("old", join!(LINE.replace("1.1", "1.0"), coding), &ended);
}

pub fn add(list: &mut List) {
    for (name, coding) in CODINGS {
        shapes(list, name, coding.as_bytes());
    }
    odd_codings(list);
    for (name, value) in LENGTHS {
        for method in ["POST", "GET", "HEAD"] {
            let head = format!("{method} /tTTTT/x HTTP/1.1\r\nHost: localhost\r\n");
            let field = join!("Content-Length: ", value, "\r\n\r\nhello");
            list.add(format!("cl.{name}.{method}"), join!(head, field, SMUGGLED));
        }
    }
    odd_lengths(list);
}

/// One odd byte in the field of a coding, alone and beside a length.
fn odd_codings(list: &mut List) {
    let head = "POST /tTTTT/x HTTP/1.1\r\nHost: localhost\r\n";
    let body = join!("0\r\n\r\n", SMUGGLED);
    for &odd in ODD {
        let odd = [odd];
        let places = [
            ("before-name", join!(odd, "Transfer-Encoding: chunked")),
            ("in-name", join!("Transfer", odd, "Encoding: chunked")),
            ("after-name", join!("Transfer-Encoding", odd, ": chunked")),
            ("before-value", join!("Transfer-Encoding:", odd, "chunked")),
            ("in-value", join!("Transfer-Encoding: chun", odd, "ked")),
            ("after-value", join!("Transfer-Encoding: chunked", odd)),
        ];
        for (place, field) in places {
            let name = format!("te-odd.{place}.x{:02x}", odd[0]);
            let length = format!("Content-Length: {}\r\n", body.len());
            list.add(format!("{name}.alone"), join!(head, field, "\r\n\r\n", body));
            list.add(format!("{name}.cl-te"), join!(head, length, field, "\r\n\r\n", body));
        }
    }
}

fn odd_lengths(list: &mut List) {
    let head = "POST /tTTTT/x HTTP/1.1\r\nHost: localhost\r\n";
    for &odd in ODD {
        let odd = [odd];
        let places = [
            ("before-name", join!(odd, "Content-Length: 5")),
            ("in-name", join!("Content", odd, "Length: 5")),
            ("after-name", join!("Content-Length", odd, ": 5")),
            ("before-value", join!("Content-Length:", odd, "5")),
            ("after-value", join!("Content-Length: 5", odd)),
            ("in-value", join!("Content-Length: 5", odd, "0")),
        ];
        for (place, field) in places {
            let name = format!("cl-odd.{place}.x{:02x}", odd[0]);
            list.add(name, join!(head, field, "\r\n\r\nhello", SMUGGLED));
        }
    }
}
