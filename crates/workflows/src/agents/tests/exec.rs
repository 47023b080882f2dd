//! `@orchestr8/exec` with real programs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::Code;
use orchestr8_contract::access::RoleSet;
use orchestr8_kernel::Principal;
use orchestr8_kernel::ports::clock::Real;
use orchestr8_process::sandbox::{Sandbox, SandboxMode, SandboxSettings};
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::super::Settings;
use super::super::settings::{self, ExecTemplate, ExecTemplateSource};
use super::secrets::declared;
use super::world::World;

const EXEC: &str = "@orchestr8/exec";
const SH: &str = "/bin/sh";

/// Programs of tests run without a sandbox, which needs the real program: see `crates/app/tests/it/attacks/exec.rs`.
fn world() -> World {
    let base_env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let shell = ExecTemplateSource {
        program: SH.into(),
        args: ["-c", "{script}", "sh", "{argument}"].map(str::to_owned).to_vec(),
        holes: [("script", "text"), ("argument", "text")]
            .map(|(name, kind)| (name.into(), kind.into()))
            .into(),
        variables: vec!["NAME".into(), "TOKEN".into()],
        env: BTreeMap::from([("FIXED".to_owned(), "1".to_owned())]),
        ..ExecTemplateSource::default()
    };
    let cat = ExecTemplateSource { program: "/bin/cat".into(), ..ExecTemplateSource::default() };
    let slow = ExecTemplateSource { timeout_ms: Some(50), ..shell.clone() };
    let admins = ExecTemplateSource { roles: vec!["admin".into()], ..cat.clone() };
    let templates = [("sh", shell), ("cat", cat), ("slow", slow), ("admins", admins)];
    let templates =
        templates.map(|(name, source)| (name.to_owned(), ExecTemplate::new(name, source).unwrap()));
    let off = SandboxSettings { mode: SandboxMode::Off, ..SandboxSettings::default() };
    let sandbox = Some(Sandbox::new(off, Arc::new(Real::new())));
    let exec = settings::Exec { templates: templates.into(), sandbox, base_env, ..settings::Exec::default() };
    let secrets = vec![declared("TOKEN", "canary-value", &["exec:sh:TOKEN"])];
    World::with(&Settings { exec: Some(exec), ..Settings::default() }, secrets)
}

async fn run(config: Value, input: Value) -> Result<Value, orchestr8_contract::Fault> {
    let world = world();
    let mut call = world.call(EXEC, input);
    call.config = config;
    world.agent(EXEC).call(call).await.map(|answer| answer.output)
}

async fn shell(script: &str) -> Result<Value, orchestr8_contract::Fault> {
    run(json!({"template": "sh", "values": {"script": script, "argument": ""}}), Value::Null).await
}

#[tokio::test]
async fn it_is_off_until_the_settings_have_templates() {
    let world = World::new();
    let mut call = world.call(EXEC, Value::Null);
    call.config = json!({"template": "sh"});
    assert_eq!(world.agent(EXEC).call(call).await.unwrap_err().code, Code::Configuration);
    let is_listed = |world: &World| world.agents.all().any(|agent| agent.id() == EXEC);
    assert!(!is_listed(&world) && is_listed(&self::world()));
    assert_eq!(run(json!({"template": "ls"}), Value::Null).await.unwrap_err().code, Code::Unauthorized);
}

#[tokio::test]
async fn only_what_the_template_names_can_be_given() {
    for (config, member) in [
        (json!({"program": "/bin/sh", "args": ["-c", "id"]}), "config"),
        (json!({"template": "cat", "args": ["-n"]}), "config"),
        (json!({"template": "cat", "cwd": "/"}), "config"),
        (json!({"template": "cat", "values": {"x": "1"}}), "values"),
        (json!({"template": "cat", "env": {"NAME": "x"}}), "env"),
        (json!({"template": "sh", "values": {"script": "id"}}), "values"),
        (
            json!({"template": "sh", "values": {"script": "id", "argument": ""}, "env": {"BASH_ENV": "x"}}),
            "env",
        ),
        (json!({"template": "sh", "values": {"script": "id", "argument": "-x"}}), "values.argument"),
        (json!({"template": "sh", "values": {"script": ["id"], "argument": ""}}), "values.script"),
    ] {
        let fault = run(config.clone(), Value::Null).await.unwrap_err();
        assert_eq!(fault.code, Code::InvalidArgument, "{config}: {}", fault.message);
        assert_eq!(fault.details.unwrap()["path"], member, "{config}");
    }
}

