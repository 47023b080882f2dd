//! The shell of a session tries to get out: of its folder, of its process space, over the network, past the end of the server.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use orchestr8_testing::until;
use orchestr8_workspace::plan::Status;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use super::is_unlocked;
use crate::governed::{GOOD, Governed, plant, with_workspace};
use crate::program::{PATIENCE, Place};
use crate::server::Server;

/// A client of sessions.
pub struct Client {
    socket: WebSocket<TcpStream>,
    /// Of the last command. No two commands have the same: it would be a repeat, over restarts too.
    id: String,
}

static COMMANDS: AtomicU32 = AtomicU32::new(0);

impl Client {
    pub fn connect(address: SocketAddr, token: Option<&str>) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = format!("ws://{address}/ws/session").into_client_request().unwrap();
        if let Some(token) = token {
            request.headers_mut().insert("Authorization", format!("Bearer {token}").parse().unwrap());
        }
        Self { socket: client(request, stream).unwrap().0, id: String::new() }
    }

    fn send(&mut self, kind: &str, mut command: Value) {
        self.id = COMMANDS.fetch_add(1, Ordering::Relaxed).to_string();
        (command["type"], command["id"]) = (json!(kind), json!(self.id));
        self.socket.send(Message::text(command.to_string())).unwrap();
    }

    pub fn ask(&mut self, kind: &str, command: Value) -> Value {
        self.send(kind, command);
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let heard: Value = serde_json::from_str(&text).unwrap();
            if heard["type"] == "response" && heard["id"] == self.id {
                return heard;
            }
        }
    }

    /// Everything that is said until the answer, the answer included.
    pub fn hear(&mut self, kind: &str, command: Value) -> String {
        self.send(kind, command);
        let mut heard = String::new();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            heard.push_str(&text);
            let said: Value = serde_json::from_str(&text).unwrap();
            if said["type"] == "response" && said["id"] == self.id {
                return heard;
            }
        }
    }

    pub fn bash(&mut self, session: &str, command: &str) -> Value {
        let answer = self.ask("bash", json!({"sessionId": session, "command": command}));
        assert_eq!(answer["success"], true, "{command}: {answer}");
        answer["data"].clone()
    }

    pub fn session(&mut self, id: &str, cwd: &Path) -> Value {
        self.ask("create_session", json!({"sessionId": id, "cwd": cwd}))
    }
}

/// A home with secrets, a project in it, and something beside it that is none of the session's business.
fn place(more: &str) -> Place {
    let place = Place::new();
    place.write("orchestr8.toml", &format!("{more}\n[sessions]\nbash = true\n"));
    place.write("home/.ssh/id_rsa", "PRIVATE-KEY");
    place.write("home/project/readme", "hello");
    place.write("outside/secret", "PRIVATE-KEY");
    place
}

fn start(more: &str) -> (Place, Server, Client) {
    let place = place(more);
    let server = Server::start(&place, &[]);
    let client = Client::connect(server.address, None);
    (place, server, client)
}

#[test]
fn folders_that_are_none_of_the_sessions_are_refused() {
    let (place, _server, mut client) = start("");
    let data = place.data_file().parent().unwrap().to_owned();
    std::os::unix::fs::symlink("/", place.path().join("home/project/root")).unwrap();
    let (home, root) = (place.path().join("home"), place.path().join("home/project/root"));
    let state = home.join(".local/state/orchestr8");
    let folders = [Path::new("/"), Path::new("/etc"), &data, &root, &home, place.path(), &state];
    for (number, cwd) in folders.into_iter().enumerate() {
        let answer = client.session(&format!("s{number}"), cwd);
        assert_eq!(answer["success"], false, "{}: {answer}", cwd.display());
        assert!(answer["error"].to_string().contains("sessions.roots"), "{answer}");
    }
    let answer = client.session("mine", &place.path().join("home/project"));
    assert_eq!(answer["success"], true, "{answer}");
}

