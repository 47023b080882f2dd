//! The vault on a real store: what is stored is unreadable, what is changed from outside is refused, keys can be replaced.

use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Ports;
use orchestr8_kernel::ports::store::{Batch, Statement};
use orchestr8_testing::{Parts, submission};
use serde_json::{Value, json};

use crate::{
    KeySource, MasterKey, RecordKind, SecretBinding, SecretText, SecretUse, SecretVault, Sink, all, tables,
};

struct Fixed(MasterKey);

impl KeySource for Fixed {
    fn load(&self) -> Result<Vec<MasterKey>, Fault> {
        Ok(vec![self.0.clone()])
    }

    fn create(&self) -> Result<MasterKey, Fault> {
        Err(Fault::internal("a configured key is never created"))
    }
}

fn ports() -> Ports {
    Parts::in_memory(&[tables::MIGRATIONS]).kernel().ports().clone()
}

async fn vault(ports: &Ports, key: &MasterKey) -> SecretVault {
    let vault = SecretVault::new(ports, Arc::new(Fixed(key.clone())), Vec::new());
    vault.load().await.unwrap();
    vault
}

async fn put(ports: &Ports, vault: &SecretVault, name: &str, value: &str) {
    let draft = vault.draft(RecordKind::Named, "local", name, "test");
    let binding = SecretBinding {
        workflows: vec!["shop".into()],
        agents: vec![],
        to: vec!["api.example:x-key".parse().unwrap()],
    };
    let record = crate::SecretRecord { binding, ..draft };
    let value = SecretText::new(value);
    let mut batch = Batch::new();
    batch.then_one(vault.seal(&record, &value).await.unwrap());
    ports.store.commit(batch).await.unwrap();
    vault.remember(record, value);
}

fn reveal(vault: &SecretVault, tenant: &str, name: &str) -> Result<String, Code> {
    let sink = Sink::header(true, "api.example", 443, "x-key");
    let usage = SecretUse { tenant, name, workflow: Some("shop"), hash: None, agent: None, sink: &sink };
    vault.reveal(&usage).map(|value| value.expose().to_owned()).map_err(|fault| fault.code)
}

fn sql(text: &'static str) -> Batch {
    let mut batch = Batch::new();
    batch.then_one(Statement::new(text, vec![]));
    batch
}

#[tokio::test]
async fn values_survive_a_restart_and_stay_with_their_tenant() {
    let (ports, key) = (ports(), MasterKey::generate().unwrap());
    put(&ports, &vault(&ports, &key).await, "SHOP", "canary-value").await;
    let vault = vault(&ports, &key).await;
    assert_eq!(reveal(&vault, "local", "SHOP").as_deref(), Ok("canary-value"));
    assert_eq!(reveal(&vault, "rival", "SHOP"), Err(Code::SecretNotAllowed));
    assert_eq!(vault.mask("local").text("a canary-value b"), "a [REDACTED] b");
    assert_eq!(vault.mask("rival").text("a canary-value b"), "a canary-value b");
    assert_eq!(ports.redactor.text("a canary-value b"), "a [REDACTED] b");
    vault.mask_also([SecretText::new("provider-key-value")]);
    for tenant in ["local", "rival"] {
        assert_eq!(vault.mask(tenant).text("provider-key-value"), "[REDACTED]", "{tenant}");
    }
    let rows =
        ports.store.query(Statement::new("SELECT sealed, binding FROM vault_records", vec![])).await.unwrap();
    let sealed = String::from_utf8_lossy(rows[0].blob(0).unwrap()).into_owned();
    assert!(!sealed.contains("canary"), "{sealed}");
    assert_eq!(vault.list("local")[0].shown().get("value"), None);
}

#[tokio::test]
async fn a_record_that_was_changed_in_the_file_is_not_used() {
    for change in [
        "UPDATE vault_records SET tenant = 'rival'",
        "UPDATE vault_records SET name = 'OTHER'",
        "UPDATE vault_records SET version = version + 1",
        "UPDATE vault_records SET binding = replace(binding, 'api.example', 'evil.example')",
        "UPDATE vault_records SET sealed = zeroblob(60)",
    ] {
        let (ports, key) = (ports(), MasterKey::generate().unwrap());
        put(&ports, &vault(&ports, &key).await, "SHOP", "canary-value").await;
        ports.store.commit(sql(change)).await.unwrap();
        let vault = vault(&ports, &key).await;
        for (tenant, name) in [("local", "SHOP"), ("rival", "SHOP"), ("local", "OTHER")] {
            assert_eq!(reveal(&vault, tenant, name), Err(Code::SecretNotAllowed), "{change}");
        }
    }
}

