//! Rows of numbers times a matrix of small whole ones.

use rten_gemm::{GemmError, GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_tensor::NdTensorView;

use super::rows::{Columns, Span, Steps, round};

/// Rows that are multiplied at once: what comes out, and the matrix, stay in the cache of a core.
pub const BLOCK: usize = 128;

/// Multiplies with the best instructions that this machine has.
pub struct Multiplier {
    gemm: GemmExecutor<u8, i8, i32>,
    /// The largest whole number that a number is rounded to. Old machines add products in sixteen bits, where larger ones
    /// would not fit.
    most: f32,
}

impl Default for Multiplier {
    fn default() -> Self {
        let gemm = GemmExecutor::new();
        let most = if gemm.may_saturate() { 127.0 } else { 255.0 };
        Self { gemm, most }
    }
}

#[cfg(test)]
impl Multiplier {
    /// The bits that are left of a number.
    pub fn bits(&self) -> u32 {
        if self.most < 255.0 { 7 } else { 8 }
    }
}

/// Rows as small whole numbers.
pub struct Rounded {
    width: usize,
    small: Vec<u8>,
    steps: Vec<Steps>,
}

impl Rounded {
    /// Rows of this width.
    pub fn new(width: usize) -> Self {
        Self { width, small: Vec::new(), steps: Vec::new() }
    }

    /// Makes room for so many rows.
    pub fn resize(&mut self, rows: usize) {
        self.small.resize(rows * self.width, 0);
        self.steps.resize(rows, Steps { scale: 1.0, zero: 0 });
    }

    pub fn len(&self) -> usize {
        self.steps.len()
    }

    pub fn set(&mut self, by: &Multiplier, at: usize, row: &[f32], span: Span) {
        let small = &mut self.small[at * self.width..][..self.width];
        self.steps[at] = round(row, span, by.most, small);
    }
}

/// The numbers of a matrix, row by row, and the scale of each of its columns.
pub type Scaled = (Vec<i8>, Vec<f32>);

/// A matrix, with the scale of each of its columns and what is added to it.
pub struct Linear {
    inputs: usize,
    matrix: PackedBMatrix<i8>,
    pub columns: Columns,
}

impl Linear {
    /// `shape` is the numbers that go in and those that come out.
    pub fn new(by: &Multiplier, shape: [usize; 2], scaled: Scaled, shift: Vec<f32>) -> Self {
        let (small, scales) = scaled;
        let matrix = by.gemm.prepack_b(NdTensorView::from_data(shape, small.as_slice()));
        let mut sums = vec![0; shape[1]];
        for row in small.chunks_exact(shape[1]) {
            sums.iter_mut().zip(row).for_each(|(sum, number)| *sum += i32::from(*number));
        }
        Self { inputs: shape[0], matrix, columns: Columns { sums, scales, shift } }
    }

    /// Square matrices side by side: one multiplication instead of three.
    pub fn beside(by: &Multiplier, width: usize, three: [(Scaled, Vec<f32>); 3]) -> Self {
        let mut small = Vec::with_capacity(width * width * 3);
        for row in 0..width {
            for ((one, _), _) in &three {
                small.extend_from_slice(&one[row * width..(row + 1) * width]);
            }
        }
        let scales = three.iter().flat_map(|((_, scales), _)| scales).copied().collect();
        let shift = three.iter().flat_map(|(_, shift)| shift).copied().collect();
        Self::new(by, [width, width * 3], (small, scales), shift)
    }

    /// Multiplies at most a block of rows from `start` on, and gives each row of products away with its number and with how
    /// it was rounded.
    pub fn apply(
        &self,
        by: &Multiplier,
        (rounded, start): (&Rounded, usize),
        products: &mut Vec<i32>,
        mut give: impl FnMut(usize, &[i32], Steps),
    ) -> Result<(), GemmError> {
        let outputs = self.columns.scales.len();
        let count = (rounded.len() - start).min(BLOCK);
        if products.len() < count * outputs {
            products.resize(count * outputs, 0);
        }
        let small = &rounded.small[start * self.inputs..][..count * self.inputs];
        let left = NdTensorView::try_from_data([count, self.inputs], small);
        let left = GemmInputA::Unpacked(left.map_err(|_| GemmError::KSizeMismatch)?);
        let right = GemmInputB::Packed(&self.matrix);
        by.gemm.gemm(&mut products[..count * outputs], left, right, GemmOptions::default())?;
        for (at, row) in products.chunks_exact(outputs).take(count).enumerate() {
            give(start + at, row, rounded.steps[start + at]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::span;
    use super::*;
    use proptest::prelude::*;

    /// What comes out for rows of this width.
    fn product(linear: &Linear, width: usize, rows: &[f32]) -> Vec<f32> {
        let (by, outputs) = (Multiplier::default(), linear.columns.scales.len());
        let mut rounded = Rounded::new(width);
        rounded.resize(rows.len() / width);
        for (at, row) in rows.chunks_exact(width).enumerate() {
            rounded.set(&by, at, row, span(row));
        }
        let (mut products, mut out) = (Vec::new(), vec![0.0; rounded.len() * outputs]);
        for start in (0..rounded.len()).step_by(BLOCK) {
            let give = |at: usize, products: &[i32], steps| {
                linear.columns.unround(products, steps, &mut out[at * outputs..][..outputs]);
            };
            linear.apply(&by, (&rounded, start), &mut products, give).unwrap();
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_product_is_right_but_for_rounding(
            rows in proptest::collection::vec(-3.0f32..2.0, 32 * 140..=32 * 140),
            small in proptest::collection::vec(-127i8..=127, 32 * 9..=32 * 9),
        ) {
            let by = Multiplier::default();
            let linear = Linear::new(&by, [32, 9], (small.clone(), vec![0.01; 9]), vec![0.5; 9]);
            for (at, number) in product(&linear, 32, &rows).iter().enumerate() {
                let (row, column) = (at / 9, at % 9);
                let exact: f32 = (0..32).map(|k| rows[row * 32 + k] * f32::from(small[k * 9 + column]) * 0.01).sum();
                // Half a step of rounding for each of the 32 products.
                let allowed: f32 = (0..32).map(|k| f32::from(small[k * 9 + column]).abs() * 0.01 * 6.0 / by.most * 0.51).sum();
                prop_assert!((number - 0.5 - exact).abs() <= allowed + 1e-3, "{number} {exact}");
            }
        }
    }

    #[test]
    fn rows_of_zeros_stay_zeros() {
        let by = Multiplier::default();
        let linear = Linear::new(&by, [4, 2], (vec![9; 8], vec![1.0; 2]), vec![0.0; 2]);
        assert_eq!(product(&linear, 4, &[0.0; 8]), [0.0; 4]);
    }
}
