//! The driver `sqlite3`. Source: APR's `apr_dbd_sqlite3.c`.

use std::time::{Duration, Instant};

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection as Handle, OpenFlags, Row, Rows, ToSql};

use super::driver::{Argument, Connection, Outcome, RESULT_BYTES_MAX, Unopened};
use super::statement::{Statement, Type};

/// How long a file that another connection writes is waited for (`MAX_RETRY_COUNT` times
/// `MAX_RETRY_SLEEP`).
const BUSY_WAIT: Duration = Duration::from_millis(1500);
/// Steps of a statement between two looks at the clock.
const STEPS: i32 = 10_000;

/// A connection to a file.
pub(super) struct Sqlite3(Handle);

impl Sqlite3 {
    /// Opens a file, which is made if there is none.
    pub fn open(path: &str, statements: &[Statement]) -> Result<Sqlite3, Unopened> {
        let failed = |why: rusqlite::Error| Unopened::Connect(text(&why));
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let handle = Handle::open_with_flags(path, flags).map_err(failed)?;
        handle.busy_timeout(BUSY_WAIT).map_err(failed)?;
        for statement in statements {
            handle.prepare(&statement.sql).map_err(|why| Unopened::Prepare(text(&why)))?;
        }
        Ok(Sqlite3(handle))
    }
}

impl Connection for Sqlite3 {
    fn run(
        &mut self,
        statement: &Statement,
        arguments: &[Argument],
        deadline: Instant,
    ) -> Result<Outcome, String> {
        let is_late = move || Instant::now() > deadline;
        self.0.progress_handler(STEPS, Some(is_late)).map_err(|why| text(&why))?;
        let outcome = execute(&self.0, statement, arguments);
        let _ = self.0.progress_handler(0, None::<fn() -> bool>);
        outcome
    }

    fn is_usable(&mut self) -> bool {
        true
    }
}

fn execute(
    handle: &Handle,
    statement: &Statement,
    arguments: &[Argument],
) -> Result<Outcome, String> {
    let failed = |why: rusqlite::Error| text(&why);
    let mut prepared = handle.prepare(&statement.sql).map_err(failed)?;
    for place in 0..prepared.parameter_count() {
        let value = arguments.get(place);
        let kind = statement.types.get(place).copied().unwrap_or(Type::String);
        prepared.raw_bind_parameter(place + 1, Bound(value, kind)).map_err(failed)?;
    }
    let names = prepared.column_names().map(str::to_owned).collect();
    let count = prepared.column_count();
    let before = handle.total_changes();
    let rows = all(prepared.raw_query(), count)?;
    let changed = if handle.total_changes() > before { handle.changes() } else { 0 };
    Ok(Outcome { names, rows, changed })
}

fn all(mut rows: Rows<'_>, count: usize) -> Result<Vec<Vec<Option<Vec<u8>>>>, String> {
    let (mut all, mut bytes) = (Vec::new(), 0usize);
    while let Some(row) = rows.next().map_err(|why| text(&why))? {
        let values: Result<Vec<_>, String> = (0..count).map(|at| value(row, at)).collect();
        let values = values?;
        let size = values.iter().flatten().map(Vec::len).sum::<usize>();
        bytes = bytes.saturating_add(size + count * size_of::<Option<Vec<u8>>>());
        if bytes > RESULT_BYTES_MAX {
            return Err("the result is too long".to_owned());
        }
        all.push(values);
    }
    Ok(all)
}

/// The text of a value (`sqlite3_column_text`).
fn value(row: &Row<'_>, at: usize) -> Result<Option<Vec<u8>>, String> {
    Ok(match row.get_ref(at).map_err(|why| text(&why))? {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string().into_bytes()),
        ValueRef::Real(number) => Some(real(number).into_bytes()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes.to_vec()),
    })
}

