//! Embedders on the network against a real HTTP server: what is asked, what is read, what is tried again.

use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::resilience::Resilience;
use orchestr8_models::embedders::{Embedder, Kind, Purpose, Remote, Settings};
use orchestr8_models::{Key, Secret};
use serde_json::json;
use tokio::net::TcpListener;

use crate::server::{Reply, Server, gone};
use crate::world::{KEY, ports};

const KINDS: [Kind; 3] = [Kind::OpenAi, Kind::Voyage, Kind::Ollama];

/// Two vectors, in the wrong order where the order can be told.
fn two(kind: Kind) -> &'static str {
    match kind {
        Kind::OpenAi | Kind::Voyage => {
            r#"{"data":[{"index":1,"embedding":[0,0,2]},{"index":0,"embedding":[3,4,0]}]}"#
        }
        Kind::Ollama => r#"{"model":"m","embeddings":[[3,4,0],[0,0,2]]}"#,
    }
}

fn settings(kind: Kind, url: &str) -> Settings {
    let quick = Resilience { base_delay_ms: 1, max_delay_ms: 5, ..Resilience::default() };
    Settings { key: Key::Given(Secret::new(KEY)), resilience: quick, ..Settings::new(kind, url, "m", 3) }
}

async fn embed(settings: Settings, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    let made = Remote::new(settings, ports()).unwrap().embed(texts, Purpose::Query).await;
    if let Err(fault) = &made {
        assert!(!format!("{fault:?} {fault}").contains(KEY), "{fault:?}");
    }
    made
}

#[tokio::test]
async fn vectors_come_in_order_and_have_length_one() {
    for kind in KINDS {
        let server = Server::start([Reply::Status(200, &[], two(kind))]).await;
        let found = embed(settings(kind, &server.url), &["one", "two"]).await.unwrap();
        assert_eq!(found, [vec![0.6, 0.8, 0.0], vec![0.0, 0.0, 1.0]]);
        let asked = &server.asked()[0];
        let path = if kind == Kind::Ollama { "/api/embed" } else { "/embeddings" };
        assert_eq!((asked.path.as_str(), &asked.body["input"]), (path, &json!(["one", "two"])));
        assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"));
        let purpose = asked.body.get("input_type");
        assert_eq!(purpose, (kind == Kind::Voyage).then_some(&json!("query")));
    }
}

#[tokio::test]
async fn many_texts_are_several_requests_and_long_ones_are_cut() {
    let answers = [two(Kind::Ollama), two(Kind::Ollama)].map(|body| Reply::Status(200, &[], body));
    let server = Server::start(answers).await;
    let settings = Settings { batch: 2, ..settings(Kind::Ollama, &server.url) };
    let long = "x".repeat(100_000);
    let found = embed(settings, &["a", &long, "c", "d"]).await.unwrap();
    assert_eq!((found.len(), server.asked().len()), (4, 2));
    let cut = server.asked()[0].body["input"][1].as_str().unwrap().len();
    assert_eq!(cut, orchestr8_models::limits::EMBED_CHARS);
}

#[tokio::test]
async fn overload_and_cuts_are_tried_again_and_a_wrong_key_is_not() {
    let busy = Reply::Status(429, &[("retry-after-ms", "1")], "{}");
    let good = Reply::Status(200, &[], two(Kind::OpenAi));
    let server = Server::start([busy, Reply::Cut(b"{"), good]).await;
    assert_eq!(embed(settings(Kind::OpenAi, &server.url), &["a", "b"]).await.unwrap().len(), 2);
    assert_eq!(server.asked().len(), 3);
    let body = r#"{"error":{"message":"wrong key sk-do-not-tell-anybody"}}"#;
    let server = Server::start([Reply::Status(401, &[], body)]).await;
    let fault = embed(settings(Kind::Voyage, &server.url), &["a"]).await.unwrap_err();
    assert_eq!((fault.code, server.asked().len()), (Code::Unauthenticated, 1));
}

#[tokio::test]
async fn answers_that_are_none_are_refused() {
    for (body, code) in [
        ("not json", Code::Unavailable),
        (r#"{"data":[]}"#, Code::Unavailable),
        (r#"{"data":[{"embedding":[1,"x",2]}]}"#, Code::Unavailable),
        (r#"{"data":[{"embedding":[1,2]}]}"#, Code::Configuration),
    ] {
        let server = Server::start([Reply::Status(200, &[], body)]).await;
        let once = Resilience { max_attempts: 1, ..Resilience::default() };
        let settings = Settings { resilience: once, ..settings(Kind::OpenAi, &server.url) };
        assert_eq!(embed(settings, &["a"]).await.unwrap_err().code, code, "{body}");
    }
}

#[tokio::test]
async fn silence_and_nobody_are_unavailable() {
    let (mute, _left) = gone();
    let server = Server::start([Reply::Silence(mute)]).await;
    let short = Resilience { max_attempts: 1, timeout_ms: 50, ..Resilience::default() };
    let silent = Settings { resilience: short.clone(), ..settings(Kind::Ollama, &server.url) };
    let fault = embed(silent, &["a"]).await.unwrap_err();
    assert!(matches!(fault.code, Code::Unavailable | Code::Timeout), "{fault}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let nobody = Settings { resilience: short, ..settings(Kind::Ollama, &url) };
    assert_eq!(embed(nobody, &["a"]).await.unwrap_err().code, Code::Unavailable);
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_at_once() {
    let wrong = |settings: Settings| Remote::new(settings, ports()).err().map(|fault| fault.code);
    let good = || settings(Kind::OpenAi, "http://localhost:1/v1");
    assert_eq!(wrong(good()), None);
    for bad in [
        Settings { dimensions: 0, ..good() },
        Settings { dimensions: 1_000_000, ..good() },
        Settings { model: " ".into(), ..good() },
        Settings { base_url: "localhost".into(), ..good() },
        Settings { key: Key::Missing, ..good() },
    ] {
        assert_eq!(wrong(bad), Some(Code::Configuration));
    }
    let shared: Arc<dyn Embedder> = Arc::new(Remote::new(good(), ports()).unwrap());
    assert_eq!((shared.name(), shared.dimensions()), ("openai/m/3", 3));
}
