//! Questions of tools, put to whoever sits at the terminal (`extension_ui_request`).

use serde_json::{Map, Value, json};

use super::super::telling::short;
use super::super::words::text;
use super::lines::Lines;
use crate::terminal::{BOLD, DIM, PLAIN, Terminal, visible_line};

/// A question in at most so many letters.
const QUESTION_LETTERS: usize = 2000;

pub struct Asking<'a> {
    pub terminal: Terminal,
    /// None when nobody can be asked.
    pub lines: Option<&'a mut Lines>,
}

/// Something to choose: what it is called, and what it stands for.
struct Choice {
    label: String,
    value: Value,
}

impl Asking<'_> {
    /// The answer, in the shape the session takes it. No answer is one too.
    pub async fn ask(&mut self, event: &Value) -> Value {
        let question = short(text(event, "title"), QUESTION_LETTERS);
        let cancelled = json!({"method": "cancelled"});
        if self.lines.is_none() {
            self.terminal.warn(&format!("a tool asks, and nobody can answer here: {question}"));
            return cancelled;
        }
        self.terminal.note(&format!("{BOLD}{question}{PLAIN} {DIM}(an empty line answers nothing){PLAIN}"));
        let answer = match text(event, "method") {
            "confirm" => {
                let yes = self.yes_or_no("").await;
                yes.map(|yes| json!({"method": "confirm", "confirmed": yes}))
            }
            "select" => {
                let chosen = self.choose("", &choices(&event["options"])).await;
                chosen.map(|value| json!({"method": "select", "value": value}))
            }
            "interview" => {
                let answers = self.interview(&event["schema"]).await;
                answers.map(|answers| json!({"method": "interview", "responses": answers}))
            }
            method => {
                let method = if method == "editor" { "editor" } else { "input" };
                self.line("").await.map(|line| json!({"method": method, "value": line}))
            }
        };
        answer.unwrap_or(cancelled)
    }

    /// None for an empty line, and at the end of stdin.
    async fn line(&mut self, label: &str) -> Option<String> {
        let lines = self.lines.as_mut()?;
        // Before the question is seen: whoever is quick has answered it before we look.
        lines.set_aside();
        self.terminal.aside(&format!("{BOLD}{label}?{PLAIN} "));
        lines.answer().await.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
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

    async fn choose(&mut self, label: &str, choices: &[Choice]) -> Option<Value> {
        self.list(choices);
        loop {
            let line = self.line(label).await?;
            match chosen(choices, &line) {
                Some(value) => return Some(value),
                None => self.terminal.note(&format!("say a number from 1 to {}", choices.len())),
            }
        }
    }

    async fn choose_some(&mut self, label: &str, choices: &[Choice]) -> Option<Value> {
        self.list(choices);
        loop {
            let line = self.line(label).await?;
            let values: Option<Vec<Value>> =
                line.split(',').map(|part| chosen(choices, part.trim())).collect();
            match values {
                Some(values) => return Some(Value::Array(values)),
                None => self.terminal.note(&format!("say numbers from 1 to {}, with commas", choices.len())),
            }
        }
    }

    fn list(&self, choices: &[Choice]) {
        for (index, choice) in choices.iter().enumerate() {
            self.terminal.note(&format!("  {} {}", index + 1, visible_line(&choice.label)));
        }
    }

    /// One field after the other; those that need not be answered can be passed over.
    async fn interview(&mut self, schema: &Value) -> Option<Value> {
        let is_required =
            |name: &str| schema["required"].as_array().is_some_and(|list| list.iter().any(|one| one == name));
        let mut answers = Map::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let mut about = field["description"].as_str().map_or_else(String::new, str::to_owned);
            if !field["default"].is_null() {
                about.push_str(&format!(" (otherwise {})", field["default"]));
            }
            if !about.is_empty() {
                self.terminal.note(&format!("{DIM}{}{PLAIN}", short(&about, QUESTION_LETTERS)));
            }
            let label = visible_line(field["title"].as_str().unwrap_or(name));
            let answer = self.field(&label, field).await.or_else(|| field.get("default").cloned());
            match answer {
                Some(value) => drop(answers.insert(name.clone(), value)),
                None if is_required(name) => return None,
                None => {}
            }
        }
        Some(Value::Object(answers))
    }

    async fn field(&mut self, label: &str, field: &Value) -> Option<Value> {
        let several = choices_of(&field["items"]);
        if !several.is_empty() {
            return self.choose_some(label, &several).await;
        }
        let one = choices_of(field);
        if !one.is_empty() {
            return self.choose(label, &one).await;
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

/// What a field lets choose, in each of the ways a schema can say it.
fn choices_of(field: &Value) -> Vec<Choice> {
    ["enum", "oneOf", "anyOf"].iter().flat_map(|name| choices(&field[*name])).collect()
}

fn choices(options: &Value) -> Vec<Choice> {
    let choice = |option: &Value| {
        let value = option.get("const").or(option.get("value")).unwrap_or(option).clone();
        let name = option["title"].as_str().or(option["label"].as_str()).or(value.as_str());
        Choice { label: name.map_or_else(|| value.to_string(), str::to_owned), value }
    };
    options.as_array().into_iter().flatten().map(choice).collect()
}

/// By its name, or by its number in the list.
fn chosen(choices: &[Choice], said: &str) -> Option<Value> {
    let named = choices.iter().find(|choice| choice.label == said);
    let counted = || choices.get(said.parse::<usize>().ok()?.checked_sub(1)?);
    named.or_else(counted).map(|choice| choice.value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_in_every_spelling_and_taken_by_name_or_number() {
        let plain = choices_of(&json!({"enum": ["s", "m", 5]}));
        assert_eq!(chosen(&plain, "m"), Some(json!("m")));
        assert_eq!(chosen(&plain, "1"), Some(json!("s")));
        assert_eq!(chosen(&plain, "5"), Some(json!(5)), "a name stands over a number");
        let titled = choices_of(&json!({"oneOf": [{"const": "a", "title": "First"}]}));
        assert_eq!((chosen(&titled, "First"), chosen(&titled, "1")), (Some(json!("a")), Some(json!("a"))));
        for wrong in ["0", "2", "-1", "a"] {
            assert_eq!(chosen(&titled, wrong), None, "{wrong}");
        }
        assert!(choices_of(&json!({"type": "string"})).is_empty());
    }
}
