//! What models see: tools and resources.

use orchestr8_contract::Code;
use orchestr8_testing::settled;
use serde_json::json;

use crate::world::{World, id};

#[tokio::test]
async fn models_search_list_and_read() {
    let world = World::new();
    world.put(1, "root", "Birds", "Falcons dive.").await;
    let ask = async |name: &str, args| settled::value(world.settle_as("acme", "viewer", name, args).await);
    assert_eq!(
        ask("search_knowledge", json!({"query": "falcon"})).await["context"][0]["document_id"],
        json!(id(1))
    );
    assert_eq!(ask("list_documents", json!({})).await["documents"][0]["path"], "/Birds");
    assert_eq!(ask("get_document", json!({"document_id": id(1)})).await["content"]["body"], "Falcons dive.");
}

#[tokio::test]
async fn a_document_is_a_resource() {
    let world = World::new();
    world.put(1, "root", "Birds", "Falcons dive.").await;
    let args = json!({"uri": format!("knowledge://{}", id(1)), "id": id(1)});
    let read = settled::wire(world.settle_as("acme", "agent", "knowledge.document", args.clone()).await);
    assert_eq!(read["contents"][0]["text"], "Falcons dive.");
    assert_eq!(read["contents"][0]["mimeType"], "text/markdown");
    let ended = world.settle_as("globex", "agent", "knowledge.document", args.clone()).await;
    assert_eq!(ended.code(), Some(Code::NotFound));
    assert_eq!(
        world.settle_as("acme", "nobody", "knowledge.document", args).await.code(),
        Some(Code::Unauthorized)
    );
}
