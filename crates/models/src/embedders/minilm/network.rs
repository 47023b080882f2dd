//! The network of all-MiniLM-L6-v2: six layers of attention over 384 numbers a piece, and the mean of what comes out.
//!
//! Weights stay the small whole numbers they are in the file, and so are multiplied: what goes into a matrix is rounded to as
//! many bits, row by row. The texts of a batch lie one after another, so nothing is computed for padding.

use std::ops::Range;

use rayon::prelude::*;
use rten_gemm::{GemmError, GemmExecutor, GemmInputA, GemmInputB, GemmOptions};
use rten_simd::{SimdOp, SimdUnaryOp};
use rten_tensor::{Matrix, NdTensorView};
use rten_vecmath::{Gelu, Softmax, Sum, SumSquareSub};

use super::file::{self, Error, Table};
use super::matrix::{Linear, Multiplier, Scaled, wide};

/// Numbers of a vector, and of the wide middle of a layer.
pub const WIDTH: usize = 384;
const MIDDLE: usize = 4 * WIDTH;
const LAYERS: usize = 6;
const HEADS: usize = 12;
const HEAD: usize = WIDTH / HEADS;

/// Pieces in the vocabulary, and places a text may have.
const VOCABULARY: usize = 30_522;
const PLACES: usize = 512;

/// What keeps the scale of a row that is all alike from being endless.
const LEAST: f32 = 1e-12;

/// Everything that was learned.
pub struct Network {
    words: Vec<i8>,
    word_scales: Vec<f32>,
    /// What each place adds, with what every first text adds.
    places: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

struct Layer {
    /// What each piece asks, offers and says: three matrices side by side.
    asked: Linear,
    mixed: Linear,
    after_mixed: Norm,
    widened: Linear,
    narrowed: Linear,
    after_narrowed: Norm,
}

struct Norm {
    scale: Vec<f32>,
    shift: Vec<f32>,
}

impl Network {
    pub fn read(file: &[u8]) -> Result<Self, Error> {
        let tables = file::tables(file)?;
        let given = Given(&tables);
        let multiplier = Multiplier::default();
        let words = given.named("word_embeddings.weight_q")?.smalls(&[VOCABULARY, WIDTH])?;
        let word_scales = given.named("word_embeddings.weight_scale")?.reals(&[VOCABULARY, 1])?;
        // The matrices have no names of their own: they stand in the order in which the network uses them.
        let all: Vec<&Table<'_>> = tables.iter().filter(|table| table.is_matrix()).collect();
        let matrices: Vec<&Table<'_>> =
            all.into_iter().filter(|table| !table.name.contains("embeddings")).collect();
        let layers = (0..LAYERS).map(|layer| {
            let own = matrices.get(layer * 6..layer * 6 + 6).ok_or_else(|| missing("a layer"))?;
            Layer::read(&given, &multiplier, layer, own)
        });
        Ok(Self {
            words,
            word_scales,
            places: given.places()?,
            norm: given.norm("embeddings.LayerNorm")?,
            layers: layers.collect::<Result<_, _>>()?,
        })
    }

    /// One vector of length one for each text, given by the numbers of its pieces.
    pub fn vectors(&self, texts: &[Vec<u32>]) -> Result<Vec<Vec<f32>>, GemmError> {
        let mut spans: Vec<Range<usize>> = Vec::with_capacity(texts.len());
        for text in texts {
            let start = spans.last().map_or(0, |span| span.end);
            spans.push(start..start + text.len());
        }
        // Made anew each time, which costs next to nothing: they cannot be handed from thread to thread.
        let (by, plain) = (Multiplier::default(), GemmExecutor::new());
        let mut rows = self.first(texts);
        for layer in &self.layers {
            let asked = layer.asked.apply(&by, &rows)?;
            let mixed = layer.mixed.apply(&by, &attend(&plain, &asked, &spans)?)?;
            layer.after_mixed.add(&mut rows, &mixed);
            let mut widened = layer.widened.apply(&by, &rows)?;
            widened.par_chunks_mut(MIDDLE).for_each(|row| {
                Gelu {}.map_mut(row);
            });
            let narrowed = layer.narrowed.apply(&by, &widened)?;
            layer.after_narrowed.add(&mut rows, &narrowed);
        }
        Ok(spans.iter().map(|span| mean(&rows[span.start * WIDTH..span.end * WIDTH])).collect())
    }

