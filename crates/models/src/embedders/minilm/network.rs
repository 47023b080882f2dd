//! The network of all-MiniLM-L6-v2: six layers of attention over 384 numbers a piece, and the mean of what comes out.
//!
//! Weights stay the small whole numbers they are in the file, and so are multiplied: what goes into a matrix is rounded to as
//! many bits, row by row. The texts of a batch lie one after another, so nothing is computed for padding.

use std::ops::Range;

use rten_gemm::{GemmError, GemmExecutor, GemmInputA, GemmInputB, GemmOptions};
use rten_simd::SimdOp;
use rten_tensor::{Matrix, NdTensorView};
use rten_vecmath::Softmax;

use super::file::{self, Error, Table};
use super::matrix::{BLOCK, Linear, Multiplier, Rounded, Scaled};
use super::rows::{Norm, Span, span};

/// Numbers of a vector, and of the wide middle of a layer.
pub const WIDTH: usize = 384;
const MIDDLE: usize = 4 * WIDTH;
const LAYERS: usize = 6;
const HEADS: usize = 12;
const HEAD: usize = WIDTH / HEADS;

/// Pieces in the vocabulary, and places a text may have.
const VOCABULARY: usize = 30_522;
const PLACES: usize = 512;

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

/// Room to work in, kept from batch to batch: to ask the system for it each time takes as long as a quarter of the work.
pub struct Room {
    /// What the pieces are, as numbers and rounded.
    rows: Vec<f32>,
    rounded: Rounded,
    asked: Vec<f32>,
    mixed: Vec<f32>,
    /// A block of the wide middle of a layer, and one row of it.
    middle: Rounded,
    line: Vec<f32>,
    spans: Vec<Span>,
    products: Vec<i32>,
    marks: Vec<f32>,
    said: Vec<f32>,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            products: Vec::new(),
            rows: Vec::new(),
            rounded: Rounded::new(WIDTH),
            asked: Vec::new(),
            mixed: Vec::new(),
            middle: Rounded::new(MIDDLE),
            line: vec![0.0; MIDDLE],
            spans: Vec::new(),
            marks: Vec::new(),
            said: Vec::new(),
        }
    }
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
    pub fn vectors(&self, texts: &[Vec<u32>], room: &mut Room) -> Result<Vec<Vec<f32>>, GemmError> {
        let mut spans: Vec<Range<usize>> = Vec::with_capacity(texts.len());
        for text in texts {
            let start = spans.last().map_or(0, |span| span.end);
            spans.push(start..start + text.len());
        }
        // Made anew each time, which costs next to nothing: they cannot be handed from thread to thread.
        let (by, plain) = (Multiplier::default(), GemmExecutor::new());
        self.first(texts, &by, room);
        for layer in &self.layers {
            layer.attend((&by, &plain), &spans, room)?;
            layer.settle(&by, room)?;
            layer.think(&by, room)?;
        }
        Ok(spans.iter().map(|span| mean(&room.rows[span.start * WIDTH..span.end * WIDTH])).collect())
    }

    /// What the pieces are before they have looked at each other.
    fn first(&self, texts: &[Vec<u32>], by: &Multiplier, room: &mut Room) {
        let pieces = texts.iter().flat_map(|text| text.iter().enumerate());
        let count = texts.iter().map(Vec::len).sum::<usize>();
        room.rows.resize(count * WIDTH, 0.0);
        room.rounded.resize(count);
        for (at, (row, (place, piece))) in room.rows.chunks_exact_mut(WIDTH).zip(pieces).enumerate() {
            let piece = usize::try_from(*piece).unwrap_or(0).min(VOCABULARY - 1);
            let (scale, word) = (self.word_scales[piece], &self.words[piece * WIDTH..][..WIDTH]);
            row.iter_mut().zip(word).for_each(|(number, word)| *number = f32::from(*word) * scale);
            let place = &self.places[place.min(PLACES - 1) * WIDTH..][..WIDTH];
            let span = self.norm.add(row, place);
            room.rounded.set(by, at, row, span);
        }
    }
}

