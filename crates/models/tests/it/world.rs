//! A catalog with one model of each protocol, and what a test asks of it.

use std::sync::Arc;

use futures::StreamExt;
use orchestr8_contract::Fault;
use orchestr8_kernel::Log;
use orchestr8_kernel::bus::{Bus, Config};
use orchestr8_kernel::ports::clock::Real;
use orchestr8_kernel::ports::random::Seeded;
use orchestr8_kernel::resilience::{Breakers, Resilience};
use orchestr8_models::{
    Assistant, Catalog, Delta, Entry, Key, Kind, Message, Model, Ports, Price, Provider, Reasoning, Request,
    Secret, Settings, Tool, User,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

pub const KEY: &str = "sk-do-not-tell-anybody";

pub const KINDS: [Kind; 2] = [Kind::Anthropic, Kind::OpenAi];

/// What a good stream of each protocol says.
pub fn text(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::Anthropic => include_bytes!("../fixtures/anthropic-text.sse"),
        Kind::OpenAi | Kind::Offline => include_bytes!("../fixtures/openai-text.sse"),
    }
}

/// The same up to and with its first word.
pub fn beginning(kind: Kind) -> &'static [u8] {
    let whole = text(kind);
    let word = whole.windows(5).position(|bytes| bytes == b"Hello").unwrap();
    let end = whole[word..].windows(2).position(|bytes| bytes == b"\n\n").unwrap();
    &whole[..word + end + 2]
}

/// Its first event, which says nothing yet.
pub fn prelude(kind: Kind) -> &'static [u8] {
    let whole = text(kind);
    let end = whole.windows(2).position(|bytes| bytes == b"\n\n").unwrap();
    &whole[..end + 2]
}

pub fn provider(kind: Kind, url: &str) -> Provider {
    let entry = Entry {
        id: "m-1".into(),
        name: None,
        context_window: 200_000,
        max_output: 8_000,
        reasoning: Reasoning::None,
        images: true,
        price: Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 },
    };
    let mut provider = Provider::new("p", kind, url);
    provider.key = Key::Given(Secret::new(KEY));
    provider.models = vec![entry];
    provider.resilience = Resilience { base_delay_ms: 1, max_delay_ms: 5, ..provider.resilience };
    provider
}

pub fn ports() -> Ports {
    let clock = Arc::new(Real::new());
    let bus = Bus::new(&Config::default(), clock.clone(), Log::off());
    let breakers = Arc::new(Breakers::new(clock.clone(), bus));
    Ports { clock, random: Arc::new(Seeded::new(1)), breakers }
}

pub fn model(provider: Provider) -> Arc<dyn Model> {
    let ports = ports();
    let settings = Settings { providers: vec![provider], default: None };
    Catalog::new(settings, ports).unwrap().default()
}

pub fn request() -> Request {
    let tool =
        Tool { name: "weather.get".into(), description: "asks".into(), schema: json!({"type": "object"}) };
    Request {
        system: Some("Be kind.".into()),
        messages: vec![Message::User(User::text("hello", 1))],
        tools: vec![tool],
        ..Request::default()
    }
}

/// All deltas, and the fault at the end if there is one.
pub async fn ask(model: &Arc<dyn Model>) -> (Vec<Delta>, Option<Fault>) {
    ask_with(model, request()).await
}

/// The same for this request.
pub async fn ask_with(model: &Arc<dyn Model>, request: Request) -> (Vec<Delta>, Option<Fault>) {
    let mut stream = model.stream(request, CancellationToken::new());
    let mut deltas = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(delta) => deltas.push(delta),
            Err(fault) => {
                assert!(stream.next().await.is_none(), "a fault is the end");
                assert!(!format!("{fault:?} {fault}").contains(KEY), "{fault:?}");
                return (deltas, Some(fault));
            }
        }
    }
    (deltas, None)
}

pub async fn answer(model: &Arc<dyn Model>) -> Assistant {
    match ask(model).await {
        (mut deltas, None) => match deltas.pop() {
            Some(Delta::Done(done)) => done,
            other => panic!("{other:?}"),
        },
        (_, Some(fault)) => panic!("{fault}"),
    }
}

pub async fn fault(model: &Arc<dyn Model>) -> Fault {
    match ask(model).await {
        (_, Some(fault)) => fault,
        (deltas, None) => panic!("{deltas:?}"),
    }
}

pub fn detail<'f>(fault: &'f Fault, name: &str) -> Option<&'f serde_json::Value> {
    fault.details.as_ref()?.get(name)
}

pub fn reason(fault: &Fault) -> &str {
    detail(fault, "reason").and_then(serde_json::Value::as_str).unwrap_or("")
}