    /// What the pieces are before they have looked at each other.
    fn first(&self, texts: &[Vec<u32>]) -> Vec<f32> {
        let mut rows = Vec::with_capacity(texts.iter().map(Vec::len).sum::<usize>() * WIDTH);
        for text in texts {
            for (place, piece) in text.iter().enumerate() {
                let piece = usize::try_from(*piece).unwrap_or(0).min(VOCABULARY - 1);
                let place = place.min(PLACES - 1);
                let (scale, word) = (self.word_scales[piece], &self.words[piece * WIDTH..][..WIDTH]);
                let places = &self.places[place * WIDTH..][..WIDTH];
                rows.extend(word.iter().zip(places).map(|(word, place)| f32::from(*word) * scale + place));
            }
        }
        rows.par_chunks_mut(WIDTH).for_each(|row| self.norm.apply(row));
        rows
    }
}

/// Each piece of a text takes from the others what it asks for.
fn attend(plain: &GemmExecutor, asked: &[f32], spans: &[Range<usize>]) -> Result<Vec<f32>, GemmError> {
    let mut mixed = vec![0.0; asked.len() / 3];
    let mut parts = Vec::with_capacity(spans.len());
    let mut rest = mixed.as_mut_slice();
    for span in spans {
        let (part, next) = std::mem::take(&mut rest).split_at_mut(span.len() * WIDTH);
        parts.push((&asked[span.start * 3 * WIDTH..span.end * 3 * WIDTH], part));
        rest = next;
    }
    parts.into_par_iter().try_for_each(|(asked, part)| attend_one(plain, asked, part))?;
    Ok(mixed)
}

fn attend_one(plain: &GemmExecutor, asked: &[f32], mixed: &mut [f32]) -> Result<(), GemmError> {
    let length = mixed.len() / WIDTH;
    let (mut marks, mut said) = (vec![0.0; length * length], vec![0.0; length * HEAD]);
    for head in 0..HEADS {
        let [question, offer, word] = [0, 1, 2].map(|which| part(asked, length, which * WIDTH + head * HEAD));
        let alpha = 1.0 / (HEAD as f32).sqrt();
        let options = GemmOptions { alpha, ..GemmOptions::default() };
        let offers = GemmInputB::Unpacked(offer?.transposed());
        plain.gemm(&mut marks, GemmInputA::Unpacked(question?), offers, options)?;
        for row in marks.chunks_exact_mut(length) {
            Softmax::new_mut(row).dispatch();
        }
        let marked = view(&marks, length)?;
        let words = GemmInputB::Unpacked(word?);
        plain.gemm(&mut said, GemmInputA::Unpacked(marked), words, GemmOptions::default())?;
        for (row, said) in mixed.chunks_exact_mut(WIDTH).zip(said.chunks_exact(HEAD)) {
            row[head * HEAD..][..HEAD].copy_from_slice(said);
        }
    }
    Ok(())
}

/// The numbers of one head, out of rows that hold those of all heads three times.
fn part(asked: &[f32], length: usize, from: usize) -> Result<Matrix<'_, f32>, GemmError> {
    NdTensorView::from_slice_with_strides([length, HEAD], &asked[from..], [3 * WIDTH, 1])
        .map_err(|_| GemmError::KSizeMismatch)
}

fn view(marks: &[f32], length: usize) -> Result<Matrix<'_, f32>, GemmError> {
    NdTensorView::try_from_data([length, length], marks).map_err(|_| GemmError::KSizeMismatch)
}

/// The mean of all rows, with length one.
fn mean(rows: &[f32]) -> Vec<f32> {
    let mut sum = vec![0.0f32; WIDTH];
    for row in rows.chunks_exact(WIDTH) {
        sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
    }
    crate::embedders::to_length_one(&mut sum);
    sum
}

