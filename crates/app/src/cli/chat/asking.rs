//! Questions of tools, put to whoever sits at the terminal (`extension_ui_request`).

use serde_json::{Map, Value, json};

use super::super::telling::short;
use super::super::words::text;
use super::lines::Lines;
use crate::terminal::{BOLD, DIM, PLAIN, Terminal, harmless};

/// A question in at most so many letters.
const QUESTION_LETTERS: usize = 2000;

pub struct Asking<'a> {
    pub terminal: Terminal,
    /// None when nobody can be asked.
    pub lines: Option<&'a mut Lines>,
}

impl Asking<'_> {
    /// The answer, in the shape the session takes it. No answer is one too.
    pub async fn ask(&mut self, event: &Value) -> Value {
        let cancelled = json!({"method": "cancelled"});
        let question = short(text(event, "title"), QUESTION_LETTERS);
        if self.lines.is_none() {
            self.terminal.warn(&format!("a tool asks, and nobody can answer here: {question}"));
            return cancelled;
        }
        self.terminal.note(&format!("{BOLD}? {question}{PLAIN} {DIM}(an empty line answers nothing){PLAIN}"));
        let answer = match text(event, "method") {
            "confirm" => self.yes_or_no("").await.map(|yes| json!({"method": "confirm", "confirmed": yes})),
            "select" => self
                .choose("", &event["options"])
                .await
                .map(|value| json!({"method": "select", "value": value})),
            "interview" => self
                .interview(&event["schema"])
                .await
                .map(|answers| json!({"method": "interview", "responses": answers})),
            method => {
                let line = self.line("").await;
                line.map(|line| json!({"method": if method == "editor" { "editor" } else { "input" }, "value": line}))
            }
        };
        answer.unwrap_or(cancelled)
    }

    /// None for an empty line, and at the end of stdin.
    async fn line(&mut self, label: &str) -> Option<String> {
        self.terminal.aside(&format!("{BOLD}{label}?{PLAIN} "));
        let lines = self.lines.as_mut()?;
        lines.fresh().await.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
    }

    async fn yes_or_no(&mut self, label: &str) -> Option<bool> {
        loop {
            match self.line(&format!("{label}[y/n]")).await?.to_lowercase().as_str() {
                "y" | "yes" | "true" => return Some(true),
                "n" | "no" | "false" => return Some(false),
                _ => self.terminal.note("say y or n"),
            }
        }
    }

    async fn choose(&mut self, label: &str, options: &Value) -> Option<Value> {
        let options = options.as_array().cloned().unwrap_or_default();
        for (index, option) in options.iter().enumerate() {
            self.terminal.note(&format!("  {} {}", index + 1, harmless(&shown(option))));
        }
        loop {
            let line = self.line(label).await?;
            let number = line.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
            let named = options.iter().find(|option| shown(option) == line);
            match named.or(number) {
                // An option may be a word, or say more about one.
                Some(option) => return Some(option.get("value").unwrap_or(option).clone()),
                None => self.terminal.note(&format!("say a number from 1 to {}", options.len())),
            }
        }
    }

    /// One field after the other; those that need not be answered can be passed over.
    async fn interview(&mut self, schema: &Value) -> Option<Value> {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut answers = Map::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let label = harmless(field["title"].as_str().unwrap_or(name));
            if let Some(what) = field["description"].as_str() {
                self.terminal.note(&format!("{DIM}{}{PLAIN}", short(what, QUESTION_LETTERS)));
            }
            match self.field(&label, field).await {
                Some(value) => drop(answers.insert(name.clone(), value)),
                None if required.contains(&name.as_str()) => return None,
                None => {}
            }
        }
        Some(Value::Object(answers))
    }

    async fn field(&mut self, label: &str, field: &Value) -> Option<Value> {
        if field["enum"].is_array() {
            return self.choose(label, &field["enum"]).await;
        }
        loop {
            let read = match text(field, "type") {
                "boolean" => return self.yes_or_no(&format!("{label} ")).await.map(Value::Bool),
                "integer" => self.line(label).await?.parse::<i64>().ok().map(Value::from),
                "number" => self.line(label).await?.parse::<f64>().ok().map(Value::from),
                _ => return self.line(label).await.map(Value::String),
            };
            match read {
                Some(value) => return Some(value),
                None => self.terminal.note("say a number"),
            }
        }
    }
}

fn shown(option: &Value) -> String {
    let label = option["label"].as_str().or(option["value"].as_str()).or(option.as_str());
    label.map_or_else(|| option.to_string(), str::to_owned)
}
