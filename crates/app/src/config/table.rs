//! Every setting, declared once: its key, what it takes, what it is without anybody saying so, and what it is for.
//!
//! To add one: a line here and its use in `settings`. Its environment variable follows from its key. Its trust class is in
//! `trust_class`.

use orchestr8_agents::limits as agents;
use orchestr8_broker::limits as broker;
use orchestr8_contract::limits;
use orchestr8_edge::settings as edge;
use orchestr8_kernel::redact::DEFAULT_KEYS;
use orchestr8_knowledge::limits as knowledge;
use orchestr8_knowledge_face::limits as knowledge_face;
use orchestr8_models::limits as models;
use orchestr8_process::sandbox::SandboxLimits;
use orchestr8_sessions::limits as sessions;
use orchestr8_sessions_face::limits as sessions_face;
use orchestr8_tools::remote::limits as remote;
use orchestr8_workflows::limits as workflows;
use serde_json::Value;

use super::shape::Shape;

/// The value of a setting nobody set.
#[derive(Debug, Clone, Copy)]
pub enum Preset {
    Bool(bool),
    Int(u64),
    Text(&'static str),
    Texts(&'static [&'static str]),
    /// None; the doc line says what that means.
    Unset,
    /// Must be given wherever its group is.
    Required,
}

impl Preset {
    /// Null: unset. None: there is no default.
    pub fn value(self) -> Option<Value> {
        match self {
            Preset::Bool(value) => Some(value.into()),
            Preset::Int(value) => Some(value.into()),
            Preset::Text(value) => Some(value.into()),
            Preset::Texts(values) => Some(values.to_vec().into()),
            Preset::Unset => Some(Value::Null),
            Preset::Required => None,
        }
    }
}

/// Whether its value may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    Open,
    Secret,
}

#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Where it stands in a file. `[]` is each item of a list, `*` each name of an object.
    pub key: &'static str,
    pub shape: Shape,
    pub preset: Preset,
    pub doc: &'static str,
    /// A second environment variable that is understood.
    pub alias: Option<&'static str>,
    pub secrecy: Secrecy,
}

impl Setting {
    /// Its environment variable: `tools.maxStateBytes` is `ORCHESTR8_TOOLS_MAX_STATE_BYTES`. Parts of lists and objects have none.
    pub fn variable(&self) -> Option<String> {
        if self.key.contains(['[', '*']) {
            return None;
        }
        let mut name = String::from(PREFIX);
        for letter in self.key.chars() {
            match letter {
                '.' => name.push('_'),
                capital if capital.is_ascii_uppercase() => {
                    name.push('_');
                    name.push(capital);
                }
                letter => name.push(letter.to_ascii_uppercase()),
            }
        }
        Some(name)
    }

    /// The environment variables that set it, the first of which wins.
    pub fn variables(&self) -> impl Iterator<Item = String> {
        self.variable().into_iter().chain(self.alias.map(str::to_owned))
    }

    /// The parts of its key: `auth.tokens[].name` is `auth`, `tokens`, `[]`, `name`.
    pub fn segments(&self) -> impl Iterator<Item = &'static str> {
        self.key
            .split('.')
            .flat_map(|part| match part.strip_suffix("[]") {
                Some(list) => [Some(list), Some("[]")],
                None => [Some(part), None],
            })
            .flatten()
    }
}

/// What the names of our environment variables begin with.
pub const PREFIX: &str = "ORCHESTR8_";

/// Variables of ours that are not settings.
pub const OTHER_VARIABLES: [&str; 6] = [
    "ORCHESTR8_CA_FILE",
    "ORCHESTR8_CONFIG",
    "ORCHESTR8_DATA_DIR",
    "ORCHESTR8_KEY_FILE",
    "ORCHESTR8_SERVER",
    "ORCHESTR8_TOKEN",
];

const DAY_MS: u64 = 86_400_000;
const SANDBOX: SandboxLimits = SandboxLimits::PRESET;
const ANY_TIMEOUT: Shape = Shape::Int { min: 1, max: DAY_MS };
/// A row of the store holds at most 32 MiB, and arguments are stored.
const ANY_BYTES: Shape = Shape::Int { min: 1, max: 16 * 1024 * 1024 };
const EDGE_TIMEOUT: Shape = Shape::Int { min: 1, max: 3_600_000 };

const fn setting(key: &'static str, shape: Shape, preset: Preset, doc: &'static str) -> Setting {
    Setting { key, shape, preset, doc, alias: None, secrecy: Secrecy::Open }
}

