//! Allowed differences. Each rule quotes the line of docs/refused.md or of tests/README.md that
//! allows it; every other difference is a finding.
//!
//! `blackbox` itself leaves out what "What is not compared" in tests/README.md lists, when it
//! renders and compares responses.

use std::collections::BTreeSet;
use std::str::RSplit;

use blackbox::compare::{Rule, difference};
use blackbox::http2;

use crate::folders::{OF_FOLDERS_AS_IS, REFUSED_AS_IS, differ_as_folders, differ_in_folders_as_is};
use crate::pages::differ_in_page_of_success;
use crate::site::{Content, File, Request, Site};

/// An allowed difference.
struct Wanted {
    /// The line that allows it, verbatim.
    cites: &'static str,
    applies: fn(&Site, &Request, &[String], &[String]) -> bool,
}

/// All allowed differences.
const WANTED: [Wanted; 36] = [
    Wanted {
        cites: "`Date` and `Server`; wording of the server's own error pages and their \
            Content-Length",
        applies: differ_in_signature,
    },
    Wanted {
        cites: "wording of the server's own error pages and their Content-Length",
        applies: differ_in_unsent_page,
    },
    Wanted {
        cites: "wording of the server's own error pages and their Content-Length",
        applies: differ_in_long_page,
    },
    Wanted {
        cites: "wording of the server's own error pages and their Content-Length",
        applies: differ_in_page_of_success,
    },
    Wanted { cites: "the boundary of multipart bodies", applies: differ_in_boundary },
    Wanted { cites: "lengths of compressed bodies", applies: differ_in_compressed_range },
    Wanted { cites: "the `Last-Modified` of a file of the future", applies: differ_in_present },
    Wanted {
        cites: "Whatever follows an empty tag in memory, in the ETag of a negotiated response",
        applies: differ_behind_empty_tags,
    },
    Wanted { cites: "Empty names in `Vary`, from `http('')`", applies: differ_in_empty_names },
    Wanted {
        cites: "as `Header edit Vary` and `%{resp:Vary}` find them",
        applies: differ_in_names,
    },
    Wanted {
        cites: "Index files, variants and listed files behind links of another owner",
        applies: differ_behind_links,
    },
    Wanted {
        cites: "A match is undecided if it takes more than 10,000,000 steps",
        applies: |site, request, _, tamarack| is_undecided(site, request, tamarack),
    },
    Wanted { cites: "`Expires` and `max-age`, and identifiers", applies: differ_in_seconds },
    Wanted {
        cites: "A file whose **handler belongs to no active module** is a 500",
        applies: differ_in_handlers,
    },
    Wanted { cites: OF_FOLDERS_AS_IS, applies: differ_in_folders_as_is },
    Wanted {
        cites: "A 500, or another `Location`, at times for a redirect from a resource",
        applies: |site, _, apache, tamarack| {
            let head = |lines: &[String]| {
                let others = lines.iter().take_while(|line| *line != "<");
                without_length(&others.cloned().collect::<Vec<_>>())
                    .into_iter()
                    .filter(|line| !line.starts_with("< Location: "))
                    .collect::<Vec<_>>()
            };
            let redirect = status(tamarack).filter(|status| (301..=308).contains(status));
            redirect.is_some()
                && (status(apache) == Some(500) || head(apache) == head(tamarack))
                && names(site, "FallbackResource", "")
                && ["RedirectMatch", "Redirect", "RewriteRule"]
                    .iter()
                    .any(|name| names(site, name, ""))
        },
    },
    Wanted {
        cites: "Letting a request pass by a RewriteRule with `F`, `G` or a status",
        applies: differ_in_status_zero,
    },
    Wanted {
        cites: "Index files, variants and listed files that a request finds in its own folder",
        applies: differ_below_wildcards,
    },
    Wanted {
        cites: "if an `Action` for the header or readme of a listing fails",
        applies: |site, _, _, tamarack| {
            let is_page = |line: &String| {
                line.strip_prefix("| <title>").is_some_and(|title| title.starts_with(['4', '5']))
            };
            status(tamarack) == Some(200)
                && names(site, "Action", "")
                && tamarack.iter().any(|line| line.contains("  <title>Index of "))
                && tamarack.iter().any(is_page)
        },
    },
    Wanted {
        cites: "An empty 500 without `Connection: close`, over HTTP/2 a reset, if `Header always`",
        applies: |site, _, apache, tamarack| {
            let is_reset = http2::is_on() && matches!(apache, [only] if only == "= reset");
            (is_reset || status(apache) == Some(500) && length(apache) == Some(0))
                && status(tamarack) == Some(500)
                && names(site, "Header", "always")
        },
    },
    Wanted {
        cites: "TRACE with a body that is forwarded",
        applies: |_, request, _, tamarack| {
            request.method == "TRACE" && status(tamarack) == Some(413)
        },
    },
    Wanted { cites: "Forwarding `#` in a target", applies: differ_in_fragments },
    Wanted {
        cites: "The end of the connection without an answer, if a filter can't process",
        applies: |site, _, apache, tamarack| {
            let is_unheard =
                matches!(apache.first().map(String::as_str), None | Some("= no answer"));
            let of_page = || status_of_page(tamarack);
            is_unheard
                && status(tamarack).or_else(of_page) == Some(500)
                && names(site, "CharsetSourceEnc", "")
        },
    },
    Wanted {
        cites: "that is too long for `SubstituteMaxLineLength`, and 200 to HEAD",
        applies: |site, _, apache, tamarack| {
            let is_cause = match status(apache) {
                // Handlers of Apache other than that of files end the connection.
                None => names(site, "Substitute", ""),
                Some(200) => names(site, "SubstituteMaxLineLength", ""),
                Some(_) => false,
            };
            is_cause && status(tamarack) == Some(500)
        },
    },
    Wanted {
        cites: "Refusing each login by digest over HTTP/2",
        applies: |site, _, apache, tamarack| {
            http2::is_on()
                && status(apache) == Some(401)
                && status(tamarack) != Some(401)
                && names(site, "AuthDigestNcCheck", "On")
        },
    },
    Wanted {
        cites: "`nc` of a digest that is no hexadecimal number",
        applies: |site, request, _, tamarack| {
            let is_empty = |(name, value): &(String, Vec<u8>)| {
                name == "Authorization" && value.ends_with(b" nc=@")
            };
            status(tamarack) == Some(401)
                && request.fields.iter().any(is_empty)
                && names(site, "AuthDigestNcCheck", "On")
        },
    },
    Wanted {
        cites: "Ranges of the page of a 200 (`Redirect 200`, `form-logout-handler`), or 416",
        applies: |_, request, apache, tamarack| {
            request.fields.iter().any(|(name, _)| name == "Range")
                && matches!(status(apache), Some(206 | 416))
                && matches!(status(tamarack), Some(400 | 413))
                // Pages are no files.
                && !apache.iter().any(|line| line.starts_with("< Last-Modified: "))
        },
    },
    Wanted {
        cites: "A count (`nc`) above 1,048,574 for one nonce",
        applies: |site, _, apache, tamarack| {
            let is_stale =
                |lines: &[String]| lines.iter().any(|line| line.contains(", stale=true"));
            status(tamarack) == Some(401)
                && is_stale(tamarack)
                && !is_stale(apache)
                && names(site, "AuthDigestNcCheck", "On")
        },
    },
    Wanted {
        cites: "Denying verified clients over HTTP/2 (`Require ssl-verify-client`)",
        applies: |site, request, apache, tamarack| {
            let is_denial = |lines: &[String]| matches!(status(lines), Some(401 | 403));
            http2::is_on()
                && request.via.contains(" cert=")
                && names(site, "Require", "ssl-verify-client")
                && status(apache) != status(tamarack)
                && (is_denial(apache) || is_denial(tamarack))
        },
    },
    Wanted {
        cites: "A body in the response to HEAD over HTTP/2, from mod_sed or mod_substitute",
        applies: |site, request, apache, tamarack| {
            let head = |lines: &[String]| {
                lines.iter().take_while(|line| *line != "<").cloned().collect::<Vec<_>>()
            };
            http2::is_on()
                && request.method == "HEAD"
                && ["Sed", "SUBSTITUTE", "DATA"].iter().any(|filter| names(site, "", filter))
                && tamarack.last().is_some_and(|line| line == "<")
                && difference(&head(apache), &head(tamarack), Rule::Answer).is_none()
        },
    },
    Wanted {
        cites: "An empty response of mod_reflector over HTTP/2",
        applies: |site, _, apache, _| {
            http2::is_on() && length(apache) == Some(0) && names(site, "", "reflector")
        },
    },
    Wanted {
        cites: "A field of `Header always` twice over HTTP/2 in the page of a 413",
        applies: |site, _, apache, tamarack| {
            let mut once = apache.to_vec();
            once.dedup();
            http2::is_on()
                && status(tamarack) == Some(413)
                && names(site, "Header", "always")
                && difference(&once, tamarack, Rule::Answer).is_none()
        },
    },
    Wanted {
        cites: "`Cache-Control` of mod_session_dbd over HTTP/2 in the page of a 500",
        applies: |site, _, apache, tamarack| {
            let field = "< Cache-Control: no-cache, private";
            let others = apache.iter().filter(|line| *line != field).cloned().collect::<Vec<_>>();
            http2::is_on()
                && status(tamarack) == Some(500)
                && names(site, "SessionDBDCookieName", "")
                && names(site, "", "SUBSTITUTE")
                && difference(&others, tamarack, Rule::Answer).is_none()
        },
    },
    Wanted { cites: OF_REFLECTED_LENGTH, applies: differ_in_reflected_length },
    Wanted {
        cites: "sent in the place of another request, is longer than `KeptBodySize`",
        applies: |site, request, apache, tamarack| {
            let of_forms = "application/x-www-form-urlencoded";
            // A client of the process that ended has no response, or that of another one.
            matches!(status(apache), None | Some(501))
                && status(tamarack) == Some(413)
                && request.method == "POST"
                && request.fields.iter().any(|(_, text)| text.starts_with(of_forms.as_bytes()))
                && names(site, "KeptBodySize", "")
                && (names(site, "AuthType", "form") || names(site, "AuthType", "Form"))
        },
    },
    Wanted {
        cites: "is longer than `KeptBodySize` or `LimitRequestBody` and mod_sed edits",
        applies: |site, _, apache, tamarack| {
            matches!(status(apache), None | Some(200))
                && status(tamarack) == Some(413)
                && (names(site, "KeptBodySize", "") || names(site, "LimitRequestBody", ""))
                && names(site, "", "Sed")
        },
    },
];

