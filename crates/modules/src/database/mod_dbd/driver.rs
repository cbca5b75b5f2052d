//! What a database is asked through: a connection by one of the drivers.

use std::time::Instant;

use super::Settings;
use super::pgsql::{self, Conninfo};
use super::sqlite3::Sqlite3;
use super::statement::{Places, Statement};

/// The most bytes of a result: names, and the values of all rows.
pub(super) const RESULT_BYTES_MAX: usize = 4 << 20;

/// `DBDriver`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    /// `sqlite3`
    Sqlite3,
    /// `pgsql`
    Pgsql,
}

impl Driver {
    /// The driver of a name.
    pub fn of_name(name: &[u8]) -> Option<Driver> {
        match name {
            b"sqlite3" => Some(Driver::Sqlite3),
            b"pgsql" => Some(Driver::Pgsql),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Driver::Sqlite3 => "sqlite3",
            Driver::Pgsql => "pgsql",
        }
    }

    /// How it writes the places of parameters.
    pub fn places(self) -> Places {
        match self {
            Driver::Sqlite3 => Places::Question,
            Driver::Pgsql => Places::Dollar,
        }
    }

    /// Reads `DBDParams`.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn parameters(self, text: &str) -> Result<Parameters, String> {
        match self {
            Driver::Sqlite3 => Ok(Parameters::Sqlite3(text.to_owned())),
            Driver::Pgsql => Conninfo::parse(text).map(|info| Parameters::Pgsql(Box::new(info))),
        }
    }
}

/// `DBDParams`, as the driver reads them.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Parameters {
    /// The name of the file.
    Sqlite3(String),
    /// What libpq would connect with.
    Pgsql(Box<Conninfo>),
}

/// A parameter of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    /// A text, which the database turns into what the statement wants.
    Text(Vec<u8>),
    /// A number.
    Integer(i64),
}

/// What a statement has returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The names of the columns.
    pub names: Vec<String>,
    /// The rows: the text of each value, `None` for NULL.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    /// How many rows it has changed.
    pub changed: u64,
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unopened {
    /// There is none: the reason.
    Connect(String),
    /// The database does not accept a statement: the reason.
    Prepare(String),
}

/// A connection. All methods may block, until the deadline at most.
pub(super) trait Connection: Send {
    /// Executes a statement with its parameters; those that are not given are NULL.
    ///
    /// # Errors
    /// The database's message.
    fn run(
        &mut self,
        statement: &Statement,
        arguments: &[Argument],
        deadline: Instant,
    ) -> Result<Outcome, String>;

    /// Whether it can be used again.
    fn is_usable(&mut self) -> bool;
}

/// Opens a connection: prepares all statements, then executes those of `DBDInitSQL`.
pub(super) fn open(
    settings: &Settings,
    deadline: Instant,
) -> Result<Box<dyn Connection>, Unopened> {
    let mut connection: Box<dyn Connection> = match &settings.parameters {
        Parameters::Sqlite3(path) => Box::new(Sqlite3::open(path, &settings.statements)?),
        Parameters::Pgsql(info) => {
            Box::new(pgsql::Pgsql::open(info, &settings.statements, deadline)?)
        }
    };
    for sql in &settings.initial {
        connection.run(sql, &[], deadline).map_err(Unopened::Prepare)?;
    }
    Ok(connection)
}
