//! Directive rows as the program prints them: one JSON object a line.

use serde_json::Value;

/// How far a directive is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Works as in Apache.
    Done,
    /// Works in part; the note says what does not.
    Partial,
    /// Is an error on purpose; the note says why.
    Refused,
    /// Is read and has no effect, because what it tunes is not here; the note says what.
    Accepted,
    /// Known by name and reported as missing.
    NotYet,
}

impl State {
    /// The word in the tables, and in the rows.
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

/// One directive.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// As written in a configuration; sections with their angle brackets.
    pub name: String,
    /// `mod_alias`, or `core`.
    pub module: String,
    /// Where it is written, from the root of the checkout.
    pub file: String,
    /// Where it may stand.
    pub contexts: Vec<String>,
    /// The AllowOverride class, empty where it can't stand in an .htaccess.
    pub override_class: String,
    /// The default, empty when there is none.
    pub default: String,
    /// The arguments, with or without the name before them.
    pub syntax: String,
    /// What it does, in Markdown.
    pub doc: String,
    /// How far it is supported.
    pub state: State,
    /// What is missing, or why it is refused.
    pub note: String,
}

/// A module of Apache that is not here yet.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing {
    /// `mod_rewrite`
    pub module: String,
    /// Its directives that are read without effect.
    pub inert: Vec<String>,
}

/// What the program prints of itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// The directives that are here.
    pub rows: Vec<Row>,
    /// The modules that are here, by the names of Apache's manual.
    pub here: Vec<String>,
    /// The modules that are not.
    pub missing: Vec<Missing>,
}

/// Reads the dump.
///
/// # Errors
/// A line that is no JSON object, lacks a name, module or state, or a name that comes twice in
/// one module.
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
            return Err(wrong(format!("{} comes twice in {}", row.name, row.module)));
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
        assert_eq!(parse(&twice).unwrap_err(), "row 2: A comes twice in core");
    }
}