impl Layer {
    fn read(given: &Given<'_>, by: &Multiplier, layer: usize, own: &[&Table<'_>]) -> Result<Self, Error> {
        let [query, key, value, out, wide, narrow] = own else { return Err(missing("a layer")) };
        let at = |name: &str| format!("encoder.layer.{layer}.{name}");
        let square = |table: &Table<'_>, name: &str| {
            let name = at(&format!("attention.self.{name}.bias"));
            Ok((given.scaled(table, [WIDTH, WIDTH])?, given.named(&name)?.reals(&[WIDTH])?))
        };
        let three = [square(query, "query")?, square(key, "key")?, square(value, "value")?];
        let one = |table: &Table<'_>, name: &str, shape: [usize; 2]| {
            let shift = given.named(&at(&format!("{name}.bias")))?.reals(&[shape[1]])?;
            Ok(Linear::new(by, shape, given.scaled(table, shape)?, shift))
        };
        Ok(Self {
            asked: Linear::beside(by, WIDTH, three),
            mixed: one(out, "attention.output.dense", [WIDTH, WIDTH])?,
            after_mixed: given.norm(&at("attention.output.LayerNorm"))?,
            widened: one(wide, "intermediate.dense", [WIDTH, MIDDLE])?,
            narrowed: one(narrow, "output.dense", [MIDDLE, WIDTH])?,
            after_narrowed: given.norm(&at("output.LayerNorm"))?,
        })
    }
}

impl Norm {
    /// Adds what came out to what went in, and brings every row to the same scale.
    fn add(&self, rows: &mut [f32], more: &[f32]) {
        rows.par_chunks_mut(WIDTH).zip(more.par_chunks(WIDTH)).for_each(|(row, more)| {
            row.iter_mut().zip(more).for_each(|(number, more)| *number += more);
            self.apply(row);
        });
    }

    fn apply(&self, row: &mut [f32]) {
        let count = row.len() as f32;
        let mean = Sum::new(row).dispatch() / count;
        let spread = SumSquareSub::new(row, mean).dispatch() / count;
        let scale = 1.0 / (spread + LEAST).sqrt();
        wide(|| {
            for ((number, by), shift) in row.iter_mut().zip(&self.scale).zip(&self.shift) {
                *number = (*number - mean) * scale * by + shift;
            }
        });
    }
}

/// The tables of the file.
struct Given<'a>(&'a [Table<'a>]);

impl Given<'_> {
    /// The table whose name ends so.
    fn named(&self, end: &str) -> Result<&Table<'_>, Error> {
        self.0
            .iter()
            .find(|table| table.name.strip_prefix("inner.").unwrap_or(table.name).ends_with(end))
            .ok_or_else(|| missing(end))
    }

    /// A matrix of small numbers with the scale of each column.
    fn scaled(&self, table: &Table<'_>, shape: [usize; 2]) -> Result<Scaled, Error> {
        let scale = format!("{}_scale", table.name.trim_end_matches("_q"));
        Ok((table.smalls(&shape)?, self.named(&scale)?.reals(&[1, shape[1]])?))
    }

    fn norm(&self, name: &str) -> Result<Norm, Error> {
        let read = |part: &str| self.named(&format!("{name}.{part}"))?.reals(&[WIDTH]);
        Ok(Norm { scale: read("weight")?, shift: read("bias")? })
    }

    fn places(&self) -> Result<Vec<f32>, Error> {
        let small = self.named("position_embeddings.weight_q")?.smalls(&[PLACES, WIDTH])?;
        let scales = self.named("position_embeddings.weight_scale")?.reals(&[PLACES, 1])?;
        let kinds = self.named("token_type_embeddings.weight")?.reals(&[2, WIDTH])?;
        let rows = small.chunks_exact(WIDTH).zip(scales);
        Ok(rows
            .flat_map(|(row, scale)| {
                row.iter().zip(&kinds).map(move |(small, kind)| f32::from(*small) * scale + kind)
            })
            .collect())
    }
}

fn missing(what: &str) -> Error {
    Error::Missing(what.to_owned())
}
