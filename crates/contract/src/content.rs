//! What an action gives back: plain JSON for most, or content made for people and models to look at.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::canonical;

/// The result of a successful action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Output {
    /// One JSON value; a face shows it in its own way.
    Json { value: Value },
    /// Blocks of content, with the same as JSON where the action declares an output schema.
    Blocks {
        blocks: Vec<Content>,
        #[serde(skip_serializing_if = "Option::is_none")]
        structured: Option<Value>,
        /// The action ran and reports a failure of its own, for the model to read.
        #[serde(default)]
        failed: bool,
        /// Facts about the result that are not part of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meta: Option<Map<String, Value>>,
    },
    /// What a resource holds.
    Resource { contents: Vec<ResourceContents> },
    /// A prompt made ready.
    Prompt {
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        messages: Vec<PromptMessage>,
    },
}

impl Output {
    /// Its canonical JSON, for hashes.
    pub fn canonical(&self) -> String {
        match self {
            Output::Json { value } => {
                let mut out = String::from(r#"{"kind":"json","value":"#);
                canonical::append(&mut out, value);
                out.push('}');
                out
            }
            Output::Blocks { .. } | Output::Resource { .. } | Output::Prompt { .. } => {
                canonical::text(&serde_json::to_value(self).unwrap_or_default())
            }
        }
    }

    pub fn json(value: impl Into<Value>) -> Self {
        Output::Json { value: value.into() }
    }

    pub fn blocks(blocks: Vec<Content>) -> Self {
        Output::Blocks { blocks, structured: None, failed: false, meta: None }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Output::blocks(vec![Content::text(text)])
    }
}

/// One block of content. The shape is the one MCP gives it; other faces translate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        annotations: Option<Value>,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        annotations: Option<Value>,
    },
    #[serde(rename_all = "camelCase")]
    Audio {
        data: String,
        mime_type: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        annotations: Option<Value>,
    },
    ResourceLink(ResourceLink),
    Resource {
        resource: ResourceContents,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        annotations: Option<Value>,
    },
}

impl Content {
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text { text: text.into(), annotations: None }
    }

    pub fn image(data: impl Into<String>, mime_type: &str) -> Self {
        Content::Image { data: data.into(), mime_type: mime_type.to_owned(), annotations: None }
    }

    pub fn audio(data: impl Into<String>, mime_type: &str) -> Self {
        Content::Audio { data: data.into(), mime_type: mime_type.to_owned(), annotations: None }
    }

    pub fn resource(resource: ResourceContents) -> Self {
        Content::Resource { resource, annotations: None }
    }
}

/// Points to a resource instead of carrying it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLink {
    pub uri: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

/// What one resource holds: text, or base64 of its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceContents {
    pub uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(flatten)]
    pub data: ResourceData,
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ResourceData {
    Text(String),
    Blob(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptMessage {
    pub role: Role,
    pub content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn content_has_the_shape_of_the_protocol() {
        let image = Content::image("AA==", "image/png");
        assert_eq!(
            serde_json::to_value(image).unwrap(),
            json!({"type":"image","data":"AA==","mimeType":"image/png"})
        );
        let contents = ResourceContents {
            uri: "test://a".into(),
            mime_type: Some("text/plain".into()),
            data: ResourceData::Text("hello".into()),
            meta: None,
        };
        let embedded = Content::resource(contents);
        assert_eq!(
            serde_json::to_value(embedded).unwrap(),
            json!({"type":"resource","resource":{"uri":"test://a","mimeType":"text/plain","text":"hello"}})
        );
    }

    #[test]
    fn the_canonical_text_is_that_of_the_value() {
        let outputs = [
            Output::Json { value: json!({"b": [1.0, null], "a": "x\ny"}) },
            Output::Blocks { blocks: vec![Content::text("x")], structured: None, failed: false, meta: None },
        ];
        for output in outputs {
            assert_eq!(output.canonical(), canonical::text(&serde_json::to_value(&output).unwrap()));
        }
    }

    #[test]
    fn outputs_survive_the_ledger() {
        let output = Output::Blocks {
            blocks: vec![Content::text("x")],
            structured: Some(json!({"a":1})),
            failed: true,
            meta: None,
        };
        let text = serde_json::to_string(&output).unwrap();
        assert_eq!(serde_json::from_str::<Output>(&text).unwrap(), output);
    }
}
