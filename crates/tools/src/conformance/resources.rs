//! Resources: a text, an image, one to subscribe to, and a template.

use orchestr8_contract::Output;
use orchestr8_contract::content::{ResourceContents, ResourceData};
use orchestr8_kernel::action::{Address, Resource};
use orchestr8_kernel::{Action, Args, schema};
use serde_json::json;

use super::PNG;

fn contents(uri: &str, mime_type: &str, data: ResourceData) -> Output {
    let contents = ResourceContents { uri: uri.into(), mime_type: Some(mime_type.into()), data, meta: None };
    Output::Resource { contents: vec![contents] }
}

/// A resource that never changes.
fn fixed(name: &str, about: &str, mime_type: &str, data: ResourceData) -> Result<Action, schema::Error> {
    let uri = format!("test://{name}");
    let output = contents(&uri, mime_type, data);
    let resource = Resource { address: Address::Fixed(uri), mime_type: Some(mime_type.into()), size: None };
    Action::resource(name, about, resource, move |_, _| std::future::ready(Ok(output.clone().into())))
}

pub fn static_text() -> Result<Action, schema::Error> {
    let data = ResourceData::Text("This is the content of the static text resource.".into());
    fixed("static-text", "A text for tests.", "text/plain", data)
}

pub fn static_binary() -> Result<Action, schema::Error> {
    fixed("static-binary", "An image for tests.", "image/png", ResourceData::Blob(PNG.into()))
}

pub fn watched() -> Result<Action, schema::Error> {
    let data = ResourceData::Text("Watched resource content".into());
    fixed("watched-resource", "A resource to subscribe to.", "text/plain", data)
}

pub fn template() -> Result<Action, schema::Error> {
    let resource = Resource {
        address: Address::Template("test://template/{id}/data".into()),
        mime_type: Some("application/json".into()),
        size: None,
    };
    Action::resource("template-data", "Data for any id.", resource, |args: Args, _| {
        let id = args.text("id").unwrap_or_default();
        let id_text = json!(id);
        let data_text = json!(format!("Data for ID: {id}"));
        let data = format!(r#"{{"id":{id_text},"templateTest":true,"data":{data_text}}}"#);
        let uri = format!("test://template/{id}/data");
        std::future::ready(Ok(contents(&uri, "application/json", ResourceData::Text(data)).into()))
    })
}
