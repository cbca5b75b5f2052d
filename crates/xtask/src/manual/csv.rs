//! The list of Apache's directives: comma-separated, with quoted fields.

/// A directive of Apache's manual.
#[derive(Debug, PartialEq, Eq)]
pub struct Reference {
    /// `mod_alias`, `core`, or an MPM's name.
    pub module: String,
    /// The name; sections with their angle brackets.
    pub directive: String,
    /// Core, Base, Extension, Experimental or MPM.
    pub status: String,
}

/// Reads the list; the first line names the columns.
///
/// # Errors
/// A column is missing.
pub fn reference(text: &str) -> Result<Vec<Reference>, String> {
    let mut lines = records(text).into_iter();
    let heading = lines.next().unwrap_or_default();
    let column = |name: &str| {
        heading
            .iter()
            .position(|word| word == name)
            .ok_or_else(|| format!("no column `{name}` in the list of directives"))
    };
    let (module, directive, status) = (column("module")?, column("directive")?, column("status")?);
    let field = |record: &[String], at: usize| record.get(at).cloned().unwrap_or_default();
    Ok(lines
        .map(|record| Reference {
            module: field(&record, module),
            directive: field(&record, directive),
            status: field(&record, status),
        })
        .collect())
}

fn records(text: &str) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    let mut record = vec![String::new()];
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                push(&mut record, '"');
                letters.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(String::new()),
            '\r' if !quoted => {}
            '\n' if !quoted => records.push(std::mem::replace(&mut record, vec![String::new()])),
            _ => push(&mut record, letter),
        }
    }
    if record.iter().any(|field| !field.is_empty()) {
        records.push(record);
    }
    records
}

fn push(record: &mut [String], letter: char) {
    if let Some(field) = record.last_mut() {
        field.push(letter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_commas_and_quotes() {
        let text = "a,b\n\"x, y\",\"say \"\"no\"\"\"\n1,\n";
        assert_eq!(records(text), [["a", "b"], ["x, y", "say \"no\""], ["1", ""]]);
    }

    #[test]
    fn columns_are_found_by_name() {
        let rows = reference("status,module,directive\nBase,mod_alias,Alias\n").unwrap();
        assert_eq!(rows[0].directive, "Alias");
        assert_eq!(rows[0].status, "Base");
        assert!(reference("module\n").is_err());
    }
}