/// The text of a number (`%!.15g`): 15 digits, and always a point.
fn real(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:.14e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| {
        let short = text.trim_end_matches('0');
        if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
    };
    if (-4..=15).contains(&exponent) {
        let places = usize::try_from(14 - exponent).unwrap_or(0);
        let plain = format!("{number:.places$}");
        return if plain.contains('.') { trimmed(&plain) } else { format!("{plain}.0") };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

/// A parameter. The column's affinity turns a text into a number.
struct Bound<'a>(Option<&'a Argument>, Type);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match (self.0, self.1) {
            (None, _) | (_, Type::Null) => ToSqlOutput::Owned(Value::Null),
            (Some(Argument::Integer(number)), _) => ToSqlOutput::Owned(Value::Integer(*number)),
            (Some(Argument::Text(bytes)), Type::Blob) => {
                ToSqlOutput::Borrowed(ValueRef::Blob(bytes))
            }
            (Some(Argument::Text(bytes)), _) => ToSqlOutput::Borrowed(ValueRef::Text(bytes)),
        })
    }
}

/// The database's message, without the texts of the statement and of its parameters.
fn text(why: &rusqlite::Error) -> String {
    match why {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        why => why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::statement::Places;
    use super::*;

    fn run(connection: &mut Sqlite3, sql: &str, arguments: &[Argument]) -> Result<Outcome, String> {
        let statement = Statement::new("x", sql, Places::Question);
        connection.run(&statement, arguments, Instant::now() + Duration::from_secs(10))
    }

    #[test]
    fn parameters_are_bound() {
        let mut memory = Sqlite3::open(":memory:", &[]).unwrap();
        run(&mut memory, "CREATE TABLE a (b TEXT, c INTEGER)", &[]).unwrap();
        let quotes = b"x'; DROP TABLE a; --\"".to_vec();
        let insert = "INSERT INTO a VALUES (%s, %d)";
        let arguments = [Argument::Text(quotes.clone()), Argument::Text(b"5".to_vec())];
        let made = run(&mut memory, insert, &arguments).unwrap();
        assert_eq!((made.changed, made.rows.len()), (1, 0));
        let found = run(&mut memory, "SELECT b, c, typeof(c) AS t, NULL FROM a", &[]).unwrap();
        let (five, integer) = (b"5".to_vec(), b"integer".to_vec());
        assert_eq!(found.rows, [vec![Some(quotes), Some(five), Some(integer), None]]);
        let kind = run(&mut memory, "SELECT typeof(%lld)", &[Argument::Integer(7)]).unwrap();
        assert_eq!(kind.rows, [vec![Some(b"integer".to_vec())]]);
        assert_eq!((found.names[2].as_str(), found.changed), ("t", 0));
        let none = run(&mut memory, "SELECT b FROM a WHERE b = %s", &[]).unwrap();
        assert!(none.rows.is_empty());
        assert_eq!(run(&mut memory, "SELECT x FROM a", &[]), Err("no such column: x".to_owned()));
    }

    #[test]
    fn a_statement_ends_in_time() {
        let mut memory = Sqlite3::open(":memory:", &[]).unwrap();
        let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) \
                       SELECT count(*) FROM n";
        let statement = Statement::new("x", endless, Places::Question);
        let start = Instant::now();
        let outcome = memory.run(&statement, &[], start + Duration::from_millis(50));
        assert_eq!(outcome, Err("interrupted".to_owned()));
        let long = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) \
                    SELECT hex(zeroblob(10000)) FROM n";
        assert_eq!(run(&mut memory, long, &[]), Err("the result is too long".to_owned()));
    }

    #[test]
    fn numbers_are_sqlites_texts() {
        let mut memory = Sqlite3::open(":memory:", &[]).unwrap();
        for number in ["1.0", "0.1", "123456.789", "1e20", "1.5e-7", "-3.25", "1e15", "1e14", "0.0"]
        {
            let found = run(&mut memory, &format!("SELECT {number}, CAST({number} AS TEXT)"), &[]);
            let row = &found.unwrap().rows[0];
            assert_eq!(row[0], row[1], "{number}");
        }
    }
}
