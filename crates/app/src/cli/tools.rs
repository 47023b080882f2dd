//! `orchestr8 tools list|call`: the tools without any client, run by this process on the embedded store.

use std::sync::Arc;

use clap::Subcommand;
use orchestr8_contract::content::{Content, ResourceContents, ResourceData};
use orchestr8_contract::id::{CorrelationId, Key, Tenant};
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::{Action, Effect, Halt};
use orchestr8_kernel::log::Level;
use orchestr8_kernel::peer::Alone;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{Args, Principal, Settled, Source, Submission, Why};
use orchestr8_tools::remote::{KnownTool, Server, known_tools};
use serde_json::{Map, Value, json};

use super::{Running, Shell, WhenUntrusted, accept};
use crate::config::suggestion;
use crate::failure::Failure;
use crate::runtime::{Purpose, Runtime, WhenHeld, block_on};
use crate::terminal::columns;

#[derive(Subcommand)]
pub enum Tools {
    /// List the tools; those of other MCP servers as they were last accepted.
    List {
        /// Start the other MCP servers and ask them.
        #[arg(long)]
        refresh: bool,
        #[command(flatten)]
        running: Running,
    },
    /// Call a tool and print what it answers.
    Call {
        /// The tool's name.
        name: String,
        /// Its arguments, as a JSON object.
        #[arg(long, value_name = "JSON", default_value = "{}")]
        args: String,
        /// An idempotency key: a repeat with the same key gets the first answer.
        #[arg(long)]
        key: Option<String>,
        /// Wait at most this long.
        #[arg(long, value_name = "MS")]
        timeout_ms: Option<u64>,
        #[command(flatten)]
        running: Running,
    },
    /// Accept the changed definition of a tool of another MCP server; without a name, list those that wait for it.
    Accept(accept::Accept),
}

const PURPOSE: Purpose =
    Purpose { when_held: WhenHeld::UseMemory, at_least: Level::Warn, lasting: false, starts_servers: true };

impl Tools {
    pub fn run(self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Tools::List { refresh, running } => list(shell, &running, refresh),
            Tools::Accept(accept) => accept.run(shell),
            Tools::Call { name, args, key, timeout_ms, running } => {
                let call = Call {
                    name,
                    args: object(&args)?,
                    key: key.as_deref().map(parse_key).transpose()?,
                    timeout_ms,
                };
                let settled = call.run(shell, &running)?;
                print(shell, settled)
            }
        }
    }
}

/// A tool as it is listed.
struct ListedTool {
    name: String,
    description: String,
    /// For programs.
    whole: Value,
}

fn list(shell: &Shell, running: &Running, refresh: bool) -> Result<(), Failure> {
    let settings = shell.settings(running.flags(), running.mode())?;
    let purpose = Purpose { starts_servers: refresh, ..PURPOSE };
    block_on(async {
        let runtime = Runtime::build(settings, purpose)?;
        // Servers that were added are stored.
        runtime.unlock().await?;
        runtime.remote.started().await;
        let (table, tenant) = (runtime.kernel.registry().table(), Tenant::local());
        let mut listed: Vec<ListedTool> = table.tools_for(&tenant).map(|tool| own(tool)).collect();
        if !refresh {
            listed.extend(known(shell, &runtime, |name| table.find(name).is_some()).await?);
        }
        listed.retain(|tool| runtime.settings.tool_filter.shows(&tool.name));
        if shell.terminal.json {
            let tools: Vec<Value> = listed.into_iter().map(|tool| tool.whole).collect();
            shell.terminal.value(&json!({"tools": tools}));
        } else {
            let rows: Vec<[String; 2]> =
                listed.into_iter().map(|tool| [tool.name, first_sentence(&tool.description)]).collect();
            shell.terminal.data(&columns(&rows));
        }
        runtime.close().await;
        Ok(())
    })
}

