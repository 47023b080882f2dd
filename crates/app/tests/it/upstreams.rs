//! Other MCP servers behind the real program: an instance for each tenant, and servers that are added while it runs.

use serde_json::{Value, json};

use crate::attacks::actors::{ask, audit, expect, token};
use crate::others::SERVER;
use crate::program::Place;
use crate::server::Server;

/// A server that counts its calls, and says with which key it was started.
const COUNTING: &str = r#"
echo "started with $KEY" >&2
n=0
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
        *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}' ;;
        *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"count","description":"Counts.","inputSchema":{"type":"object"}}]}}' ;;
        *'"tools/call"'*) n=$((n+1)); echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"'$n'"}]}}' ;;
        *'"method":"notifications'*) ;;
        *) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
    esac
done
"#;

fn serve(config: &str) -> (Place, Server) {
    let place = Place::new().with("PATH", "/usr/bin:/bin");
    place.write("counting.sh", COUNTING);
    place.write("server.sh", SERVER);
    place.write("about", "first");
    let tokens = [
        token("ann", "acme", &["owner"]),
        token("eve", "rival", &["owner"]),
        token("root", "local", &["owner"]),
    ];
    place.write("orchestr8.toml", &format!("{config}\n{}", tokens.concat()));
    let server = Server::start(&place, &[]);
    (place, server)
}