#[tokio::test]
async fn templates_name_roles_and_time_limits() {
    let world = world();
    let mut call = world.call(EXEC, json!(1));
    call.config = json!({"template": "admins"});
    assert!(world.agent(EXEC).call(call.clone()).await.is_ok(), "the owner may use everything");
    let viewer = Principal { roles: RoleSet::named(["viewer"]), ..Principal::local() };
    call.principal = Arc::new(viewer);
    assert_eq!(world.agent(EXEC).call(call).await.unwrap_err().code, Code::Unauthorized);
    let slow = json!({"template": "slow", "values": {"script": "sleep 600", "argument": ""}});
    assert_eq!(run(slow, Value::Null).await.unwrap_err().code, Code::Timeout);
}

#[test]
fn a_template_is_checked_before_it_is_used() {
    let new = |source: ExecTemplateSource| ExecTemplate::new("t", source).map(drop);
    let cat = ExecTemplateSource { program: "/bin/cat".into(), ..ExecTemplateSource::default() };
    let pairs = |name: &str, kind: &str| BTreeMap::from([(name.to_owned(), kind.to_owned())]);
    assert_eq!(new(cat.clone()), Ok(()));
    for (wrong, member) in [
        (ExecTemplateSource { program: "cat".into(), ..cat.clone() }, "program"),
        (ExecTemplateSource { program: "/bin/no-such".into(), ..cat.clone() }, "program"),
        (ExecTemplateSource { program: "/etc/passwd".into(), ..cat.clone() }, "program"),
        (ExecTemplateSource { args: vec!["{file}".into()], ..cat.clone() }, "args"),
        (ExecTemplateSource { holes: pairs("file", "text"), ..cat.clone() }, "holes.file"),
        (ExecTemplateSource { holes: pairs("file", "path"), ..cat.clone() }, "holes.file"),
        (ExecTemplateSource { variables: vec!["LD_PRELOAD".into()], ..cat.clone() }, "variables"),
        (ExecTemplateSource { roles: vec!["boss".into()], ..cat.clone() }, "roles"),
        (ExecTemplateSource { directory: Some("work".into()), ..cat.clone() }, "directory"),
    ] {
        assert!(new(wrong.clone()).unwrap_err().starts_with(member), "{wrong:?}");
    }
}

#[tokio::test]
async fn json_goes_in_and_comes_out() {
    let input = json!({"text": "größe", "list": [1, 2], "long": "x".repeat(200_000)});
    assert_eq!(run(json!({"template": "cat"}), input.clone()).await.unwrap(), input);
    assert_eq!(shell("echo plain words").await.unwrap(), json!({"stdout": "plain words\n"}));
    assert_eq!(shell("true").await.unwrap(), Value::Null);
    let echo = json!({"template": "sh", "values": {"script": "echo 1", "argument": ""}});
    let unread = run(echo, json!("y".repeat(500_000))).await;
    assert_eq!(unread.unwrap(), json!(1), "a program need not read its input");
}

#[tokio::test]
async fn its_environment_is_what_it_is_given_and_arguments_are_no_shell() {
    let config = json!({"template": "sh", "values": {"script": "env | sort", "argument": ""},
        "env": {"NAME": "a b; exit 3"}});
    let text = run(config, Value::Null).await.unwrap()["stdout"].as_str().unwrap().to_owned();
    let names: Vec<&str> = text.lines().map(|line| line.split('=').next().unwrap()).collect();
    assert!(
        names.iter().all(|name| ["FIXED", "NAME", "PATH", "PWD", "OLDPWD", "SHLVL", "_"].contains(name)),
        "{names:?}"
    );
    assert!(text.contains("NAME=a b; exit 3\n"));
    let config = json!({"template": "sh", "values": {"script": "echo \"$1\"", "argument": "$(exit 9)"}});
    let echoed = run(config, Value::Null).await;
    assert_eq!(echoed.unwrap(), json!({"stdout": "$(exit 9)\n"}));
}

