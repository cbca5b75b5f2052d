//! The last phases: filters are inserted, the handler answers, errors become documents.

use crate::hooks::{Phase, Verdict};
use crate::process::{run_all, run_first};
use crate::request::Request;

/// Inserts filters and asks the handlers.
pub async fn produce(request: &mut Request) -> Verdict {
    match run_all(request, Phase::InsertFilter).await {
        Verdict::Ok => {}
        decided => return decided,
    }
    match run_first(request, Phase::Handler).await {
        Verdict::Declined => Verdict::Status(500),
        decided => decided,
    }
}
