//! The matrix: every action of the program by every way it is reached, asked by every sort of caller, against a reference.
//!
//! The actions come from the program (`orchestr8 access`), the routes from its API descriptions, the MCP methods and the session
//! commands from its tables: what has no recipe here fails the test. To add an action, add its recipe and its line in
//! `reference.rs`.

mod callers;
mod claims;
mod content;
mod coverage;
mod eavesdropper;
mod internal_actions;
mod lists;
mod objects;
mod recipe;
mod recipes_knowledge;
mod recipes_mcp;
mod recipes_messages;
mod recipes_sessions;
mod recipes_workflows;
mod record;
mod reference;
mod steps;
mod wire;

use serde_json::{Value, json};

use self::callers::{Caller, Expected, Kind, attackers};
use self::eavesdropper::Eavesdropper;
use self::objects::{CANARY, Objects, TENANT};
use self::recipe::Recipe;
use self::record::{Refusals, Snapshot};
use self::reference::{ROLES, allows, roles};
use self::wire::{Reply, Verdict, Wire};
use crate::program::Place;
use crate::server::Server;

/// The limits that a thousand requests a minute would reach are out of the way; what needs a setting to exist is on.
const SETTINGS: &str = "[http]\nmaxFailedLoginsPerMinute = 1000000\n[sessions]\ncwd = '/var/tmp'\nsharedRoots = true\nbash = true\n\
    commandsPerMinute = 1000000000\ncommandsPerMinuteOverall = 1000000000\nmaxSessions = 100000\n[knowledge]\n\
    rate.perMinute = 0\nembedder.kind = 'none'\nwebhooks.allowPrivate = true\n[tools]\nadminRegistrationEnabled = true\n\
    adminPolicy.mode = 'token'\nadminPolicy.tokenEnvVar = 'MATRIX_ADMIN_TOKEN'\n[security]\ndynamicRegistrationEnabled = true\n";

/// A place with tokens of all sorts, and its server.
fn serve() -> (Place, Server) {
    let place = Place::new().with("MATRIX_ADMIN_TOKEN", "not used here");
    let upstream = format!(
        "[mcpServers.up]\ncommand = '{}'\nargs = ['mcp', '--ephemeral', '--tools', 'echo']\ncwd = '/'\n",
        env!("CARGO_BIN_EXE_orchestr8")
    );
    place.write("orchestr8.toml", &format!("{SETTINGS}{upstream}{}", callers::tokens()));
    let server = Server::start(&place, &[]);
    (place, server)
}