#[test]
fn with_credentials_folders_must_be_listed() {
    let sha256 = sha256(b"rival-token");
    let auth = format!(
        "[[auth.tokens]]\nname = \"eve\"\ntenant = \"rival\"\nroles = [\"owner\"]\nsha256 = \"{sha256}\"\n"
    );
    let place = place(&auth);
    let server = Server::start(&place, &[]);
    let mut client = Client::connect(server.address, Some("rival-token"));
    let project = place.path().join("home/project");
    let answer = client.session("s", &project);
    assert_eq!(answer["success"], false, "{answer}");
    assert_eq!(client.ask("create_session", json!({"sessionId": "t"}))["success"], true);
    let shell = client.ask("bash", json!({"sessionId": "t", "command": "id"}));
    assert!(shell["success"] == false && shell["error"].to_string().contains("sessions.roots"), "{shell}");
    let page =
        client.ask("export_html", json!({"sessionId": "t", "outputPath": place.path().join("pwn.html")}));
    assert_eq!(page["success"], false, "{page}");
    assert!(!place.path().join("pwn.html").exists());
    drop(server);
    place.write(
        "orchestr8.toml",
        &format!("{auth}\n[sessions]\nbash = true\nroots = [{:?}]\n", project.display().to_string()),
    );
    let server = Server::start(&place, &[]);
    let mut client = Client::connect(server.address, Some("rival-token"));
    let answer = client.session("u", place.path());
    assert_eq!(answer["success"], false, "{answer}");
    let answer = client.session("v", &project);
    assert_eq!(answer["success"], true, "{answer}");
    assert_eq!(client.bash("v", "cat readme")["output"], "hello");
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn files_sockets_and_the_server_itself_are_out_of_reach() {
    let (place, server, mut client) = start("");
    let answer = client.session("s", &place.path().join("home/project"));
    assert_eq!(answer["success"], true, "{answer}");
    let secret = UnixListener::bind(place.path().join("home/project/agent.sock")).unwrap();
    secret.set_nonblocking(true).unwrap();
    let port = server.address.port();
    let attacks = [
        String::from("cat ../.ssh/id_rsa"),
        String::from("cat ../.local/share/orchestr8/orchestr8.sqlite3"),
        String::from("echo x > ../.local/share/orchestr8/new"),
        String::from("cat /etc/shadow"),
        format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo GET"),
        format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'"),
        String::from("python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"agent.sock\")'"),
        String::from("ls /proc/*/environ | grep -v -e self -e thread | wc -l | grep -q '^[0-9]\\{2,\\}$'"),
    ];
    for attack in attacks {
        let ran = client.bash("s", &attack);
        assert_ne!(ran["exitCode"], 0, "{attack}: {ran}");
        assert!(!ran["output"].as_str().unwrap().contains("PRIVATE-KEY"), "{attack}");
        assert_eq!(ran["confined"], true);
    }
    assert!(secret.accept().is_err(), "nothing came");
    let ran = client.bash("s", "cat readme; echo written > new; cat new; ls -A ..");
    assert_eq!(ran["output"], "hellowritten\nproject\n", "of the home there is the folder, and nothing else");
}

#[test]
fn exports_stay_in_the_folder() {
    let (place, _server, mut client) = start("");
    let project = place.path().join("home/project");
    let answer = client.session("s", &project);
    assert_eq!(answer["success"], true, "{answer}");
    std::os::unix::fs::symlink(place.path().join("outside"), project.join("link")).unwrap();
    let data = place.data_file().parent().unwrap().to_owned();
    for target in [
        place.path().join("outside/pwn.html"),
        project.join("link/pwn.html"),
        data.join("pwn.html"),
        place.path().join("home/pwn.html"),
    ] {
        let answer = client.ask("export_html", json!({"sessionId": "s", "outputPath": target}));
        assert_eq!(answer["success"], false, "{}: {answer}", target.display());
        assert!(!target.exists(), "{}", target.display());
    }
    let inside = project.join("page.html");
    assert_eq!(client.ask("export_html", json!({"sessionId": "s", "outputPath": inside}))["success"], true);
    assert!(inside.exists());
    // A session that was not told where it works exports nothing into the folder around the home.
    assert_eq!(client.ask("create_session", json!({"sessionId": "h"}))["success"], true);
    for target in [data.join("pwn.html"), place.path().join("home/.bashrc"), place.path().join("pwn.html")] {
        let answer = client.ask("export_html", json!({"sessionId": "h", "outputPath": target}));
        assert_eq!(answer["success"], false, "{}: {answer}", target.display());
    }
}

#[tokio::test]
async fn nothing_outlives_the_command_nor_the_server() {
    let (place, server, mut client) = start("");
    let project = place.path().join("home/project");
    let answer = client.session("s", &project);
    assert_eq!(answer["success"], true, "{answer}");
    // What left its group and session, and does not end when it is asked to, has the lock as long as it lives.
    let daemon = "exec 9>lock; flock 9; (setsid bash -c 'trap \"\" TERM HUP; while :; do sleep 1; done' &); touch begun";
    assert_eq!(client.bash("s", daemon)["exitCode"], 0);
    let (lock, begun) = (project.join("lock"), project.join("begun"));
    assert!(begun.exists() && is_unlocked(&lock), "it ended with the command");
    std::fs::remove_file(&begun).unwrap();
    client.send("bash", json!({"sessionId": "s", "command": format!("{daemon}; sleep 600")}));
    until("the command to begin", || begun.exists()).await;
    assert!(!is_unlocked(&lock), "it lives");
    server.kill();
    until("everything to end", || is_unlocked(&lock)).await;
}

#[test]
fn limits_hold_for_all_processes_together() {
    let (place, _server, mut client) = start("[sandbox]\nmemoryMb = 128\nprocesses = 32\n");
    let answer = client.session("s", &place.path().join("home/project"));
    assert_eq!(answer["success"], true, "{answer}");
    let bomb = client.bash("s", "bomb() { bomb | bomb & }; bomb; sleep 30; echo SURVIVED");
    assert!(!bomb["output"].as_str().unwrap().contains("SURVIVED"), "{bomb}");
    let memory = client.bash("s", "python3 -c 'x = bytearray(1 << 30)' && echo SURVIVED");
    assert!(!memory["output"].as_str().unwrap().contains("SURVIVED"), "{memory}");
    assert_eq!(client.bash("s", "echo fine")["output"], "fine\n");
}

#[test]
fn what_is_in_force_is_said_as_it_is() {
    let (place, _server, mut client) = start("[sandbox]\nmode = \"off\"\n");
    let answer = client.session("s", &place.path().join("home/project"));
    assert_eq!(answer["success"], true, "{answer}");
    let ran = client.bash("s", "echo open");
    assert_eq!((&ran["confined"], &ran["sandbox"]), (&json!(false), &json!("none")));
    let doctor = place.run(&["doctor", "--json"]);
    assert!(doctor.out.contains("sandbox.mode is off"), "{doctor:?}");
    place.write("orchestr8.toml", "[sandbox]\nmode = \"required\"\n");
    let doctor = place.run(&["doctor", "--json"]);
    assert!(doctor.out.contains("namespaces of their own"), "{doctor:?}");
}

#[test]
fn commands_of_a_plan_run_in_the_same_sandbox() {
    let place = Place::new();
    place.write("secret", "PRIVATE-KEY");
    let gate =
        "`test ! -e ../secret && test ! -e /etc/shadow && touch src/seen && test -e src/a.rs` (limit 30 s)";
    let plan = GOOD.replace("`test ! -e src/broken` (limit 30 s)", gate);
    let place = with_workspace(place);
    let hash = plant(&place, &plan, Status::Approved);
    let mut governed = Governed::start(place, "executor", &[]);
    governed.begin();
    let write = json!({"path": "src/a.rs", "plan": hash, "content": "fn f() {}\n",
        "intent": "Try what a command of a plan can see outside"});
    let written = governed.call("write_file", write).unwrap();
    assert_eq!(
        written["discarded"][0]["paths"],
        json!(["src/seen"]),
        "it can write, and it is told: {written}"
    );
    assert!(!governed.root().join("src/seen").exists(), "what it wrote is gone");
    assert!(governed.root().join("src/a.rs").exists());
}
