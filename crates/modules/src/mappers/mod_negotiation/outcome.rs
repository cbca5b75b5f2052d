//! Chooses the variant to serve, or a status.
//!
//! Source: `do_negotiation`, `setup_choice_response` (modules/mappers/mod_negotiation.c).

use server::errorlog::Verbatim;
use server::hooks::Bound;
use server::log::Level;
use server::request::Request;
use server::subrequest;
use wire::Method;

use super::accept::{Accepts, Terms};
use super::variant::Variant;
use super::{Negotiation, alternates, choose};

/// The variants of a resource.
pub(super) struct Variants {
    /// All of them.
    pub all: Vec<Variant>,
    /// The number of those found on disk (MultiViews).
    pub on_disk: usize,
}

/// Chooses, and sets the fields that describe the choice. The error is the status of the response.
pub(super) async fn negotiate(
    negotiation: Bound<'_, Negotiation>,
    request: &mut Request,
    variants: &mut Variants,
    prefer_programs: bool,
) -> Result<usize, u16> {
    let (mut accepts, given) = Accepts::read(&request.head.headers_in);
    let mut terms = match is_transparent(request, &variants.all) {
        true => Terms::read(request),
        false => Terms::plain(false),
    };
    accepts.add_defaults(given, &terms, prefer_programs);
    let env = std::mem::take(&mut request.env);
    let choice = choose::best_match(&accepts, &terms, negotiation.dir, &env, &mut variants.all);
    request.env = env;
    if !choice.clear {
        terms.alternates = true;
        alternates::set_fields(request, &terms, &variants.all, false);
        // The page of an index file is the folder's (`store_variant_list`).
        let list = alternates::list(&variants.all);
        request.change_parent(Box::new(move |parent| parent.notes.set(b"variant-list", &list)));
        if terms.transparent && terms.understood {
            return Err(300);
        }
    }
    let Some(best) = choice.best else {
        let file = Verbatim::new(&request.resource.filename);
        request.log::<Negotiation>(
            Level::Error,
            690,
            format_args!("no acceptable variant: {file}"),
        );
        return Err(406);
    };
    if terms.transparent {
        if let Some(variant) = variants.all.get_mut(best) {
            check_choice(request, variant).await?;
        }
        alternates::set_fields(request, &terms, &variants.all, true);
    } else {
        alternates::set_fields(request, &terms, &variants.all, choice.clear);
    }
    let cached = negotiation.server.cache_negotiated.or(false);
    if !cached && request.head.protocol < 1001 && variants.on_disk != 1 {
        request.response.no_cache = true;
    }
    Ok(best)
}

/// Transparent negotiation applies to GET, if all variants are files in the same folder.
fn is_transparent(request: &Request, variants: &[Variant]) -> bool {
    let is_neighbour =
        |variant: &Variant| !variant.file_name.contains(&b'/') && variant.body_at.is_none();
    request.head.method == Method::GET
        && request.resource.path_info.is_empty()
        && variants.iter().all(is_neighbour)
}

/// Checks that a variant is not itself negotiated.
async fn check_choice(request: &mut Request, variant: &mut Variant) -> Result<(), u16> {
    if variant.sub.is_none() {
        let sub = subrequest::lookup_file(request, &variant.file_name).await;
        if sub.response.status != 200 && !sub.response.err_headers_out.contains(b"TCN") {
            return Err(sub.response.status);
        }
        variant.sub = Some(sub);
    }
    let Some(sub) = &mut variant.sub else { return Ok(()) };
    let is_map = sub.handler.as_deref() == Some(b"type-map");
    if is_map || sub.response.err_headers_out.contains(b"TCN") {
        return Err(506);
    }
    if let Some(vary) = sub.response.err_headers_out.get(b"Vary").map(<[u8]>::to_vec) {
        request.response.err_headers_out.set(b"Variant-Vary", &vary);
        request.response.err_headers_out.set(b"Vary", &vary);
        sub.response.err_headers_out.unset(b"Vary");
    }
    let mut location = Vec::new();
    wire::escape::path_segment(&mut location, &variant.file_name);
    request.response.err_headers_out.set(b"Content-Location", &location);
    Ok(())
}
