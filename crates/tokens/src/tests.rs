//! What tokens may be made by whom, and when they end.

use std::sync::Arc;

use orchestr8_contract::api_token::ApiToken;
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Output, RoleSet};
use orchestr8_kernel::ports::clock::Simulated;
use orchestr8_kernel::{Halt, Kernel, Principal, Submission};
use orchestr8_testing::{Parts, submission};
use serde_json::{Value, json};

use crate::record::hash;
use crate::{ApiTokens, ConfiguredPrincipal, tables};

struct World {
    kernel: Kernel,
    tokens: ApiTokens,
    clock: Arc<Simulated>,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(Simulated::new());
        let kernel = Parts { clock: clock.clone(), ..Parts::in_memory(&[tables::MIGRATIONS]) }.kernel();
        let configured =
            ConfiguredPrincipal { tenant: "acme".into(), name: "configured".into(), reuse_name: false };
        let tokens = ApiTokens::new(kernel.clone(), vec![configured]);
        for action in tokens.actions().unwrap() {
            kernel.registry().register(action).unwrap();
        }
        Self { kernel, tokens, clock }
    }

    async fn ask(&self, who: &Arc<Principal>, action: &str, args: Value) -> Result<Value, Code> {
        let submission = Submission { principal: who.clone(), ..submission(action, args) };
        match self.kernel.submit(submission).await.result {
            Ok(Output::Json { value }) => Ok(value),
            Ok(other) => panic!("{other:?}"),
            Err(Halt::Fault(fault)) => Err(fault.code),
            Err(Halt::Asks(_)) => panic!("a question"),
        }
    }

    /// Creates a token as a face does; gives its text.
    async fn create(&self, who: &Arc<Principal>, seed: u8, more: Value) -> Result<String, Code> {
        let id = ApiToken::fresh_id(&[seed; 16]);
        let token = ApiToken::new(&id, &[seed; 32]);
        let mut args = json!({"id": id, "sha256": token.sha256_hex(), "name": format!("t{seed}")});
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask(who, "tokens.create", args).await.map(|_| token.as_str().to_owned())
    }

    fn is_valid(&self, token: &str) -> bool {
        use sha2::Digest as _;
        let digits: String = sha2::Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect();
        self.tokens.table().find(&hash(&digits).unwrap()).is_some()
    }
}

fn who(name: &str, tenant: &str, roles: &[&str]) -> Arc<Principal> {
    Arc::new(Principal::new(name, Tenant::parse(tenant).unwrap(), RoleSet::named(roles)))
}

#[tokio::test]
async fn a_token_works_from_its_creation_to_its_end_and_again_after_a_restart() {
    let world = World::new();
    let owner = Arc::new(Principal::local());
    let first = world.create(&owner, 1, json!({"roles": ["operator"]})).await.unwrap();
    let short = world.create(&owner, 2, json!({"expiresAt": "1970-01-01T00:00:00Z"})).await;
    assert_eq!(short, Err(Code::InvalidArgument));
    assert!(world.is_valid(&first));
    let fresh = ApiTokens::new(world.kernel.clone(), Vec::new());
    assert!(fresh.table().is_empty());
    fresh.load().await.unwrap();
    assert!(!fresh.table().is_empty());
    let listed = world.ask(&owner, "tokens.list", json!({})).await.unwrap();
    let entry = &listed["tokens"][0];
    assert_eq!(
        (&entry["name"], &entry["roles"], &entry["status"]),
        (&json!("t1"), &json!(["operator"]), &json!("active"))
    );
    assert!(entry["lastUsedAt"].is_string(), "{entry}");
    assert!(!listed.to_string().contains(&first) && !listed.to_string().contains("sha256"), "{listed}");
    let id = ApiToken::fresh_id(&[1; 16]);
    let revoked = world.ask(&owner, "tokens.revoke", json!({"id": id})).await.unwrap();
    assert_eq!(revoked["status"], "revoked");
    assert!(!world.is_valid(&first));
    assert!(world.ask(&owner, "tokens.revoke", json!({"id": id})).await.is_ok(), "twice is once");
    let fresh = ApiTokens::new(world.kernel.clone(), Vec::new());
    fresh.load().await.unwrap();
    assert!(fresh.table().is_empty(), "a revoked token stays revoked");
}

