//! The directives of mod_filter.

use std::sync::Arc;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::expr;
use server::filter::Stage;

use super::protocol::{self, Protocols};
use super::{Condition, Filter, Provider, SmartFilter};

type Here<'a, 't> = Cx<'a, 't, Filter>;

/// Stages that may be named, although no handler's response has filters there.
const CONNECTION: Stage = Stage(50);
/// See [`CONNECTION`].
const NETWORK: Stage = Stage(60);

pub(super) const ROWS: &[Row<Filter>] = &[
    Row::<Filter>::new(
        "FilterDeclare",
        Takes::Some { least: 1, most: 2, set: declare },
        "filter-name [type]",
        "Declares a smart filter and its position in the chain.",
    )
    .standing(Places::ALL, Override::OPTIONS),
    Row::<Filter>::new(
        "FilterProvider",
        Takes::Some { least: 3, most: 3, set: provide },
        "filter-name provider-name expression",
        "Sets the filter that a smart filter runs if an expression is true.",
    )
    .standing(Places::ALL, Override::OPTIONS),
    Row::<Filter>::new(
        "FilterChain",
        Takes::Each(|cx, arg| {
            cx.dir().chain.edit(&arg.text);
            Ok(())
        }),
        "[+=-@!]filter-name ...",
        "Sets the filters that responses pass through, in order.",
    )
    .standing(Places::ALL, Override::OPTIONS),
    Row::<Filter>::new(
        "FilterTrace",
        Takes::Two(trace),
        "filter-name level",
        "Logs the input of a filter.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE),
    Row::<Filter>::new(
        "FilterProtocol",
        Takes::Some { least: 2, most: 3, set: set_protocol },
        "filter-name [provider-name] proto-flags",
        "Sets which header fields of a response become invalid if a filter has changed it.",
    )
    .standing(Places::ALL, Override::OPTIONS),
    Row::<Filter>::new(
        "AddOutputFilterByType",
        Takes::Some { least: 0, most: usize::MAX, set: by_type },
        "filter[;filter...] media-type [media-type] ...",
        "Sends responses of the given media types through filters.",
    )
    .standing(Places::ALL, Override::FILE_INFO),
];

fn declare(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let [name, stage @ ..] = args else { return Ok(()) };
    let stages = [
        ("RESOURCE", Stage::RESOURCE),
        ("CONTENT_SET", Stage::CONTENT_SET),
        ("PROTOCOL", Stage::PROTOCOL),
        ("TRANSCODE", Stage::TRANSCODE),
        ("CONNECTION", CONNECTION),
        ("NETWORK", NETWORK),
    ];
    // As in Apache, an unknown word has no effect.
    let known = stage.first().and_then(|word| stages.iter().find(|(known, _)| word.is(known)));
    let stage = known.map_or(Stage::RESOURCE, |(_, stage)| *stage);
    let smart = SmartFilter { stage, providers: Vec::new(), protocol: 0, trace: 0 };
    cx.dir().filters.insert(name.text.to_vec(), smart);
    Ok(())
}

fn provide(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let [name, provider, condition] = args else { return Ok(()) };
    known(cx, provider)?;
    let flags = cx.expr_flags();
    let expr = expr::parse_bool(&cx.build().registry, &condition.text, flags);
    let expr = expr.map_err(|why| {
        Fault::new(format!("Error parsing FilterProvider expression:{why}")).at(condition)
    })?;
    add(cx, &name.text, &provider.text, Condition::Expr(Arc::new(expr)), provider)
}

/// Adds a provider. An undeclared filter is declared at the provider's stage (`add_filter`).
fn add(cx: &mut Here<'_, '_>, name: &[u8], provider: &[u8], when: Condition, arg: &Arg) -> Set {
    let registry = cx.build().registry.clone();
    let Some(filter) = cx.build().filter(provider) else {
        return Err(unknown(provider, arg));
    };
    let protocols = registry.hooks.provider::<Protocols>("filter-protocols", "mod_filter");
    let protocol = protocols.map(|all| all.of(filter.name())).unwrap_or_default();
    let stage = filter.stage();
    let smart = cx.dir().filters.entry(name.to_vec()).or_insert_with(|| SmartFilter {
        stage,
        providers: Vec::new(),
        protocol: 0,
        trace: 0,
    });
    smart.providers.push(Provider { filter, when, protocol });
    Ok(())
}

fn known(cx: &mut Here<'_, '_>, provider: &Arg) -> Set {
    let found = cx.build().filter(&provider.text).is_some();
    if found { Ok(()) } else { Err(unknown(&provider.text, provider)) }
}

fn unknown(provider: &[u8], arg: &Arg) -> Fault {
    Fault::new(format!("Unknown filter provider {}", bstr::BStr::new(provider))).at(arg)
}

fn by_type(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let [filters, types @ ..] = args else { return Err(two_arguments()) };
    if types.is_empty() {
        return Err(two_arguments());
    }
    let types: Arc<Vec<Vec<u8>>> = Arc::new(types.iter().map(|arg| arg.text.to_vec()).collect());
    for filter in filters.text.split(|byte| *byte == b';').filter(|name| !name.is_empty()) {
        let name = [b"BYTYPE:", filter].concat();
        let is_known = cx.dir().filters.contains_key(&name);
        add(cx, &name, filter, Condition::Types(types.clone()), filters)?;
        if !is_known {
            cx.dir().chain.append(&name);
        }
    }
    Ok(())
}

fn two_arguments() -> Fault {
    Fault::new("AddOutputFilterByType requires at least two arguments")
}

fn trace(cx: &mut Here<'_, '_>, name: &Arg, level: &Arg) -> Set {
    let Some(smart) = cx.dir().filters.get_mut(name.text.as_slice()) else {
        return Err(Fault::new(format!("Undeclared smart filter {}", name.text)).at(name));
    };
    let digits: String = level.text.to_string();
    let digits = digits.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    smart.trace = digits.get(..end).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    Ok(())
}

fn set_protocol(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let Some((name, rest)) = args.split_first() else { return Ok(()) };
    let Some(smart) = cx.dir().filters.get_mut(name.text.as_slice()) else {
        return Err(Fault::new("FilterProtocol: No such filter").at(name));
    };
    match rest {
        [provider, flags] => {
            let found = smart
                .providers
                .iter()
                .find(|known| known.filter.name().as_bytes().eq_ignore_ascii_case(&provider.text));
            let Some(found) = found else {
                let missing = "FilterProtocol: No such provider for this filter";
                return Err(Fault::new(missing).at(provider));
            };
            protocol::set(&found.protocol, protocol::parse(&flags.text));
        }
        [flags] => smart.protocol = protocol::parse(&flags.text),
        _ => {}
    }
    Ok(())
}
