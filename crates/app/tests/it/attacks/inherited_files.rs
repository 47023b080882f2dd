//! A server that was started with open files and connections does not hand them on to what runs in a sandbox.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::attacks::sandbox::Client;
use crate::program::Place;
use crate::server::Server;

#[test]
fn a_sandbox_has_no_file_and_no_connection_of_whatever_started_the_server() {
    let place = Place::new();
    place.write("orchestr8.toml", "[sessions]\nbash = true\n");
    place.write("home/project/readme", "hello");
    place.write("outside", "untouched");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let inner = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    let opened = format!(
        "exec 7<>/dev/tcp/127.0.0.1/{port} 8<>'{0}/outside' 9<'{0}'; exec \"$@\"",
        place.path().display()
    );
    let mut command = Command::new("bash");
    command.args(["-c", &opened, "bash"]).arg(inner.get_program()).args(inner.get_args());
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", place.path().join("home"));
    command.current_dir(place.path()).stdout(Stdio::piped());
    let server = Server::of(command);
    let (connection, _) = listener.accept().unwrap();
    connection.set_nonblocking(true).unwrap();
    let mut client = Client::connect(server.address, None);
    let answer = client.session("s", &place.path().join("home/project"));
    assert_eq!(answer["success"], true, "{answer}");
    let ran = client.bash("s", "echo written >&8; echo sent >&7; ls /proc/self/fd/9/; ls /proc/self/fd");
    let output = ran["output"].as_str().unwrap();
    for descriptor in ["7", "8", "9"] {
        assert!(!output.lines().any(|line| line == descriptor), "{output}");
    }
    assert!(
        output.contains("8: Bad file descriptor") && output.contains("7: Bad file descriptor"),
        "{output}"
    );
    assert_eq!(fs::read_to_string(place.path().join("outside")).unwrap(), "untouched");
    let heard = connection.peek(&mut [0; 8]).unwrap_err();
    assert_eq!(
        heard.kind(),
        ErrorKind::WouldBlock,
        "nothing was sent, and the server still holds the connection"
    );
}
