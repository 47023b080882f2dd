//! The shell: off until it is wanted, stopped whole, on record. What its sandbox keeps out is tested with the sandbox itself,
//! and with the real program in `crates/app/tests/it/attacks`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use orchestr8_contract::{Code, canonical};
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::ports::clock::Real;
use orchestr8_kernel::ports::store::Statement;
use orchestr8_kernel::{End, Settled};
use orchestr8_process::sandbox::{Sandbox, SandboxMode, SandboxSettings};
use orchestr8_sessions::{Settings, limits, tables};
use orchestr8_testing::{memory, settled, until, within};
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use tokio::task::JoinHandle;

use crate::world::World;

/// A world whose shell is on and not confined, and the folder its session `s` works in.
async fn shell(change: impl FnOnce(&mut Settings)) -> (TempDir, World) {
    let temp = tempdir().unwrap();
    let world = within_folder(temp.path(), change).await;
    (temp, world)
}

async fn within_folder(folder: &Path, change: impl FnOnce(&mut Settings)) -> World {
    let mut settings = Settings::new(folder.into(), folder.join("sessions"));
    (settings.bash, settings.sandbox) = (true, Some(sandbox(SandboxMode::Off)));
    change(&mut settings);
    let world = World::with(memory(&[tables::MIGRATIONS]), settings).await;
    world.session().await;
    world
}

fn sandbox(mode: SandboxMode) -> Sandbox {
    Sandbox::new(SandboxSettings { mode, ..SandboxSettings::default() }, Arc::new(Real::new()))
}

fn line(command: &str) -> Value {
    json!({"sessionId": "s", "command": command})
}

async fn messages(world: &World) -> Vec<Value> {
    let mut messages = world.ask("get_messages", json!({"sessionId": "s"})).await;
    serde_json::from_value(messages["messages"].take()).unwrap()
}

#[tokio::test]
async fn it_is_off_until_the_settings_say_otherwise() {
    let (_temp, world) = shell(|settings| settings.bash = false).await;
    let off = settled::fault(world.settle("bash", line("true")).await);
    assert_eq!((off.code, &off.details.unwrap()["setting"]), (Code::Unauthorized, &json!("sessions.bash")));
    let required = sandbox(SandboxMode::Required);
    let (_temp, world) = shell(|settings| settings.sandbox = Some(required)).await;
    let open = settled::fault(world.settle("bash", line("true")).await);
    assert_eq!((open.code, &open.details.unwrap()["setting"]), (Code::Unauthorized, &json!("sandbox.mode")));
    let (_temp, world) = shell(|settings| settings.roots.open.clear()).await;
    let homeless = settled::fault(world.settle("bash", line("true")).await);
    let setting = &homeless.details.unwrap()["setting"];
    assert_eq!((homeless.code, setting), (Code::Unauthorized, &json!("sessions.roots")));
    assert!(messages(&world).await.is_empty());
}

#[tokio::test]
async fn a_command_runs_in_the_folder_and_is_part_of_the_conversation() {
    let (temp, world) = shell(|_| {}).await;
    let mut heard = world.listen();
    let script = "pwd; echo wrong >&2; printf '\\033[31mred\\033[0m \\377\\n'; cat; exit 3";
    let ran = world.settle("bash", line(script)).await;
    assert_eq!((ran.end, ran.version), (End::Success, Some(1)));
    let output = format!("{}\nwrong\nred \u{fffd}\n", temp.path().display());
    let expected = json!({"exitCode": 3, "output": output, "cancelled": false, "truncated": false, "confined": false, "sandbox": "none"});
    assert_eq!(settled::value(ran), expected);
    let message = heard.until("message_start").await["message"].clone();
    assert_eq!(heard.until("message_end").await["message"], message);
    assert_eq!((&message["role"], &message["command"]), (&json!("bashExecution"), &json!(script)));
    assert_eq!((&message["output"], &message["exitCode"]), (&json!(output), &json!(3)));
    world.ask("bash", json!({"sessionId": "s", "command": "kill -9 $$", "excludeFromContext": true})).await;
    let messages = messages(&world).await;
    assert_eq!(messages[0], message);
    assert_eq!((&messages[1]["exitCode"], &messages[1]["excludeFromContext"]), (&json!(137), &json!(true)));
    let nul = settled::fault(world.settle("bash", line("a\0b")).await);
    assert_eq!(nul.code, Code::InvalidArgument);
}

