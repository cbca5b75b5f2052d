//! What is done with connections while no request asks for them.

use rt::Work;
use server::engine::Engine;
use server::log::Level;

use super::{Dbd, FILE, ServerConfig};

/// Opens connections of a process that has just started, and closes old ones. Each loop calls this;
/// the first one does the work, outside of the loop.
pub(super) fn every_second(engine: &Engine) {
    let Some(slot) = engine.server.registry.slot_of::<Dbd>() else { return };
    let own = engine.server.main().server.get::<ServerConfig>(slot);
    let Some(all) = own.and_then(|own| own.all.0.clone()) else { return };
    // A thread with one connection opens its own when it needs one.
    if engine.handle.works_in_place() {
        return;
    }
    for database in all.iter().filter(|database| database.is_due()) {
        let (pool, server) = (engine.handle.blocking().clone(), engine.server.clone());
        let (database, own) = (database.clone(), database.clone());
        engine.handle.spawn_local(async move {
            let outcome = pool.run(Work::Database, move || own.maintain()).await;
            if let Ok(Err(why)) = outcome {
                database.log_unopened(&server, &why);
                let text = format_args!("failed to initialise");
                server.log_host(server.main(), FILE, Level::Error, 633, text);
            }
        });
    }
}