impl Layer {
    /// Each piece of a text takes from the others what it asks for.
    fn attend(
        &self,
        (by, plain): (&Multiplier, &GemmExecutor),
        spans: &[Range<usize>],
        room: &mut Room,
    ) -> Result<(), GemmError> {
        let count = room.rounded.len();
        room.asked.resize(count * 3 * WIDTH, 0.0);
        room.mixed.resize(count * WIDTH, 0.0);
        let Room { rounded, asked, products, .. } = &mut *room;
        for start in (0..count).step_by(BLOCK) {
            self.asked.apply(by, (rounded, start), products, |at, products, steps| {
                self.asked.columns.unround(products, steps, &mut asked[at * 3 * WIDTH..][..3 * WIDTH]);
            })?;
        }
        for span in spans {
            let asked = &room.asked[span.start * 3 * WIDTH..span.end * 3 * WIDTH];
            let mixed = &mut room.mixed[span.start * WIDTH..span.end * WIDTH];
            attend_one(plain, asked, mixed, (&mut room.marks, &mut room.said))?;
        }
        for (at, row) in room.mixed.chunks_exact(WIDTH).enumerate() {
            room.rounded.set(by, at, row, span(row));
        }
        Ok(())
    }

    /// What a piece took is added to what it is.
    fn settle(&self, by: &Multiplier, room: &mut Room) -> Result<(), GemmError> {
        let Room { rounded, rows, line, spans, products, .. } = room;
        let line = &mut line[..WIDTH];
        for start in (0..rounded.len()).step_by(BLOCK) {
            spans.clear();
            self.mixed.apply(by, (rounded, start), products, |at, products, steps| {
                self.mixed.columns.unround(products, steps, line);
                spans.push(self.after_mixed.add(&mut rows[at * WIDTH..][..WIDTH], line));
            })?;
            for (at, span) in (start..).zip(&*spans) {
                rounded.set(by, at, &rows[at * WIDTH..][..WIDTH], *span);
            }
        }
        Ok(())
    }

    /// Each piece by itself, through the wide middle of the layer.
    fn think(&self, by: &Multiplier, room: &mut Room) -> Result<(), GemmError> {
        let Room { rounded, rows, line, middle, products, .. } = room;
        for start in (0..rounded.len()).step_by(BLOCK) {
            middle.resize((rounded.len() - start).min(BLOCK));
            self.widened.apply(by, (rounded, start), products, |at, products, steps| {
                let span = self.widened.columns.unround_bent(products, steps, line);
                middle.set(by, at - start, line, span);
            })?;
            self.narrowed.apply(by, (middle, 0), products, |at, products, steps| {
                let (line, row) = (&mut line[..WIDTH], &mut rows[(start + at) * WIDTH..][..WIDTH]);
                self.narrowed.columns.unround(products, steps, line);
                let span = self.after_narrowed.add(row, line);
                rounded.set(by, start + at, row, span);
            })?;
        }
        Ok(())
    }
}

fn attend_one(
    plain: &GemmExecutor,
    asked: &[f32],
    mixed: &mut [f32],
    (marks, said): (&mut Vec<f32>, &mut Vec<f32>),
) -> Result<(), GemmError> {
    let length = mixed.len() / WIDTH;
    marks.resize(length * length, 0.0);
    said.resize(length * HEAD, 0.0);
    for head in 0..HEADS {
        let [question, offer, word] = [0, 1, 2].map(|which| part(asked, length, which * WIDTH + head * HEAD));
        let alpha = 1.0 / (HEAD as f32).sqrt();
        let options = GemmOptions { alpha, ..GemmOptions::default() };
        let offers = GemmInputB::Unpacked(offer?.transposed());
        plain.gemm(marks, GemmInputA::Unpacked(question?), offers, options)?;
        for row in marks.chunks_exact_mut(length) {
            Softmax::new_mut(row).dispatch();
        }
        let marked = view(marks, length)?;
        let words = GemmInputB::Unpacked(word?);
        plain.gemm(said, GemmInputA::Unpacked(marked), words, GemmOptions::default())?;
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
