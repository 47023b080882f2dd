//! The domains beside workflows whose events start workflows.

use orchestr8_kernel::Kernel;

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
