//! A transcript as a picture.

use std::fmt::Write as _;

const STYLE: &str = "rect{fill:#fbfaf7;stroke:#d8d4c8}\
text{font:12.5px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#26241f;white-space:pre}\
.d{fill:#7a756a}.r{fill:#b3261e;font-weight:bold}.b{font-weight:bold}\
@media(prefers-color-scheme:dark){rect{fill:#1d1c1a;stroke:#3b3934}text{fill:#e8e5dc}\
.d{fill:#9c978a}.r{fill:#ff8a80}}";

/// The height of a line in pixels.
const LINE: usize = 17;

/// The first group that is not shown.
const END: &str = "├ response";

/// Draws a command and its recorded output, without what differs from run to run.
pub fn of(argument: &str, recorded: &[String]) -> String {
    let mut lines = vec![format!("$ tamarack {}", plain(argument))];
    let shown = recorded.iter().filter_map(|line| line.strip_prefix("| ")).map(unescaped);
    let shown = shown.take_while(|line| line != END);
    lines.extend(shown.map(|line| aligned(&plain(&line))));
    lines.push("…".to_owned());
    let height = LINE * lines.len() + 15;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"{height}\" \
         viewBox=\"0 0 860 {height}\" role=\"img\" \
         aria-label=\"tamarack explain: a 403, and the line that is responsible\">\n\
         <style>{STYLE}</style>\n<rect x=\".5\" y=\".5\" width=\"859\" \
         height=\"{}\" rx=\"6\"/>\n",
        height - 1
    );
    for (at, line) in lines.iter().enumerate() {
        let y = LINE * (at + 1) + 7;
        let text = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let class = class_of(at, line);
        let _ =
            writeln!(out, "<text x=\"14\" y=\"{y}\" xml:space=\"preserve\"{class}>{text}</text>");
    }
    out.push_str("</svg>\n");
    out
}

/// The responsible line and the status stand out, headings are bold, the command is grey.
fn class_of(at: usize, line: &str) -> &'static str {
    let is_reason = line.contains("Require ip") && line.ends_with("denied");
    match at {
        0 => " class=\"d\"",
        1 => " class=\"r\"",
        _ if is_reason => " class=\"r\"",
        _ if line.starts_with(['├', '└']) => " class=\"b\"",
        _ => "",
    }
}

/// A line as on port 80, without times.
fn plain(line: &str) -> String {
    let line = line.replace(":@PORT@", "");
    line.strip_suffix("TIME").unwrap_or(&line).trim_end().to_owned()
}

/// A line whose place begins in its column again, after shorter words have replaced masked ones.
fn aligned(line: &str) -> String {
    const WIDTH: usize = 100;
    const PLACE: usize = 60;
    const TEXT: usize = 24;
    let letters: Vec<char> = line.chars().collect();
    let is_continued = letters.iter().take(19).skip(4).all(|letter| *letter == ' ');
    let text: String = letters.iter().skip(TEXT).collect();
    let head: String = letters.iter().take(TEXT).collect();
    match text.split_once("  ") {
        Some((left, right)) if !is_continued => {
            let (left, right) = (format!("{head}{left}"), right.trim_start());
            let is_wide = left.chars().count() + 2 > PLACE || PLACE + right.len() > WIDTH;
            let column = if is_wide { 0 } else { PLACE - 2 };
            format!("{left:<column$}  {right}")
        }
        _ => line.to_owned(),
    }
}

/// Recordings write letters outside ASCII as escapes.
fn unescaped(line: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), line);
    while let Some((before, after)) = rest.split_once("\\x") {
        bytes.extend_from_slice(before.as_bytes());
        let (code, after) = after.split_at(2);
        bytes.push(u8::from_str_radix(code, 16).unwrap());
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).unwrap()
}