fn own(tool: &Action) -> ListedTool {
    let whole = json!({
        "name": tool.name, "aliases": tool.about.aliases, "description": tool.about.description,
        "inputSchema": tool.input.source,
    });
    ListedTool { name: tool.name.to_string(), description: tool.about.description.to_string(), whole }
}

/// The tools of other servers, none of which is started to list them.
async fn known(
    shell: &Shell,
    runtime: &Runtime,
    is_taken: impl Fn(&str) -> bool,
) -> Result<Vec<ListedTool>, Failure> {
    let served = runtime.remote.registry().visible(&Tenant::local());
    let servers: Vec<Server> = served.iter().map(|served| (*served.server).clone()).collect();
    let known = known_tools(runtime.kernel.ports(), &servers, is_taken).await?;
    let silent = servers.iter().filter(|server| !known.iter().any(|tool| tool.server == server.name));
    let silent: Vec<&str> = silent.map(|server| server.name.as_str()).collect();
    if !silent.is_empty() {
        let names = silent.join(", ");
        shell
            .terminal
            .note(&format!("not asked yet: {names}; orchestr8 tools list --refresh starts and asks them"));
    }
    let listed = |tool: KnownTool| {
        let description = tool.definition["description"].as_str().unwrap_or_default().to_owned();
        let whole = json!({"name": tool.name, "aliases": [], "description": description,
            "inputSchema": tool.definition["inputSchema"]});
        ListedTool { name: tool.name, description, whole }
    };
    Ok(known.into_iter().map(listed).collect())
}

fn first_sentence(text: &str) -> String {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.').to_owned()
}

struct Call {
    name: String,
    args: Map<String, Value>,
    key: Option<Key>,
    timeout_ms: Option<u64>,
}

impl Call {
    fn run(self, shell: &Shell, running: &Running) -> Result<Settled, Failure> {
        let when = WhenUntrusted::KeepProtection;
        let settings = shell.settings_for("tools call", running.flags(), running.mode(), when)?;
        block_on(async {
            let runtime = Runtime::build(settings, PURPOSE)?;
            runtime.unlock().await?;
            runtime.remote.started().await;
            let settled = self.submit(&runtime).await;
            runtime.close().await;
            settled
        })
    }

    async fn submit(self, runtime: &Runtime) -> Result<Settled, Failure> {
        let kernel = &runtime.kernel;
        let tool = kernel
            .registry()
            .find_for(&Tenant::local(), &self.name)
            .filter(|tool| runtime.settings.tool_filter.shows(tool.name.as_str()));
        let Some(tool) = tool else { return Err(self.unknown(runtime)) };
        if !runtime.durable && !runtime.settings.mode.ephemeral && tool.policy.effect != Effect::Read {
            return Err(Failure::new(
                Code::Unavailable,
                "another orchestr8 has the data file, and this tool changes something",
            )
            .hinting("call it through that server, or give --data-dir DIR or --ephemeral"));
        }
        let correlation = CorrelationId::from_uuid(kernel.ports().ids.fresh(For::Correlation));
        let mut submission = Submission::new(
            self.name,
            Args::new(self.args),
            Principal::local().with_document_proof().into(),
            correlation,
        );
        submission.source = Source::cli();
        submission.timeout_ms = self.timeout_ms;
        let scope = Scope(format!("cli:{}", tool.name).into());
        submission.identities.extend(self.key.map(|key| Identity {
            scope,
            key,
            ttl_ms: runtime.settings.key_ttl_ms,
        }));
        let cancel = submission.cancel.clone();
        let interrupted = async {
            // Where signals cannot be watched, Ctrl-C ends the process by itself.
            match tokio::signal::ctrl_c().await {
                Ok(()) => cancel.fire(Why::Client),
                Err(_) => std::future::pending().await,
            }
        };
        submission.peer = Some(Arc::new(Alone(runtime.settings.tool_filter.clone())));
        let submitted = kernel.submit(submission);
        tokio::pin!(submitted);
        Ok(tokio::select! {
            settled = &mut submitted => settled,
            () = interrupted => submitted.await,
        })
    }

