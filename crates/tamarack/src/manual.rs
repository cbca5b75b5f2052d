//! `tamarack manual --json`: the directive rows for the manual, one JSON object per line, followed
//! by the implemented and the missing modules.

use std::ffi::OsString;
use std::fmt::Write as _;

use server::context::Places;
use server::directive::{ErasedRow, State};

/// Prints the rows, and returns the exit status.
pub fn print(words: &[OsString]) -> i32 {
    if words.iter().any(|word| word != "--json") {
        eprintln!("usage: tamarack manual --json");
        return 1;
    }
    for module in modules::all() {
        for row in module.rows(0) {
            println!("{}", object(&row));
        }
    }
    for module in modules::all() {
        println!("{{\"here\":{}}}", quote(manual_name(module.file())));
    }
    for module in modules::missing::all().filter(|module| !module.is_needless()) {
        let inert: Vec<String> = module.inert_directives().map(quote).collect();
        let name = quote(&module.of_manual());
        println!("{{\"missing\":{name},\"inert\":[{}]}}", inert.join(","));
    }
    0
}

fn object(row: &ErasedRow) -> String {
    let places = [
        (Places::SERVER, "server config"),
        (Places::VHOST, "virtual host"),
        (Places::DIRECTORY, "directory"),
        (Places::HTACCESS, ".htaccess"),
    ];
    let contexts: Vec<String> = places
        .iter()
        .filter(|(place, _)| row.places.contains(*place))
        .map(|(_, name)| quote(name))
        .collect();
    let (state, note) = match row.state {
        State::Done => ("done", ""),
        State::DoneExcept(note) => ("done", note),
        State::Partial(note) => ("partial", note),
        State::Refused(note) => ("refused", note),
        State::Accepted(note) => ("accepted", note),
        State::NotYet => ("not-yet", ""),
    };
    let name = if row.is_section { format!("<{}>", row.name) } else { row.name.to_owned() };
    let fields = [
        ("name", quote(&name)),
        ("module", quote(manual_name(row.module))),
        ("contexts", format!("[{}]", contexts.join(","))),
        ("override", quote(&row.allow.to_string())),
        ("default", quote(row.default)),
        ("syntax", quote(row.syntax)),
        ("doc", quote(row.doc)),
        ("state", quote(state)),
        ("note", quote(note)),
    ];
    let fields: Vec<String> =
        fields.iter().map(|(key, value)| format!("{}:{value}", quote(key))).collect();
    format!("{{{}}}", fields.join(","))
}

/// The module that lists the directive in Apache's manual, by the module's file.
fn manual_name(file: &str) -> &str {
    match file.strip_suffix(".c").unwrap_or(file) {
        "http_core" => "core",
        stem => stem,
    }
}

/// A JSON string (RFC 8259 section 7).
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                out.push('\\');
                out.push(letter);
            }
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
    out
}
