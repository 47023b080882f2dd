//! Secrets are inserted at the socket and at exec, within their binding and nowhere else.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::clock::Real;
use orchestr8_process::sandbox::{Sandbox, SandboxMode, SandboxSettings};
use orchestr8_secrets::{DeclaredSecret, SecretBinding, SecretText};
use serde_json::{Value, json};

use super::super::Settings;
use super::super::secrets::SecretView;
use super::super::settings::{self, ExecTemplate, ExecTemplateSource};
use super::server::{Asked, Server};
use super::world::World;
use crate::limits::REFUSAL_SHOWN_BYTES;

const HTTP: &str = "@orchestr8/http";
const EXEC: &str = "@orchestr8/exec";
const CANARY: &str = "canary-\"value\"";

/// A secret of the local tenant, for the definition with the hash `hash`.
pub fn declared(name: &str, value: &str, to: &[&str]) -> DeclaredSecret {
    let to = to.iter().map(|to| to.parse().unwrap()).collect();
    let binding = SecretBinding { workflows: vec!["hash".into()], agents: Vec::new(), to };
    DeclaredSecret { tenant: "local".into(), name: name.into(), binding, value: SecretText::new(value) }
}

fn reference(world: &World, name: &str) -> String {
    SecretView { access: &world.secrets, tenant: &Tenant::local() }.reference(name).unwrap()
}

fn open(secrets: Vec<DeclaredSecret>) -> World {
    let mut settings = Settings::default();
    settings.http.allow_private = true;
    World::with(&settings, secrets)
}

fn quiet(_: &Asked) -> Response {
    "{}".into_response()
}