impl Setting {
    const fn also(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    const fn secret(mut self) -> Self {
        self.secrecy = Secrecy::Secret;
        self
    }
}

/// All of them, in the order in which they are shown.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    setting("server.name", Shape::Text, Preset::Text("orchestr8"), "The name clients are told.").also("MCP_SERVER_NAME"),
    setting("server.version", Shape::Text, Preset::Text(env!("CARGO_PKG_VERSION")), "The version clients are told."),
    setting("server.instructions", Shape::Text, Preset::Unset, "What models are told about this server; nothing if unset."),
    setting("server.shutdownTimeoutMs", Shape::Int { min: 0, max: 600_000 }, Preset::Int(limits::SHUTDOWN_TIMEOUT_MS), "How long work in flight may take to finish when the server stops."),
    setting("tools.defaultTimeoutMs", ANY_TIMEOUT, Preset::Int(limits::TIMEOUT_MS), "How long a tool may take before its caller is answered TIMEOUT.").also("MCP_TOOLS_DEFAULT_TIMEOUT_MS"),
    setting("tools.maxPayloadBytes", ANY_BYTES, Preset::Int(limits::PAYLOAD_BYTES as u64), "The largest arguments of one call, serialized.").also("MCP_TOOLS_MAX_PAYLOAD_BYTES"),
    setting("tools.maxStateBytes", ANY_BYTES, Preset::Int(limits::STATE_BYTES as u64), "The largest agent state shown whole; of a larger one only the keys.").also("MCP_TOOLS_MAX_STATE_BYTES"),
    setting("tools.maxResultBytes", ANY_BYTES, Preset::Int(131_072), "A larger result becomes a link to a resource, read in pages."),
    setting("tools.adminRegistrationEnabled", Shape::Bool, Preset::Bool(false), "Offer admin.registerTool and admin.unregisterTool; needs security.dynamicRegistrationEnabled too.").also("MCP_TOOLS_ADMIN_REGISTRATION_ENABLED"),
    setting("tools.adminPolicy.mode", Shape::Choice(&["deny_all", "local_stdio_only", "token"]), Preset::Text("deny_all"), "Who may use the admin tools.").also("MCP_TOOLS_ADMIN_POLICY_MODE"),
    setting("tools.adminPolicy.tokenEnvVar", Shape::Text, Preset::Unset, "The environment variable with the admin token, for mode token."),
    setting("tools.filter", Shape::Texts, Preset::Texts(&[]), "Offer only these tools: names, or prefixes such as agent.*; empty offers all."),
    setting("tools.searchAbove", Shape::Int { min: 1, max: 100_000 }, Preset::Int(40), "With more tools than this, tool_search is listed too."),
    setting("resources.maxConcurrentExecutions", Shape::Int { min: 1, max: 10_000 }, Preset::Int(limits::CONCURRENT_RUNS as u64), "How many calls run at once; one more is refused.").also("MCP_RESOURCES_MAX_CONCURRENT_EXECUTIONS"),
    setting("resources.maxCpuMsPerMinute", Shape::Int { min: 0, max: 6_000_000 }, Preset::Int(30_000), "Thread time that one tenant may use in a minute for large inputs: JSON, definitions and pure steps of 64 KiB and more. One principal may use four fifths of it; 0 for any."),
    setting("resources.maxWorkBytes", Shape::Int { min: 65_536, max: 1 << 32 }, Preset::Int(33_554_432), "Large inputs that one tenant may have waiting and under way at once, in bytes of JSON; more is refused."),
    setting("logging.level", Shape::Choice(&["debug", "info", "warn", "error"]), Preset::Text("info"), "What is written to the log on stderr.").also("MCP_LOGGING_LEVEL"),
    setting("logging.redactKeys", Shape::Texts, Preset::Texts(&DEFAULT_KEYS), "Names whose values never reach log, journal or audit.").also("MCP_LOGGING_REDACT_KEYS"),
    setting("security.dynamicRegistrationEnabled", Shape::Bool, Preset::Bool(false), "The second switch for the admin tools.").also("MCP_SECURITY_DYNAMIC_REGISTRATION_ENABLED"),
    setting("security.allowArbitraryCodeTools", Shape::Bool, Preset::Bool(false), "Reserved; no tool runs code it was sent."),
    setting("aacp.defaultTtlMs", Shape::Int { min: 1000, max: 365 * DAY_MS }, Preset::Int(limits::KEY_TTL_MS), "How long messages between agents and the outcomes of keyed calls are remembered.").also("MCP_AACP_DEFAULT_TTL_MS"),
    setting("aacp.requestTimeoutMs", ANY_TIMEOUT, Preset::Int(agents::REQUEST_TIMEOUT_MS.unsigned_abs()), "How long a request to an agent may stay without an answer before its outcome is UNKNOWN."),
    setting("aacp.maxAttempts", Shape::Int { min: 1, max: 100 }, Preset::Int(agents::REQUEST_ATTEMPTS as u64), "How often a request whose outcome is UNKNOWN is handed to its target in all."),
    setting("aacp.maxInboxMessages", Shape::Int { min: 1, max: 1_000_000 }, Preset::Int(agents::INBOX_MESSAGES as u64), "Messages that one agent has not acknowledged; one more is refused."),
    setting("aacp.callbacks.allowedHosts", Shape::Texts, Preset::Texts(&[]), "Hosts that messages may be brought to although they are private."),
    setting("aacp.callbacks.allowPrivate", Shape::Bool, Preset::Bool(false), "Bring messages to private and loopback addresses too."),
    setting("store.path", Shape::Text, Preset::Unset, "The data file; orchestr8.sqlite3 in the data directory if unset."),
    setting("store.key.env", Shape::Text, Preset::Unset, "The environment variable with the key that encrypts the data file and its backups: 32 bytes in base64 or hexadecimal digits. Without env, file and command the data file is not encrypted."),
    setting("store.key.file", Shape::Text, Preset::Unset, "The file with that key, readable by its owner only and outside the data directory."),
    setting("store.key.command", Shape::Texts, Preset::Texts(&[]), "A program with its arguments that prints that key."),
    setting("store.sync", Shape::Choice(&["full", "normal"]), Preset::Text("full"), "full: what is acknowledged survives a loss of power. normal: faster; a loss of power may lose the newest acknowledged work."),
    setting("store.retentionDays", Shape::Int { min: 1, max: 36_500 }, Preset::Int(30), "How long the journal is kept."),
    setting("store.auditRetentionDays", Shape::Int { min: 1, max: 36_500 }, Preset::Int(400), "How long the audit trail is kept. What is deleted is told in the trail itself, which stays provable."),
    setting("store.maxBytes", Shape::Int { min: 1 << 20, max: 1 << 44 }, Preset::Unset, "The data file never grows larger; writes are refused instead. Unlimited if unset."),
    setting("audit.keyFile", Shape::Text, Preset::Unset, "The key that signs the heads of the audit log, made at the first start; log.key in the user's state directory if unset. Must not be in the data directory."),
    setting("audit.keyEnvVar", Shape::Text, Preset::Unset, "The environment variable with that key, instead of a file."),
    setting("audit.keyCommand", Shape::Texts, Preset::Texts(&[]), "A program with its arguments that prints that key, instead of a file."),
    setting("audit.anchors", Shape::Texts, Preset::Texts(&[]), "Where signed heads are kept: file:PATH (the first one is also read at start-up; beside the key if there is none), syslog, or an http(s) address they are posted to."),
    setting("audit.headSeconds", Shape::Int { min: 1, max: 3600 }, Preset::Int(10), "How often a head is signed and anchored while entries are added."),
    setting("audit.headEntries", Shape::Int { min: 0, max: 100_000_000 }, Preset::Int(10_000), "A head is also signed after so many entries of the logs; 0: only after time."),
    setting("audit.witnesses", Shape::Texts, Preset::Texts(&[]), "Addresses of other orchestr8 servers that remember the heads: each gets every head, and is asked for the newest at start-up."),
    setting("audit.witnessTokenEnvVar", Shape::Text, Preset::Unset, "The environment variable with the API token that the witnesses know this server by."),
    setting("audit.witnessCaFile", Shape::Text, Preset::Unset, "A PEM file with certificates of authorities to trust when a witness is called, beside those of the system."),
    setting("audit.requireWitness", Shape::Bool, Preset::Bool(false), "Do not start unless a witness answers, and stop when none has taken the heads for five minutes."),
    setting("http.listen", Shape::Socket, Preset::Text("127.0.0.1:8088"), "Where serve listens. An address others can reach needs a token: orchestr8 tokens create, or auth.tokens."),
    setting("http.allowedHosts", Shape::Texts, Preset::Texts(&[]), "Host names besides loopback ones under which clients may call."),
    setting("http.allowedOrigins", Shape::Texts, Preset::Texts(&[]), "Web pages of other origins that may call, as https://app.example.org."),
    setting("http.bodyLimitBytes", Shape::Int { min: 1024, max: 64 * 1024 * 1024 }, Preset::Int(4_194_304), "The largest request body."),
    setting("http.firstByteTimeoutMs", EDGE_TIMEOUT, Preset::Int(10_000), "A new connection that stays silent this long is closed."),
    setting("http.headerTimeoutMs", EDGE_TIMEOUT, Preset::Int(10_000), "How long the head of a request may take."),
    setting("http.bodyTimeoutMs", EDGE_TIMEOUT, Preset::Int(10_000), "A body that makes no progress this long is refused."),
    setting("http.idleTimeoutMs", EDGE_TIMEOUT, Preset::Int(75_000), "An idle connection is closed after this."),
    setting("http.writeTimeoutMs", EDGE_TIMEOUT, Preset::Int(30_000), "A client that takes nothing of its answer this long is cut off."),
    setting("http.maxConnections", Shape::Int { min: 1, max: 65_536 }, Preset::Int(768), "Connections at once; further clients are told 503."),
    setting("http.maxConnectionsPerIp", Shape::Int { min: 1, max: 65_536 }, Preset::Unset, "Connections at once from one address; half of http.maxConnections if unset. Raise it behind a proxy, whose address all clients share."),
    setting("http.maxStreamsPerPrincipal", Shape::Int { min: 1, max: 65_536 }, Preset::Int(edge::MAX_STREAMS_PER_PRINCIPAL as u64), "WebSockets and event streams at once of one principal."),
    setting("http.maxFailedLoginsPerMinute", Shape::Int { min: 1, max: 1_000_000 }, Preset::Int(edge::MAX_FAILED_LOGINS as u64), "Wrong tokens from one address, or for one token, in a minute; further ones are answered 429."),
    setting("http.tls.cert", Shape::Text, Preset::Unset, "A PEM file with the certificate of this server and those that lead to its authority; with it, serve speaks HTTPS."),
    setting("http.tls.key", Shape::Text, Preset::Unset, "The PEM file with the private key of http.tls.cert. Both are read again when they change and on SIGHUP."),
    setting("auth.tokens[].name", Shape::Text, Preset::Required, "Who shows this token."),
    setting("auth.tokens[].sha256", Shape::Sha256, Preset::Required, "The SHA-256 of the token; the token itself is never written down.").secret(),
    setting("auth.tokens[].roles", Shape::Texts, Preset::Texts(&[]), "What its bearer may do: viewer, agent, operator, editor, approver, worker, admin, owner, planner or executor. None: viewer."),
    setting("auth.tokens[].tenant", Shape::Text, Preset::Text("default"), "Whose data its bearer sees."),
    setting("auth.tokens[].reuseName", Shape::Bool, Preset::Bool(false), "Take over the name of an API token of the store, with the sessions, schedules and workflows that belong to it."),
    setting("protocol.eras", Shape::Choices(&["legacy", "modern"]), Preset::Texts(&["legacy", "modern"]), "The generations of MCP that are spoken."),
    setting("protocol.maxSessionsPerPrincipal", Shape::Int { min: 1, max: 100_000 }, Preset::Int(orchestr8_mcp::http::SESSIONS_PER_PRINCIPAL as u64), "MCP sessions over HTTP of one principal; beyond it the one of its own that was unused for longest ends."),
    setting("secrets.key.env", Shape::Text, Preset::Unset, "The environment variable with the key that encrypts stored secrets: 32 bytes in base64 or hexadecimal digits."),
    setting("secrets.key.file", Shape::Text, Preset::Unset, "The file with that key, readable by its owner only and outside the data directory; without env, file and command: secrets.key in the user's configuration folder, created when it is first needed."),
    setting("secrets.key.command", Shape::Texts, Preset::Texts(&[]), "A program with its arguments that prints that key."),
    setting("secrets.named.*.env", Shape::Text, Preset::Unset, "The environment variable with the value of this named secret; ORCHESTR8_SECRET_<NAME> if neither env nor file is set."),
    setting("secrets.named.*.file", Shape::Text, Preset::Unset, "The file with its value, readable by its owner only."),
    setting("secrets.named.*.tenant", Shape::Text, Preset::Text("local"), "The tenant that may use it."),
    setting("secrets.named.*.workflows", Shape::Texts, Preset::Texts(&[]), "The workflows that may use it: ids of stored workflows, or hashes of definitions; empty: any, if agents are named."),
    setting("secrets.named.*.agents", Shape::Texts, Preset::Texts(&[]), "The agents that may use it, such as @orchestr8/http; empty: any, if workflows are named."),
    setting("secrets.named.*.to", Shape::Texts, Preset::Texts(&[]), "Where it may go: HOST:HEADER, HOST:body, exec:TEMPLATE:VARIABLE or provider:NAME."),
    setting("workflows.maxConcurrentSteps", Shape::Int { min: 1, max: 10_000 }, Preset::Int(workflows::RUNNING_STEPS as u64), "How many steps of all workflows this process works on at once; the others wait for their turn. Steps with workers and remote agents do not count."),
    setting("workflows.maxExecutionsPerTenant", Shape::Int { min: 1, max: 10_000_000 }, Preset::Int(workflows::EXECUTIONS_PER_TENANT as u64), "Executions of one tenant that run or wait for their turn; one more is refused. Those that wait for a timer, a message or a person do not count."),
    setting("workflows.maxExecutionsPerTreeLevel", Shape::Int { min: 1, max: 1_000_000 }, Preset::Int(workflows::EXECUTIONS_PER_TREE_LEVEL as u64), "Children of one root execution that have not ended, at each level of its tree; the next child waits until one ends."),
    setting("workflows.maxExecutionsPerTree", Shape::Int { min: 1, max: 100_000_000 }, Preset::Int(workflows::EXECUTIONS_PER_TREE as u64), "Executions that one root execution may start, with those that they start, over all its life; beyond it the step fails with LIMIT_EXCEEDED."),
    setting("workflows.queueWaitMs", ANY_TIMEOUT, Preset::Int(workflows::QUEUE_WAIT_MS), "How long a step that is ready waits for its turn before it fails."),
    setting("workflows.cancelGraceMs", Shape::Int { min: 0, max: 600_000 }, Preset::Int(workflows::GRACE_MS), "How long the steps of a cancelled execution may take to clean up."),
    setting("workflows.env", Shape::Texts, Preset::Texts(&[]), "Environment variables that definitions may name in allowedEnvVars; none if empty. Never ORCHESTR8_*, nor a variable that holds a key."),
    setting("workflows.allowedAgents", Shape::Texts, Preset::Texts(&[]), "Let steps call only these agents: ids such as @orchestr8/http and @worker/pay, or beginnings of ids such as @worker/*; empty lets them call all."),
    setting("workflows.http.allowedHosts", Shape::Texts, Preset::Texts(&[]), "Hosts that @orchestr8/http may call although they are private."),
    setting("workflows.http.allowPrivate", Shape::Bool, Preset::Bool(false), "Let @orchestr8/http call private and loopback addresses."),
    setting("workflows.exec.sharedDirectories", Shape::Bool, Preset::Bool(false), "Let all tenants use the directories of templates that have no {tenant} in their path."),
    setting("workflows.exec.templates.*.program", Shape::Text, Preset::Required, "A program that @orchestr8/exec may start, as an absolute path. The file it is when the server starts is the one that is run."),
    setting("workflows.exec.templates.*.args", Shape::Texts, Preset::Texts(&[]), "Its arguments; {name} is a hole that steps fill, and stays a part of one argument."),
    setting("workflows.exec.templates.*.holes", Shape::Pairs, Preset::Unset, "The type of each hole: text, integer, number, boolean, enum:a|b or pattern:REGEX."),
    setting("workflows.exec.templates.*.variables", Shape::Texts, Preset::Texts(&[]), "Environment variables that steps may set. Those that make programs run something else are refused."),
    setting("workflows.exec.templates.*.env", Shape::Pairs, Preset::Unset, "Environment variables that it always has.").secret(),
    setting("workflows.exec.templates.*.directory", Shape::Text, Preset::Unset, "Where it works, and may write, as an absolute path; an empty temporary folder if unset. {tenant} stands for the tenant, as in sessions.roots."),
    setting("workflows.exec.templates.*.timeoutMs", ANY_TIMEOUT, Preset::Unset, "How long one run may take; as long as the step if unset."),
    setting("workflows.exec.templates.*.roles", Shape::Texts, Preset::Texts(&[]), "Roles that may use it, beside the owner; all who may run workflows if empty."),
    setting("workflows.agents.*.url", Shape::Text, Preset::Required, "Where an agent of your own answers POST /process.").secret(),
    setting("workflows.agents.*.headers", Shape::Pairs, Preset::Unset, "HTTP headers to send to it; with ${NAME} as in args.").secret(),
    setting("workflows.agents.*.timeoutMs", ANY_TIMEOUT, Preset::Unset, "How long one call of it may take."),
    setting("workflows.agents.*.maxConcurrent", Shape::Int { min: 1, max: workflows::REMOTE_AGENT_CALLS_MAX as u64 }, Preset::Int(workflows::REMOTE_AGENT_CALLS as u64), "How many of its calls run at once; steps beyond it wait for their turn. They take no step slot."),
    setting("models.default", Shape::Text, Preset::Unset, "The model that sessions begin with, as provider/id; the first one that can be used if unset."),
    setting("models.answers", Shape::Text, Preset::Unset, "The model that writes the answers of knowledge queries, as provider/id; if unset, they are made of sentences of the documents, and nothing of these leaves this server."),
    setting("models.providers.*.kind", Shape::Choice(&["anthropic", "openai", "offline"]), Preset::Required, "What this provider speaks; openai is what Ollama, vLLM and most others speak too."),
    setting("models.providers.*.baseUrl", Shape::Text, Preset::Unset, "Where it is reached; the maker's own address if unset."),
    setting("models.providers.*.keyVariable", Shape::Text, Preset::Unset, "The environment variable with its key; ANTHROPIC_API_KEY or OPENAI_API_KEY for the maker's own address, no key otherwise, if unset."),
    setting("models.providers.*.keySecret", Shape::Text, Preset::Unset, "The secret of secrets.named with its key, instead of a variable; it needs the destination provider:NAME."),
    setting("models.providers.*.models", Shape::Texts, Preset::Texts(&[]), "The ids of its models, in the order in which they are gone through; those we know of if empty."),
    setting("models.providers.*.contextWindow", Shape::Int { min: 1_000, max: 100_000_000 }, Preset::Int(128_000), "How many tokens a conversation with them may have."),
    setting("models.providers.*.maxOutput", Shape::Int { min: 1, max: 10_000_000 }, Preset::Int(16_000), "How many tokens an answer may have."),
    setting("models.providers.*.reasoning", Shape::Bool, Preset::Bool(false), "Whether they can think before they answer."),
    setting("models.providers.*.images", Shape::Bool, Preset::Bool(false), "Whether they can look at images."),
    setting("sessions.port", Shape::Int { min: 0, max: 65_535 }, Preset::Unset, "A port of its own for sessions, beside the one of serve; existing clients use 3141. None if unset."),
    setting("sessions.maxSessions", Shape::Int { min: 1, max: 100_000 }, Preset::Int(sessions::SESSIONS as u64), "Sessions of one tenant."),
    setting("sessions.maxConnections", Shape::Int { min: 1, max: 65_536 }, Preset::Int(sessions_face::CONNECTIONS as u64), "Clients of sessions connected at once."),
    setting("sessions.maxMessageBytes", Shape::Int { min: 1024, max: 64 * 1024 * 1024 }, Preset::Int(sessions_face::MESSAGE_BYTES as u64), "The largest message of a client."),
    setting("sessions.commandsPerMinute", Shape::Int { min: 1, max: 1_000_000_000 }, Preset::Int(sessions_face::BUCKET_COMMANDS as u64), "Commands a minute of one session, and of everything that is about none."),
    setting("sessions.commandsPerMinuteOverall", Shape::Int { min: 1, max: 1_000_000_000 }, Preset::Int(sessions_face::GLOBAL_COMMANDS as u64), "Commands a minute of one tenant, and of all together; when they are used up, other tenants have a reserve of four tenths, a quarter of it each."),
    setting("sessions.keyTtlMs", Shape::Int { min: 1000, max: 365 * DAY_MS }, Preset::Int(sessions_face::KEY_TTL_MS), "How long an idempotency key of a command answers repeats."),
    setting("sessions.shutdownTimeoutMs", Shape::Int { min: 0, max: 600_000 }, Preset::Int(sessions_face::DRAIN_MS), "How long commands under way may take to finish when the server stops."),
    setting("sessions.cwd", Shape::Text, Preset::Unset, "Where a session works that is not told where; the folder serve was started in if unset."),
    setting("sessions.folder", Shape::Text, Preset::Unset, "Where session files are read from and written to; sessions in the data directory if unset."),
    setting("sessions.systemPrompt", Shape::Text, Preset::Unset, "What models are told before everything else."),
    setting("sessions.tools", Shape::Texts, Preset::Texts(&[]), "The tools that sessions may use; all that the caller may if empty."),
    setting("sessions.longTimeoutMs", ANY_TIMEOUT, Preset::Int(sessions::LONG_MS), "How long a prompt may take, with everything it leads to."),
    setting("sessions.shortTimeoutMs", ANY_TIMEOUT, Preset::Int(sessions::SHORT_MS), "How long a command that only reads may take."),
    setting("sessions.roots", Shape::Texts, Preset::Texts(&[]), "Folders that sessions may work in, read from and write to, with all that is beneath them. If empty: sessions.cwd; if that is unset too, the folder serve was started in, or none where auth.tokens are configured. A home itself is never one: sessions work beneath it. {tenant} in a path stands for the tenant, whose folder is created; where there are several tenants, a folder without it serves only the tenants local and default."),
    setting("sessions.sharedRoots", Shape::Bool, Preset::Bool(false), "Let all tenants work in the folders of sessions.roots that have no {tenant} in their path."),
    setting("sessions.bash", Shape::Bool, Preset::Bool(false), "Let sessions run commands of the shell, in a sandbox around their folder."),
    setting("knowledge.security.profile", Shape::Choice(&["local", "basic", "external"]), Preset::Text("local"), "How callers of documents and envelopes prove who they are. local: by nothing, on this machine. basic: by a JWT. external: by a signature with a key of orchestr8 keys."),
    setting("knowledge.security.allowUnsigned", Shape::Texts, Preset::Texts(&[]), "With profile external: where documents may be used without a signature all the same. mcp: by MCP clients. workflows: by steps of workflows and tools of sessions."),
    setting("knowledge.security.issuer", Shape::Text, Preset::Unset, "Who signs the tokens of profile basic: their iss."),
    setting("knowledge.security.audience", Shape::Text, Preset::Unset, "For whom the tokens of profile basic are: their aud."),
    setting("knowledge.security.keySetFile", Shape::Text, Preset::Unset, "A file with the JSON Web Key Set that the tokens of profile basic are checked against."),
    setting("knowledge.security.keySet", Shape::Text, Preset::Unset, "The key set itself, instead of a file."),
    setting("knowledge.security.tenantClaim", Shape::Text, Preset::Text("tenant_id"), "The claim that names the tenant."),
    setting("knowledge.security.rolesClaim", Shape::Text, Preset::Text("roles"), "The claim that lists the roles."),
    setting("knowledge.rate.perMinute", Shape::Int { min: 0, max: 1_000_000_000 }, Preset::Int(knowledge_face::RATE_PER_MINUTE as u64), "Calls a minute of one principal; 0 for as many as they like."),
    setting("knowledge.ackMs", ANY_TIMEOUT, Preset::Int(knowledge_face::ACK_MS), "A call that takes longer is answered with where to look, and goes on."),
    setting("knowledge.heartbeatMs", Shape::Int { min: 1000, max: DAY_MS }, Preset::Int(knowledge_face::HEARTBEAT_MS), "How often the server says among its peers that it is alive."),
    setting("knowledge.artifacts.allowedHosts", Shape::Texts, Preset::Texts(&[]), "Hosts that artifacts may be fetched from, over https; only our own links if empty."),
    setting("knowledge.artifacts.maxBytes", ANY_BYTES, Preset::Int(knowledge_face::ARTIFACT_BYTES as u64), "The largest artifact."),
    setting("knowledge.webhooks.allowedHosts", Shape::Texts, Preset::Texts(&[]), "Hosts that webhooks may call although they are private."),
    setting("knowledge.webhooks.allowPrivate", Shape::Bool, Preset::Bool(false), "Let webhooks call private and loopback addresses."),
    setting("knowledge.publicUrl", Shape::Text, Preset::Unset, "Where the server is reached, as https://host, for links to artifacts; as the client called it if unset."),
    setting("knowledge.webBase", Shape::Text, Preset::Unset, "Where people read documents: <base>/documents/<id> is the web_uri of one; none if unset."),
    setting("knowledge.testMode", Shape::Bool, Preset::Bool(false), "Let routing.noop_qdrant skip the search. For tests only."),
    setting("knowledge.pubsub.enabled", Shape::Bool, Preset::Bool(true), "Take envelopes over the bus as well: POST /a2a/publish."),
    setting("knowledge.pubsub.maxAttempts", Shape::Int { min: 1, max: 100 }, Preset::Int(broker::ATTEMPTS as u64), "How often a message is delivered before it is a dead letter."),
    setting("knowledge.pubsub.ackDeadlineMs", Shape::Int { min: 100, max: 3_600_000 }, Preset::Int(broker::ACK_DEADLINE_MS), "How long a message that nobody settles is held before it comes again; longer work asks for longer by itself."),
    setting("knowledge.pubsub.baseDelayMs", Shape::Int { min: 1, max: 3_600_000 }, Preset::Int(broker::BASE_DELAY_MS), "The longest wait before the second attempt; it doubles with each."),
    setting("knowledge.pubsub.maxDelayMs", Shape::Int { min: 1, max: 3_600_000 }, Preset::Int(broker::MAX_DELAY_MS), "No wait between attempts is longer."),
    setting("knowledge.pubsub.maxQueued", Shape::Int { min: 1, max: 200_000 }, Preset::Int(broker::TENANT_QUEUED as u64), "Messages one tenant may have waiting; one more is refused with 429."),
    setting("knowledge.pubsub.maxInFlight", Shape::Int { min: 1, max: 10_000 }, Preset::Int(broker::TENANT_IN_FLIGHT as u64), "Messages of one tenant that are worked on at once."),
    setting("knowledge.pubsub.maxInFlightOverall", Shape::Int { min: 1, max: 10_000 }, Preset::Int(broker::IN_FLIGHT as u64), "Messages of all tenants that are worked on at once."),
    setting("knowledge.embedder.kind", Shape::Choice(&["minilm", "openai", "voyage", "ollama", "none"]), Preset::Text("minilm"), "What turns texts into vectors, so that they are found by meaning too. minilm: all-MiniLM-L6-v2 in this process, once orchestr8 models pull has fetched it; for English. openai: whoever speaks as OpenAI does. none: only words are searched."),
    setting("knowledge.embedder.file", Shape::Text, Preset::Unset, "The file of kind minilm; the one in models of the data folder if unset."),
    setting("knowledge.embedder.model", Shape::Text, Preset::Unset, "The model of the other kinds: text-embedding-3-small, voyage-3.5 or nomic-embed-text if unset."),
    setting("knowledge.embedder.baseUrl", Shape::Text, Preset::Unset, "Where it is reached; the maker's own address, or http://127.0.0.1:11434 for ollama, if unset."),
    setting("knowledge.embedder.dimensions", Shape::Int { min: 1, max: models::DIMENSIONS as u64 }, Preset::Unset, "Numbers of one vector; must be given for models we do not know."),
    setting("knowledge.embedder.multilingual", Shape::Bool, Preset::Bool(true), "Whether that model has learned more than English; one that has not weighs less in other languages."),
    setting("knowledge.embedder.keyVariable", Shape::Text, Preset::Unset, "The environment variable with its key; OPENAI_API_KEY or VOYAGE_API_KEY for the maker's own address, no key otherwise, if unset."),
    setting("knowledge.embedder.keySecret", Shape::Text, Preset::Unset, "The secret of secrets.named with its key, instead of a variable; it needs the destination provider:embedder."),
    setting("knowledge.embedder.batch", Shape::Int { min: 1, max: models::EMBED_BATCH_MAX as u64 }, Preset::Int(models::EMBED_BATCH as u64), "Texts of one request."),
    setting("knowledge.embedder.timeoutMs", ANY_TIMEOUT, Preset::Int(models::EMBED_TIMEOUT_MS), "How long one request may take."),
    setting("knowledge.words.memoryMb", Shape::Int { min: 0, max: 1_048_576 }, Preset::Int(knowledge::WORDS_MB), "Memory that the index of words in this process may take: about 30 MB for 100,000 passages of 80 words. What does not fit is searched in the store, which is slower; with 0 everything is."),
    setting("knowledge.vectors.engine", Shape::Choice(&["embedded", "qdrant"]), Preset::Text("embedded"), "Where the index over meanings is: in this process, or on a Qdrant server. The vectors themselves are in the store, so either can be filled anew."),
    setting("knowledge.vectors.memoryMb", Shape::Int { min: 16, max: 1_048_576 }, Preset::Int(knowledge::VECTORS_MB), "Memory that the index in this process may take: about 90 MB for 100,000 passages of 384 dimensions."),
    setting("knowledge.vectors.url", Shape::Text, Preset::Text("http://127.0.0.1:6333"), "Where the Qdrant server is reached."),
    setting("knowledge.vectors.keyVariable", Shape::Text, Preset::Unset, "The environment variable with its key; no key if unset."),
    setting("knowledge.vectors.collection", Shape::Text, Preset::Text("orchestr8"), "What the names of its collections begin with; deployments that share a server need different ones."),
    setting("sandbox.mode", Shape::Choice(&["required", "best-effort", "off"]), Preset::Text("required"), "Where programs of sessions, workflows and plans cannot be confined. required: they do not run. best-effort: they run with what protection there is. off: they are never confined."),
    setting("sandbox.readable", Shape::Texts, Preset::Texts(&[]), "Files and folders beside those of the system that programs can read, such as a toolchain in a home."),
    setting("sandbox.memoryMb", Shape::Int { min: 16, max: 1_048_576 }, Preset::Int(SANDBOX.memory_bytes >> 20), "Memory of one run, of all its processes together."),
    setting("sandbox.processes", Shape::Int { min: 8, max: 100_000 }, Preset::Int(SANDBOX.processes), "Processes and threads of one run."),
    setting("sandbox.fileMb", Shape::Int { min: 1, max: 1_048_576 }, Preset::Int(SANDBOX.file_bytes >> 20), "The largest file a program may write, and the size of its private /tmp."),
    setting("sandbox.cpuSeconds", Shape::Int { min: 1, max: 31_536_000 }, Preset::Int(SANDBOX.cpu_seconds), "CPU time of one process."),
    setting("sandbox.openFiles", Shape::Int { min: 16, max: 1_048_576 }, Preset::Int(SANDBOX.open_files), "Files that one process may have open."),
    setting("workspace.roots", Shape::Texts, Preset::Texts(&[]), "Folders that are governed workspaces, as absolute paths: each can be opened exactly, none lies in another or holds places of the server. If empty: for orchestr8 mcp the folder it was started in, none over HTTP. {tenant} in a path stands for the tenant, as in sessions.roots."),
    setting("workspace.selfApproval", Shape::Bool, Preset::Bool(false), "Let the principal that proposed a plan approve it."),
    setting("workspace.bootstrapSecretEnvVar", Shape::Text, Preset::Text("ORCHESTR8_BOOTSTRAP_SECRET"), "The environment variable with the secret that signs the first plan of a governed workspace."),
    setting("gateway.maxInstances", Shape::Int { min: 1, max: 100_000 }, Preset::Int(remote::INSTANCES as u64), "How many instances of other MCP servers run at once for all tenants but local. At the limit the one that was unused the longest is stopped."),
    setting("gateway.maxInstancesPerTenant", Shape::Int { min: 1, max: 100_000 }, Preset::Int(remote::INSTANCES_PER_TENANT as u64), "How many of them run at once for one tenant."),
    setting("gateway.tenantPrograms", Shape::Bool, Preset::Bool(false), "Whether admins of tenants other than local may add MCP servers that start programs, which run as the user of this server."),
    setting("gateway.allowedHosts", Shape::Texts, Preset::Texts(&[]), "Hosts at which tenants other than local may add MCP servers wherever they are: names, *.domain, or addresses. Without them only those of the public internet."),
    setting("gateway.allowPrivate", Shape::Bool, Preset::Bool(false), "Let MCP servers that tenants other than local add be at private and loopback addresses."),
    setting("mcpServers.*.type", Shape::Choice(&["stdio", "http", "sse"]), Preset::Unset, "How to reach this other MCP server; follows from command or url if unset."),
    setting("mcpServers.*.command", Shape::Text, Preset::Unset, "The program to start."),
    setting("mcpServers.*.args", Shape::Texts, Preset::Texts(&[]), "Its arguments. ${NAME} in it stands for a variable of the environment, or for a named secret of the tenant.").secret(),
    setting("mcpServers.*.env", Shape::Pairs, Preset::Unset, "Its environment beyond the bare minimum; with ${NAME} as in args.").secret(),
    setting("mcpServers.*.cwd", Shape::Text, Preset::Unset, "Its working directory."),
    setting("mcpServers.*.url", Shape::Text, Preset::Unset, "The address of a server that already runs; with ${NAME} as in args.").secret(),
    setting("mcpServers.*.headers", Shape::Pairs, Preset::Unset, "HTTP headers to send to it; with ${NAME} as in args.").secret(),
    setting("mcpServers.*.prefix", Shape::Text, Preset::Unset, "What its tools are called before the dot; its own name here if unset."),
    setting("mcpServers.*.allow", Shape::Texts, Preset::Texts(&[]), "Take only these of its tools: names, or prefixes such as read_*; empty takes all."),
    setting("mcpServers.*.deny", Shape::Texts, Preset::Texts(&[]), "Leave these of its tools out."),
    setting("mcpServers.*.maxConcurrent", Shape::Int { min: 1, max: 10_000 }, Preset::Int(remote::CONCURRENT_CALLS as u64), "How many of its calls run at once."),
    setting("mcpServers.*.startTimeoutMs", ANY_TIMEOUT, Preset::Int(remote::START_TIMEOUT_MS), "How long it may take to start and to tell its tools."),
    setting("mcpServers.*.timeoutMs", ANY_TIMEOUT, Preset::Unset, "How long one call may take; tools.defaultTimeoutMs if unset."),
    setting("mcpServers.*.disabled", Shape::Bool, Preset::Bool(false), "Leave it out without deleting it."),
    setting("mcpServers.*.shared", Shape::Bool, Preset::Bool(false), "Whether all tenants share one instance; otherwise each has one of its own."),
    setting("mcpServers.*.idleTimeoutMs", Shape::Int { min: 0, max: DAY_MS }, Preset::Unset, "How long an instance may be unused before it is stopped; 0 means for ever. If unset: ten minutes, and for ever for the tenant local and for shared ones."),
];

#[cfg(test)]
mod tests;
