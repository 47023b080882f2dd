//! Rows of numbers times a matrix of small whole ones.

use rayon::prelude::*;
use rten_gemm::{GemmError, GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_simd::{Isa, SimdOp};
use rten_tensor::NdTensorView;
use rten_vecmath::MinMax;

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

/// The numbers of a matrix, row by row, and the scale of each of its columns.
pub type Scaled = (Vec<i8>, Vec<f32>);

/// A matrix, with the scale of each of its columns and what is added to it.
pub struct Linear {
    inputs: usize,
    matrix: PackedBMatrix<i8>,
    /// The sum of each column: so much is in a product for every step that zero is away from zero.
    sums: Vec<i32>,
    scales: Vec<f32>,
    shift: Vec<f32>,
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
        Self { inputs: shape[0], matrix, sums, scales, shift }
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

    /// What comes out for each row.
    pub fn apply(&self, by: &Multiplier, rows: &[f32]) -> Result<Vec<f32>, GemmError> {
        let (inputs, outputs) = (self.inputs, self.scales.len());
        let count = rows.len() / inputs;
        let mut small = vec![0u8; rows.len()];
        let rounded: Vec<(f32, i32)> = rows
            .par_chunks(inputs)
            .zip(small.par_chunks_mut(inputs))
            .map(|(row, small)| round(row, small, by.most))
            .collect();
        let mut products = vec![0i32; count * outputs];
        let left = NdTensorView::try_from_data([count, inputs], small.as_slice());
        let left = GemmInputA::Unpacked(left.map_err(|_| GemmError::KSizeMismatch)?);
        by.gemm.gemm(&mut products, left, GemmInputB::Packed(&self.matrix), GemmOptions::default())?;
        let mut out = vec![0.0; count * outputs];
        let all = out.par_chunks_mut(outputs).zip(products.par_chunks(outputs)).zip(rounded);
        all.for_each(|((out, products), (scale, zero))| self.unround(out, products, scale, zero));
        Ok(out)
    }

    fn unround(&self, out: &mut [f32], products: &[i32], scale: f32, zero: i32) {
        wide(|| {
            let columns = self.scales.iter().zip(&self.shift).zip(&self.sums);
            for ((out, product), ((column, shift), sum)) in out.iter_mut().zip(products).zip(columns) {
                *out = (product - zero * sum) as f32 * (scale * column) + shift;
            }
        });
    }
}

/// A row as whole numbers from zero on: what one of them stands for, and which of them is zero.
fn round(row: &[f32], small: &mut [u8], most: f32) -> (f32, i32) {
    let (low, high) = MinMax::new(row).dispatch();
    let (low, high) = (low.min(0.0), high.max(0.0));
    let scale = if high > low { (high - low) / most } else { 1.0 };
    let (by, zero, top) = (1.0 / scale, (-low / scale).round(), most as i32);
    wide(|| {
        for (small, number) in small.iter_mut().zip(row) {
            // Half is added, since whatever follows the point is cut off.
            *small = ((number * by + zero + 0.5) as i32).clamp(0, top) as u8;
        }
    });
    (scale, zero as i32)
}

/// Runs loops with the widest instructions of this machine: the compiler makes one version for each kind.
pub fn wide<R>(work: impl FnOnce() -> R) -> R {
    struct Wide<F>(F);

    impl<R, F: FnOnce() -> R> SimdOp for Wide<F> {
        type Output = R;

        #[inline(always)]
        fn eval<I: Isa>(self, _isa: I) -> R {
            (self.0)()
        }
    }

    Wide(work).dispatch()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_product_is_right_but_for_rounding(
            rows in proptest::collection::vec(-3.0f32..2.0, 32 * 40..=32 * 40),
            small in proptest::collection::vec(-127i8..=127, 32 * 8..=32 * 8),
        ) {
            let by = Multiplier::default();
            let linear = Linear::new(&by, [32, 8], (small.clone(), vec![0.01; 8]), vec![0.5; 8]);
            let found = linear.apply(&by, &rows).unwrap();
            for (at, number) in found.iter().enumerate() {
                let (row, column) = (at / 8, at % 8);
                let exact: f32 = (0..32).map(|k| rows[row * 32 + k] * f32::from(small[k * 8 + column]) * 0.01).sum();
                // Half a step of rounding for each of the 32 products.
                let allowed: f32 = (0..32).map(|k| f32::from(small[k * 8 + column]).abs() * 0.01 * 6.0 / by.most * 0.51).sum();
                prop_assert!((number - 0.5 - exact).abs() <= allowed + 1e-3, "{number} {exact}");
            }
        }
    }

    #[test]
    fn rows_of_zeros_stay_zeros() {
        let by = Multiplier::default();
        let linear = Linear::new(&by, [4, 2], (vec![9; 8], vec![1.0; 2]), vec![0.0; 2]);
        assert_eq!(linear.apply(&by, &[0.0; 8]).unwrap(), [0.0; 4]);
    }
}
