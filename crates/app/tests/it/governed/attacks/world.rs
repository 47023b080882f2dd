//! The world of a case: a folder, the program on it, and everyone who talks to it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use orchestr8_workspace::plan::hash_of;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::case::Case;
use super::heard::Heard;
use super::outside;
use crate::governed::http::Caller;
use crate::governed::{GOOD, root_of};
use crate::program::{Place, Said};
use crate::server::Server;
use crate::stdio::{Client, call};

/// How the connections of a case reach the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Stdio,
    Http,
}

impl Link {
    pub fn as_str(self) -> &'static str {
        match self {
            Link::Stdio => "stdio",
            Link::Http => "http",
        }
    }
}

/// Who acts: a role, which of its connections, and over HTTP the principal and the tenant of the token.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Actor {
    /// As the case writes it: each is a connection of its own.
    written: String,
    role: String,
    name: String,
    tenant: String,
}

impl Actor {
    fn read(written: &str) -> Self {
        let (who, of) = written.split_once('@').unwrap_or((written, ""));
        let role = match who {
            "rest" | "cli" => "owner",
            who => who.trim_end_matches(|c: char| c.is_ascii_digit()),
        };
        let (tenant, name) = of.split_once('/').unwrap_or(("default", of));
        let (role, name) = match (who, name) {
            (_, "") => (role, role),
            ("rest" | "cli", name) => (name, name),
            (_, name) => (role, name),
        };
        Self { written: written.to_owned(), role: role.into(), name: name.into(), tenant: tenant.into() }
    }

    fn token(&self) -> String {
        format!("token-{}-{}-{}", self.tenant, self.name, self.role)
    }
}

enum Connection {
    Stdio(Client),
    Http(Caller),
}

pub struct World {
    place: Place,
    link: Link,
    cwd: PathBuf,
    server: Option<Server>,
    connections: BTreeMap<String, Connection>,
    /// `$NAME` and what it stands for, the longest names first.
    names: Vec<(String, String)>,
    plans: Vec<(String, String)>,
    next_id: u64,
}

impl World {
    pub fn of(case: &Case, link: Link) -> Self {
        let place = Place::new();
        std::fs::create_dir_all(place.path().join("workspace")).unwrap();
        let folder = std::fs::canonicalize(place.path()).unwrap();
        let cwd = case.all("cwd").next().map_or_else(|| folder.clone(), |name| folder.join(name));
        let plans = plans(case);
        let names = names(&place, &plans);
        let world =
            Self { place, link, cwd, server: None, connections: BTreeMap::new(), names, plans, next_id: 0 };
        let config = world.named(&config(case, link, &root_of(&world.place)).to_string());
        world.place.plant("case.json", &config);
        let mut world = world;
        for plan in case.all("approved") {
            world.approve(plan);
        }
        world
    }

