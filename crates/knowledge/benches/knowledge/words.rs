//! Texts and vectors that look like real ones and are always the same: few words are common, and texts have topics.

use std::hash::{DefaultHasher, Hash, Hasher};

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_knowledge::retrieval::dense::{Embedder, Purpose};
use orchestr8_knowledge::text::language::Language;

pub const DIMENSIONS: usize = 384;
const TOPICS: u64 = 500;
const VOCABULARY: f64 = 20_000.0;

/// Numbers that look random and are always the same.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Uniform in [0, 1).
    pub fn share(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Uniform in [-0.5, 0.5).
    fn unit(&mut self) -> f32 {
        self.share() - 0.5
    }

    /// One of so many.
    pub fn below(&mut self, many: usize) -> usize {
        usize::try_from(self.next() >> 16).unwrap() % many
    }

    fn word(&mut self) -> String {
        // The n-th word is about 1/n as common as the first.
        let rank = VOCABULARY.powf(f64::from(self.unit()) + 0.5);
        format!("w{}", rank as u64)
    }

    pub fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    /// Near one topic, and a little near another.
    pub fn vector(&mut self) -> Vec<f32> {
        let (one, other) = (topic(self.next() % TOPICS), topic(self.next() % TOPICS));
        let pairs = one.iter().zip(&other);
        pairs.map(|(a, b)| a + 0.5 * b + 0.9 * self.unit()).collect()
    }
}

fn topic(number: u64) -> Vec<f32> {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (number + 1).wrapping_mul(0x2545_f491_4f6c_dd1d));
    for _ in 0..8 {
        dice.next();
    }
    (0..DIMENSIONS).map(|_| dice.unit()).collect()
}

/// A model that costs next to nothing, so that the rest is measured.
pub struct Words;

impl Embedder for Words {
    fn name(&self) -> &str {
        "words"
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn speaks(&self, _language: Language) -> bool {
        true
    }

    fn embed(
        &self,
        texts: Vec<String>,
        _purpose: Purpose,
    ) -> BoxFuture<'static, Result<Vec<Vec<f32>>, Fault>> {
        let vector = |text: &String| {
            let mut sum = vec![0.001; DIMENSIONS];
            for word in text.split_whitespace() {
                let mut hasher = DefaultHasher::new();
                word.hash(&mut hasher);
                let mut dice = Dice(hasher.finish() | 1);
                sum.iter_mut().for_each(|x| *x += dice.unit());
            }
            sum
        };
        let vectors = texts.iter().map(vector).collect();
        async move { Ok(vectors) }.boxed()
    }
}
