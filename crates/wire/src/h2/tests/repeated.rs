//! Fields that come again: those of requests, from the table, and those of responses, prepared.

use proptest::prelude::*;

use super::*;
use crate::h2::Prepared;
use crate::h2::hpack::{Encoder, Indexing};
use crate::request::HeadLimits;

type Field = (String, String);

const NAMES: &[&str] = &[
    "x",
    "x-y",
    "cookie",
    "te",
    "host",
    "http2-settings",
    "connection",
    "x y",
    "X",
    "",
    "content-length",
    "content-type",
    "user-agent",
    ":path",
    ":other",
    "transfer-encoding",
];

const VALUES: &[&str] =
    &["1", "", " 1 ", "trailers", "h", "a\u{1}", "0", "long long long long long long"];

/// Fields of requests, many of which have a part in the protocol.
fn fields() -> impl Strategy<Value = Vec<Field>> {
    let field = (proptest::sample::select(NAMES), proptest::sample::select(VALUES));
    let field = field.prop_map(|(name, value)| (name.to_owned(), value.to_owned()));
    proptest::collection::vec(field, 0..6)
}

/// The outcomes of requests whose fields a client encodes, some of them by its table.
fn outcomes(requests: &[Vec<Field>], indexing: Indexing) -> Vec<String> {
    let head = HeadLimits { fields: 4, field_bytes: 30, ..HeadLimits::default() };
    let mut client = Client::new(Limits { head, ..Limits::default() });
    let mut encoder = Encoder::new();
    let mut outcomes = Vec::new();
    for (number, fields) in requests.iter().enumerate() {
        let mut block = Vec::new();
        for (name, value) in GET {
            encoder.field(name.as_bytes(), value.as_bytes(), Indexing::None, &mut block);
        }
        for (name, value) in fields {
            encoder.field(name.as_bytes(), value.as_bytes(), indexing, &mut block);
        }
        let stream = number as StreamId * 2 + 1;
        client.frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &block);
        let event = client.server.next_event().map(|event| match event {
            Event::Request { head, refusal, ends, .. } => format!("{head:?} {refusal:?} {ends}"),
            other => format!("{other:?}"),
        });
        outcomes.push(format!("{event:?} {:?}", client.sent()));
    }
    outcomes
}

proptest! {
    #[test]
    fn a_field_of_the_table_is_what_it_was(fields in fields(), others in fields()) {
        let requests = [fields.clone(), others, fields.clone(), fields];
        let expected = outcomes(&requests, Indexing::None);
        prop_assert_eq!(outcomes(&requests, Indexing::Table), expected);
    }

    #[test]
    fn prepared_fields_are_sent_as_any_others(
        responses in proptest::collection::vec(
            (100u16..600, "[a-c]", proptest::collection::vec(
                ("[Ee][Tt]ag|Server|Connection|Set-Cookie|Vary|X-[a-d]|Age", "[a-c]{0,3}|y{1200}"),
                0..6,
            )),
            1..8,
        ),
        limit in 0u32..5000,
        padding_bits in 0u8..3,
    ) {
        let mut clients = [(); 2].map(|()| {
            let mut client = Client::new(Limits { padding_bits, ..Limits::default() });
            client.frame(kind::SETTINGS, 0, 0, &[&[0, 1][..], &limit.to_be_bytes()].concat());
            client
        });
        for (number, (status, date, fields)) in responses.iter().enumerate() {
            let stream = number as StreamId * 2 + 1;
            let first = (&b"date"[..], date.as_bytes());
            let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            let [one, two] = &mut clients;
            one.request(stream, GET, true);
            two.request(stream, GET, true);
            one.server.respond(stream, *status, [first].into_iter().chain(fields.clone()), false);
            let prepared = Prepared::new(fields);
            two.server.respond_prepared(stream, *status, first, &prepared, false);
            prop_assert_eq!(one.sent(), two.sent());
        }
    }
}
