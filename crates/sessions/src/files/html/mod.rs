//! A session as a page for people: one file that needs nothing else, runs nothing and loads nothing.

#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::fmt::Write;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_models::{Assistant, BashExecution, Block, Message, StopReason, ToolResult, Usage};

use crate::limits;
use crate::record::{Body, Header, Place, entry_id};
use crate::tree::{Node, Tree};
use text::{escaped, image, prose};

const STYLE: &str = include_str!("page.css");

/// Whatever is in a conversation, a browser is told to run and to load nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// What the page is about.
pub struct About<'a> {
    pub id: &'a str,
    pub created_ms: i64,
    pub header: &'a Header,
    pub tree: &'a Tree,
}

/// The page.
pub fn page(about: &About<'_>) -> Result<String, Fault> {
    let title = about.header.name.clone().unwrap_or_else(|| format!("Session {}", about.id));
    let title = escaped(&title);
    let mut page = Page(String::new());
    page.add(&format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1 dir=\"auto\">{title}</h1>\n"
    ));
    page.facts(about);
    page.add("</header>\n<main>\n");
    page.tree(about.tree, about.header.leaf)?;
    page.add("</main>\n<footer>Exported from orchestr8</footer>\n</body>\n</html>\n");
    Ok(page.0)
}

struct Page(String);

impl Page {
    fn add(&mut self, html: &str) {
        self.0.push_str(html);
    }

    fn facts(&mut self, about: &About<'_>) {
        let stats = &about.header.stats;
        let facts = [
            ("Begun", moment(about.created_ms)),
            ("Model", format!("{}/{}", about.header.provider, about.header.model)),
            ("Folder", about.header.cwd.clone()),
            ("Messages", stats.total_messages.to_string()),
            ("Tool calls", stats.tool_calls.to_string()),
            ("Tokens", grouped(stats.usage.total())),
            ("Cost", dollars(stats.usage.cost)),
        ];
        self.add("<dl class=\"facts\">\n");
        for (name, fact) in facts {
            let _ = writeln!(self.0, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&fact));
        }
        self.add("</dl>\n");
    }

    /// The way to the leaf, and where another way begins, that way folded up.
    fn tree(&mut self, tree: &Tree, leaf: Option<Place>) -> Result<(), Fault> {
        let mut branches = Branches::of(tree, leaf);
        self.branches(tree, branches.take(None))?;
        for place in tree.path(leaf) {
            self.entry(tree, place)?;
            self.branches(tree, branches.take(Some(place)))?;
        }
        Ok(())
    }

    fn branches(&mut self, tree: &Tree, branches: Vec<Vec<Place>>) -> Result<(), Fault> {
        for places in branches {
            let count = places.len();
            let entries = if count == 1 { "entry" } else { "entries" };
            let _ = writeln!(
                self.0,
                "<details class=\"branch\"><summary>Another branch, {count} {entries}</summary>"
            );
            let mut before = None;
            for place in places {
                let parent = tree.get(place).and_then(|node| node.entry.parent);
                if let (Some(parent), true) = (parent, before.is_some() && before != parent) {
                    let _ = writeln!(self.0, "<p class=\"note\">from {}</p>", entry_id(parent));
                }
                self.entry(tree, place)?;
                before = Some(place);
            }
            self.add("</details>\n");
        }
        Ok(())
    }

    fn entry(&mut self, tree: &Tree, place: Place) -> Result<(), Fault> {
        let Some(node) = tree.get(place) else { return Ok(()) };
        match &node.entry.body {
            Body::Message { message } => self.message(place, node, message),
            Body::ModelChange { provider, model_id } => {
                self.note(node, &format!("Model: {provider}/{model_id}"));
            }
            Body::ThinkingLevelChange { thinking_level } => {
                self.note(node, &format!("Thinking: {}", thinking_level.as_str()));
            }
            Body::Compaction { summary, tokens_before, .. } => {
                let title = format!("What came before, in short ({} tokens before)", grouped(*tokens_before));
                self.summary(place, node, &title, summary);
            }
            Body::BranchSummary { summary, .. } => {
                self.summary(place, node, "What was tried on another branch, in short", summary);
            }
        }
        match self.0.len() > limits::PAGE_BYTES {
            true => Err(Fault::new(
                Code::ResourceExhausted,
                format!("the page would have more than {} bytes", limits::PAGE_BYTES),
            )),
            false => Ok(()),
        }
    }

    fn note(&mut self, node: &Node, text: &str) {
        let _ = writeln!(self.0, "<p class=\"note\">{}{}</p>", escaped(text), label(node));
    }

    fn summary(&mut self, place: Place, node: &Node, title: &str, summary: &str) {
        self.begin(place, node, "summary", title, "");
        self.add("<details><summary>Summary</summary>");
        prose(&mut self.0, summary);
        self.add("</details></article>\n");
    }

    fn begin(&mut self, place: Place, node: &Node, class: &str, who: &str, more: &str) {
        let _ = writeln!(
            self.0,
            "<article class=\"{class}\" id=\"e-{}\"><header><b>{}</b>{}{}<time datetime=\"{}\">{}</time></header>",
            entry_id(place),
            escaped(who),
            if more.is_empty() { String::new() } else { format!("<span>{}</span>", escaped(more)) },
            label(node),
            iso(node.entry.at_ms),
            moment(node.entry.at_ms),
        );
    }

    fn message(&mut self, place: Place, node: &Node, message: &Message) {
        match message {
            Message::User(user) => {
                self.begin(place, node, "user", "You", "");
                self.blocks(&user.content);
            }
            Message::Assistant(assistant) => self.assistant(place, node, assistant),
            Message::ToolResult(result) => self.result(place, node, result),
            Message::BashExecution(bash) => self.shell(place, node, bash),
        }
        self.add("</article>\n");
    }

    fn assistant(&mut self, place: Place, node: &Node, assistant: &Assistant) {
        self.begin(place, node, "assistant", "Agent", &assistant.model);
        self.blocks(&assistant.content);
        let why = match assistant.stop_reason {
            StopReason::Stop | StopReason::ToolUse => None,
            StopReason::Length => Some("The answer was cut off: it reached its limit."),
            StopReason::Error => Some(assistant.error_message.as_deref().unwrap_or("The model failed.")),
            StopReason::Aborted => Some("Stopped on request."),
        };
        if let Some(why) = why {
            let _ = writeln!(self.0, "<p class=\"why\">{}</p>", escaped(why));
        }
        self.used(&assistant.usage);
    }

    fn used(&mut self, usage: &Usage) {
        if usage.total() == 0 {
            return;
        }
        let cached = match usage.cache_read {
            0 => String::new(),
            read => format!(" · {} from the cache", grouped(read)),
        };
        let _ = writeln!(
            self.0,
            "<p class=\"used\">{} tokens in{cached} · {} out · {}</p>",
            grouped(usage.input.saturating_add(usage.cache_write)),
            grouped(usage.output),
            dollars(usage.cost)
        );
    }

    /// Results are long and seldom read; a failure is worth a look.
    fn result(&mut self, place: Place, node: &Node, result: &ToolResult) {
        let (class, open, word) = match result.is_error {
            true => ("result failed", " open", "Failed"),
            false => ("result", "", "Result"),
        };
        self.begin(place, node, class, word, &result.tool_name);
        let _ = writeln!(self.0, "<details{open}><summary>What it gave</summary>");
        for block in &result.content {
            match block {
                Block::Text { text } => self.code(text),
                Block::Thinking { .. } | Block::ToolCall { .. } | Block::Image { .. } => self.block(block),
            }
        }
        self.add("</details>");
    }

    fn shell(&mut self, place: Place, node: &Node, bash: &BashExecution) {
        let ended = match (bash.cancelled, bash.exit_code) {
            (true, _) => String::from("stopped"),
            (false, Some(code)) => format!("exit code {code}"),
            (false, None) => String::from("ended by a signal"),
        };
        let unseen = if bash.exclude_from_context { ", not shown to the model" } else { "" };
        self.begin(place, node, "shell", "Shell", &format!("{ended}{unseen}"));
        self.code(&format!("$ {}", bash.command));
        self.add("<details open><summary>Output</summary>");
        if bash.truncated {
            self.add("<p class=\"note\">Only the end of it was kept.</p>");
        }
        self.code(&bash.output);
        self.add("</details>");
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Text { text } => prose(&mut self.0, text),
            Block::Thinking { thinking, .. } => {
                self.add("<details class=\"thinking\"><summary>Thinking</summary>");
                prose(&mut self.0, thinking);
                self.add("</details>\n");
            }
            Block::ToolCall { name, arguments, .. } => {
                let _ = write!(
                    self.0,
                    "<details class=\"call\"><summary>Calls <code>{}</code></summary>",
                    escaped(name)
                );
                self.code(&serde_json::to_string_pretty(arguments).unwrap_or_default());
                self.add("</details>\n");
            }
            Block::Image { data, mime_type } => image(&mut self.0, data, mime_type),
        }
    }

    fn code(&mut self, text: &str) {
        let _ = writeln!(self.0, "<pre><code>{}</code></pre>", escaped(text));
    }
}

