//! Real texts: whatever collections with a `corpus.jsonl` and a `queries.jsonl` lie in a folder.

use std::path::Path;

use serde_json::Value;

use crate::words::Dice;

/// Words of a piece of a text: as few, and so many more at most.
const LEAST: usize = 8;
const MORE: usize = 24;

pub struct Texts {
    /// Documents in full.
    pub documents: Vec<String>,
    pub questions: Vec<String>,
}

pub fn read(folder: &Path) -> Texts {
    let (mut documents, mut questions) = (Vec::new(), Vec::new());
    let mut folders: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for collection in folders.iter().filter(|path| path.join("corpus.jsonl").is_file()) {
        documents.extend(lines(&collection.join("corpus.jsonl")));
        questions.extend(lines(&collection.join("queries.jsonl")));
    }
    assert!(!documents.is_empty() && !questions.is_empty(), "{} holds no collections", folder.display());
    Texts { documents, questions }
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let line = |line: &str| -> String {
        let value: Value = serde_json::from_str(line).unwrap();
        let part = |name: &str| value[name].as_str().unwrap_or_default();
        format!("{}\n{}", part("title"), part("text")).trim().to_owned()
    };
    text.lines().map(line).collect()
}

impl Texts {
    /// Pieces of the documents, from anywhere in them, as passages are: a document has many that are about the same.
    pub fn pieces(&self, count: usize) -> Vec<String> {
        let words: Vec<Vec<&str>> =
            self.documents.iter().map(|text| text.split_whitespace().collect()).collect();
        let mut dice = Dice(88_172_645_463_325_252);
        let mut pieces = Vec::with_capacity(count);
        while pieces.len() < count {
            let document = &words[dice.below(words.len())];
            if document.len() >= LEAST {
                let start = dice.below(document.len() - LEAST + 1);
                let length = LEAST + dice.below(MORE);
                pieces.push(document[start..document.len().min(start + length)].join(" "));
            }
        }
        pieces
    }
}

/// So many vectors: those of real pieces, and beyond them what lies between two or three that are near each other, as the
/// piece of a text lies between those it overlaps.
pub fn spread(real: &[Vec<f32>], count: usize) -> Vec<Vec<f32>> {
    let mut all: Vec<Vec<f32>> = real.iter().take(count).cloned().collect();
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    while all.len() < count {
        let one = dice.below(real.len());
        // The nearest of some: what is about the same.
        let others = (0..64).map(|_| dice.below(real.len())).filter(|other| *other != one);
        let other = others.max_by(|a, b| near(&real[one], &real[*a]).total_cmp(&near(&real[one], &real[*b])));
        let (share, other) = (0.2 + 0.6 * dice.share(), &real[other.unwrap_or(one)]);
        let mixed = real[one].iter().zip(other).map(|(a, b)| a * share + b * (1.0 - share));
        all.push(unit(mixed.map(|x| x + 0.02 * (dice.share() - 0.5)).collect()));
    }
    all
}

pub fn unit(vector: Vec<f32>) -> Vec<f32> {
    let length = near(&vector, &vector).sqrt();
    vector.into_iter().map(|x| x / length).collect()
}

/// In lanes, which a compiler makes wide instructions of.
pub fn near(one: &[f32], other: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    for (one, other) in one.as_chunks::<16>().0.iter().zip(other.as_chunks::<16>().0) {
        for lane in 0..16 {
            sums[lane] += one[lane] * other[lane];
        }
    }
    sums.iter().sum()
}
