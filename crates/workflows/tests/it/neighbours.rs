//! The domains beside workflows that their steps and triggers use.

use std::sync::Arc;

use orchestr8_kernel::Kernel;
use orchestr8_models::offline::Offline;
use orchestr8_models::{About, Catalog, Model, Price};

/// Documents and messages, whose events start workflows.
pub fn register(kernel: &Kernel) {
    let documents = orchestr8_knowledge::Hub::new(kernel.clone(), orchestr8_knowledge::Settings::default());
    let ports = kernel.ports();
    let coordinator =
        orchestr8_agents::Coordinator::new(kernel.bus().clone(), ports.clock.clone(), ports.log.clone());
    let settings = orchestr8_agents::aacp::Settings::default();
    let messages = orchestr8_agents::aacp::Hub::new(kernel.clone(), coordinator, settings);
    let actions = orchestr8_knowledge::actions::all(&documents).unwrap();
    for action in actions.into_iter().chain(orchestr8_agents::of_messages(&messages).unwrap()) {
        kernel.registry().register(action).unwrap();
    }
}

/// Sessions whose models are the offline one, and one like it that costs a dollar per million tokens.
pub fn sessions(kernel: &Kernel) -> orchestr8_sessions::Hub {
    let clock = kernel.ports().clock.clone();
    let offline = Offline::new(clock.clone());
    let price = Price { input: 1.0, output: 1.0, ..Price::default() };
    let dear = About { provider: "dear".into(), price, ..offline.about().clone() };
    let models: Vec<Arc<dyn Model>> = vec![Arc::new(offline), Arc::new(Offline::with(dear, clock))];
    let catalog = Catalog::of(models, None).unwrap();
    let mut settings = orchestr8_sessions::Settings::new("/".into(), "/nowhere".into());
    settings.retries = 0;
    orchestr8_sessions::Hub::new(kernel.clone(), catalog, settings)
}
