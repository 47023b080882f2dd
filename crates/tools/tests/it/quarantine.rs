//! Changed definitions are not used until somebody accepts them.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_kernel::bus::Filter;
use orchestr8_kernel::ports::store::Statement;
use orchestr8_kernel::registry;
use orchestr8_kernel::{Principal, Transport};
use orchestr8_testing::settled::{fault, text, value};
use orchestr8_testing::{until, within};
use orchestr8_tools::remote::{accept, pins};
use serde_json::{Value, json};

use crate::world::{TOOLS, World, fixture, store};

#[tokio::test]
async fn a_changed_definition_is_quarantined_until_it_is_accepted() {
    let world = World::with(fixture(&[])).await;
    let mut news = world.kernel.bus().subscribe(&Filter::names([registry::CHANGED])).unwrap();
    assert_eq!(text(world.call("other.change", json!({})).await), "changed");
    within(news.next()).await.unwrap();
    assert_eq!(world.seen().quarantined, ["echo"]);
    let chain = "SELECT body FROM chain WHERE json_extract(body, '$.action') = 'tools.quarantine'";
    let entries = world.kernel.ports().store.query(Statement::new(chain, vec![])).await.unwrap();
    assert_eq!(entries.len(), 1, "it is in the audit trail");
    assert!(entries[0].text(0).unwrap().contains("other/echo"));
    assert!(!world.listed().contains(&"other.echo".to_owned()), "it is not listed");
    let refused = fault(world.call("other.echo", json!({"message": "a"})).await);
    assert_eq!((refused.code, &refused.details.unwrap()["tool"]), (Code::Quarantined, &json!("echo")));
    let listed = value(world.call("admin.listQuarantined", json!({})).await);
    let tool = &listed["tools"][0];
    assert_eq!((&tool["server"], &tool["tool"]), (&json!("other"), &json!("echo")));
    assert_eq!(tool["acceptedDefinition"]["description"], "Echoes.");
    assert_eq!(tool["changedDefinition"]["description"], "Echoes, and more.");
    let taken = value(
        world
            .call("admin.acceptTool", json!({"server": "other", "tool": "echo", "changed": tool["changed"]}))
            .await,
    );
    assert_eq!(taken["accepted"], tool["changed"]);
    within(news.next()).await.unwrap();
    assert_eq!(text(world.call("other.echo", json!({"message": "a"})).await), "a");
    assert_eq!(world.seen().quarantined, [""; 0]);
    world.remote.stop().await;
}

#[tokio::test]
async fn a_definition_that_changes_back_is_fine_again() {
    let world = World::with(fixture(&[])).await;
    for quarantined in [1, 0] {
        text(world.call("other.change", json!({})).await);
        until("the change to be seen", || world.seen().quarantined.len() == quarantined).await;
    }
    assert_eq!(text(world.call("other.echo", json!({"message": "a"})).await), "a");
    assert!(pins(world.kernel.ports()).await.unwrap().iter().all(|pin| pin.changed.is_none()));
    world.remote.stop().await;
}

#[tokio::test]
async fn definitions_are_remembered_over_restarts() {
    let store = store();
    let world = World::on(store.clone(), vec![fixture(&[])]).await;
    let first = pins(world.kernel.ports()).await.unwrap();
    assert_eq!((first.len(), first[0].server.as_str()), (TOOLS + 1, "other"));
    world.remote.stop().await;
    let world = World::on(store, vec![fixture(&["--second"])]).await;
    assert_eq!(world.seen().quarantined, ["echo"]);
    let ports = world.kernel.ports();
    let changed =
        pins(ports).await.unwrap().into_iter().find(|pin| pin.tool == "echo").unwrap().changed.unwrap();
    let outdated = accept(ports, "other", "echo", Some("0000"), None).await.unwrap_err();
    assert_eq!(outdated.code, Code::VersionMismatch);
    let pin = accept(ports, "other", "echo", None, None).await.unwrap();
    assert_eq!((pin.accepted, pin.changed), (changed.hash, None));
    until("it to be offered again", || world.listed().contains(&"other.echo".to_owned())).await;
    for (server, tool) in [("other", "echo"), ("other", "none"), ("none", "echo")] {
        assert_eq!(accept(ports, server, tool, None, None).await.unwrap_err().code, Code::NotFound);
    }
    world.remote.stop().await;
}

#[tokio::test]
async fn only_admins_accept() {
    let world = World::with(fixture(&[])).await;
    for action in ["admin.listQuarantined", "admin.acceptTool"] {
        let mut submission = world.submission(action, json!({}));
        submission.transport = Transport::Http;
        assert_eq!(within(world.kernel.submit(submission)).await.code(), Some(Code::Unauthorized));
    }
    world.remote.stop().await;
}

#[tokio::test]
async fn owners_and_admins_accept_by_actions_that_no_list_shows() {
    let world = World::with(fixture(&[])).await;
    text(world.call("other.change", json!({})).await);
    until("the change to be seen", || world.seen().quarantined == ["echo"]).await;
    let with = |roles: &[&str], action: &str, args: Value| {
        let mut submission = world.submission(action, args);
        let roles = orchestr8_contract::RoleSet::named(roles);
        submission.principal = Arc::new(Principal { roles, ..Principal::local() });
        submission.transport = Transport::Http;
        within(world.kernel.submit(submission))
    };
    for action in ["tools.quarantined", "tools.accept"] {
        assert!(!world.listed().contains(&action.to_owned()), "models do not see {action}");
        let wish = json!({"server": "other", "tool": "echo", "changed": "x"});
        assert_eq!(with(&["editor"], action, wish).await.code(), Some(Code::Unauthorized));
    }
    let seen = value(with(&["owner"], "tools.quarantined", json!({})).await);
    let changed = &seen["tools"][0]["changed"];
    let stale = json!({"server": "other", "tool": "echo", "changed": "x"});
    assert_eq!(with(&["admin"], "tools.accept", stale).await.code(), Some(Code::VersionMismatch));
    let wish = json!({"server": "other", "tool": "echo", "changed": changed});
    assert_eq!(value(with(&["admin"], "tools.accept", wish).await)["accepted"], *changed);
    until("it to be offered again", || world.listed().contains(&"other.echo".to_owned())).await;
    world.remote.stop().await;
}

#[tokio::test]
async fn a_server_of_the_current_revision_is_asked_to_tell_of_changes() {
    let world = World::with(fixture(&["--modern"])).await;
    assert_eq!(world.listed().len(), TOOLS, "{:?}", world.seen());
    assert_eq!(text(world.call("other.echo", json!({"message": "a"})).await), "a");
    text(world.call("other.change", json!({})).await);
    until("the change to be seen", || world.seen().quarantined == ["echo"]).await;
    world.remote.stop().await;
}
