//! What can be done in a conversation besides talking: lines that begin with one of these words.

use std::path::PathBuf;

use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::super::sessions::{Format, export, figures, write};
use super::super::telling::short;
use super::super::words::text;
use super::LEVELS;
use super::conversation::Conversation;
use crate::failure::Failure;
use crate::terminal::{BOLD, DIM, PLAIN, columns, visible, visible_line};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Help,
    Model(Option<String>),
    Thinking(Option<String>),
    Tree,
    Fork(Option<String>),
    Compact(Option<String>),
    Stats,
    Export(Option<String>),
    Quit,
}

/// What comes after a command.
pub enum Next {
    GoOn,
    Leave,
}

const HELP: [[&str; 2]; 10] = [
    ["/model [PROVIDER/ID]", "lists the models, or takes another one"],
    ["/thinking [LEVEL]", "tells how hard it thinks, or changes it: off, minimal, low, medium, high, xhigh"],
    ["/tree", "shows everything that was said, branches too"],
    ["/fork [ENTRY]", "lists what you said, or begins a new session before one of those"],
    ["/compact [WORDS]", "makes room: sums up what was said, minding these words"],
    ["/stats", "tells what the session took so far"],
    ["/export [FILE]", "writes the session to FILE.html or FILE.jsonl"],
    ["/quit", "leaves; so does Ctrl-D"],
    ["Ctrl-C", "stops the agent; twice within a second leaves"],
    [
        "\\ at the end",
        "goes on in the next line. Any other line is said, one that begins with // with one / less",
    ],
];

/// What the tree shows of an entry.
const ENTRY_LETTERS: usize = 100;

impl Command {
    /// None for what is to be said. Other words after a slash mean something to the offline model, or are just text.
    pub fn read(line: &str) -> Option<Self> {
        let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let rest = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
        Some(match word {
            "/help" => Command::Help,
            "/model" => Command::Model(rest),
            "/thinking" => Command::Thinking(rest),
            "/tree" => Command::Tree,
            "/fork" => Command::Fork(rest),
            "/compact" => Command::Compact(rest),
            "/stats" => Command::Stats,
            "/export" => Command::Export(rest),
            "/quit" | "/exit" => Command::Quit,
            _ => return None,
        })
    }
}

/// `provider/id`, as people write it.
pub fn model_of(named: &str) -> Result<(String, String), Failure> {
    let parts = named.split_once('/').filter(|(provider, id)| !provider.is_empty() && !id.is_empty());
    parts.map(|(provider, id)| (provider.to_owned(), id.to_owned())).ok_or_else(|| {
        Failure::new(Code::InvalidArgument, format!("'{named}' is not PROVIDER/ID"))
            .hinting("for example offline/echo; orchestr8 doctor lists the models there are")
    })
}

pub async fn run(conversation: &mut Conversation<'_>, command: Command) -> Result<Next, Failure> {
    let terminal = conversation.terminal;
    match command {
        Command::Quit => return Ok(Next::Leave),
        Command::Help => terminal.note(columns(&HELP.map(|row| row.map(String::from))).trim_end()),
        Command::Model(None) => models(conversation).await?,
        Command::Model(Some(named)) => {
            let (provider, id) = model_of(&named)?;
            conversation.ask("set_model", json!({"provider": provider, "modelId": id})).await?;
            conversation.refresh().await?;
            terminal.note(&format!("{DIM}{} answers from now on{PLAIN}", conversation.model()));
        }
        Command::Thinking(None) => {
            conversation.refresh().await?;
            terminal.note(&format!("thinking is {}", text(&conversation.info, "thinkingLevel")));
        }
        Command::Thinking(Some(level)) if LEVELS.contains(&level.as_str()) => {
            conversation.ask("set_thinking_level", json!({"level": level})).await?;
            terminal.note(&format!("{DIM}thinking is {level} from now on{PLAIN}"));
        }
        Command::Thinking(Some(level)) => {
            return Err(Failure::new(Code::InvalidArgument, format!("'{level}' is no level of thinking"))
                .hinting(format!("say one of {}", LEVELS.join(", "))));
        }
        Command::Tree => tree(conversation).await?,
        Command::Fork(None) => forks(conversation).await?,
        Command::Fork(Some(entry)) => fork(conversation, &entry).await?,
        Command::Compact(words) => {
            let more = words.map_or_else(|| json!({}), |words| json!({"customInstructions": words}));
            conversation.ask("compact", more).await?;
            terminal.note(&format!("{DIM}what was said is summed up; there is room again{PLAIN}"));
        }
        Command::Stats => {
            let stats = conversation.ask("get_session_stats", json!({})).await?;
            terminal.note(&figures(&stats));
        }
        Command::Export(file) => save(conversation, file).await?,
    }
    Ok(Next::GoOn)
}

