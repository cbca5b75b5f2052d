//! The directives.

use conf::Arg;
use server::directive::{Cx, Fault, Row, Set, Takes};

use super::{Remoteip, proxies};
use crate::aaa::mod_authz_host::network;

type Here<'a, 't> = Cx<'a, 't, Remoteip>;

pub(super) const ROWS: &[Row<Remoteip>] = &[
    Row::<Remoteip>::new(
        "RemoteIPHeader",
        Takes::One(|cx, name| {
            cx.server().header.set(name.text.to_vec());
            Ok(())
        }),
        "header-field",
        "Takes the client's address from this field, if a trusted proxy sends it.",
    ),
    Row::<Remoteip>::new(
        "RemoteIPInternalProxy",
        Takes::Each(|cx, word| add(cx, word, true)),
        "proxy-ip|proxy-ip/subnet|hostname ...",
        "Trusts proxies in the internal network, whose clients may have private addresses.",
    ),
    Row::<Remoteip>::new(
        "RemoteIPInternalProxyList",
        Takes::One(|cx, file| read(cx, file, true)),
        "filename",
        "Reads internal proxies from a file.",
    ),
    Row::<Remoteip>::new(
        "RemoteIPProxiesHeader",
        Takes::One(|cx, name| {
            cx.server().proxies_header.set(name.text.to_vec());
            Ok(())
        }),
        "HeaderFieldName",
        "Stores the addresses of the trusted proxies that a request has passed in this field.",
    ),
    Row::<Remoteip>::new(
        "RemoteIPProxyProtocol",
        Takes::Flag(|cx, on| {
            cx.server().protocol.0 = Some(on);
            Ok(())
        }),
        "On|Off",
        "Requires a header of the PROXY protocol, version 1 or 2, at the beginning of each \
         connection to the host's addresses, and takes the client's address from it.",
    )
    .default("Off"),
    Row::<Remoteip>::new(
        "RemoteIPProxyProtocolExceptions",
        Takes::Some { least: 0, most: usize::MAX, set: exceptions },
        "host|range [host|range] [host|range]",
        "Exempts connections from these networks from the PROXY protocol.",
    ),
    Row::<Remoteip>::new(
        "RemoteIPTrustedProxy",
        Takes::Each(|cx, word| add(cx, word, false)),
        "proxy-ip|proxy-ip/subnet|hostname ...",
        "Trusts proxies, whose clients must have public addresses.",
    ),
    Row::<Remoteip>::new(
        "RemoteIPTrustedProxyList",
        Takes::One(|cx, file| read(cx, file, false)),
        "filename",
        "Reads trusted proxies from a file.",
    ),
];

fn add(cx: &mut Here<'_, '_>, word: &Arg, is_internal: bool) -> Set {
    let found = proxies::parse(&word.text, is_internal, cx.target.directive);
    let found = found.map_err(|why| Fault::new(why).at(word))?;
    cx.server().proxies.extend(found);
    Ok(())
}

fn read(cx: &mut Here<'_, '_>, file: &Arg, is_internal: bool) -> Set {
    let path = cx.build().path(&file.text);
    let found = proxies::read(&path, is_internal, cx.target.directive);
    let found = found.map_err(|why| Fault::new(why).at(file))?;
    cx.server().proxies.extend(found);
    Ok(())
}

fn exceptions(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    if words.is_empty() {
        return Err("RemoteIPProxyProtocolExceptions requires an argument".into());
    }
    for word in words {
        let network = network(&word.text).map_err(|reason| {
            let address = word.text.split(|byte| *byte == b'/').next().unwrap_or_default();
            let shown = bstr::BStr::new(address);
            let message = match reason {
                None => format!("ip address '{shown}' appears to be invalid"),
                Some(reason) => format!("ip address '{shown}' appears to be invalid: {reason}"),
            };
            Fault::new(message).at(word)
        })?;
        cx.server().exceptions.0.push(network);
    }
    Ok(())
}
