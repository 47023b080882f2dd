//! Limits that are changed while the server runs: in effect at once, kept over a restart, and only within one's own tenant.

use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{AccessRole, Code, RoleSet};
use orchestr8_kernel::{Args, Halt, Principal, Submission};
use serde_json::{Value, json};

use crate::world::{World, flow};

fn remote(id: &str) -> Value {
    json!({"id": id, "type": "agent", "agentId": "@test/remote", "input": {"hold": true}})
}

#[tokio::test]
async fn a_larger_limit_lets_waiting_steps_of_an_agent_begin_at_once() {
    let world = World::new().await;
    let id = world.start(json!([remote("a"), remote("b"), remote("c")])).await;
    world.desk.called("a", 1).await;
    assert_eq!(world.hub.remote_depth(), (1, 2), "the agent takes one at a time");
    let set = |value: u64| json!({"scope": "agent", "name": "@test/remote", "value": value});
    let answer = world.ask("limits.set", set(3)).await;
    assert_eq!(
        (&answer["value"], &answer["setting"], &answer["tenant"]),
        (&json!(3), &json!(1), &Value::Null)
    );
    world.desk.called("b", 1).await;
    world.desk.called("c", 1).await;
    assert_eq!(world.hub.remote_depth(), (3, 0));
    for step in ["a", "b", "c"] {
        world.desk.gate(step).notify_one();
    }
    assert_eq!(world.end(&id).await["status"], "completed");
}

#[tokio::test]
async fn a_tenant_with_one_step_slot_runs_one_step_until_the_limit_is_unset() {
    let world = World::new().await;
    world.ask("limits.set", json!({"scope": "tenant", "name": "stepSlots", "value": 1})).await;
    let hold =
        |id: &str| json!({"id": id, "type": "agent", "agentId": "@test/agent", "input": {"hold": true}});
    let id = world.start(json!([hold("a"), hold("b")])).await;
    world.desk.called("a", 1).await;
    assert_eq!((world.hub.depth().running, world.hub.depth().waiting_steps), (1, 1));
    let answer = world.ask("limits.unset", json!({"scope": "tenant", "name": "stepSlots"})).await;
    assert_eq!((&answer["value"], &answer["origin"]), (&json!(10), &json!("setting")));
    world.desk.called("b", 1).await;
    world.desk.gate("a").notify_one();
    world.desk.gate("b").notify_one();
    assert_eq!(world.end(&id).await["status"], "completed");
}

#[tokio::test]
async fn a_changed_limit_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::at(folder.path(), Arc::default()).await;
    world.ask("limits.set", json!({"scope": "tenant", "name": "executions", "value": 1})).await;
    world.ask("limits.set", json!({"scope": "queue", "name": "emails", "value": 2})).await;
    world.die().await;
    let world = World::at(folder.path(), Arc::default()).await;
    let listed = world.ask("limits.list", json!({})).await;
    let found =
        |name: &str| listed["limits"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
    assert_eq!(
        (&found("executions")["value"], &found("executions")["origin"]),
        (&json!(1), &json!("runtime"))
    );
    assert_eq!(found("emails")["value"], 2);
    let task = |id: &str| json!({"id": id, "type": "agent", "agentId": "@worker/emails"});
    world.start(json!([task("a"), task("b"), task("c")])).await;
    assert_eq!(world.hub.remote_depth(), (2, 1));
    let fault = world.refused("workflows.execute", json!({"workflow": flow(json!([task("a")]))})).await;
    assert_eq!(fault.code, Code::ResourceExhausted);
}

#[tokio::test]
async fn an_admin_changes_only_its_own_tenant() {
    let world = World::new().await;
    let acme = Tenant::parse("acme").unwrap();
    let admin = Arc::new(Principal::new("ann", acme, RoleSet::of(&[AccessRole::Admin])));
    let ask = async |action: &str, args: Value| {
        let Value::Object(args) = args else { panic!("an object") };
        let correlation = CorrelationId::parse("test").unwrap();
        let submission = Submission::new(action, Args::new(args), admin.clone(), correlation);
        world.kernel.submit(submission).await.result
    };
    let forbidden = async |action: &str, args: Value| match ask(action, args).await {
        Err(Halt::Fault(fault)) => fault.code,
        other => panic!("{other:?}"),
    };
    ask("limits.set", json!({"scope": "tenant", "name": "executions", "value": 5})).await.unwrap();
    ask("limits.set", json!({"scope": "queue", "name": "q", "value": 5, "tenant": "acme"})).await.unwrap();
    let other = json!({"scope": "tenant", "name": "executions", "value": 5, "tenant": "rival"});
    assert_eq!(forbidden("limits.set", other).await, Code::Unauthorized);
    assert_eq!(forbidden("limits.list", json!({"tenant": "local"})).await, Code::Unauthorized);
    let shared = json!({"scope": "agent", "name": "@test/remote", "value": 2});
    assert_eq!(forbidden("limits.set", shared).await, Code::Unauthorized, "all tenants share the agent");
    // Those who administer the machine change any.
    let rival = json!({"scope": "tenant", "name": "executions", "value": 5, "tenant": "rival"});
    assert_eq!(world.ask("limits.set", rival).await["tenant"], "rival");
    let own = world.ask("limits.list", json!({})).await;
    let executions =
        own["limits"].as_array().unwrap().iter().find(|one| one["name"] == "executions").unwrap();
    assert_eq!(executions["origin"], "setting", "the limits of other tenants are not its own");
}
