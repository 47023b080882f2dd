//! On a host without namespaces, the shell of a session tries to change the server's own process.

use std::fs;
use std::process::{Command, Stdio};

use crate::attacks::sandbox::Client;
use crate::program::Place;
use crate::server::Server;

/// A user namespace in which no more namespaces can be made, as on hosts that forbid them.
const WITHOUT_NAMESPACES: &str = "echo 0 > /proc/sys/user/max_mnt_namespaces && echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";

/// Limits, priority and CPUs of a process, as the kernel shows them.
fn state(process: u32) -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap();
    let (stat, status) = (read("stat"), read("status"));
    let nice = stat.split(' ').nth(18).unwrap().to_owned();
    let allowed: String = status.lines().filter(|line| line.contains("_allowed")).collect();
    format!("{}\n{nice}\n{allowed}", read("limits"))
}

#[test]
fn a_shell_without_namespaces_changes_nothing_of_the_server() {
    let place = Place::new();
    place.write("orchestr8.toml", "[sessions]\nbash = true\n");
    place.write("home/project/readme", "hello");
    let inner = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut command = Command::new("unshare");
    command
        .args(["-Ur", "sh", "-c", WITHOUT_NAMESPACES, "sh"])
        .arg(inner.get_program())
        .args(inner.get_args());
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", place.path().join("home"));
    command.current_dir(place.path()).stdout(Stdio::piped());
    let server = Server::of(command);
    let mut client = Client::connect(server.address, None);
    let answer = client.session("s", &place.path().join("home/project"));
    assert_eq!(answer["success"], true, "{answer}");
    assert_eq!(client.bash("s", "true")["sandbox"], "landlock");
    let (process, before) = (server.pid(), state(server.pid()));
    for attack in [
        format!("prlimit --pid {process} --nofile=3:3"),
        format!("renice -n 19 -p {process}"),
        format!("renice -n 19 -g $(ps -o pgid= -p {process})"),
        format!("taskset -p -c 0 {process}"),
        format!("chrt --idle -p 0 {process}"),
        format!("ionice -c 3 -p {process}"),
        format!("kill -STOP {process}"),
        format!("for task in /proc/{process}/task/*; do kill -9 ${{task##*/}} && exit 0; done; exit 1"),
        format!("echo 1000 > /proc/{process}/oom_score_adj"),
    ] {
        let ran = client.bash("s", &attack);
        assert_ne!(ran["exitCode"], 0, "{attack}: {ran}");
        assert_ne!(ran["exitCode"], 127, "{attack} was not tried: {ran}");
    }
    assert_eq!(state(process), before);
    let ran = client.bash("s", "sleep 60 & kill $!; wait $!; echo $?; (ulimit -n 64; nice -n 5 echo own)");
    assert_eq!(ran["output"], "143\nown\n", "what it started is its own: {ran}");
}