#[tokio::test]
async fn nobody_reaches_into_another_tenant_or_grants_what_they_do_not_have() {
    let world = World::new();
    let (admin, rival) = (who("a", "acme", &["admin"]), who("r", "rival", &["owner"]));
    let (operator, machine) = (who("o", "acme", &["operator"]), Arc::new(Principal::local()));
    assert_eq!(world.create(&operator, 1, json!({})).await, Err(Code::Unauthorized));
    assert_eq!(world.create(&admin, 1, json!({"tenant": "rival"})).await, Err(Code::Unauthorized));
    assert_eq!(world.create(&admin, 1, json!({"tenant": "local"})).await, Err(Code::Unauthorized));
    for more in ["owner", "editor", "operator", "viewer"] {
        assert_eq!(
            world.create(&admin, 1, json!({"roles": [more]})).await,
            Err(Code::Unauthorized),
            "{more}"
        );
    }
    assert_eq!(world.create(&admin, 1, json!({"roles": ["onwer"]})).await, Err(Code::InvalidArgument));
    world.create(&admin, 1, json!({"roles": ["admin"]})).await.unwrap();
    world.create(&machine, 2, json!({"tenant": "acme", "roles": ["owner"]})).await.unwrap();
    let (own, owners) = (ApiToken::fresh_id(&[1; 16]), ApiToken::fresh_id(&[2; 16]));
    for action in ["tokens.rotate", "tokens.revoke"] {
        let mut args = json!({"id": own});
        if action == "tokens.rotate" {
            args["sha256"] = "0".repeat(64).into();
        }
        assert_eq!(world.ask(&rival, action, args).await, Err(Code::NotFound), "{action}");
    }
    assert_eq!(world.ask(&rival, "tokens.list", json!({})).await.unwrap()["tokens"], json!([]));
    assert_eq!(world.ask(&rival, "tokens.list", json!({"tenant": "acme"})).await, Err(Code::Unauthorized));
    let steal = json!({"id": owners, "sha256": "0".repeat(64)});
    assert_eq!(
        world.ask(&admin, "tokens.rotate", steal).await,
        Err(Code::Unauthorized),
        "an admin is no owner"
    );
    let seen = world.ask(&machine, "tokens.list", json!({})).await.unwrap();
    assert_eq!(seen["tokens"].as_array().unwrap().len(), 2, "the operator sees all tenants");
}

#[tokio::test]
async fn names_are_unique_and_reserved_ones_are_refused() {
    let world = World::new();
    let owner = who("o", "acme", &["owner"]);
    world.create(&owner, 1, json!({"name": "ci"})).await.unwrap();
    assert_eq!(world.create(&owner, 2, json!({"name": "ci"})).await, Err(Code::IdConflict));
    assert_eq!(world.create(&owner, 2, json!({"name": "configured"})).await, Err(Code::IdConflict));
    for wrong in ["svc:orchestr8", "a b", "", "-x"] {
        assert_eq!(
            world.create(&owner, 2, json!({"name": wrong})).await,
            Err(Code::InvalidArgument),
            "{wrong}"
        );
    }
    let local = Arc::new(Principal::local());
    assert_eq!(world.create(&local, 2, json!({"name": "local"})).await, Err(Code::InvalidArgument));
    world.ask(&owner, "tokens.revoke", json!({"id": ApiToken::fresh_id(&[1; 16])})).await.unwrap();
    assert_eq!(world.create(&owner, 3, json!({"name": "ci"})).await, Err(Code::IdConflict));
    world.create(&owner, 3, json!({"name": "ci", "reuseName": true})).await.unwrap();
}

#[tokio::test]
async fn a_rotated_token_has_two_secrets_until_the_grace_ends() {
    let world = World::new();
    let owner = who("o", "acme", &["owner"]);
    let old = world.create(&owner, 1, json!({})).await.unwrap();
    let id = ApiToken::fresh_id(&[1; 16]);
    let fresh = ApiToken::new(&id, &[9; 32]);
    let args = json!({"id": id, "sha256": fresh.sha256_hex(), "graceMs": 60_000});
    let rotated = world.ask(&owner, "tokens.rotate", args).await.unwrap();
    assert!(rotated["oldSecretUntil"].is_string(), "{rotated}");
    assert!(world.is_valid(&old) && world.is_valid(fresh.as_str()));
    world.clock.advance(std::time::Duration::from_millis(60_000));
    assert!(!world.is_valid(&old) && world.is_valid(fresh.as_str()));
    let last = ApiToken::new(&id, &[10; 32]);
    let args = json!({"id": id, "sha256": last.sha256_hex(), "graceMs": 0});
    world.ask(&owner, "tokens.rotate", args).await.unwrap();
    assert!(!world.is_valid(fresh.as_str()) && world.is_valid(last.as_str()));
}

#[tokio::test]
async fn the_scope_of_a_new_token_lies_within_that_of_its_maker() {
    use orchestr8_kernel::grant::{TokenGrant, TokenScope};
    let world = World::new();
    let scope = TokenScope::parse(&["tokens.*", "executions.*"]).unwrap();
    let mut grant = TokenGrant::new("x", "o", Tenant::parse("acme").unwrap());
    grant.scope = scope;
    let narrow = Arc::new(Principal::clone(&who("o", "acme", &["owner"])).granted(Some(Arc::new(grant))));
    assert_eq!(world.create(&narrow, 1, json!({})).await, Err(Code::Unauthorized));
    assert_eq!(world.create(&narrow, 1, json!({"scope": ["workflows.*"]})).await, Err(Code::Unauthorized));
    assert!(world.create(&narrow, 1, json!({"scope": ["executions.get"]})).await.is_ok());
    assert_eq!(
        world.create(&narrow, 2, json!({"scope": ["face:nowhere"]})).await,
        Err(Code::InvalidArgument)
    );
}

#[tokio::test]
async fn the_last_use_is_written_when_it_changed_and_read_back() {
    let world = World::new();
    let owner = who("o", "acme", &["owner"]);
    let token = world.create(&owner, 1, json!({})).await.unwrap();
    assert!(world.is_valid(&token));
    world.tokens.write_use().await.unwrap();
    let rows = world.kernel.ports().store.query(tables::active()).await.unwrap();
    assert!(crate::record::TokenRecord::read(&rows[0]).unwrap().last_used_ms.is_some());
}
