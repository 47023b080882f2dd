//! `orchestr8 knowledge tree`: documents with their lines, as people draw them.

use std::collections::HashMap;

use clap::Args;
use serde_json::{Value, json};

use super::super::Shell;
use super::super::words::{cut, moment, text};
use super::Asking;
use super::shelf::{ROOT, Shelf};
use crate::failure::Failure;
use crate::terminal::{CYAN, DIM, PLAIN, columns, visible_line};

#[derive(Args)]
pub struct Tree {
    /// Only this document and what is below it: an id or a path [default: all].
    #[arg(default_value = "/")]
    document: String,
    /// So many levels at most.
    #[arg(long, short, value_name = "LEVELS")]
    depth: Option<usize>,
    /// Show the ids.
    #[arg(long)]
    ids: bool,
    /// List deleted documents that can be restored.
    #[arg(long, conflicts_with_all = ["depth", "ids", "document"])]
    deleted: bool,
    #[command(flatten)]
    asking: Asking,
}

const TITLE_LETTERS: usize = 100;

impl Tree {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        if self.deleted {
            return self.deleted(shell);
        }
        let (top, all) = self.asking.run(shell, async |shelf| {
            let top = shelf.parent(&self.document).await?;
            Ok((top, shelf.list(&[]).await?))
        })?;
        let branches = Branches::of(&all);
        if shell.terminal.json {
            let shown = match all.iter().find(|entry| text(entry, "id") == top) {
                Some(entry) => vec![branches.nested(entry, self.left())],
                None => branches.below(&top).map(|entry| branches.nested(entry, self.left())).collect(),
            };
            shell.terminal.value(&json!({"documents": shown}));
            return Ok(());
        }
        let mut lines = Vec::new();
        if let Some(entry) = all.iter().find(|entry| text(entry, "id") == top) {
            lines.push(self.line(entry));
        } else if top == ROOT {
            lines.push(String::from("/"));
        }
        self.draw(&branches, &top, "", self.left(), &mut lines);
        if all.is_empty() {
            shell.terminal.note("there are no documents; write one with orchestr8 knowledge put PATH FILE");
            return Ok(());
        }
        let shown = lines.len() - usize::from(top == ROOT);
        shell.terminal.data(&lines.join("\n"));
        shell.terminal.note(&counted(shown));
        Ok(())
    }

    fn left(&self) -> usize {
        self.depth.unwrap_or(usize::MAX)
    }

    fn draw(
        &self,
        branches: &Branches<'_>,
        parent: &str,
        before: &str,
        left: usize,
        lines: &mut Vec<String>,
    ) {
        if left == 0 {
            return;
        }
        let mut below = branches.below(parent).peekable();
        while let Some(entry) = below.next() {
            let (branch, space) =
                if below.peek().is_some() { ("├── ", "│   ") } else { ("└── ", "    ") };
            lines.push(format!("{before}{branch}{}", self.line(entry)));
            self.draw(branches, text(entry, "id"), &format!("{before}{space}"), left - 1, lines);
        }
    }

    fn line(&self, entry: &Value) -> String {
        let mut line = cut(text(entry, "title"), TITLE_LETTERS);
        let tags = entry["metadata"]["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let tags: Vec<String> = tags.map(visible_line).collect();
        if !tags.is_empty() {
            line.push_str(&format!("  {CYAN}[{}]{PLAIN}", tags.join(", ")));
        }
        if self.ids {
            line.push_str(&format!("  {DIM}{}{PLAIN}", text(entry, "id")));
        }
        line
    }

    fn deleted(&self, shell: &Shell) -> Result<(), Failure> {
        let all = self.asking.run(shell, async |shelf| deleted(shelf).await)?;
        if shell.terminal.json {
            shell.terminal.value(&json!({"documents": all}));
            return Ok(());
        }
        if all.is_empty() {
            shell.terminal.note("nothing is deleted");
            return Ok(());
        }
        let head = ["DOCUMENT", "GONE FOR GOOD", "TITLE"].map(String::from);
        let row = |entry: &Value| {
            let title = cut(text(entry, "title"), TITLE_LETTERS);
            [text(entry, "id").to_owned(), moment(&entry["purge_at"]), title]
        };
        let rows: Vec<[String; 3]> = std::iter::once(head).chain(all.iter().map(row)).collect();
        shell.terminal.data(&columns(&rows));
        Ok(())
    }
}

/// The documents whose deletion can be undone, without those that went with them.
pub async fn deleted(shelf: &Shelf<'_>) -> Result<Vec<Value>, Failure> {
    shelf.list(&[("deleted", Some(String::from("true")))]).await
}

pub fn counted(count: usize) -> String {
    if count == 1 { String::from("1 document") } else { format!("{count} documents") }
}

/// Entries by their parent, siblings in their order.
pub struct Branches<'e>(HashMap<&'e str, Vec<&'e Value>>);

impl<'e> Branches<'e> {
    pub fn of(all: &'e [Value]) -> Self {
        let mut branches: HashMap<&str, Vec<&Value>> = HashMap::new();
        for entry in all {
            branches.entry(text(entry, "parent_id")).or_default().push(entry);
        }
        for siblings in branches.values_mut() {
            siblings.sort_by_key(|entry| (text(entry, "place"), text(entry, "id")));
        }
        Self(branches)
    }

    pub fn below(&self, parent: &str) -> impl Iterator<Item = &'e Value> + '_ {
        self.0.get(parent).into_iter().flatten().copied()
    }

    /// How many are below it, at any level.
    pub fn count(&self, parent: &str) -> usize {
        self.below(parent).map(|entry| 1 + self.count(text(entry, "id"))).sum()
    }

    /// The ids of a document and of all below it.
    pub fn ids(&self, parent: &str) -> Vec<String> {
        let mut ids = Vec::new();
        let mut open = vec![parent];
        while let Some(at) = open.pop() {
            for entry in self.below(at) {
                ids.push(text(entry, "id").to_owned());
                open.push(text(entry, "id"));
            }
        }
        ids
    }

    fn nested(&self, entry: &Value, left: usize) -> Value {
        let mut shown = json!({});
        for name in
            ["id", "title", "path", "revision", "metadata", "mime_type", "content_length", "updated_at"]
        {
            shown[name] = entry[name].clone();
        }
        let below = match left {
            0 => Vec::new(),
            left => self.below(text(entry, "id")).map(|child| self.nested(child, left - 1)).collect(),
        };
        shown["children"] = Value::Array(below);
        shown
    }
}
