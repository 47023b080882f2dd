//! The face over knowledge itself, on a store in memory that outlives restarts, and clients of it.

use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use http::Method;
use orchestr8_broker::Embedded;
use orchestr8_edge::Caller;
use orchestr8_kernel::Log;
use orchestr8_kernel::audit::CHAIN;
use orchestr8_kernel::ports::clock::{Clock, Simulated};
use orchestr8_kernel::ports::store::{Statement, Store as _};
use orchestr8_kernel::ports::{ids, random};
use orchestr8_kernel::row_seal::RowSeal;
use orchestr8_knowledge_face::security::jws::{self, Claims, Form};
use orchestr8_knowledge_face::security::keys::{self, KeyTable, Owner, Pair};
use orchestr8_knowledge_face::{Envelopes, PubSub, Security, Settings, tables};
use orchestr8_stores::Sqlite;
use orchestr8_testing::{Holding, Parts, memory, request};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::domain::Domain;

pub const NOW: &str = "2026-01-01T00:00:00Z";

pub struct World {
    pub store: Sqlite,
    /// The same store, as the face uses it.
    pub holding: Arc<Holding>,
    pub domain: Domain,
    pub clock: Arc<Simulated>,
    pub settings: Settings,
    pub router: Router,
    pub envelopes: Envelopes,
    /// Whom the edge says is calling, if it says so.
    pub caller: Option<Arc<Caller>>,
    /// What seals rows; without a key it does not.
    pub seal: RowSeal,
    log: Log,
}

impl World {
    pub fn new() -> Self {
        Self::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Self {
        Self::on(fresh(), Domain::default(), Arc::new(Simulated::new()), settings)
    }

    /// With a bus that nobody takes messages from yet, and that tries again quickly.
    pub async fn with_bus(settings: Settings) -> Self {
        Self::on_bus(fresh(), Domain::default(), Arc::new(Simulated::new()), settings).await
    }

    async fn on_bus(store: Sqlite, domain: Domain, clock: Arc<Simulated>, settings: Settings) -> Self {
        let quick = orchestr8_broker::Settings {
            base_delay_ms: 1,
            max_delay_ms: 2,
            tenant_queued: 5,
            ..orchestr8_broker::Settings::default()
        };
        let random = Arc::new(random::Seeded::new(1));
        let opened = Embedded::open(Arc::new(store.clone()), clock.clone(), random, quick.clone()).await;
        let pubsub = Some(PubSub { broker: Arc::new(opened.unwrap()), settings: quick });
        let shutdown = CancellationToken::new();
        Self::on(store, domain, clock, Settings { pubsub, shutdown, ..settings })
    }

    /// Runs what is published from now on.
    pub fn consume(&self) {
        tokio::spawn(orchestr8_knowledge_face::consume(self.envelopes.clone()));
    }

    /// The same in another process on the same store.
    pub async fn restart_bus(self) -> Self {
        self.settings.shutdown.cancel();
        let settings = Settings { metrics: Default::default(), ..self.settings };
        Self::on_bus(self.store, self.domain, self.clock, settings).await
    }

    fn on(store: Sqlite, domain: Domain, clock: Arc<Simulated>, settings: Settings) -> Self {
        let holding = Holding::on(Arc::new(store.clone()));
        let parts = Parts::on(holding.clone());
        let kernel = Parts { clock: clock.clone(), ids: Arc::new(ids::Random), ..parts }.kernel();
        domain.register(&kernel);
        let seal = kernel.row_seal().clone();
        let envelopes = Envelopes::new(kernel, settings.clone());
        let router = envelopes.router();
        Self {
            store,
            holding,
            domain,
            clock,
            settings,
            router,
            envelopes,
            caller: None,
            seal,
            log: Log::off(),
        }
    }

    /// Another process on the same store.
    pub fn restart(self) -> Self {
        let settings = Settings { metrics: Default::default(), ..self.settings };
        Self::on(self.store, self.domain, self.clock, settings)
    }

    pub async fn external() -> (Self, Pair) {
        let world = Self::with(Settings { security: Security::External, ..Settings::default() });
        let pair = world.key("k-1", "acme", "svc:agent", &["owner"]).await;
        (world, pair)
    }

    /// The keys as the face knows them.
    pub fn keys(&self) -> KeyTable<'_> {
        KeyTable { store: &self.store, seal: &self.seal, log: &self.log }
    }