#[tokio::test]
async fn a_command_knows_only_what_it_is_given() {
    let given = |settings: &mut Settings| {
        settings.bash_env = vec![("HOME".into(), "/home/me".into()), ("LANG".into(), "C".into())]
    };
    let (_temp, world) = shell(given).await;
    let ran = world.ask("bash", line("env | grep -v -e ^PWD -e ^OLDPWD -e ^SHLVL -e ^_= | sort")).await;
    assert_eq!(ran["output"], "HOME=/home/me\nLANG=C\nPATH=/usr/local/bin:/usr/bin:/bin\nTERM=dumb\n");
}

#[tokio::test]
async fn of_a_long_output_the_end_is_kept() {
    let (_temp, world) = shell(|_| {}).await;
    let ran = world.ask("bash", line("yes | head -c 1000000; echo end")).await;
    let output = ran["output"].as_str().unwrap();
    assert_eq!((ran["truncated"].as_bool(), output.len()), (Some(true), limits::BASH_OUTPUT_BYTES));
    assert!(output.ends_with("y\nend\n"));
    assert_eq!(messages(&world).await[0]["truncated"], true);
}

/// A command that has begun, and a process it has started.
async fn endless(temp: &TempDir, world: &World) -> (JoinHandle<Settled>, Pid) {
    let ran = world.spawn("bash", line("echo before; sleep 600 & echo $! > pid.new; mv pid.new pid; wait"));
    let file = temp.path().join("pid");
    until("the command to begin", || file.exists()).await;
    let pid = Pid::from_raw(fs::read_to_string(file).unwrap().trim().parse().unwrap()).unwrap();
    test_kill_process(pid).unwrap();
    (ran, pid)
}

#[tokio::test]
async fn a_command_is_stopped_with_everything_it_has_started() {
    let (temp, world) = shell(|_| {}).await;
    let (ran, pid) = endless(&temp, &world).await;
    let abort = within(world.settle("abort_bash", json!({"sessionId": "s"}))).await;
    assert_eq!(abort.end, End::Success);
    let ran = settled::value(within(ran).await.unwrap());
    assert_eq!(
        (&ran["cancelled"], &ran["exitCode"], &ran["output"]),
        (&json!(true), &Value::Null, &json!("before\n"))
    );
    until("what it started to end", || test_kill_process(pid).is_err()).await;
    assert_eq!(messages(&world).await[0]["cancelled"], true);
    let health = world.ask("health_check", json!({})).await;
    assert_eq!(health["hasOpenBashCircuit"], false, "a stop on request speaks against nothing");
}

#[tokio::test]
async fn commands_end_with_the_server() {
    let (temp, world) = shell(|_| {}).await;
    let (ran, pid) = endless(&temp, &world).await;
    within(world.hub.close()).await;
    until("what it started to end", || test_kill_process(pid).is_err()).await;
    assert_eq!(settled::value(within(ran).await.unwrap())["cancelled"], true);
}

#[tokio::test]
async fn commands_that_never_end_open_the_circuit() {
    let (_temp, world) = shell(|settings| settings.long_ms = 50).await;
    for number in 1..=limits::BASH_TIMEOUTS {
        assert_eq!(within(world.settle("bash", line("sleep 600"))).await.code(), Some(Code::Timeout));
        // The next one waits in its lane until the record of this one is written.
        let messages = messages(&world).await;
        assert_eq!(messages.len(), usize::try_from(number).unwrap());
        assert_eq!(messages.last().unwrap()["cancelled"], true);
    }
    let health = world.ask("health_check", json!({})).await;
    assert_eq!((&health["hasOpenBashCircuit"], &health["healthy"]), (&json!(true), &json!(false)));
    assert_eq!(world.settle("bash", line("true")).await.code(), Some(Code::CircuitOpen));
}

#[tokio::test]
async fn who_ran_what_is_in_the_audit_trail() {
    let (_temp, world) = shell(|_| {}).await;
    world.ask("bash", line("echo canary")).await;
    let all = Statement::new("SELECT body FROM chain ORDER BY seq", vec![]);
    let rows = world.store.query(all).await.unwrap();
    let entry: Value = serde_json::from_str(rows.last().unwrap().text(0).unwrap()).unwrap();
    assert_eq!((&entry["action"], &entry["end"]), (&json!("session.bash"), &json!("success")));
    assert_eq!(entry["args_hash"], canonical::sha256_hex(&line("echo canary")), "it proves the very command");
}