/// Whether a site has a directive of this name, or any, with these words in it.
pub fn names(site: &Site, name: &str, words: &str) -> bool {
    let mut found = false;
    site.walk(&mut |node| {
        found |= (name.is_empty() || node.name == name) && node.words.contains(words);
    });
    found
}

/// The line that allows another length, which may not be that of the body.
pub const OF_REFLECTED_LENGTH: &str =
    "The `Content-Length` of a request as that of mod_reflector's response";

/// The line that allows fewer messages in the error log.
const OF_META_FILES: &str = "Looking up the meta file (`MetaFiles On`) of a request that";

/// The line that allows more of them.
const OF_NESTED_META_FILES: &str = "Not looking up, at times, the meta file of a meta file";

/// The line that allows a difference of a site's logs: Tamarack lacks the messages of look-ups that
/// it does not make, and has all others in Apache's order; or it repeats messages more often.
pub fn rule_of_logs(site: &Site, apache: &[String], tamarack: &[String]) -> Option<&'static str> {
    let (mut has_metas, mut rewrites, mut shows) = (false, false, false);
    site.walk(&mut |node| {
        has_metas |= node.name == "MetaFiles" && node.words.eq_ignore_ascii_case("on");
        rewrites |= node.name == "RewriteRule";
        shows |= node.name == "LogMessage";
    });
    let is_message = |line: &String| line.contains("[log_debug:");
    let mut left = tamarack.iter().peekable();
    let are_messages =
        apache.iter().all(|line| left.next_if(|next| *next == line).is_some() || is_message(line));
    let shows_metas = has_metas && shows;
    if shows_metas && rewrites && are_messages && left.next().is_none() {
        return Some(OF_META_FILES);
    }
    let texts = |lines: &[String]| lines.iter().cloned().collect::<BTreeSet<_>>();
    let others = |lines: &[String]| {
        lines.iter().filter(|line| !is_message(line)).cloned().collect::<Vec<_>>()
    };
    let repeats = texts(apache) == texts(tamarack) && others(apache) == others(tamarack);
    (shows_metas && repeats).then_some(OF_NESTED_META_FILES)
}

