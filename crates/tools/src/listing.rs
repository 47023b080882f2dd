//! What happens when the list of tools has changed: clients hear of it, and a long list gets a search.

use std::sync::Arc;

use orchestr8_contract::{Event, Priority};
use orchestr8_kernel::action::Shown;
use orchestr8_kernel::{Kernel, registry, schema};
use serde_json::Value;

use crate::tool_search;

/// Two changes at once may each see half of the other; a second look settles it.
const LOOKS: usize = 3;

/// Call it after tools came or went: shows or hides `tool_search`, and tells whoever listens.
pub fn changed(kernel: &Kernel, search_above: usize) -> Result<(), schema::Error> {
    for _ in 0..LOOKS {
        let table = kernel.registry().table();
        let listed = table.tools().filter(|action| action.name.as_str() != tool_search::NAME).count();
        let wanted = listed > search_above;
        match table.find(tool_search::NAME) {
            Some(search) if matches!(search.shown, Shown::Tool) != wanted => {
                let mut fresh = tool_search::action()?;
                if wanted {
                    fresh.shown = Shown::Tool;
                }
                kernel.registry().replace(|action| action.name.as_str() == tool_search::NAME, vec![fresh])?;
            }
            Some(_) | None => break,
        }
    }
    announce(kernel, "tools");
    Ok(())
}

/// Tells whoever listens that a list has changed: `tools`, `prompts` or `resources`.
pub fn announce(kernel: &Kernel, list: &'static str) {
    kernel.bus().publish(Event {
        name: registry::CHANGED,
        subject: list.into(),
        priority: Priority::Critical,
        at_ms: kernel.ports().clock.now_ms(),
        data: Arc::new(Value::Null),
    });
}