#[tokio::test]
async fn without_the_right_key_the_vault_is_locked_and_nothing_is_overwritten() {
    let (ports, key) = (ports(), MasterKey::generate().unwrap());
    put(&ports, &vault(&ports, &key).await, "SHOP", "canary-value").await;
    let locked = vault(&ports, &MasterKey::generate().unwrap()).await;
    assert_eq!(reveal(&locked, "local", "SHOP"), Err(Code::SecretsUnavailable));
    let draft = locked.draft(RecordKind::Named, "local", "SHOP", "test");
    let sealed = locked.seal(&draft, &SecretText::new("other-value")).await;
    assert_eq!(sealed.unwrap_err().code, Code::SecretsUnavailable);
    assert_eq!(reveal(&vault(&ports, &key).await, "local", "SHOP").as_deref(), Ok("canary-value"));
}

#[tokio::test]
async fn after_rekey_only_the_new_key_fits() {
    let (ports, old, new) = (ports(), MasterKey::generate().unwrap(), MasterKey::generate().unwrap());
    let first = vault(&ports, &old).await;
    put(&ports, &first, "A", "canary-value-a").await;
    put(&ports, &first, "B", "canary-value-b").await;
    assert_eq!(first.rekey(&new).await.unwrap(), 2);
    assert_eq!(reveal(&first, "local", "A").as_deref(), Ok("canary-value-a"));
    put(&ports, &first, "C", "canary-value-c").await;
    assert_eq!(reveal(&vault(&ports, &old).await, "local", "A"), Err(Code::SecretsUnavailable));
    let after = vault(&ports, &new).await;
    for (name, value) in [("A", "canary-value-a"), ("B", "canary-value-b"), ("C", "canary-value-c")] {
        assert_eq!(reveal(&after, "local", name).as_deref(), Ok(value));
    }
}

#[tokio::test]
async fn the_actions_create_list_rotate_and_delete_without_showing_a_value() {
    let kernel = Parts::in_memory(&[tables::MIGRATIONS]).kernel();
    let key = MasterKey::generate().unwrap();
    let vault = vault(kernel.ports(), &key).await;
    for action in all(&vault).unwrap() {
        kernel.registry().register(action).unwrap();
    }
    let ask = async |action: &str, args: Value| {
        orchestr8_testing::settled::value(kernel.submit(submission(action, args)).await)
    };
    let bound =
        json!({"name": "SHOP", "value": "canary-value", "workflows": ["shop"], "to": ["api.example:X-Key"]});
    let set = ask("secrets.set", bound.clone()).await;
    assert_eq!((set["version"].as_i64(), &set["to"]), (Some(1), &json!(["api.example:x-key"])), "{set}");
    let rotated = ask("secrets.rotate", json!({"name": "SHOP", "value": "canary-value-2"})).await;
    assert_eq!((rotated["version"].as_i64(), &rotated["workflows"]), (Some(2), &json!(["shop"])));
    let listed = ask("secrets.list", json!({})).await;
    assert!(!listed.to_string().contains("canary") && listed["secrets"][0]["name"] == "SHOP", "{listed}");
    assert_eq!(reveal(&vault, "local", "SHOP").as_deref(), Ok("canary-value-2"));
    let mask = vault.mask("local");
    assert_eq!(
        mask.text("canary-value, canary-value-2"),
        "[REDACTED], [REDACTED]",
        "a call may still bring the old one back"
    );
    ask("secrets.delete", json!({"name": "SHOP"})).await;
    assert_eq!(reveal(&vault, "local", "SHOP"), Err(Code::SecretNotAllowed));
    ask("secrets.set", bound).await;
    assert_eq!(reveal(&vault, "local", "SHOP").as_deref(), Ok("canary-value"));
}
