//! The model against vectors of the reference implementation, and what happens without its file.

use super::*;
use orchestr8_kernel::ports::clock::{Real, Simulated};

fn nearness(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// KNO, Engines: the vectors are those of all-MiniLM-L6-v2, but for the rounding of what goes into its matrices, which is coarser
/// on machines that add products in sixteen bits.
#[tokio::test(flavor = "multi_thread")]
async fn vectors_are_those_of_the_reference() {
    let Some(file) = orchestr8_testing::embedder_file() else { return };
    let model = MiniLm::new(file, Arc::new(Real::new()));
    let lines = include_str!("../../../tests/fixtures/minilm.jsonl").lines();
    let known: Vec<(String, Vec<f32>)> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts = known.iter().map(|(text, _)| text.clone()).collect();
    let found = model.embed(texts, Purpose::Passage).await.unwrap();
    let least = if matrix::Multiplier::default().bits() == 8 { 0.998 } else { 0.995 };
    for ((text, wanted), vector) in known.iter().zip(&found) {
        assert_eq!(vector.len(), model.dimensions());
        assert!(nearness(vector, wanted) > least, "{text:?}: {}", nearness(vector, wanted));
        let alone = model.embed(vec![text.clone()], Purpose::Query).await.unwrap();
        assert!(nearness(vector, &alone[0]) > 0.9999, "a text is the same in a batch and alone");
    }
    assert!(nearness(&found[0], &found[3]) < 0.3, "texts about different things are far from each other");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_uses_is_let_go_and_read_again() {
    let Some(file) = orchestr8_testing::embedder_file() else { return };
    let clock = Arc::new(Simulated::new());
    let model = MiniLm::new(file, clock.clone());
    assert!(!model.is_loaded(), "nothing is read before it is needed");
    let text = || vec![String::from("a text")];
    let before = model.embed(text(), Purpose::Query).await.unwrap();
    assert!(model.is_loaded());
    // It is looked after at the end of each such time, so it is gone after two of them.
    clock.sleep(Duration::from_millis(2 * EMBED_IDLE_MS + 1)).await;
    assert!(!model.is_loaded());
    assert_eq!(model.embed(text(), Purpose::Query).await.unwrap(), before);
}

#[tokio::test]
async fn a_file_that_is_missing_or_another_is_told() {
    let folder = std::env::temp_dir().join(format!("o8-minilm-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("model.onnx");
    let embed = || MiniLm::new(&file, Arc::new(Real::new())).embed(vec![String::new()], Purpose::Query);
    let fault = embed().await.unwrap_err();
    assert_eq!(fault.code, Code::Unavailable);
    assert!(fault.message.contains("cannot be read"), "{fault}");
    // A graph with one table that is none of ours.
    std::fs::write(&file, [0x3a, 5, 0x2a, 3, 0x42, 1, b'x']).unwrap();
    let fault = embed().await.unwrap_err();
    assert!(fault.message.contains("no table of word_embeddings"), "{fault}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn no_texts_are_no_work() {
    let model = MiniLm::new("nowhere", Arc::new(Real::new()));
    assert!(model.embed(Vec::new(), Purpose::Query).await.unwrap().is_empty());
}