fn reason(result: Result<Value, Fault>) -> String {
    let fault = result.unwrap_err();
    assert_eq!(fault.code, Code::SecretNotAllowed, "{fault}");
    assert!(!fault.to_string().contains("canary"), "{fault}");
    fault.details.unwrap()["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_header_and_a_body_of_the_bound_origin_get_the_value() {
    let server = Server::start(quiet).await;
    let (port, other) = (server.address.port(), Server::start(quiet).await);
    let to = [format!("http://127.0.0.1:{port}:X-Key"), format!("http://127.0.0.1:{port}:body")];
    let world = open(vec![
        declared("K", CANARY, &[&to[0], &to[1]]),
        declared("B", "canary-other", &["http://127.0.0.1:9:body"]),
    ]);
    let key = reference(&world, "K");
    let input = json!({"url": server.url("/p"), "headers": {"X-Key": format!("Token {key}")}, "body": {"inside": [format!("<{key}>")]}});
    world.output(HTTP, input).await.unwrap();
    let asked = server.asked().remove(0);
    assert_eq!(asked.header("x-key"), format!("Token {CANARY}"));
    assert_eq!(
        serde_json::from_slice::<Value>(&asked.body).unwrap(),
        json!({"inside": [format!("<{CANARY}>")]})
    );
    let elsewhere = json!({"url": other.url("/"), "headers": {"X-Key": key}});
    assert_eq!(reason(world.output(HTTP, elsewhere).await), "destination");
    let other_header = json!({"url": server.url("/"), "headers": {"X-Other": key}});
    assert_eq!(reason(world.output(HTTP, other_header).await), "destination");
    let unbound = json!({"url": server.url("/"), "body": {"b": reference(&world, "B")}});
    assert_eq!(reason(world.output(HTTP, unbound).await), "destination");
    for input in [
        json!({"url": server.url(&format!("/{key}"))}),
        json!({"url": server.url("/"), "query": {"q": key}}),
        json!({"url": format!("http://{}@127.0.0.1:{port}/", "u"), "query": {key.clone(): "1"}}),
    ] {
        assert_eq!(reason(world.output(HTTP, input).await), "place");
    }
    assert_eq!((server.asked().len(), other.asked().len()), (1, 0));
}

#[tokio::test]
async fn another_definition_with_the_same_id_gets_nothing() {
    let server = Server::start(quiet).await;
    let to = format!("http://127.0.0.1:{}:x-key", server.address.port());
    let mut by_id = declared("K", CANARY, &[&to]);
    by_id.binding.workflows = vec!["flow".into()];
    let world = open(vec![declared("H", CANARY, &[&to]), by_id]);
    let input = |name: &str| json!({"url": server.url("/"), "headers": {"X-Key": reference(&world, name)}});
    // The store of this world has no table of workflows: an id that is not stored is never asked for as a hash.
    let mut call = world.call(HTTP, input("H"));
    call.secrets = world.secrets.of_call(&Tenant::local(), &"flow".into(), &"other".into(), &HTTP.into());
    let result = world.agent(HTTP).call(call).await.map(|answer| answer.output);
    assert_eq!(reason(result), "workflow");
    let mut call = world.call(HTTP, input("H"));
    call.secrets =
        world.secrets.of_call(&Tenant::parse("rival").unwrap(), &"flow".into(), &"hash".into(), &HTTP.into());
    let result = world.agent(HTTP).call(call).await.map(|answer| answer.output);
    assert_eq!(reason(result), "unknown");
    assert_eq!(server.asked().len(), 0);
}

#[tokio::test]
async fn a_program_gets_it_in_the_bound_variable_only() {
    let base_env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let shell = ExecTemplateSource {
        program: "/bin/sh".into(),
        args: ["-c", "{script}", "sh", "{argument}"].map(str::to_owned).to_vec(),
        holes: [("script", "text"), ("argument", "text")]
            .map(|(name, kind)| (name.into(), kind.into()))
            .into(),
        variables: vec!["TOKEN".into(), "OTHER".into()],
        ..ExecTemplateSource::default()
    };
    let templates = BTreeMap::from([("sh".to_owned(), ExecTemplate::new("sh", shell).unwrap())]);
    let off = SandboxSettings { mode: SandboxMode::Off, ..SandboxSettings::default() };
    let sandbox = Some(Sandbox::new(off, Arc::new(Real::new())));
    let exec = settings::Exec { templates, sandbox, base_env, ..settings::Exec::default() };
    let world = World::with(
        &Settings { exec: Some(exec), ..Settings::default() },
        vec![declared("T", "canary-token", &["exec:sh:TOKEN"])],
    );
    let token = reference(&world, "T");
    let run = async |config: Value, input: Value| {
        let mut call = world.call(EXEC, input);
        call.config = config;
        world.agent(EXEC).call(call).await.map(|answer| answer.output)
    };
    let config = |script: &str, argument: &str, env: Value| json!({"template": "sh", "values": {"script": script, "argument": argument}, "env": env});
    let counted =
        run(config("printf %s \"$TOKEN\" | wc -c", "none", json!({"TOKEN": token})), Value::Null).await;
    assert_eq!(counted.unwrap(), json!(12));
    let other = run(config("true", "none", json!({"OTHER": token})), Value::Null).await;
    assert_eq!(reason(other), "destination");
    let args = run(config("true", &token, json!({})), Value::Null).await;
    assert_eq!(reason(args), "place");
    assert_eq!(reason(run(config("true", "none", json!({})), json!({"x": token})).await), "place");
}

#[tokio::test]
async fn a_refusal_that_reflects_it_is_masked_before_it_is_cut() {
    for padding in [0, REFUSAL_SHOWN_BYTES - 3, REFUSAL_SHOWN_BYTES - 10] {
        let server = Server::start(move |asked: &Asked| {
            let body = format!("{}{}", "x".repeat(padding), String::from_utf8_lossy(&asked.body));
            (axum::http::StatusCode::BAD_REQUEST, body).into_response()
        })
        .await;
        let to = format!("http://127.0.0.1:{}:body", server.address.port());
        let world = open(vec![declared("K", "canary-in-a-body", &[&to])]);
        let input = json!({"url": server.url("/"), "body": reference(&world, "K")});
        let fault = world.output(HTTP, input).await.unwrap_err();
        let details = Value::Object(*fault.details.unwrap()).to_string();
        assert_eq!(server.asked()[0].body, b"canary-in-a-body");
        assert!(!details.contains("can") && details.contains("[RE"), "{padding}: {details}");
    }
}
