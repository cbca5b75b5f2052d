//! The contents of a report: the verdict, and everything that led to it.

use http::connection::OverHttp2;
use regular::looks::Looks;
use server::explain::{Event, Kind};
use server::hooks::Phase;
use server::request::{FileKind, Request};

use super::apache::{self, Deviation};
use super::cost::Cost;
use super::effective::{self, Line, Winner};
use super::headers::{self, Field};
use super::places::{Place, Places};
use super::session::{Answer, Session};
use super::target::Target;
use crate::lint::{self, Finding};

/// A report.
pub struct Report {
    /// The URL in full.
    pub url: String,
    /// The method.
    pub method: String,
    /// The status.
    pub status: u16,
    /// The phrase of the status line.
    pub phrase: String,
    /// The `Location` field.
    pub location: Option<String>,
    /// The file that the URL leads to.
    pub file: Option<String>,
    /// Whether that is a file, a directory or nothing.
    pub found: &'static str,
    /// The media type.
    pub media_type: Option<String>,
    /// The length of the body in bytes, if it is known before it is made.
    pub length: Option<u64>,
    /// The name of the handler that responded, or its module; `None` without one.
    pub handler: Option<String>,
    /// The server that was not asked: the response is the one that is sent without it.
    pub unasked: Option<String>,
    /// Whether the response may depend on something that was not asked.
    pub is_uncertain: bool,
    /// The virtual host.
    pub host: HostReport,
    /// What only HTTP/2 has.
    pub http2: Option<Http2Report>,
    /// Whether the response is cached; if not, why.
    pub cached: Result<(), String>,
    /// The directives that apply, by name, with the places that they overrode.
    pub winners: Vec<Winner>,
    /// The directives that apply, the outermost first.
    pub lines: Vec<Line>,
    /// The response's fields.
    pub fields: Vec<Field>,
    /// The phases in which nothing is configured.
    pub idle: Vec<&'static str>,
    /// Lines for this request that do not do what they seem to do.
    pub hints: Vec<Finding>,
    /// Where the response may differ from that of Apache httpd.
    pub deviations: Vec<Deviation>,
    /// What the response costs, if that was measured.
    pub cost: Option<Cost>,
    /// What it asked of the file system.
    pub looks: Looks,
    /// The recording.
    pub event: Event,
}

/// A virtual host, and why it was selected.
pub struct HostReport {
    /// Its name.
    pub name: String,
    /// `<VirtualHost>`; `None` for the main server.
    pub place: Option<Place>,
    /// Its address as configured.
    pub address: String,
    /// The rule by which it was selected.
    pub rule: String,
    /// The number of other hosts of the address.
    pub others: usize,
}

/// A response over HTTP/2.
pub struct Http2Report {
    /// Whether the connection uses TLS.
    pub is_tls: bool,
    /// The directive that offers it.
    pub place: Option<Place>,
    /// The fields of early hints.
    pub hints: Vec<String>,
    /// Whether early hints are sent.
    pub sends_hints: bool,
    /// The targets that are promised to a client that accepts that.
    pub pushes: Vec<String>,
}