    fn unknown(&self, runtime: &Runtime) -> Failure {
        let table = runtime.kernel.registry().table();
        let failure = Failure::new(Code::NotFound, format!("there is no tool named '{}'", self.name));
        match suggestion(&self.name, table.tools().map(|tool| tool.name.as_str())) {
            Some(near) => failure.hinting(format!("did you mean {near}? `orchestr8 tools list` lists all")),
            None => failure.hinting("`orchestr8 tools list` lists all"),
        }
    }
}

fn object(text: &str) -> Result<Map<String, Value>, Failure> {
    let wrong = |what: String| {
        Failure::new(Code::InvalidArgument, what).hinting("give a JSON object: --args '{\"message\":\"hi\"}'")
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(wrong(String::from("--args is not a JSON object"))),
        Err(error) => Err(wrong(format!("--args is not JSON: {error}"))),
    }
}

fn parse_key(text: &str) -> Result<Key, Failure> {
    Key::parse(text).map_err(|wrong| Failure::new(Code::InvalidArgument, format!("--key: {wrong}")))
}

fn print(shell: &Shell, settled: Settled) -> Result<(), Failure> {
    let output = match settled.result {
        Ok(output) => output,
        Err(Halt::Fault(fault)) => return Err(refusal(fault)),
        Err(Halt::Asks(_)) => {
            return Err(Failure::new(
                Code::CapabilityMissing,
                "the tool asks its caller something, and the command line cannot answer",
            )
            .hinting("call it from an MCP client"));
        }
    };
    if shell.terminal.json {
        shell.terminal.value(&json!({"runId": settled.run, "replayed": settled.replayed, "output": output}));
    } else {
        shell.terminal.content(&text(&output));
    }
    match output {
        Output::Blocks { failed: true, .. } => {
            Err(Failure::new(Code::Internal, "the tool says that it failed")
                .hinting("its own words are above"))
        }
        Output::Json { .. } | Output::Blocks { .. } | Output::Resource { .. } | Output::Prompt { .. } => {
            Ok(())
        }
    }
}

/// With the places of wrong arguments, which only the details have.
fn refusal(fault: Fault) -> Failure {
    let errors =
        fault.details.as_ref().and_then(|details| details.get("errors")).and_then(Value::as_array).cloned();
    let line = |error: &Value| {
        let part = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", part("path"), part("message"))
    };
    // The message has the first of them.
    let lines = errors.unwrap_or_default().iter().skip(1).map(line).collect();
    Failure::from(fault).listing(lines)
}

/// What people read of an output.
fn text(output: &Output) -> String {
    let lines: Vec<String> = match output {
        Output::Json { value: Value::String(text) } => vec![text.clone()],
        Output::Json { value } => vec![format!("{value:#}")],
        Output::Blocks { blocks, .. } => blocks.iter().map(block).collect(),
        Output::Resource { contents } => contents.iter().map(contents_text).collect(),
        Output::Prompt { messages, .. } => {
            messages.iter().map(|message| json!(message).to_string()).collect()
        }
    };
    lines.join("\n")
}

fn block(content: &Content) -> String {
    match content {
        Content::Text { text, .. } => text.clone(),
        Content::Image { mime_type, data, .. } | Content::Audio { mime_type, data, .. } => {
            format!("[{mime_type}, {} bytes of base64]", data.len())
        }
        Content::ResourceLink(link) => format!("[link to {}]", link.uri),
        Content::Resource { resource, .. } => contents_text(resource),
    }
}

fn contents_text(contents: &ResourceContents) -> String {
    match &contents.data {
        ResourceData::Text(text) => text.clone(),
        ResourceData::Blob(blob) => format!("[{}, {} bytes of base64]", contents.uri, blob.len()),
    }
}