    pub async fn key(&self, kid: &str, tenant: &str, principal: &str, roles: &[&str]) -> Pair {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        let owner = Owner { tenant: tenant.into(), principal: principal.into(), roles };
        let mut seed = [0; 32];
        seed[..kid.len()].copy_from_slice(kid.as_bytes());
        keys::new(self.keys(), kid, owner, seed, self.clock.now_ms()).await.unwrap()
    }

    /// The entries of the audit trail with this action, the oldest first.
    pub async fn recorded(&self, action: &str) -> Vec<Value> {
        let sql =
            "SELECT body FROM chain WHERE name = ?1 AND json_extract(body, '$.action') = ?2 ORDER BY seq";
        let statement = Statement::new(sql, vec![CHAIN.into(), action.into()]);
        let rows = self.store.query(statement).await.unwrap();
        rows.iter().map(|row| serde_json::from_str(row.text(0).unwrap()).unwrap()).collect()
    }

    pub async fn send(&self, envelope: &Value) -> Answer {
        self.post("/mcp/actions", envelope).await
    }

    pub async fn post(&self, target: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        self.ask(Method::POST, target, &headers, body.to_string().into_bytes()).await
    }

    pub async fn get(&self, target: &str) -> Answer {
        self.ask(Method::GET, target, &[], Vec::new()).await
    }

    pub async fn ask(&self, method: Method, target: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
        let mut request = request(method, target, headers, body);
        if let Some(caller) = &self.caller {
            request.extensions_mut().insert(caller.clone());
        }
        Answer(orchestr8_testing::Answer::of(&self.router, request).await)
    }

    /// The signature of a body, made now.
    pub fn signature(&self, pair: &Pair, body: &[u8], nonce: &str, form: Form) -> String {
        self.signature_with(pair, body, Claims { nonce, ..self.claims() }, form)
    }

    /// The times of a signature that is made now.
    pub fn claims(&self) -> Claims<'static> {
        let iat_s = self.clock.now_ms() / 1000;
        Claims { iat_s, exp_s: iat_s + 300, nonce: "nonce-0000", address: None, key: None }
    }

    pub fn signature_with(&self, pair: &Pair, body: &[u8], claims: Claims<'_>, form: Form) -> String {
        jws::sign(pair, body, &claims, form)
    }
}

fn fresh() -> Sqlite {
    memory(&[
        tables::MIGRATIONS,
        orchestr8_knowledge::tables::MIGRATIONS,
        orchestr8_broker::tables::MIGRATIONS,
    ])
}

/// An answer, with what this face promises of every one.
pub struct Answer(orchestr8_testing::Answer);

impl Deref for Answer {
    type Target = orchestr8_testing::Answer;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Answer {
    /// Checks that it is a success, and gives its data.
    pub fn data(&self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.text);
        let body = self.json();
        assert_eq!(body["ok"], true, "{body}");
        body["data"].clone()
    }

    /// Checks that it is a whole error of the envelope, and gives the code.
    pub fn error(&self, status: u16) -> String {
        let body = self.json();
        assert_eq!(self.status, status, "{body}");
        assert_eq!(body["ok"], false);
        let error = &body["error"];
        assert!(error["message"].is_string(), "{body}");
        assert!(error["details"]["hint"].is_string() && error["details"]["trace_id"].is_string(), "{body}");
        assert!(!self.header("x-correlation-id").is_empty());
        error["code"].as_str().unwrap().to_owned()
    }
}

/// A document id.
pub fn id(number: u8) -> String {
    format!("00000000-0000-4000-8000-0000000000{number:02x}")
}

/// An envelope with its own request id.
pub fn envelope(request: u8, action: &str, args: Value) -> Value {
    json!({
        "envelope_version": "2.2", "request_id": format!("10000000-0000-4000-8000-0000000000{request:02x}"),
        "tenant_id": "acme", "principal": {"sub": "svc:agent", "roles": ["owner"]}, "timestamp": NOW,
        "ttl_sec": 300, "action": action, "action_version": "1.0.0",
        "payload": {"schema_version": "1.0", "args": args},
    })
}

pub fn create(request: u8, document: u8, body: &str) -> Value {
    let args = json!({
        "document_id": id(document), "parent_id": "root", "content": {"mime_type": "text/plain", "body": body},
        "metadata": {"title": "T"},
    });
    envelope(request, "knowledge.create_document", args)
}