#[tokio::test]
async fn a_failure_shows_the_end_of_stderr_without_secrets() {
    let fault = shell("echo canary-value password=hunter2 >&2; exit 3").await.unwrap_err();
    assert_eq!(fault.code, Code::AgentFailed);
    assert_eq!(fault.message, "sh ended with exit code 3: [REDACTED] password=[REDACTED]");
    assert_eq!(fault.details.unwrap()["exitCode"], 3);
    let long =
        shell("i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1").await.unwrap_err();
    assert!(long.message.ends_with("line 2999") && long.message.len() < 2200, "{}", long.message.len());
    let killed = shell("kill -9 $$").await.unwrap_err();
    assert_eq!(killed.message, "sh was ended by a signal");
}

#[tokio::test]
async fn a_program_that_writes_too_much_is_killed() {
    let fault =
        shell("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done").await.unwrap_err();
    assert_eq!(fault.code, Code::PayloadTooLarge);
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    let output = shell("sleep 1000 & echo \"{\\\"left\\\": $!}\"").await.unwrap();
    let left = i32::try_from(output["left"].as_i64().unwrap()).unwrap();
    gone(left).await;
}

/// Runs a script that says on a pipe that it is ready, cancels it then, and gives what the call says and what was on the pipe.
async fn cancelled(script: &str) -> (orchestr8_contract::Fault, String) {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let world = world();
    let mut call = world.call(EXEC, Value::Null);
    call.config = json!({"template": "sh", "values": {"script": script, "argument": pipe.to_str().unwrap()}});
    let cancel = call.cancel.clone();
    let calling = tokio::spawn(world.agent(EXEC).call(call));
    let mut line = String::new();
    let opened = tokio::fs::File::open(&pipe).await.unwrap();
    BufReader::new(opened).read_line(&mut line).await.unwrap();
    cancel.cancel();
    (calling.await.unwrap().unwrap_err(), line)
}

#[tokio::test]
async fn wf_19_4_a_cancelled_program_has_ended_when_the_call_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cleaned");
    let script = format!(
        "trap 'sleep 0.3; echo yes > {}; exit 0' TERM; echo $$ > \"$1\"; while :; do sleep 0.05; done",
        file.display()
    );
    let (fault, process) = cancelled(&script).await;
    assert_eq!((fault.code, fault.details), (Code::Cancelled, None), "{}", fault.message);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "yes\n", "its clean-up has ended");
    assert!(is_gone(process.trim().parse().unwrap()));
}

#[tokio::test]
async fn wf_19_4_a_program_that_does_not_end_is_killed_with_its_group_and_the_call_says_so() {
    // It does not end when it is asked to, and neither does what it has started.
    let script = "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & echo $$ $! > \"$1\"; wait";
    let (fault, processes) = cancelled(script).await;
    assert_eq!(fault.code, Code::Cancelled);
    assert_eq!(fault.message, "sh was stopped; it did not end within 2000 ms and was killed");
    assert_eq!(fault.details.unwrap()["forced"], true);
    for process in processes.split_whitespace() {
        gone(process.parse().unwrap()).await;
    }
}

/// Waits until there is no such process.
async fn gone(process: i32) {
    let waiting = async {
        while !is_gone(process) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("the process ends");
}

fn is_gone(process: i32) -> bool {
    let process = Pid::from_raw(process).unwrap();
    test_kill_process(process).is_err() || is_zombie(process)
}

/// Ended, and nobody has asked how: where nothing collects orphans they stay so.
fn is_zombie(process: Pid) -> bool {
    let stat =
        std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}