async fn models(conversation: &mut Conversation<'_>) -> Result<(), Failure> {
    let answer = conversation.ask("get_available_models", json!({})).await?;
    let own = conversation.model();
    let row = |model: &Value| {
        let name = format!("{}/{}", text(model, "provider"), text(model, "id"));
        let mark = if name == own { "*" } else { " " };
        [mark.to_owned(), name, format!("{} tokens", model["contextWindow"])]
    };
    let rows: Vec<[String; 3]> = answer["models"].as_array().into_iter().flatten().map(row).collect();
    conversation.terminal.note(columns(&rows).trim_end());
    Ok(())
}

/// Every entry under the one it follows; branches are set in.
async fn tree(conversation: &mut Conversation<'_>) -> Result<(), Failure> {
    let answer = conversation.ask("get_tree", json!({})).await?;
    let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
    let leaf = text(&answer, "currentLeafId");
    for line in drawn(&nodes, leaf) {
        conversation.terminal.note(&line);
    }
    Ok(())
}

fn drawn(nodes: &[Value], leaf: &str) -> Vec<String> {
    let mut depths = std::collections::HashMap::new();
    let mut lines = Vec::new();
    for node in nodes {
        let (id, parent) = (text(node, "entryId"), text(node, "parentId"));
        let siblings = nodes.iter().filter(|other| text(other, "parentId") == parent).count();
        let depth = depths.get(parent).copied().unwrap_or(0) + usize::from(siblings > 1);
        depths.insert(id, depth);
        let role = node["role"].as_str().unwrap_or(text(node, "entryType"));
        let label =
            node["label"].as_str().map_or_else(String::new, |label| format!(" [{}]", visible_line(label)));
        let here = if id == leaf { format!(" {BOLD}← here{PLAIN}") } else { String::new() };
        let said = short(text(node, "text"), ENTRY_LETTERS);
        lines.push(format!("{}{DIM}{id} {role}{PLAIN}{label} {said}{here}", "  ".repeat(depth)));
    }
    lines
}

async fn forks(conversation: &mut Conversation<'_>) -> Result<(), Failure> {
    let answer = conversation.ask("get_fork_messages", json!({})).await?;
    let row =
        |message: &Value| [text(message, "entryId").to_owned(), short(text(message, "text"), ENTRY_LETTERS)];
    let rows: Vec<[String; 2]> = answer["messages"].as_array().into_iter().flatten().map(row).collect();
    conversation.terminal.note(match rows.is_empty() {
        true => "nothing was said yet",
        false => "say /fork and one of these:",
    });
    conversation.terminal.note(columns(&rows).trim_end());
    Ok(())
}

async fn fork(conversation: &mut Conversation<'_>, entry: &str) -> Result<(), Failure> {
    let answer = conversation.ask("fork", json!({"entryId": entry})).await?;
    conversation.turn_to(text(&answer, "sessionId")).await?;
    let said = visible(text(&answer, "text"));
    let session = &conversation.session;
    conversation
        .terminal
        .note(&format!("{DIM}this is session {session} now; here you had said:{PLAIN}\n{said}"));
    Ok(())
}

async fn save(conversation: &mut Conversation<'_>, file: Option<String>) -> Result<(), Failure> {
    let file = PathBuf::from(file.unwrap_or_else(|| format!("{}.html", conversation.session)));
    let session = conversation.session.clone();
    let content = export(&mut conversation.talk, &session, Format::of(&file)).await?;
    write(&file, &content)?;
    conversation.terminal.note(&format!("{DIM}the session is in {}{PLAIN}", file.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_these_words_are_commands() {
        assert_eq!(
            Command::read(" /model  offline/echo "),
            Some(Command::Model(Some("offline/echo".into())))
        );
        assert_eq!(Command::read("/quit"), Some(Command::Quit));
        for said in ["hello", "/tool echo {}", "//help", "/etc/hosts is a file", "", "say /help"] {
            assert_eq!(Command::read(said), None, "{said}");
        }
    }

    #[test]
    fn a_model_is_named_by_provider_and_id() {
        assert_eq!(model_of("a/b/c").unwrap(), ("a".into(), "b/c".into()));
        for wrong in ["", "a", "/a", "a/"] {
            assert_eq!(model_of(wrong).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }

    #[test]
    fn branches_are_set_in() {
        let node = |id: &str, parent: Option<&str>| json!({"entryId": id, "parentId": parent, "entryType": "message", "role": "user", "text": "hi"});
        let nodes = [node("1", None), node("2", Some("1")), node("3", Some("2")), node("4", Some("1"))];
        let lines = drawn(&nodes, "4");
        let depth = |line: &String| line.len() - line.trim_start().len();
        assert_eq!(lines.iter().map(depth).collect::<Vec<_>>(), [0, 2, 2, 2]);
        assert!(lines[3].contains("here") && !lines[2].contains("here"));
    }
}
