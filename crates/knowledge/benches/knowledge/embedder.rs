//! The embedder of this process on real texts: how many a second, and how long a question waits, alone and beside an import.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use orchestr8_models::embedders::{Embedder, MiniLm, Purpose};

use crate::texts::Texts;
use crate::{Extent, ask, cpu_ms, memory_mb, own, print};

/// Texts that are given at once, as those who follow the changes do.
const AT_ONCE: usize = 32;

/// Documents in full that are embedded, and questions whose vectors are asked for in turn.
const DOCUMENTS: usize = 320;
const QUESTIONS: usize = 400;

/// Vectors of real texts and questions.
pub struct Real {
    pub passages: Vec<Vec<f32>>,
    pub questions: Vec<Vec<f32>>,
}

pub async fn measure(texts: &Texts, extent: Extent) -> Real {
    let file = orchestr8_testing::embedder_file().expect("the embedder's file can be fetched");
    let model = MiniLm::new(file, Arc::new(orchestr8_kernel::ports::clock::Real::new()));
    let began = Instant::now();
    embed(&model, &texts.questions[..1], Purpose::Query).await;
    print("embedder, first question", began.elapsed().as_secs_f64() * 1e3, "ms");
    let documents: Vec<String> = texts.documents.iter().take(DOCUMENTS).cloned().collect();
    let (began, before) = (Instant::now(), cpu_ms("self"));
    embed(&model, &documents, Purpose::Passage).await;
    let count = documents.len() as f64;
    print("embedder, documents of some 200 pieces", count / began.elapsed().as_secs_f64(), "/s");
    print("embedder, a document of some 200 pieces, CPU", (cpu_ms("self") - before) / count, "ms");
    print("embedder, memory of the process", memory_mb("self"), "MB");
    question(&model, texts, "embedder, a question alone").await;
    let stop = Arc::new(AtomicBool::new(false));
    let import = tokio::spawn({
        let (model, stop) = (model.clone(), stop.clone());
        async move {
            while !stop.load(Ordering::Relaxed) {
                embed(&model, &documents[..AT_ONCE], Purpose::Passage).await;
            }
        }
    });
    question(&model, texts, "embedder, a question beside an import").await;
    stop.store(true, Ordering::Relaxed);
    import.await.unwrap();
    let pieces = texts.pieces(extent.texts);
    let passages = embed(&model, &pieces, Purpose::Passage).await;
    let questions = embed(&model, &texts.questions, Purpose::Passage).await;
    Real { passages, questions }
}

async fn question(model: &MiniLm, texts: &Texts, name: &str) {
    let (model, questions) = (model.clone(), texts.questions.clone());
    let one = move |n: usize| {
        let (model, text) = (model.clone(), questions[n % questions.len()].clone());
        let made: futures::future::BoxFuture<'static, ()> =
            Box::pin(async move { drop(model.embed(vec![text], Purpose::Query).await.unwrap()) });
        made
    };
    ask(QUESTIONS, &own(), Arc::new(one)).await.show(name);
}

async fn embed(model: &MiniLm, texts: &[String], purpose: Purpose) -> Vec<Vec<f32>> {
    let mut vectors = Vec::with_capacity(texts.len());
    for some in texts.chunks(AT_ONCE) {
        vectors.extend(model.embed(some.to_vec(), purpose).await.unwrap());
    }
    vectors
}