    /// The text with all names replaced.
    pub fn named(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// Does what a line says; gives what came back, if anything does.
    pub fn act(&mut self, who: &str, act: &str) -> Option<Heard> {
        match who.split('@').next().unwrap_or(who) {
            "outside" => outside::act(&std::fs::canonicalize(self.place.path()).unwrap(), act, &self.plans),
            "server" => {
                self.end_all();
                None
            }
            "cli" => Some(heard_of(&self.cli(&Actor::read(who), act))),
            "rest" => Some(self.rest(&Actor::read(who), act)),
            _ if act == "reconnect" => {
                self.end(who);
                None
            }
            _ => Some(self.governed(&Actor::read(who), act)),
        }
    }

    fn approve(&mut self, plan: &str) {
        let text = self.plans.iter().find(|(name, _)| name == plan).expect("a plan of the case").1.clone();
        let saved =
            self.governed(&Actor::read("planner"), &format!("save_plan {}", json!({"content": text})));
        assert_eq!(saved.word, "ok", "{saved:?}");
        let approval = json!({"hash": hash_of(&text)});
        let approved = self.governed(&Actor::read("planner"), &format!("approve_plan {approval}"));
        assert_eq!(approved.word, "ok", "{approved:?}");
        self.end("planner");
    }

    fn governed(&mut self, actor: &Actor, act: &str) -> Heard {
        let (tool, args) = act.split_once(' ').unwrap_or((act, "{}"));
        let args: Value = serde_json::from_str(args).unwrap_or_else(|error| panic!("{error}: {args}"));
        if self.connect(actor) && !matches!(tool, "begin_session" | "rpc") {
            let root = root_of(&self.place);
            let began = self.call(&actor.written, "begin_session", json!({"workspace_root": root}));
            if began.word != "ok" {
                return began;
            }
        }
        if tool == "rpc" {
            let answer = match self.connections.get_mut(&actor.written).unwrap() {
                Connection::Stdio(client) => client.ask(&args),
                Connection::Http(caller) => caller.post(&args).1,
            };
            return Heard::new("rpc", "", answer);
        }
        self.call(&actor.written, tool, args)
    }

    fn call(&mut self, who: &str, tool: &str, args: Value) -> Heard {
        self.next_id += 1;
        let message = call(self.next_id, tool, args);
        let answer = match self.connections.get_mut(who).unwrap() {
            Connection::Stdio(client) => client.ask(&message),
            Connection::Http(caller) => caller.post(&message).1,
        };
        let result = &answer["result"];
        let Some(text) = result["content"][0]["text"].as_str() else {
            return Heard::new("rpc", "", answer);
        };
        let value: Value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        match result["isError"] == json!(true) {
            true => {
                let code = value["error_code"].as_str().unwrap_or_default().to_owned();
                Heard::new("error", code, value)
            }
            false => Heard::new("ok", "", value),
        }
    }

    /// Opens a connection unless it is open; true if it is a new one.
    fn connect(&mut self, actor: &Actor) -> bool {
        if self.connections.contains_key(&actor.written) {
            return false;
        }
        let connection = match self.link {
            Link::Stdio => {
                // One process owns the data.
                self.end_all();
                let mut command = self.command(&["mcp", "--governed", &actor.role]);
                command.current_dir(&self.cwd);
                Connection::Stdio(Client::ready_of(command))
            }
            Link::Http => {
                self.serve();
                Connection::Http(Caller::new(self.server.as_ref().unwrap(), &actor.token()))
            }
        };
        self.connections.insert(actor.written.clone(), connection);
        true
    }

    fn serve(&mut self) {
        if self.server.is_none() {
            let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
            command.current_dir(&self.cwd);
            self.server = Some(Server::of(command));
        }
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let config = self.place.path().join("case.json");
        self.place.command(&[&["--config", config.to_str().unwrap()], args].concat())
    }

    fn cli(&mut self, actor: &Actor, words: &str) -> Said {
        let words: Vec<&str> = words.split(' ').collect();
        let mut command = self.command(&words);
        match self.link {
            Link::Stdio => self.end_all(),
            Link::Http => {
                self.serve();
                let server = format!("http://{}", self.server.as_ref().unwrap().address);
                command.env("ORCHESTR8_SERVER", server).env("ORCHESTR8_TOKEN", actor.token());
            }
        }
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        let text = |bytes: &[u8]| self.place.anonymous(&String::from_utf8_lossy(bytes));
        Said { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    fn rest(&mut self, actor: &Actor, act: &str) -> Heard {
        assert_eq!(self.link, Link::Http, "REST is only there over HTTP: % on http");
        let mut words = act.splitn(3, ' ');
        let (method, target) = (words.next().unwrap(), words.next().expect("METHOD /path"));
        self.serve();
        let token = format!("Authorization: Bearer {}\r\n", actor.token());
        let answer = self.server.as_ref().unwrap().connect().request(method, target, &token, words.next());
        let answer = answer.unwrap();
        let value = serde_json::from_str(&answer.body).unwrap_or_else(|_| Value::from(answer.body.clone()));
        Heard::new("status", answer.status.to_string(), value)
    }

    fn end(&mut self, who: &str) {
        if let Some(Connection::Stdio(client)) = self.connections.remove(who) {
            client.end();
        }
    }

    fn end_all(&mut self) {
        let open: Vec<String> = self.connections.keys().cloned().collect();
        open.iter().for_each(|who| self.end(who));
        if let Some(server) = self.server.take() {
            assert!(server.terminate().success());
        }
    }
}

fn heard_of(said: &Said) -> Heard {
    let code = said.code.map_or_else(|| String::from("none"), |code| code.to_string());
    Heard::new("exit", code, format!("{}{}", said.out, said.err))
}

/// The texts of the plans of a case, by name.
fn plans(case: &Case) -> Vec<(String, String)> {
    let mut plans = vec![(String::from("GOOD"), GOOD.to_owned())];
    for setting in case.all("plan") {
        let (name, change) = setting.split_once(' ').expect("% plan NAME old => new");
        let (old, new) = change.split_once(" => ").expect("% plan NAME old => new");
        if !plans.iter().any(|(known, _)| known == name) {
            plans.push((name.to_owned(), GOOD.to_owned()));
        }
        let text = &mut plans.iter_mut().find(|(known, _)| known == name).unwrap().1;
        assert!(text.contains(old), "the plan has no {old}");
        *text = text.replacen(old, &new.replace("\\n", "\n"), 1);
    }
    plans
}

fn names(place: &Place, plans: &[(String, String)]) -> Vec<(String, String)> {
    let folder = std::fs::canonicalize(place.path()).unwrap();
    let shown = |path: PathBuf| path.to_str().unwrap().to_owned();
    let mut names = vec![
        (String::from("$ROOT"), shown(folder.join("workspace"))),
        (String::from("$PLACE"), shown(folder.clone())),
        (String::from("$DATA"), shown(folder.join("home/.local/share/orchestr8"))),
    ];
    for (name, text) in plans {
        let quoted = json!(text).to_string();
        names.push((format!("${name}_TEXT"), quoted[1..quoted.len() - 1].to_owned()));
        names.push((format!("${name}"), hash_of(text)));
    }
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names
}

/// The configuration of a case: its root, its settings, and a token for everyone in it.
fn config(case: &Case, link: Link, root: &std::path::Path) -> Value {
    let mut config = json!({"workspace": {"roots": [root]}});
    for setting in case.all("set") {
        let (key, value) = setting.split_once(' ').expect("% set KEY VALUE");
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        let pointer = format!("/{}", key.replace('.', "/"));
        if let Some(known) = config.pointer_mut(&pointer) {
            *known = value;
        } else {
            let (group, name) = key.split_once('.').expect("a setting of a group");
            config[group][name] = value;
        }
    }
    for key in case.all("unset") {
        let (group, name) = key.split_once('.').expect("a setting of a group");
        config[group].as_object_mut().unwrap().remove(name);
    }
    if link == Link::Http {
        let always = ["planner", "rest"].into_iter();
        let actors = case.steps.iter().map(|step| step.actor.as_str()).chain(always);
        let actors = actors.filter(|who| !matches!(*who, "outside" | "server"));
        let tokens: BTreeMap<String, Value> = actors
            .map(Actor::read)
            .map(|actor| {
                let hash: String =
                    Sha256::digest(actor.token()).iter().map(|byte| format!("{byte:02x}")).collect();
                let (name, tenant, roles) = (&actor.name, &actor.tenant, [&actor.role]);
                (actor.token(), json!({"name": name, "tenant": tenant, "roles": roles, "sha256": hash}))
            })
            .collect();
        config["auth"] = json!({"tokens": tokens.into_values().collect::<Vec<_>>()});
    }
    config
}
