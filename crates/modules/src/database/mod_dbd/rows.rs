//! The directives of mod_dbd.

use conf::Arg;
use server::directive::{Cx, Fault, Row, Set, State, Takes};

use super::Dbd;
use super::driver::Driver;

type Here<'a, 't> = Cx<'a, 't, Dbd>;

pub(super) const ROWS: &[Row<Dbd>] = &[
    Row::<Dbd>::new("DBDriver", Takes::One(driver), "name", "Sets the kind of database.")
        .state(State::Partial("the drivers are sqlite3 and pgsql")),
    Row::<Dbd>::new(
        "DBDParams",
        Takes::One(parameters),
        "param1=value1[,param2=value2]",
        "Sets what the driver connects with: a file, or the parameters of libpq.",
    )
    .state(State::Partial("services, sslpassword and GSSAPI of libpq are errors")),
    Row::<Dbd>::new(
        "DBDPersist",
        Takes::Flag(|cx, on| {
            cx.server().persists.set(on);
            Ok(())
        }),
        "On|Off",
        "Keeps connections for further requests.",
    )
    .default("On"),
    Row::<Dbd>::new(
        "DBDPrepareSQL",
        Takes::Some { least: 1, most: 2, set: prepare_sql },
        "\"SQL statement\" label",
        "Defines a statement that other directives name, or removes one.",
    ),
    Row::<Dbd>::new(
        "DBDInitSQL",
        Takes::One(initial),
        "\"SQL statement\"",
        "Sets a statement that is executed on each new connection.",
    ),
    Row::<Dbd>::new(
        "DBDMin",
        Takes::One(|cx, arg| {
            let number = number(arg)?;
            cx.server().min.set(usize::try_from(number).unwrap_or(usize::MAX));
            Ok(())
        }),
        "number",
        "Sets how many connections a process opens at its start.",
    )
    .default("1"),
    Row::<Dbd>::new(
        "DBDKeep",
        Takes::One(|cx, arg| {
            let number = number(arg)?;
            cx.server().keep.set(usize::try_from(number).unwrap_or(usize::MAX));
            Ok(())
        }),
        "number",
        "Sets how many idle connections a process keeps.",
    )
    .default("2"),
    Row::<Dbd>::new(
        "DBDMax",
        Takes::One(|cx, arg| {
            let number = number(arg)?;
            cx.server().max.set(usize::try_from(number).unwrap_or(usize::MAX));
            Ok(())
        }),
        "number",
        "Sets how many connections a process has at most.",
    )
    .default("10"),
    Row::<Dbd>::new(
        "DBDExptime",
        Takes::One(|cx, arg| {
            let seconds = number(arg)?;
            cx.server().expiry_s.set(seconds);
            Ok(())
        }),
        "time-in-seconds",
        "Sets how long a connection may be idle before another one takes its place.",
    )
    .default("300"),
];

/// APR's drivers that are not here.
const OTHERS: [&[u8]; 6] = [b"mysql", b"oracle", b"odbc", b"freetds", b"sqlite2", b"ibmdb2"];

/// Source: `dbd_param`.
fn driver(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let name = &arg.text;
    if let Some(driver) = Driver::of_name(name) {
        cx.server().driver.set(driver);
        return Ok(());
    }
    let fault = Fault::new(format!("Can't load driver file apr_dbd_{name}.so")).at(arg);
    if !OTHERS.contains(&&name[..]) {
        return Err(fault);
    }
    Err(fault.help(
        "use sqlite3 or pgsql: copy the tables there, or let PostgreSQL ask the other database by \
         a foreign data wrapper",
    ))
}

fn parameters(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let text = utf8("DBDParams", arg)?;
    let span = arg.span;
    cx.server().parameters.set((text, span));
    Ok(())
}

/// Source: `dbd_prepare`. Without a statement, the first argument is the label.
fn prepare_sql(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let (query, label) = match args {
        [query, label] => (utf8("DBDPrepareSQL", query)?, utf8("DBDPrepareSQL", label)?),
        [label] => (String::new(), utf8("DBDPrepareSQL", label)?),
        _ => return Ok(()),
    };
    cx.server().queries.insert(label, query);
    Ok(())
}

/// Source: `dbd_init_sql`.
fn initial(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let text = utf8("DBDInitSQL", arg)?;
    cx.server().initial.push(text);
    Ok(())
}

/// A text for a database.
pub(super) fn utf8(directive: &str, arg: &Arg) -> Result<String, Fault> {
    let text = std::str::from_utf8(&arg.text).map(str::to_owned);
    text.map_err(|_| Fault::new(format!("{directive} is not UTF-8")).at(arg))
}

/// A number of digits alone (`ISINT`).
fn number(arg: &Arg) -> Result<u64, Fault> {
    if !arg.text.iter().all(u8::is_ascii_digit) {
        return Err(Fault::new("Argument must be numeric!").at(arg));
    }
    Ok(arg.text.iter().fold(0u64, |number, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    }))
}