impl Report {
    /// Returns the report on an answer.
    pub fn new(session: &Session, target: &Target, method: &str, answer: Answer) -> Report {
        let parts = session.parts_of(&answer);
        let Answer { explained, event, looks, is_uncertain } = answer;
        let request = &*explained.request;
        let places = &session.places;
        let levels = effective::levels(places, &request.host, &parts, &event);
        let fields = headers::of(&explained.head, &event, places);
        let field = |name: &str| {
            let found = fields.iter().find(|field| field.name.eq_ignore_ascii_case(name));
            found.map(|field| field.value.clone())
        };
        let line = String::from_utf8_lossy(&explained.head);
        let line = line.split("\r\n").next().unwrap_or_default();
        let mut words = line.splitn(3, ' ').skip(1);
        // What is sent decides: a status that HTTP does not have becomes another.
        let status = words.next().and_then(|status| status.parse().ok());
        let phrase = words.next().unwrap_or_default().to_owned();
        let (file, registry) = (file_of(request), &session.server.registry);
        let lines = effective::lines(places, &levels);
        let subject = lint::Subject {
            levels: &levels,
            event: &event,
            is_of_main: request.host.defined_at.is_none(),
            paths: [target.path(), file.as_deref().unwrap_or_default()],
        };
        let hints = lint::of_request(places, &subject);
        Report {
            url: target.url.clone(),
            method: method.to_owned(),
            status: status.unwrap_or(request.response.status),
            phrase,
            location: field("Location"),
            file,
            found: found(request),
            media_type: field("Content-Type"),
            length: field("Content-Length").and_then(|length| length.parse().ok()),
            handler: handler(request, &event),
            unasked: unasked(&event),
            is_uncertain,
            host: host_report(session, target, request),
            http2: explained.http2.as_ref().map(|over| http2_report(target, over, &lines)),
            cached: cached(&event, field("ETag").as_deref()),
            winners: effective::winners(places, &levels, registry),
            hints,
            deviations: apache::deviations(registry, &lines, &event, places),
            cost: None,
            looks,
            lines,
            idle: idle(request),
            fields,
            event,
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn file_of(request: &Request) -> Option<String> {
    let name = &request.resource.filename;
    let is_path = name.first() == Some(&b'/');
    is_path.then(|| text(name))
}

fn found(request: &Request) -> &'static str {
    match request.resource.file.kind {
        FileKind::None => "does not exist",
        FileKind::Regular => "file",
        FileKind::Directory => "directory",
        FileKind::Other => "neither file nor directory",
    }
}

/// The name of the handler that responded, or else its module.
fn handler(request: &Request, event: &Event) -> Option<String> {
    let mut last = None;
    event.each(&mut |event| {
        let answers = event.kind == Kind::Hook && event.fact("phase") == Some("handler");
        if answers && event.outcome != "declined" {
            last = Some(headers::module_name(&event.name));
        }
    });
    let named = request.handler.as_deref().filter(|_| !request.handler_of_type);
    match (last?, named.filter(|name| !name.is_empty())) {
        (_, Some(name)) => Some(text(name)),
        (module, None) if module == "core" => Some("default-handler".to_owned()),
        (module, None) => Some(module),
    }
}

/// The server that would have been asked last.
fn unasked(event: &Event) -> Option<String> {
    let mut last = None;
    event.each(&mut |event| last = event.fact("connection").or(last));
    last.map(str::to_owned)
}

fn host_report(session: &Session, target: &Target, request: &Request) -> HostReport {
    let host = &request.host;
    let name = request.original().hostname.as_deref();
    let choice = session.server.vhosts.explain(target.local, name, host);
    let place = host
        .defined_at
        .as_ref()
        .map(|(file, line)| Place { file: session.places.short(file), line: *line });
    HostReport {
        name: text(&host.label()),
        place,
        address: choice.address,
        rule: choice.rule,
        others: choice.others,
    }
}

fn http2_report(target: &Target, over: &OverHttp2, lines: &[Line]) -> Http2Report {
    let protocols = lines.iter().rfind(|line| line.name.eq_ignore_ascii_case("Protocols"));
    let interim = text(&over.interim);
    let is_hint = |line: &&str| !line.is_empty() && !line.starts_with("HTTP/");
    Http2Report {
        is_tls: target.tls.is_some(),
        place: protocols.map(|line| line.place.clone()),
        hints: interim.split("\r\n").filter(is_hint).map(str::to_owned).collect(),
        sends_hints: over.sends_interim,
        pushes: over.pushes.iter().map(|path| text(path)).collect(),
    }
}

/// Whether the response is cached, or else the reason and the hooks that caused it.
fn cached(event: &Event, entity_tag: Option<&str>) -> Result<(), String> {
    let mut said = None;
    let mut by: Vec<String> = Vec::new();
    event.each(&mut |event| {
        if event.kind == Kind::Note && event.name == "cached" {
            said = Some(event);
        }
        let is_impure = |inner: &Event| inner.kind == Kind::Change && inner.name == "cached";
        let is_hook = matches!(event.kind, Kind::Hook | Kind::Filter);
        if is_hook && (event.fact("pure").is_some() || event.events.iter().any(is_impure)) {
            let module = headers::module_name(&event.name);
            if !by.contains(&module) && event.fact("phase") != Some("post_read_request") {
                by.push(module);
            }
        }
    });
    let Some(said) = said else {
        return Err("the request was refused before a host was known".to_owned());
    };
    match said.fact("why") {
        None => Ok(()),
        // A file that may still change within the resolution of its time.
        Some(_) if by == ["core"] && entity_tag.is_some_and(|tag| tag.starts_with("W/")) => {
            Err("the file changed a moment ago".to_owned())
        }
        Some(why) if why.contains("more than its path") && !by.is_empty() => {
            let verb = if by.len() == 1 { "looks" } else { "look" };
            Err(format!("{} {verb} at the request itself", by.join(", ")))
        }
        Some(why) => Err(why.to_owned()),
    }
}

fn idle(request: &Request) -> Vec<&'static str> {
    let is_idle = |phase: &Phase| request.plan.phase(*phase).is_empty();
    let before_log = Phase::ALL.into_iter().filter(|phase| *phase != Phase::LogTransaction);
    before_log.filter(is_idle).map(Phase::name).collect()
}

/// Whether an event is shown only if everything is shown.
pub fn is_dull(event: &Event) -> bool {
    match event.kind {
        Kind::Hook => event.outcome == "declined" && event.events.iter().all(is_dull),
        Kind::Filter => event.outcome == "no change",
        Kind::Change => is_dull_change(event),
        Kind::Note => event.name == "cached" || is_dull_line(event),
        Kind::NoHtaccess => true,
        _ => false,
    }
}

/// Whether a line of mod_rewrite adds nothing to its rules and conditions.
fn is_dull_line(event: &Event) -> bool {
    const DULL: [&str; 3] = ["setting lastsub", "init rewrite engine", "pass through "];
    match event.fact("level") {
        Some("trace1" | "trace2") => DULL.iter().any(|start| event.name.starts_with(start)),
        Some(_) => !event.name.starts_with("setting env"),
        None => false,
    }
}

fn is_dull_change(event: &Event) -> bool {
    match event.name.as_str() {
        "header" | "header (always)" | "variable" | "cached" | "body" | "method" => true,
        "found" => event.outcome == "file",
        "filters" => event.outcome.is_empty(),
        _ => false,
    }
}

/// The places of a report's text.
pub fn place(places: &Places, event: &Event) -> Option<Place> {
    places.of(event.span?)
}
