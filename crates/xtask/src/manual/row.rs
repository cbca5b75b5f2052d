//! Directive rows as the program prints them: one JSON object per line.

use serde_json::Value;

/// How far a directive is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Works as in Apache.
    Done,
    /// Works in part; the note says what is missing.
    Partial,
    /// Is deliberately an error; the note says why.
    Refused,
    /// Is read without effect, because the feature that it configures does not exist here; the note
    /// names it.
    Accepted,
    /// Is known by name and reported as missing.
    NotYet,
}

impl State {
    /// The word in tables and rows.
    pub fn word(self) -> &'static str {
        match self {
            State::Done => "done",
            State::Partial => "partial",
            State::Refused => "refused",
            State::Accepted => "accepted",
            State::NotYet => "not yet",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        match word {
            "done" => Some(State::Done),
            "partial" => Some(State::Partial),
            "refused" => Some(State::Refused),
            "accepted" => Some(State::Accepted),
            "not-yet" => Some(State::NotYet),
            _ => None,
        }
    }
}

/// A directive.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// As written in a configuration; sections with their angle brackets.
    pub name: String,
    /// `mod_alias`, or `core`.
    pub module: String,
    /// The source file, from the root of the checkout.
    pub file: String,
    /// The allowed contexts.
    pub contexts: Vec<String>,
    /// The AllowOverride class; empty if the directive is not allowed in .htaccess.
    pub override_class: String,
    /// The default; empty if there is none.
    pub default: String,
    /// The arguments, with or without the name before them.
    pub syntax: String,
    /// The description in Markdown.
    pub doc: String,
    /// How far it is supported.
    pub state: State,
    /// The missing part, or the reason for a refusal.
    pub note: String,
}

/// A module of Apache that is not implemented yet.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing {
    /// `mod_rewrite`
    pub module: String,
    /// Its directives that are read without effect.
    pub inert: Vec<String>,
}

/// The program's dump.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// The implemented directives.
    pub rows: Vec<Row>,
    /// The implemented modules, by the names of Apache's manual.
    pub here: Vec<String>,
    /// The missing modules.
    pub missing: Vec<Missing>,
}

/// Parses the dump.
///
/// # Errors
/// A line is not a JSON object, or lacks a name, module or state; or a name occurs twice in one
/// module.
pub fn parse(text: &str) -> Result<Dump, String> {
    let mut dump = Dump::default();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |error| format!("row {}: {error}", number + 1);
        let value: Value = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        if let Some(module) = value["here"].as_str() {
            dump.here.push(module.to_owned());
            continue;
        }
        if let Some(module) = value["missing"].as_str() {
            let module = module.to_owned();
            dump.missing.push(Missing { module, inert: words(&value["inert"]) });
            continue;
        }
        let row = parse_row(&value).map_err(wrong)?;
        let is_same = |other: &Row| other.name == row.name && other.module == row.module;
        if dump.rows.iter().any(is_same) {
            return Err(wrong(format!("{} occurs twice in {}", row.name, row.module)));
        }
        dump.rows.push(row);
    }
    if dump.rows.is_empty() { Err("the program printed no rows".to_owned()) } else { Ok(dump) }
}

fn words(value: &Value) -> Vec<String> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|word| word.as_str()).map(str::to_owned).collect()
}

fn parse_row(value: &Value) -> Result<Row, String> {
    let text = |key: &str| value[key].as_str().unwrap_or("").to_owned();
    let required = |key: &str| match value[key].as_str() {
        Some(word) if !word.is_empty() => Ok(word.to_owned()),
        _ => Err(format!("no `{key}`")),
    };
    let state = required("state")?;
    Ok(Row {
        name: required("name")?,
        module: required("module")?,
        file: text("file"),
        contexts: words(&value["contexts"]),
        override_class: text("override"),
        default: text("default"),
        syntax: text("syntax"),
        doc: text("doc"),
        state: State::parse(&state).ok_or_else(|| format!("unknown state `{state}`"))?,
        note: text("note"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read() {
        let dump = parse(include_str!("sample.json")).unwrap();
        assert_eq!(dump.missing, [Missing { module: "mod_md".to_owned(), inert: Vec::new() }]);
        let rows = dump.rows;
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[1].override_class, "FileInfo");
        assert_eq!(rows[1].contexts.len(), 4);
        assert_eq!(rows[3].state, State::Refused);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        assert!(parse("").is_err());
        assert_eq!(
            parse("{\"module\":\"core\",\"state\":\"done\"}").unwrap_err(),
            "row 1: no `name`"
        );
        let odd = "{\"name\":\"A\",\"module\":\"core\",\"state\":\"maybe\"}";
        assert_eq!(parse(odd).unwrap_err(), "row 1: unknown state `maybe`");
        let twice = "{\"name\":\"A\",\"module\":\"core\",\"state\":\"done\"}\n".repeat(2);
        assert_eq!(parse(&twice).unwrap_err(), "row 2: A occurs twice in core");
    }
}
