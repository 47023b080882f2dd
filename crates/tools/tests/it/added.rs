//! Servers that are added at run time, and what the names in their entries stand for.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, RoleSet};
use orchestr8_kernel::Principal;
use orchestr8_kernel::ports::store::Statement;
use orchestr8_secrets::{DeclaredSecret, MemoryKey, SecretBinding, SecretText, SecretVault};
use orchestr8_stores::Sqlite;
use orchestr8_testing::settled::{fault, text, value};
use orchestr8_testing::{Parts, memory, until, within};
use orchestr8_tools::remote::{Link, NameSources, Phase, Server, TenantRights};
use serde_json::{Value, json};

use crate::world::{TOOLS, World, fixture, store};

/// A world without servers of the settings, whose tenants may add programs.
async fn open_world(store: Sqlite) -> World {
    let world = World::starting(store, Vec::new(), |settings| {
        settings.tenant_rights = TenantRights { programs: true };
    })
    .await;
    world.remote.load().await.unwrap();
    world.remote.offer_pinned().await;
    world
}

fn entry(name: &str) -> Value {
    json!({"name": name, "command": env!("CARGO_BIN_EXE_mcp-fixture")})
}

fn listed(world: &World, tenant: &str) -> usize {
    let table = world.kernel.registry().table();
    table
        .tools_for(&Tenant::parse(tenant).unwrap())
        .filter(|tool| tool.name.as_str().starts_with("mine."))
        .count()
}

#[tokio::test]
async fn an_added_server_belongs_to_its_tenant_and_survives_a_restart() {
    let store = store();
    let world = open_world(store.clone()).await;
    let added = value(world.call_as("acme", "servers.add", entry("mine")).await);
    assert_eq!(added, json!({"name": "mine", "tenant": "acme", "added": true}));
    until("its tools to be offered", || listed(&world, "acme") == TOOLS).await;
    assert_eq!(listed(&world, "rival"), 0);
    assert_eq!(text(world.call_as("acme", "mine.count", json!({})).await), "1");
    assert_eq!(world.call_as("rival", "mine.count", json!({})).await.code(), Some(Code::NotFound));
    let servers = async |tenant: &str| {
        value(world.call_as(tenant, "tools.servers", json!({})).await)["servers"].clone()
    };
    assert_eq!(servers("rival").await, json!([]));
    let own = servers("acme").await;
    assert_eq!(
        (&own[0]["name"], &own[0]["removable"], &own[0]["source"]),
        (&json!("mine"), &json!(true), &json!("added"))
    );
    assert_eq!(
        world.call_as("rival", "servers.show", json!({"name": "mine"})).await.code(),
        Some(Code::NotFound)
    );
    let again = fault(world.call_as("acme", "servers.add", entry("mine")).await);
    assert_eq!(again.code, Code::StateConflict);
    value(world.call_as("rival", "servers.add", entry("mine")).await);
    until("its tools to be offered", || listed(&world, "rival") == TOOLS).await;
    let audited = "SELECT body FROM chain WHERE json_extract(body, '$.action') = 'servers.add'";
    let entries = world.kernel.ports().store.query(Statement::new(audited, vec![])).await.unwrap();
    assert_eq!(entries.len(), 2);
    within(world.remote.stop()).await;

    let world = open_world(store).await;
    assert_eq!(listed(&world, "acme"), TOOLS, "its accepted tools are there at once");
    assert_eq!(world.seen_of("mine", "acme"), None, "and its program when it is wanted");
    assert_eq!(text(world.call_as("acme", "mine.count", json!({})).await), "1");
    let pid = world.seen_of("mine", "acme").unwrap().pid;
    value(world.call_as("acme", "servers.restart", json!({"name": "mine"})).await);
    until("another process to run", || {
        let seen = world.seen_of("mine", "acme").unwrap();
        seen.phase == Phase::Running && seen.pid != pid
    })
    .await;
    value(world.call_as("acme", "servers.remove", json!({"name": "mine"})).await);
    assert_eq!(listed(&world, "acme"), 0);
    assert_eq!(
        world.call_as("acme", "servers.show", json!({"name": "mine"})).await.code(),
        Some(Code::NotFound)
    );
    assert_eq!(listed(&world, "rival"), TOOLS, "that of another tenant stays");
    value(world.call_as("acme", "servers.add", entry("mine")).await);
    within(world.remote.stop()).await;
}

