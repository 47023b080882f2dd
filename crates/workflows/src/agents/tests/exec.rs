//! `@orchestr8/exec` with real programs.

use std::collections::BTreeMap;
use std::time::Duration;

use orchestr8_contract::Code;
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::super::{Settings, settings};
use super::secrets::declared;
use super::world::World;

const EXEC: &str = "@orchestr8/exec";
const SH: &str = "/bin/sh";

fn world() -> World {
    let base_env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let exec =
        settings::Exec { programs: vec![SH.into(), "/bin/cat".into(), "/bin/no-such".into()], base_env };
    let secrets = vec![declared("TOKEN", "canary-value", &["exec:/bin/sh:TOKEN"])];
    World::with(&Settings { exec: Some(exec), ..Settings::default() }, secrets)
}

async fn run(config: Value, input: Value) -> Result<Value, orchestr8_contract::Fault> {
    let world = world();
    let mut call = world.call(EXEC, input);
    call.config = config;
    world.agent(EXEC).call(call).await.map(|answer| answer.output)
}

async fn shell(script: &str) -> Result<Value, orchestr8_contract::Fault> {
    run(json!({"program": SH, "args": ["-c", script]}), Value::Null).await
}

#[tokio::test]
async fn it_is_off_until_the_settings_name_programs() {
    let world = World::new();
    let mut call = world.call(EXEC, Value::Null);
    call.config = json!({"program": SH});
    assert_eq!(world.agent(EXEC).call(call).await.unwrap_err().code, Code::Configuration);
    assert_eq!(run(json!({"program": "/bin/ls"}), Value::Null).await.unwrap_err().code, Code::Unauthorized);
}

#[tokio::test]
async fn json_goes_in_and_comes_out() {
    let input = json!({"text": "größe", "list": [1, 2], "long": "x".repeat(200_000)});
    assert_eq!(run(json!({"program": "/bin/cat"}), input.clone()).await.unwrap(), input);
    assert_eq!(shell("echo plain words").await.unwrap(), json!({"stdout": "plain words\n"}));
    assert_eq!(shell("true").await.unwrap(), Value::Null);
    let unread = run(json!({"program": SH, "args": ["-c", "echo 1"]}), json!("y".repeat(500_000))).await;
    assert_eq!(unread.unwrap(), json!(1), "a program need not read its input");
}

#[tokio::test]
async fn its_environment_is_what_it_is_given_and_arguments_are_no_shell() {
    let config =
        json!({"program": SH, "args": ["-c", "env | sort"], "env": {"NAME": "a b; exit 3"}, "cwd": "/"});
    let text = run(config, Value::Null).await.unwrap()["stdout"].as_str().unwrap().to_owned();
    let names: Vec<&str> = text.lines().map(|line| line.split('=').next().unwrap()).collect();
    assert!(
        names.iter().all(|name| ["NAME", "PATH", "PWD", "OLDPWD", "SHLVL", "_"].contains(name)),
        "{names:?}"
    );
    assert!(text.contains("NAME=a b; exit 3\n"));
    let echoed =
        run(json!({"program": SH, "args": ["-c", "echo \"$1\"", "sh", "$(exit 9)"]}), Value::Null).await;
    assert_eq!(echoed.unwrap(), json!({"stdout": "$(exit 9)\n"}));
}

#[tokio::test]
async fn a_failure_shows_the_end_of_stderr_without_secrets() {
    let fault = shell("echo canary-value password=hunter2 >&2; exit 3").await.unwrap_err();
    assert_eq!(fault.code, Code::AgentFailed);
    assert_eq!(fault.message, "/bin/sh ended with exit code 3: [REDACTED] password=[REDACTED]");
    assert_eq!(fault.details.unwrap()["exitCode"], 3);
    let long =
        shell("i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1").await.unwrap_err();
    assert!(long.message.ends_with("line 2999") && long.message.len() < 2200, "{}", long.message.len());
    let killed = shell("kill -9 $$").await.unwrap_err();
    assert_eq!(killed.message, "/bin/sh was ended by a signal");
    let missing = run(json!({"program": "/bin/no-such"}), Value::Null).await.unwrap_err();
    assert_eq!(missing.code, Code::AgentFailed);
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

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_takes_the_whole_group_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let world = world();
    // It does not end when it is asked to, and neither does what it has started.
    let script = "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & echo $$ $! > \"$1\"; wait";
    let mut call = world.call(EXEC, Value::Null);
    call.config = json!({"program": SH, "args": ["-c", script, "sh", pipe.to_str().unwrap()]});
    let cancel = call.cancel.clone();
    let calling = tokio::spawn(world.agent(EXEC).call(call));
    let mut line = String::new();
    let opened = tokio::fs::File::open(&pipe).await.unwrap();
    BufReader::new(opened).read_line(&mut line).await.unwrap();
    cancel.cancel();
    let result =
        tokio::time::timeout(Duration::from_millis(100), calling).await.expect("within 100 ms").unwrap();
    assert_eq!(result.unwrap_err().code, Code::Cancelled);
    for process in line.split_whitespace() {
        gone(process.parse().unwrap()).await;
    }
}

/// Waits until there is no such process.
async fn gone(process: i32) {
    let process = Pid::from_raw(process).unwrap();
    let waiting = async {
        while test_kill_process(process).is_ok() && !is_zombie(process) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("the process ends");
}

/// Ended, and nobody has asked how: where nothing collects orphans they stay so.
fn is_zombie(process: Pid) -> bool {
    let stat =
        std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}
