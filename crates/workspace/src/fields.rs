//! The arguments of a call, read one by one, each mistake under its own code.

use orchestr8_contract::Code;
use serde_json::{Map, Value};

use crate::plan;
use crate::refusal::Refusal;

#[derive(Default)]
pub struct Fields(Value);

impl Fields {
    pub fn new(args: Value) -> Self {
        Self(args)
    }

    pub fn value(&self) -> &Value {
        &self.0
    }

    /// An argument that is neither absent nor null.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Result<Option<&str>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => {
                Err(Refusal::new(Code::InvalidInputType, format!("{name} must be a string"))
                    .with("field", name))
            }
        }
    }

    pub fn required(&self, name: &str) -> Result<&str, Refusal> {
        let text = self.text(name)?.ok_or_else(|| missing(name))?;
        match text.trim().is_empty() {
            true => {
                Err(Refusal::new(Code::InvalidInputValue, format!("{name} is empty")).with("field", name))
            }
            false => Ok(text),
        }
    }

    pub fn number(&self, name: &str) -> Result<Option<i64>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => match (value.as_i64(), value.is_number()) {
                (Some(number), _) if number >= 1 => Ok(Some(number)),
                (_, true) => Err(Refusal::new(
                    Code::InvalidInputValue,
                    format!("{name} must be a whole number from 1"),
                )
                .with("field", name)),
                (_, false) => Err(Refusal::new(Code::InvalidInputType, format!("{name} must be a number"))
                    .with("field", name)),
            },
        }
    }

    pub fn object(&self, name: &str) -> Result<&Map<String, Value>, Refusal> {
        match self.get(name) {
            None => Err(missing(name)),
            Some(Value::Object(map)) => Ok(map),
            Some(_) => {
                Err(Refusal::new(Code::InvalidInputType, format!("{name} must be an object"))
                    .with("field", name))
            }
        }
    }

    /// A plan by its hash; the ending `.md` of its file and the folder may be there.
    pub fn plan_hash(&self, name: &str) -> Result<Option<String>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let bare = text.strip_prefix(plan::FOLDER).map_or(text, |rest| rest.trim_start_matches('/'));
        let bare = bare.strip_suffix(".md").unwrap_or(bare);
        match plan::is_hash(bare) {
            true => Ok(Some(bare.to_owned())),
            false => Err(Refusal::new(
                Code::InvalidInputFormat,
                format!("{name} must be the hash of a plan: 64 hexadecimal digits"),
            )
            .with("field", name)),
        }
    }

    pub fn phase_id(&self) -> Result<Option<&str>, Refusal> {
        let Some(id) = self.text("phase_id")? else { return Ok(None) };
        match plan::is_phase_id(id) {
            true => Ok(Some(id)),
            false => {
                Err(Refusal::new(Code::InvalidInputFormat, "phase_id is made of capitals, digits and _")
                    .with("field", "phase_id"))
            }
        }
    }
}

pub fn missing(name: &str) -> Refusal {
    Refusal::new(Code::MissingRequiredField, format!("{name} is missing")).with("field", name)
}