#[tokio::test]
async fn only_admins_add_servers_and_programs_need_the_right() {
    let world = World::starting(store(), vec![fixture(&[])], |_| ()).await;
    let as_role = |tenant: &str, roles: &[&str], action: &str, args: Value| {
        let mut submission = world.submission_as(tenant, action, args);
        let roles = RoleSet::named(roles);
        submission.principal = Arc::new(Principal { roles, ..Principal::clone(&submission.principal) });
        within(world.kernel.submit(submission))
    };
    for role in ["viewer", "agent", "operator", "editor"] {
        let refused = as_role("local", &[role], "servers.add", entry("mine")).await;
        assert_eq!(refused.code(), Some(Code::Unauthorized), "{role}");
    }
    let refused = fault(as_role("acme", &["owner"], "servers.add", entry("mine")).await);
    assert_eq!(
        (refused.code, &refused.details.unwrap()["reason"]),
        (Code::Unauthorized, &json!("tenant_programs"))
    );
    let inside = json!({"name": "mine", "url": "http://127.0.0.1:1/mcp"});
    assert_eq!(
        as_role("acme", &["admin"], "servers.add", inside.clone()).await.code(),
        Some(Code::Unauthorized)
    );
    value(as_role("local", &["admin"], "servers.add", inside).await);
    let taken = as_role("local", &["admin"], "servers.add", entry("other")).await;
    assert_eq!(taken.code(), Some(Code::StateConflict), "the settings name it");
    let fixed = fault(as_role("local", &["admin"], "servers.remove", json!({"name": "other"})).await);
    assert_eq!(fixed.code, Code::StateConflict);
    assert!(fixed.message.contains("mcpServers.other"), "{}", fixed.message);
    for (wrong, path) in [
        (json!({"name": "a b", "url": "http://a"}), "/name"),
        (json!({"name": "a", "url": "http://a", "headers": {"Authorization": "Bearer canary"}}), "/headers"),
        (json!({"name": "a"}), "/command"),
    ] {
        let refused = fault(as_role("local", &["admin"], "servers.add", wrong).await);
        assert_eq!(refused.code, Code::InvalidArgument);
        assert!(refused.message.contains(path), "{}", refused.message);
    }
    within(world.remote.stop()).await;
}

fn secret(tenant: &str, name: &str, agent: &str, to: &str, value: &str) -> DeclaredSecret {
    let binding =
        SecretBinding { workflows: Vec::new(), agents: vec![agent.into()], to: vec![to.parse().unwrap()] };
    DeclaredSecret { tenant: tenant.into(), name: name.into(), binding, value: SecretText::new(value) }
}

/// A server whose program writes its variable and its arguments to a file for each tenant, where no mask is.
fn telling(folder: &std::path::Path) -> Server {
    let script = r#"printf '%s %s\n' "$KEY" "$3" >> "$1/told"; exec "$2""#;
    let args =
        ["-c", script, "sh", folder.to_str().unwrap(), env!("CARGO_BIN_EXE_mcp-fixture"), "in-${PLACE}"];
    let args = args.map(str::to_owned).to_vec();
    let env = BTreeMap::from([("KEY".to_owned(), "Key ${API_KEY}".to_owned())]);
    Server::new("other", Link::Stdio { command: "/bin/sh".into(), args, env, cwd: None })
}

fn sources(environment: &[(&str, &str)], declared: Vec<DeclaredSecret>) -> NameSources {
    let environment = environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let store = memory(&[orchestr8_secrets::tables::MIGRATIONS]);
    let kernel = Parts::on(Arc::new(store)).kernel();
    let vault = SecretVault::new(kernel.ports(), Arc::new(MemoryKey::new().unwrap()), declared);
    NameSources { environment, vault: Some(vault) }
}

#[tokio::test]
async fn names_stand_for_variables_and_for_secrets_of_the_tenant() {
    let folder = tempfile::tempdir().unwrap();
    let to = "exec:/bin/sh:KEY";
    let declared = vec![
        secret("acme", "API_KEY", "mcp:other", to, "canary-of-acme"),
        secret("rival", "API_KEY", "mcp:another", to, "canary-of-rival"),
        // The operator's environment decides what a name of the settings means.
        secret("acme", "PLACE", "mcp:other", "exec:/bin/sh:args", "canary-elsewhere"),
    ];
    let world = World::starting(store(), vec![telling(folder.path())], |settings| {
        settings.names = sources(&[("PLACE", "here")], declared);
    })
    .await;
    within(world.remote.started()).await;
    let problem = world.seen_of("other", "local").unwrap().problem.unwrap();
    for part in [
        "'other' needs API_KEY in env.KEY",
        "tenant 'local'",
        "orchestr8 secrets set API_KEY --agent mcp:other --to exec:/bin/sh:KEY",
    ] {
        assert!(problem.contains(part), "{problem}");
    }
    let registry = world.remote.registry();
    let [acme, rival] = ["acme", "rival"].map(|tenant| Tenant::parse(tenant).unwrap());
    let served = registry.find(&acme, "other").unwrap();
    let in_use = registry.instance(&served, &acme).unwrap();
    within(in_use.desk().line()).await.unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("told")).unwrap(), "Key canary-of-acme in-here\n");
    let shown = text(world.call_as("acme", "other.environment", json!({})).await);
    assert!(!shown.contains("canary") && shown.contains("[REDACTED]"), "{shown}");
    let in_use = registry.instance(&served, &rival).unwrap();
    let refused = within(in_use.desk().line()).await.map(drop).unwrap_err();
    assert!(refused.message.contains("not bound to the agent mcp:other"), "{}", refused.message);
    let log = world.log.entries();
    assert!(!json!(log).to_string().contains("canary"), "{log:?}");
    within(world.remote.stop()).await;
}

#[tokio::test]
async fn a_secret_never_chooses_the_host_of_a_server() {
    let link = Link::Http { url: "https://${HOST}/mcp".into(), headers: BTreeMap::new() };
    let declared = vec![secret("local", "HOST", "mcp:other", "evil.example:url", "canary.example")];
    let world = World::starting(store(), vec![Server::new("other", link)], |settings| {
        settings.names = sources(&[], declared);
    })
    .await;
    within(world.remote.started()).await;
    let problem = world.seen().problem.unwrap();
    assert!(problem.contains("a secret cannot stand there") && !problem.contains("canary"), "{problem}");
    within(world.remote.stop()).await;
}