/// What the program says of every action and operation.
fn access(place: &Place) -> Vec<Value> {
    let said = place.run(&["access", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let listed: Value = serde_json::from_str(&said.out).unwrap();
    let rows = listed["actions"].as_array().unwrap();
    rows.iter().filter(|row| row["reachedAs"] != "off").cloned().collect()
}

/// Every action, with how it is reached.
fn reached(place: &Place) -> Vec<(String, String)> {
    let text = |row: &Value, member: &str| row[member].as_str().unwrap().to_owned();
    access(place).iter().map(|row| (text(row, "action"), text(row, "reachedAs"))).collect()
}

/// Every action and operation of the program, with its roles.
fn registered(place: &Place) -> Vec<(String, Vec<String>)> {
    let texts = |value: &Value| serde_json::from_value(value.clone()).unwrap();
    let row = |row: &Value| (row["action"].as_str().unwrap().to_owned(), texts(&row["roles"]));
    access(place).iter().map(row).collect()
}

fn recipes(actions: &[(String, Vec<String>)]) -> Vec<Recipe> {
    let governed: Vec<String> = actions.iter().map(|(name, _)| name.clone()).collect();
    let governed: Vec<String> =
        governed.into_iter().filter(|name| name.starts_with(reference::GOVERNED)).collect();
    let governed: Vec<String> =
        governed.into_iter().filter(|name| !coverage::INTERNAL.contains(&name.as_str())).collect();
    [
        recipes_workflows::all(),
        recipes_workflows::all().into_iter().map(Recipe::under_the_other_prefix).collect(),
        recipes_knowledge::all(),
        recipes_messages::all(),
        recipes_sessions::all(),
        recipes_mcp::all(&governed),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What the program and the reference say of who may do what, side by side.
#[test]
fn the_reference_and_the_access_table_agree() {
    let (place, _server) = serve();
    let mut differences = Vec::new();
    for (action, listed) in registered(&place) {
        for role in ROLES {
            let allowed = listed.iter().any(|listed| listed == role);
            if reference::roles(&action).is_none() {
                differences.push(format!("{action} has no line in the reference"));
                break;
            }
            // Beyond roles: admin tools want the admin, and what all tenants share those of the machine.
            let is_narrower = action.starts_with("admin.") || action == "tools.accept";
            if allowed != allows(&action, role) && !(allowed && is_narrower) {
                differences.push(format!("{action}: the program lets {role} do it: {allowed}"));
            }
        }
    }
    assert_eq!(differences, Vec::<String>::new());
}

#[test]
fn every_action_on_every_face_refuses_every_caller_without_the_right() {
    let (place, server) = serve();
    let recipes = recipes(&registered(&place));
    let mut objects = Objects::new(server.address);
    let attackers = attackers(server.address);
    let snapshot = Snapshot::take(&objects);
    let (mut mistakes, mut refusals) = (Vec::new(), Refusals::default());
    for mut caller in attackers {
        let mut refused = 0;
        for recipe in &recipes {
            caller.spread(refused);
            objects.turn(&caller.name, caller.tenant);
            let request = (recipe.request)(&objects);
            let expected = caller.expects(recipe, &request, objects.named.get());
            // Those with the right come later, with objects of their own.
            if expected == Expected::Allowed && matches!(caller.kind, Kind::Role(_) | Kind::OtherFace) {
                continue;
            }
            let reply = caller.wire.ask(&request);
            refused += usize::from(reply.verdict == Verdict::Refused);
            if reply.verdict == Verdict::Refused {
                refusals.count(&caller, recipe);
            }
            mistakes.extend(judge(&caller, recipe, expected, &reply));
        }
        if caller.tenant != TENANT && caller.wire.heard.contains(CANARY) {
            mistakes.push(format!("{:?} heard of others over its socket", caller.kind));
        }
    }
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), mistakes.join("\n"));
    assert_eq!(Snapshot::take(&objects).differences(&snapshot), Vec::<String>::new());
    assert_eq!(refusals.missing(server.address), Vec::<String>::new());
    for principal in ["other-actions", "other-face"] {
        record::check_budget(server.address, principal);
    }
    record::check_failed_logins(server.address);
    let verified = place.run(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

/// What is wrong with an answer.
fn judge(caller: &Caller, recipe: &Recipe, expected: Expected, reply: &Reply) -> Option<String> {
    let verdict = &reply.verdict;
    let is_right = match expected {
        Expected::Allowed => !matches!(verdict, Verdict::Refused | Verdict::Unauthenticated),
        Expected::Refused => *verdict == Verdict::Refused,
        Expected::NotFound => *verdict == Verdict::NotFound,
        Expected::Unauthenticated => *verdict == Verdict::Unauthenticated,
        Expected::NothingOfOthers => !matches!(verdict, Verdict::Unauthenticated),
        Expected::NotServed => *verdict != Verdict::Done,
    };
    let said: String = reply.text.chars().take(300).collect();
    let what = format!("{:?} {} {} ({})", caller.kind, caller.name, recipe.route, recipe.action);
    if !is_right {
        return Some(format!("{what}: expected {expected:?}, got {verdict:?}: {said}"));
    }
    if matches!(verdict, Verdict::Failed(code) if code.starts_with('5')) {
        return Some(format!("{what}: the server failed: {said}"));
    }
    let foreign = [CANARY, r#""tenant":"acme""#, r#""tenant_id":"acme""#, r#"tenant="acme""#];
    if caller.tenant != TENANT
        && recipe.action != "open"
        && foreign.iter().any(|text| reply.text.contains(text))
    {
        return Some(format!("{what}: it tells of another tenant: {said}"));
    }
    let names_roles = roles(&recipe.action).is_some_and(|roles| {
        roles.is_empty() || reply.text.contains("role_missing") || reply.text.contains("needs the role")
    });
    let by_role = matches!(caller.kind, Kind::Role(_)) && !recipe.by_link && recipe.audited_as.is_none();
    if *verdict == Verdict::Refused && by_role && !names_roles && !recipe.action.starts_with("admin.") {
        return Some(format!("{what}: the refusal does not name the roles: {said}"));
    }
    None
}

/// The matrix does not hold because everything is refused: with the right, every request is served.
#[test]
fn every_action_on_every_face_serves_every_caller_with_the_right() {
    let (place, server) = serve();
    let recipes = recipes(&registered(&place));
    let mut objects = Objects::new(server.address);
    let uris = [
        format!("execution://{}", objects.execution()),
        format!("session://{}", objects.session()),
        format!("knowledge://{}", objects.document()),
    ];
    let listening = |token| Eavesdropper::start(server.address, token, &uris);
    let (stranger, colleague) = (listening("eve"), listening("viewer-1"));
    objects.touch();
    objects.release();
    let mut mistakes = Vec::new();
    for role in ROLES.into_iter().chain(["plain"]) {
        let name = format!("{role}-0");
        let mut wire = Wire::new(server.address, &name);
        for recipe in recipes.iter().filter(|recipe| allows(&recipe.action, role)) {
            objects.turn(&name, TENANT);
            let request = (recipe.request)(&objects);
            let reply = wire.ask(&request);
            if !is_served(recipe, &reply.verdict) {
                let said: String = reply.text.chars().take(300).collect();
                mistakes.push(format!(
                    "{role} {} ({}): {:?}: {said}",
                    recipe.route, recipe.action, reply.verdict
                ));
            }
        }
    }
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), mistakes.join("\n"));
    let mut root = Wire::new(server.address, "root");
    for (request, verdict) in [
        (wire::get("/admin/slo"), Verdict::Done),
        (
            wire::post("/v1/tools/accept", json!({"server": "up", "tool": "t", "changed": "c"})),
            Verdict::NotFound,
        ),
    ] {
        assert_eq!(root.ask(&request).verdict, verdict, "{request:?}");
    }
    colleague.wait_for("exec-");
    colleague.wait_for("notifications/resources/updated");
    stranger.heard_nothing_of(&[CANARY, "exec-", "session-", "018f0000", "resources/updated"]);
}

fn is_served(recipe: &Recipe, verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Done => true,
        _ if recipe.ends.contains(&"*") => *verdict != Verdict::Unauthenticated,
        Verdict::NotFound => recipe.ends.iter().any(|end| *end == "404" || *end == "NOT_FOUND"),
        Verdict::Failed(code) => recipe.ends.contains(&code.as_str()),
        Verdict::Refused | Verdict::Unauthenticated => false,
    }
}