/// Limits that Apache does not have: messages of Tamarack's error log that excuse a response, with
/// the line that allows it.
const LIMITS: [(&str, &str); 3] = [
    ("AH20200:", "More than 500 look-ups for one request"),
    // On a busy machine.
    (" bytes: time limit", "for backtracking, or longer than 30 seconds"),
    ("(36)File name too long", "a request whose file name is longer than the system allows"),
];

/// The servers respond one after the other: times from now differ by the seconds between them.
fn differ_in_seconds(_: &Site, _: &Request, apache: &[String], tamarack: &[String]) -> bool {
    const SECONDS_MAX: u64 = 10;
    let plain = |lines: &[String]| lines.iter().map(|line| without_time(line)).collect::<Vec<_>>();
    let times = |lines: &[String]| lines.iter().filter_map(|line| time(line)).collect::<Vec<_>>();
    let (one, other) = (times(apache), times(tamarack));
    one.len() == other.len()
        && one.iter().zip(&other).all(|(one, other)| one.abs_diff(*other) <= SECONDS_MAX)
        && difference(&plain(apache), &plain(tamarack), Rule::Answer).is_none()
}

/// The seconds in `max-age`, or of an `Expires`.
fn time(line: &str) -> Option<u64> {
    if let Some(date) = line.strip_prefix("< Expires: ") {
        return seconds(date);
    }
    let (_, age) = line.strip_prefix("< Cache-Control: ")?.split_once("max-age=")?;
    age.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// A date in seconds, as if each month had 31 days: good for dates that are close to each other.
fn seconds(date: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let date = date.strip_suffix(" GMT")?.split_once(", ")?.1;
    let [day, month, year, time] = date.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let days = (year.parse::<u64>().ok()? * 12 + MONTHS.find(month)? as u64 / 3) * 31;
    let sixties = |sum: Option<u64>, part: &str| Some(sum? * 60 + part.parse::<u64>().ok()?);
    let time = time.split(':').fold(Some(0), sixties)?;
    Some((days + day.parse::<u64>().ok()?) * 24 * 60 * 60 + time)
}

fn without_time(line: &str) -> String {
    if line.starts_with("< Expires: ") && time(line).is_some() {
        return "< Expires: *".to_owned();
    }
    match time(line) {
        Some(age) => line.replace(&format!("max-age={age}"), "max-age=*"),
        None => line.to_owned(),
    }
}

/// The list of variants has no tag: what Apache sends behind the semicolon is no text of its own.
fn differ_behind_empty_tags(site: &Site, _: &Request, apache: &[String], own: &[String]) -> bool {
    let cut = |lines: &[String]| -> Vec<String> {
        let cut = |line: &String| match line.split_once(';') {
            Some((tag, _)) if line.starts_with("< ETag: ") => format!("{tag};"),
            _ => line.clone(),
        };
        lines.iter().map(cut).collect()
    };
    let is_empty = own.iter().any(|line| line.starts_with("< ETag: ") && line.ends_with(';'));
    is_empty && names(site, "FileETag", "") && difference(&cut(apache), own, Rule::Answer).is_none()
}

/// A rule with `NE` puts a `#` of the request's path into the target.
fn differ_in_fragments(_: &Site, request: &Request, _: &[String], tamarack: &[String]) -> bool {
    let has_hash = request.target.windows(3).any(|three| three == b"%23");
    has_hash && status(tamarack) == Some(400)
}

/// CGI programs and made-up handlers: no module here executes them, and Apache serves the files.
fn differ_in_handlers(site: &Site, _: &Request, apache: &[String], tamarack: &[String]) -> bool {
    let mut names_handler = false;
    site.walk(&mut |node| {
        names_handler |=
            node.name.starts_with("VirtualScriptAlias") || node.words.starts_with("x-act ");
    });
    names_handler && status(apache) != Some(500) && status(tamarack) == Some(500)
}

/// A `Vary` that is edited, or read for another field.
fn differ_in_names(site: &Site, _: &Request, apache: &[String], tamarack: &[String]) -> bool {
    let (mut edits, mut reads) = (false, false);
    site.walk(&mut |node| {
        let is_edit = node.name == "Header" && node.words.contains("edit");
        edits |= is_edit && node.words.to_ascii_lowercase().contains(" vary");
        reads |= node.words.to_ascii_lowercase().contains("resp:vary");
    });
    let without = |lines: &[String]| -> Vec<String> {
        lines.iter().filter(|line| !line.starts_with("< Vary")).cloned().collect()
    };
    let is_in_vary = difference(&without(apache), &without(tamarack), Rule::Answer).is_none();
    reads || edits && is_in_vary
}

/// A rule that ends a request, with a word that makes its status 0.
fn differ_in_status_zero(site: &Site, _: &Request, _: &[String], tamarack: &[String]) -> bool {
    let mut ends = false;
    site.walk(&mut |node| {
        let mut flags = node.words.rsplit('[').next().unwrap_or_default().split([',', ']']);
        ends |= node.name == "RewriteRule"
            && node.words.contains("R=foo")
            && flags.any(|flag| match flag.trim() {
                "F" | "G" | "forbidden" | "gone" => true,
                flag => flag.strip_prefix("R=").is_some_and(|status| status.parse::<u16>().is_ok()),
            });
    });
    ends && status(tamarack) == Some(500)
}

/// A variant, or files of a listing, whose names a `<Directory>` section's last wildcard matches,
/// for a request without them.
fn differ_below_wildcards(
    site: &Site,
    request: &Request,
    apache: &[String],
    tamarack: &[String],
) -> bool {
    let mut lasts = Vec::new();
    site.walk(&mut |node| {
        let last = node.words.trim_matches('"').rsplit('/').next().unwrap_or_default();
        if node.name == "Directory" && last.ends_with(['*', '?']) {
            lasts.push(last);
        }
    });
    let is_below = |name: &str| lasts.iter().any(|last| is_matched(name, last));
    // A listing without the entries of such files.
    let others = |lines: &[String]| {
        let is_entry = |line: &String| {
            let name = line.split_once("<a href=\"").and_then(|(_, rest)| rest.split('"').next());
            name.is_some_and(|name| is_below(name.trim_end_matches('/')))
        };
        let lines = without_length(lines).into_iter().filter(|line| !is_entry(line));
        let lines = lines.map(|line| line.replace("<ul>", "").replace("</ul>", ""));
        lines.filter(|line| line != "| ").collect::<Vec<_>>()
    };
    if !lasts.is_empty() && difference(&others(apache), &others(tamarack), Rule::Answer).is_none() {
        return true;
    }
    if !lasts.is_empty() && differ_in_range_of_listing(apache, tamarack) {
        return true;
    }
    let target = String::from_utf8_lossy(&request.target);
    let path = target.split('?').next().unwrap_or_default();
    let variant = |lines: &[String]| {
        let chosen = lines.iter().find_map(|line| line.strip_prefix("< Content-Location: "))?;
        chosen.rsplit('/').next().map(str::to_owned)
    };
    let last = path.rsplit('/').next().unwrap_or_default();
    let Some(variant) = variant(apache).or_else(|| variant(tamarack)) else {
        // An error does not say for which variant it stands.
        let is_error = status(apache).is_some_and(|status| status >= 400);
        return is_error
            && status(apache) == status(tamarack)
            && names(site, "Options", "MultiViews")
            && is_below(last);
    };
    is_below(&variant) && last != variant
}

/// Parts of listings of which Tamarack's is the shorter one.
fn differ_in_range_of_listing(apache: &[String], tamarack: &[String]) -> bool {
    const RANGE: &str = "< Content-Range: bytes ";
    let whole = |lines: &[String]| -> Option<usize> {
        lines.iter().find_map(|line| line.strip_prefix(RANGE)?.rsplit('/').next()?.parse().ok())
    };
    let (Some(longer), Some(shorter)) = (whole(apache), whole(tamarack)) else { return false };
    let head = |lines: &[String]| {
        let head = lines.iter().take_while(|line| *line != "<");
        let head = head.filter(|line| !line.starts_with(RANGE)).cloned();
        without_length(&head.collect::<Vec<_>>())
    };
    let is_listing =
        apache.iter().any(|line| line == "< Content-Type: text/html;charset=ISO-8859-1");
    is_listing
        && status(apache) == Some(206)
        && longer > shorter
        && difference(&head(apache), &head(tamarack), Rule::Answer).is_none()
}

/// Whether a name matches a pattern whose last letter is its only wildcard.
fn is_matched(name: &str, pattern: &str) -> bool {
    match (pattern.strip_suffix('*'), pattern.strip_suffix('?')) {
        (Some(begin), _) => name.starts_with(begin),
        (_, Some(begin)) => name.strip_prefix(begin).is_some_and(|rest| rest.chars().count() == 1),
        _ => false,
    }
}

pub fn status(lines: &[String]) -> Option<u16> {
    status_line(lines).and_then(|line| line.split(' ').nth(2)?.parse().ok())
}

/// The status that a page without a head tells, as HTTP/0.9 has it.
pub fn status_of_page(lines: &[String]) -> Option<u16> {
    let title = lines.iter().find_map(|line| line.strip_prefix("| <title>"))?;
    title.split(' ').next()?.parse().ok()
}

/// The status line of the response behind interim ones.
pub fn status_line(lines: &[String]) -> Option<&String> {
    lines.iter().rfind(|line| line.starts_with("< HTTP/"))
}

/// A filter of the request's body may change the length that Apache tells of its reflection.
fn differ_in_reflected_length(
    site: &Site,
    request: &Request,
    apache: &[String],
    tamarack: &[String],
) -> bool {
    let filters = ["CharsetSourceEnc", "SetInputFilter", "AddInputFilter"];
    let has_filter = filters.iter().any(|name| names(site, name, ""));
    let (apache_head, apache_body) = halves(apache);
    let (tamarack_head, tamarack_body) = halves(tamarack);
    // HTTP/1.0 has no chunks.
    let unframed = |head: &[String]| {
        let mut lines = without_length(head);
        lines.retain(|line| line != CHUNKED);
        lines.sort();
        lines
    };
    request.method == "POST"
        && has_filter
        && names(site, "", "reflector")
        && length(apache).is_some()
        && length(tamarack).is_none()
        && unframed(apache_head) == unframed(tamarack_head)
        && text(tamarack_body).starts_with(&text(apache_body))
}

/// Head and body of a response.
fn halves(lines: &[String]) -> (&[String], &[String]) {
    let end = lines.iter().position(|line| line == "<").unwrap_or(lines.len());
    lines.split_at(end)
}

/// A body that is shown as a text.
fn text(body: &[String]) -> String {
    let shown = |line: &String| match (line.strip_prefix("|- "), line.strip_prefix("| ")) {
        (Some(end), _) => end.to_owned(),
        (_, Some(line)) => format!("{line}\n"),
        _ => format!("{line}\n"),
    };
    body.iter().map(shown).collect()
}

/// Apache evaluates some expressions once more, and names a field without a name each time.
fn differ_in_empty_names(_: &Site, _: &Request, apache: &[String], tamarack: &[String]) -> bool {
    let named = |line: &String| match line.strip_prefix("< Vary: ") {
        Some(names) => {
            // The last blank of a field is shown escaped.
            let names = names.replace("\\x20", " ");
            let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
            format!("< Vary: {}", names.collect::<Vec<_>>().join(", "))
        }
        None if line == "< Vary:" => "< Vary: ".to_owned(),
        None => line.clone(),
    };
    let is_there = |line: &String| line != "< Vary: ";
    let plain = |lines: &[String]| lines.iter().map(named).filter(is_there).collect::<Vec<_>>();
    difference(&plain(apache), &plain(tamarack), Rule::Answer).is_none()
}

/// A listing's last line names the server, as does `Server`.
fn differ_in_signature(_: &Site, _: &Request, apache: &[String], tamarack: &[String]) -> bool {
    let is_plain = |line: &&String| {
        !line.starts_with("| <address>") && !line.starts_with("< Content-Length: ")
    };
    let has_signature = |lines: &[String]| lines.iter().any(|line| line.starts_with("| <address>"));
    let plain = |lines: &[String]| lines.iter().filter(is_plain).cloned().collect::<Vec<_>>();
    has_signature(apache)
        && has_signature(tamarack)
        && difference(&plain(apache), &plain(tamarack), Rule::Answer).is_none()
}

/// To HEAD, a page of the server with another media type can only be told by what it lacks.
fn differ_in_unsent_page(
    _: &Site,
    request: &Request,
    apache: &[String],
    tamarack: &[String],
) -> bool {
    let status = apache.first().and_then(|line| line.split(' ').nth(2)?.parse::<u16>().ok());
    let is_error = status.is_some_and(|status| status >= 300);
    // A text that `Header` sets is no date.
    let is_file =
        |line: &String| line.strip_prefix("< Last-Modified: ").and_then(seconds).is_some();
    request.method == "HEAD"
        && is_error
        && length(apache).is_some() == length(tamarack).is_some()
        && !apache.iter().any(is_file)
        && difference(&without_length(apache), &without_length(tamarack), Rule::Answer).is_none()
}

/// Apache sends a page that is longer than its buffer in chunks.
fn differ_in_long_page(_: &Site, _: &Request, apache: &[String], tamarack: &[String]) -> bool {
    const CHUNKED: &str = "< Transfer-Encoding: chunked";
    /// Apache's buffer, without the room for pages of another wording.
    const LONG: usize = 7_500;
    let mut plain = without_length(apache);
    plain.retain(|line| line != CHUNKED);
    apache.iter().any(|line| line == "body canned")
        && plain.len() < apache.len()
        && length(tamarack).is_some_and(|length| length >= LONG)
        && difference(&plain, &without_length(tamarack), Rule::Answer).is_none()
}

/// Apache's boundary is a number without leading zeros, chosen when it starts. Without a body it
/// can only be told by the length: that of each part is shorter, and of the end.
fn differ_in_boundary(_: &Site, request: &Request, apache: &[String], tamarack: &[String]) -> bool {
    let kind = "< Content-Type: multipart/byteranges; boundary=BOUNDARY".to_owned();
    let ranges = request.fields.iter().find(|(name, _)| name == "Range");
    let most = ranges.map_or(0, |(_, value)| value.split(|byte| *byte == b',').count());
    let (Some(shorter), Some(longer)) = (length(apache), length(tamarack)) else { return false };
    let less = longer.saturating_sub(shorter);
    request.method == "HEAD"
        && apache.contains(&kind)
        && less > 0
        && (2..=most).any(|parts| less % (parts + 1) == 0)
        && difference(&without_length(apache), &without_length(tamarack), Rule::Answer).is_none()
}

/// A part of a compressed body is a part of other bytes.
fn differ_in_compressed_range(
    _: &Site,
    _: &Request,
    apache: &[String],
    tamarack: &[String],
) -> bool {
    let is_coded = |line: &String| {
        ["gzip", "br"].iter().any(|coding| *line == format!("< Content-Encoding: {coding}"))
    };
    let rest = |lines: &[String]| {
        let head = lines.iter().take_while(|line| *line != "<");
        let is_length = |line: &&String| line.starts_with("< Content-Range: bytes ");
        without_length(&head.filter(|line| !is_length(line)).cloned().collect::<Vec<_>>())
    };
    status(apache) == Some(206)
        && apache.iter().any(is_coded)
        && difference(&rest(apache), &rest(tamarack), Rule::Answer).is_none()
}

/// A file of the future was modified at the time of the request, which are two.
fn differ_in_present(
    site: &Site,
    request: &Request,
    apache: &[String],
    tamarack: &[String],
) -> bool {
    const NAME: &str = "< Last-Modified: ";
    /// Less than between two requests of which the second waits.
    const SECONDS_MAX: u64 = 3;
    let is_future = |(key, value): &(String, String)| key == "mtime" && value.starts_with("2038");
    let date =
        |lines: &[String]| lines.iter().find_map(|line| seconds(line.strip_prefix(NAME)?.trim()));
    let others = |lines: &[String]| {
        lines.iter().filter(|line| !line.starts_with(NAME)).cloned().collect::<Vec<_>>()
    };
    let (Some(one), Some(other)) = (date(apache), date(tamarack)) else { return false };
    site.files.iter().any(|file| file.options.iter().any(is_future))
        && one.abs_diff(other) <= SECONDS_MAX
        // What expires later than that differs as well.
        && differ_in_seconds(site, request, &others(apache), &others(tamarack))
}

const LENGTH: &str = "< Content-Length: ";
const CHUNKED: &str = "< Transfer-Encoding: chunked";

pub fn length(lines: &[String]) -> Option<usize> {
    lines.iter().find_map(|line| line.strip_prefix(LENGTH)?.parse().ok())
}

pub fn without_length(lines: &[String]) -> Vec<String> {
    lines.iter().filter(|line| !line.starts_with(LENGTH)).cloned().collect()
}

/// Apache looks up what a request does not name without a look at who owns the link.
fn differ_behind_links(site: &Site, request: &Request, _: &[String], _: &[String]) -> bool {
    let mut compares_owners = false;
    site.walk(&mut |node| compares_owners |= node.words.contains("SymLinksIfOwnerMatch"));
    let has_owner = |file: &File| file.options.iter().any(|(key, _)| key == "uid");
    let is_of_other = |folder: &str, target: &str| {
        // The target may be a name in the link's own folder.
        let own = format!("{folder}/{target}");
        let is_it = |file: &File| target.ends_with(&file.path) || own == file.path;
        site.files.iter().any(|file| has_owner(file) && is_it(file))
    };
    let is_foreign = |file: &&File| match &file.content {
        Content::Link(target) => {
            let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            has_owner(file) || is_of_other(folder, target)
        }
        _ => false,
    };
    let mut links = site.files.iter().filter(is_foreign).map(|file| file.path.rsplit('/'));
    let target = String::from_utf8_lossy(&request.target);
    let path = target.split('?').next().unwrap_or_default();
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        // What two dots take back is not asked for.
        match part.to_lowercase().replace("%2e", ".").as_str() {
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    // By its name and the one of its folder: others may have the same name.
    let is_named = |mut link: RSplit<'_, char>| {
        let is_part = |name: &str| parts.contains(&name);
        link.next().is_some_and(is_part)
            && link.next().is_none_or(|folder| folder == "htdocs" || is_part(folder))
    };
    let has_links = links.clone().next().is_some();
    compares_owners && has_links && !links.any(is_named)
}

/// A pattern whose steps double with each letter of the client's text: to Apache it does not match.
fn is_undecided(site: &Site, request: &Request, tamarack: &[String]) -> bool {
    let status = status(tamarack).or_else(|| status_of_page(tamarack));
    // An error document elsewhere is a redirect.
    let is_error = matches!(status, Some(403 | 500))
        || status == Some(302) && names(site, "ErrorDocument", "://");
    may_be_undecided(site, request) && is_error
}

/// Whether the site has such a pattern, and the request such a text.
pub fn may_be_undecided(site: &Site, request: &Request) -> bool {
    const DOUBLING: &str = "(a+)+";
    /// The number of letters that takes more steps than the limit.
    const LETTERS: usize = 20;
    let mut doubles = false;
    site.walk(&mut |node| doubles |= node.words.contains(DOUBLING));
    let run = [b'a'; LETTERS];
    let is_long = |text: &[u8]| text.windows(LETTERS).any(|part| part == run);
    doubles && (is_long(&request.target) || request.fields.iter().any(|(_, text)| is_long(text)))
}

/// The line of a limit that Tamarack's error log says was reached.
pub fn limit(errors: &str) -> Option<&'static str> {
    LIMITS.iter().find(|(message, _)| errors.contains(message)).map(|(_, cites)| *cites)
}

/// The line that allows this difference. `errors` is what Tamarack's error log says of the request.
pub fn rule(
    site: &Site,
    request: &Request,
    apache: &[String],
    tamarack: &[String],
    errors: &str,
) -> Option<&'static str> {
    if let Some(cites) = limit(errors) {
        return Some(cites);
    }
    let is_folder = errors.contains(REFUSED_AS_IS);
    if is_folder && differ_as_folders(site, request, apache, tamarack) {
        return Some(OF_FOLDERS_AS_IS);
    }
    let wanted = WANTED.iter().find(|wanted| (wanted.applies)(site, request, apache, tamarack));
    wanted.map(|wanted| wanted.cites)
}

#[cfg(test)]
mod tests;
