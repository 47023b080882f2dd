//! Tools that give back each kind of content.

use orchestr8_contract::content::{ResourceContents, ResourceData};
use orchestr8_contract::{Content, Output};
use orchestr8_kernel::{Action, Args, Policy, schema};
use serde_json::{Value, json};

use super::{PNG, WAV, nothing, text};

/// A tool that always gives the same.
fn always(name: &str, about: &str, output: Output) -> Result<Action, schema::Error> {
    Action::tool(name, about, nothing(), Policy::quick_read(), move |_, _| {
        std::future::ready(Ok(output.clone().into()))
    })
}

fn image_block() -> Content {
    Content::image(PNG, "image/png")
}

fn resource_block(uri: &str, mime_type: &str, text: &str) -> Content {
    Content::resource(ResourceContents {
        uri: uri.into(),
        mime_type: Some(mime_type.into()),
        data: ResourceData::Text(text.into()),
        meta: None,
    })
}

pub fn simple_text() -> Result<Action, schema::Error> {
    let output = Output::text("This is a simple text response for testing.");
    always("test_simple_text", "Gives back a text.", output)
}

pub fn image() -> Result<Action, schema::Error> {
    always("test_image_content", "Gives back an image.", Output::blocks(vec![image_block()]))
}

pub fn audio() -> Result<Action, schema::Error> {
    let block = Content::audio(WAV, "audio/wav");
    always("test_audio_content", "Gives back a sound.", Output::blocks(vec![block]))
}

pub fn embedded_resource() -> Result<Action, schema::Error> {
    let block =
        resource_block("test://embedded-resource", "text/plain", "This is an embedded resource content.");
    always("test_embedded_resource", "Gives back an embedded resource.", Output::blocks(vec![block]))
}

pub fn multiple_types() -> Result<Action, schema::Error> {
    let data = r#"{"test":"data","value":123}"#;
    let blocks = vec![
        Content::text("Multiple content types test:"),
        image_block(),
        resource_block("test://mixed-content-resource", "application/json", data),
    ];
    always(
        "test_multiple_content_types",
        "Gives back a text, an image and a resource.",
        Output::blocks(blocks),
    )
}

pub fn error() -> Result<Action, schema::Error> {
    let blocks = vec![Content::text("This tool intentionally returns an error for testing")];
    let output = Output::Blocks { blocks, structured: None, failed: true, meta: None };
    always("test_error_handling", "Always reports an error.", output)
}

/// The keywords of JSON Schema 2020-12 must reach the client as they are.
pub fn json_schema() -> Result<Action, schema::Error> {
    let input = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"}
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false
    });
    let about = "Takes arguments described with JSON Schema 2020-12.";
    Action::tool("json_schema_2020_12_tool", about, input, Policy::quick_read(), |args: Args, _| {
        std::future::ready(text(format!("Received {}", args.as_value())))
    })
}

/// Its argument is also sent as an HTTP header.
pub fn header() -> Result<Action, schema::Error> {
    let input = json!({
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"]
    });
    let about = "Takes an argument that is mirrored in a header.";
    Action::tool("test_x_mcp_header", about, input, Policy::quick_read(), |args: Args, _| {
        std::future::ready(text(format!("Region: {}", args.text("region").unwrap_or_default())))
    })
}

pub fn greet() -> Result<Action, schema::Error> {
    let input: Value =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    Action::tool("greet", "Greets somebody.", input, Policy::quick_read(), |args: Args, _| {
        std::future::ready(text(format!("Hello, {}!", args.text("name").unwrap_or_default())))
    })
}
