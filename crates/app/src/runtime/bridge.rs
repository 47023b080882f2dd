//! What libraries say through `tracing`, and panics, go to the same log as everything else.

use std::fmt;

use orchestr8_kernel::Log;
use orchestr8_kernel::log::Level;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Sends the warnings and errors of libraries to the log. The first call in a process counts.
pub fn listen(log: &Log) {
    let _ = tracing::subscriber::set_global_default(Bridge(log.clone()));
}

/// Writes panics to the log instead of as loose text to stderr, where every line is JSON.
pub fn catch_panics(log: &Log) {
    let log = log.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text =
            text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        let place = panic.location().map(ToString::to_string);
        log.error("a panic", json!({"panic": text, "at": place}));
    }));
}

struct Bridge(Log);

/// Our own crates speak to the log themselves; this is about the others.
const LOUDEST: tracing::Level = tracing::Level::WARN;

impl Subscriber for Bridge {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= LOUDEST
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let level =
            if *event.metadata().level() == tracing::Level::ERROR { Level::Error } else { Level::Warn };
        let mut fields = Fields::default();
        event.record(&mut fields);
        fields.members.insert(String::from("target"), event.metadata().target().into());
        self.0.entry(level, &fields.message, Value::Object(fields.members));
    }

    // Spans are never enabled, so these are never asked anything of consequence.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields {
    message: String,
    members: Map<String, Value>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.members.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            _ => self.put(field, format!("{value:?}").into()),
        }
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.to_owned(),
            _ => self.put(field, value.into()),
        }
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_kernel::log::Captured;
    use orchestr8_kernel::ports::clock::Simulated;
    use std::sync::Arc;

    #[test]
    fn warnings_of_libraries_reach_the_log_and_lesser_words_do_not() {
        let captured = Captured::default();
        let log = Log::new(Level::Debug, captured.clone(), Arc::default(), Arc::new(Simulated::new()));
        tracing::subscriber::with_default(Bridge(log), || {
            tracing::warn!(peer = "x", token = "hunter2", count = 3, "turning clients {}", "away");
            tracing::error!("broken");
            tracing::info!("chatter");
            let _span = tracing::error_span!("span").entered();
        });
        let entries = captured.entries();
        assert_eq!(entries.len(), 2, "{entries:?}");
        assert_eq!(entries[0]["message"], "turning clients away");
        assert_eq!((&entries[0]["peer"], &entries[0]["count"]), (&json!("x"), &json!(3)));
        assert_eq!(entries[0]["token"], "[REDACTED]");
        assert_eq!((&entries[1]["level"], &entries[1]["message"]), (&json!("error"), &json!("broken")));
    }
}