/// What a tool answers this caller, or the code of its error.
fn call(server: &Server, who: &str, tool: &str) -> String {
    let more = format!("Authorization: Bearer {who}\r\n");
    let params = json!({"name": tool, "arguments": {}});
    let answer = server.connect().modern(1, "tools/call", params, &more).unwrap().json();
    let result = &answer["result"];
    match result["isError"].as_bool() {
        Some(true) => serde_json::from_str::<Value>(result["content"][0]["text"].as_str().unwrap())
            .unwrap_or_else(|_| panic!("{answer}"))["code"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned(),
        Some(false) | None => {
            result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
        }
    }
}

/// Calls until the tool is offered: its server comes up while ours serves already.
fn call_when_offered(server: &Server, who: &str, tool: &str) -> String {
    loop {
        let answer = call(server, who, tool);
        if answer != "NOT_FOUND" {
            return answer;
        }
    }
}

fn servers(server: &Server, who: &str) -> Vec<Value> {
    let listed = expect(server, who, ("GET", "/v1/servers"), None, 200);
    listed["servers"].as_array().unwrap().clone()
}

#[test]
fn tenants_share_no_instance_of_a_server_unless_it_is_shared() {
    let entry = |name: &str| format!("[mcpServers.{name}]\ncommand = 'sh'\nargs = ['counting.sh']\n");
    let (_place, server) = serve(&format!("{}{}shared = true\n", entry("own"), entry("one")));
    assert_eq!(call_when_offered(&server, "ann", "own.count"), "1");
    assert_eq!(call(&server, "ann", "own.count"), "2");
    assert_eq!(call(&server, "eve", "own.count"), "1", "another process");
    for (who, counted) in [("ann", "1"), ("eve", "2")] {
        assert_eq!(call_when_offered(&server, who, "one.count"), counted, "one process");
    }
    let of_ann = servers(&server, "ann");
    let own = of_ann.iter().find(|one| one["name"] == "own").unwrap();
    assert_eq!(
        (&own["phase"], &own["source"], &own["removable"]),
        (&json!("running"), &json!("settings"), &json!(false))
    );
    assert_eq!(own.get("instances"), None, "which tenants use it is not told to one of them");
    let of_root = servers(&server, "root");
    let own = of_root.iter().find(|one| one["name"] == "own").unwrap();
    let mut tenants: Vec<&str> =
        own["instances"].as_array().unwrap().iter().filter_map(|one| one["tenant"].as_str()).collect();
    tenants.sort_unstable();
    assert_eq!(tenants, ["acme", "local", "rival"]);
    let fixed = ask(&server, "root", "DELETE", "/v1/servers/own", None);
    assert_eq!(fixed.status, 409);
    assert!(fixed.body.contains("mcpServers.own"), "{}", fixed.body);
}

#[test]
fn a_server_is_added_restarted_and_removed_while_the_program_runs() {
    let (place, server) = serve("[gateway]\ntenantPrograms = true\n");
    let at = format!("http://{}", server.address);
    let as_ann = |args: &[&str], input: &str| {
        let mut command = place.command(&[args, &["--server", &at]].concat());
        command.env("ORCHESTR8_TOKEN", "ann");
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let script = place.path().join("counting.sh");
    let entry = json!({"name": "mine", "command": "sh", "args": [script], "env": {"KEY": "${SHOP_KEY}"}});
    expect(&server, "ann", ("POST", "/v1/servers"), Some(entry), 200);
    let shown = loop {
        let shown = as_ann(&["servers", "show", "mine"], "").1;
        if shown.contains("problem") {
            break shown;
        }
    };
    let command = "orchestr8 secrets set SHOP_KEY --agent mcp:mine --to exec:sh:KEY";
    assert!(shown.contains(command) && shown.contains("env.KEY"), "{shown}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let (code, out, err) = as_ann(&words, "canary-of-the-shop");
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(as_ann(&["servers", "restart", "mine"], "").1, "mine restarts\n");
    assert_eq!(call_when_offered(&server, "ann", "mine.count"), "1");
    assert_eq!(call(&server, "eve", "mine.count"), "NOT_FOUND");
    let logs = as_ann(&["servers", "logs", "mine"], "").1;
    assert_eq!(logs, "started with [REDACTED]\n");
    let listed = as_ann(&["servers", "list"], "").1;
    assert!(listed.contains("mine") && listed.contains("running") && listed.contains("added"), "{listed}");
    assert_eq!(ask(&server, "eve", "GET", "/v1/servers/mine", None).status, 404);
    server.terminate();

    let server = Server::start(&place, &[]);
    assert_eq!(call(&server, "ann", "mine.count"), "1", "it is there at once after a restart");
    let entries = audit(&server, "ann", "action=servers.add");
    assert_eq!((entries.len(), &entries[0]["principal"]), (1, &json!("ann")), "{entries:?}");
    expect(&server, "ann", ("DELETE", "/v1/servers/mine"), None, 200);
    assert_eq!(call(&server, "ann", "mine.count"), "NOT_FOUND");
    assert_eq!(servers(&server, "ann"), [] as [Value; 0]);
    server.terminate();
    let data = std::fs::read(place.data_file()).unwrap();
    let canary = b"canary-of-the-shop";
    assert!(!data.windows(canary.len()).any(|window| window == canary), "the value is not in the data file");
}

#[test]
fn the_command_line_adds_a_server_with_its_arguments() {
    let (place, server) = serve("");
    let at = format!("http://{}", server.address);
    let as_token = |who: &str, args: &[&str]| {
        let mut command = place.command(args);
        let output = command.env("ORCHESTR8_TOKEN", who).env("ORCHESTR8_SERVER", &at).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let add = ["servers", "add", "files", "--env", "MODE=fast", "--deny", "write_*", "--", "sh", "server.sh"];
    let (code, _, err) = as_token("ann", &add);
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("gateway.tenantPrograms"), "{err}");
    let (code, out, err) = as_token("root", &add);
    assert_eq!((code, out.as_str()), (Some(0), "files is added for the tenant local\n"), "{err}");
    assert_eq!(call_when_offered(&server, "root", "files.hi"), "hi from sh");
    let inside = ["servers", "add", "inside", "--url", "http://127.0.0.1:1/mcp"];
    let (code, _, err) = as_token("ann", &inside);
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("gateway.allowPrivate"), "{err}");
    let literal = [
        "servers",
        "add",
        "web",
        "--url",
        "https://a.example/mcp",
        "--header",
        "Authorization: Bearer canary",
    ];
    let (code, _, err) = as_token("root", &literal);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("secrets set"), "{err}");
    let (_, shown, _) = as_token("root", &["servers", "show", "files", "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["entry"]["args"], json!(["server.sh"]));
    assert_eq!(shown["entry"]["env"], json!({"MODE": "fast"}));
    server.terminate();
    assert_eq!(place.run(&["tools", "call", "files.hi"]).out, "hi from sh\n", "in this process too");
    assert!(place.run(&["tools", "list"]).out.contains("files.hi"));
    assert_eq!(place.run(&["servers", "remove", "files", "--yes"]).out, "files is removed\n");
    assert!(!place.run(&["tools", "list"]).out.contains("files.hi"));
}

/// A program that can write the data file cannot make the server start another one.
#[test]
fn a_row_that_was_put_into_the_data_file_starts_no_program() {
    let (place, server) = serve("");
    let entry = json!({"name": "files", "command": "sh", "args": [place.path().join("server.sh")]});
    expect(&server, "root", ("POST", "/v1/servers"), Some(entry), 200);
    assert_eq!(call_when_offered(&server, "root", "files.hi"), "hi from sh");
    server.terminate();
    let mark = place.path().join("mark");
    let forged = json!({"command": "touch", "args": [mark]}).to_string();
    let data = rusqlite::Connection::open(place.data_file()).unwrap();
    assert_eq!(data.execute("UPDATE mcp_servers SET definition = ?1", [forged]).unwrap(), 1);
    drop(data);
    let server = Server::start(&place, &[]);
    assert_eq!(servers(&server, "root"), [] as [Value; 0]);
    server.terminate();
    assert!(!mark.exists());
}