/// Entries beside the way to the leaf: by what they hang on, one list for each way that begins there.
struct Branches(BTreeMap<Option<Place>, Vec<Vec<Place>>>);

impl Branches {
    fn of(tree: &Tree, leaf: Option<Place>) -> Self {
        let on_the_way: std::collections::HashSet<Place> = tree.path(leaf).into_iter().collect();
        let mut all: BTreeMap<Place, Vec<Place>> = BTreeMap::new();
        let mut first_of: BTreeMap<Place, Place> = BTreeMap::new();
        for (place, node) in tree.nodes().filter(|(place, _)| !on_the_way.contains(place)) {
            // A parent stands before its children, so its own branch is known.
            let first = node.entry.parent.and_then(|parent| first_of.get(&parent).copied()).unwrap_or(place);
            first_of.insert(place, first);
            all.entry(first).or_default().push(place);
        }
        let mut by_parent: BTreeMap<Option<Place>, Vec<Vec<Place>>> = BTreeMap::new();
        for (first, places) in all {
            let parent = tree.get(first).and_then(|node| node.entry.parent);
            by_parent.entry(parent).or_default().push(places);
        }
        Self(by_parent)
    }

    fn take(&mut self, parent: Option<Place>) -> Vec<Vec<Place>> {
        self.0.remove(&parent).unwrap_or_default()
    }
}

fn label(node: &Node) -> String {
    match &node.label {
        Some(label) => format!(" <span class=\"label\">{}</span>", escaped(label)),
        None => String::new(),
    }
}

fn moment(at_ms: i64) -> String {
    let iso = iso(at_ms);
    format!("{} {} UTC", iso.get(..10).unwrap_or_default(), iso.get(11..16).unwrap_or_default())
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn dollars(cost: f64) -> String {
    format!("${cost:.4}")
}
