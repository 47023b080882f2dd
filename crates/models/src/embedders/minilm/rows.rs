//! What is done with one row of numbers at a time, by the widest instructions of this machine.

use rten_simd::ops::{BitOps, FloatOps, NarrowSaturate, NumOps, ToFloat};
use rten_simd::{Isa, Simd, SimdOp};

/// The least and the greatest number of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    pub low: f32,
    pub high: f32,
}

/// How a row was rounded to whole numbers: what a step of one stands for, and which number is zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steps {
    pub scale: f32,
    pub zero: i32,
}

/// What turns a row of products into numbers again, for each column: the sum of the matrix over it, which is in a product for
/// every step that zero is away from zero, its scale, and what is added.
#[derive(Debug, Default)]
pub struct Columns {
    pub sums: Vec<i32>,
    pub scales: Vec<f32>,
    pub shift: Vec<f32>,
}

/// What keeps the scale of a row that is all alike from being endless.
const LEAST: f32 = 1e-12;

/// Brings every row to the same scale.
#[derive(Debug)]
pub struct Norm {
    pub scale: Vec<f32>,
    pub shift: Vec<f32>,
}

impl Columns {
    /// A row of products as numbers.
    pub fn unround(&self, products: &[i32], steps: Steps, out: &mut [f32]) {
        Unround::<false> { columns: self, products, steps, out }.dispatch();
    }

    /// The same, each bent by GELU.
    pub fn unround_bent(&self, products: &[i32], steps: Steps, out: &mut [f32]) -> Span {
        Unround::<true> { columns: self, products, steps, out }.dispatch()
    }
}

impl Norm {
    /// Adds what came out to what went in, and brings the row to its scale.
    pub fn add(&self, row: &mut [f32], more: &[f32]) -> Span {
        Normed { norm: self, row, more }.dispatch()
    }
}

pub fn span(row: &[f32]) -> Span {
    let (low, high) = rten_vecmath::MinMax::new(row).dispatch();
    Span { low, high }
}

/// Rounds a row to whole numbers from zero to `most`.
pub fn round(row: &[f32], span: Span, most: f32, small: &mut [u8]) -> Steps {
    let (low, high) = (span.low.min(0.0), span.high.max(0.0));
    let scale = if high > low { (high - low) / most } else { 1.0 };
    let zero = (-low / scale).round();
    Round { row, small, by: 1.0 / scale, zero, most }.dispatch();
    Steps { scale, zero: zero as i32 }
}

struct Unround<'a, const BENT: bool> {
    columns: &'a Columns,
    products: &'a [i32],
    steps: Steps,
    out: &'a mut [f32],
}

impl<const BENT: bool> SimdOp for Unround<'_, BENT> {
    type Output = Span;

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) -> Span {
        let (whole, real) = (isa.i32(), isa.f32());
        let steps = (whole.splat(self.steps.zero), real.splat(self.steps.scale));
        let (mut low, mut high) = (real.splat(f32::INFINITY), real.splat(f32::NEG_INFINITY));
        let (count, lanes) = (self.out.len(), real.len());
        let Columns { sums, scales, shift } = self.columns;
        let (products, sums) = (&self.products[..count], &sums[..count]);
        let (scales, shift) = (&scales[..count], &shift[..count]);
        let mut at = 0;
        while at + lanes <= count {
            let (product, sum) = (whole.load(&products[at..]), whole.load(&sums[at..]));
            let column = (sum, real.load(&scales[at..]), real.load(&shift[at..]));
            let out = number::<I, BENT>(isa, product, steps, column);
            real.store(out, &mut self.out[at..]);
            (low, high) = (real.min(low, out), real.max(high, out));
            at += lanes;
        }
        let mut span =
            Span { low: fold(low, f32::INFINITY, f32::min), high: fold(high, f32::NEG_INFINITY, f32::max) };
        if at < count {
            let (product, sum) = (whole.load_pad(&products[at..]).0, whole.load_pad(&sums[at..]).0);
            let (column, shift) = (real.load_pad(&scales[at..]).0, real.load_pad(&shift[at..]).0);
            let rest = number::<I, BENT>(isa, product, steps, (sum, column, shift)).to_array();
            for (out, number) in self.out[at..].iter_mut().zip(rest) {
                *out = number;
                span = Span { low: span.low.min(number), high: span.high.max(number) };
            }
        }
        span
    }
}

/// A number of a row of products. Whatever is not built into the loop itself would be called instruction by instruction.
#[inline(always)]
fn number<I: Isa, const BENT: bool>(
    isa: I,
    product: I::I32,
    (zero, scale): (I::I32, I::F32),
    (sum, column, shift): (I::I32, I::F32, I::F32),
) -> I::F32 {
    let (whole, real) = (isa.i32(), isa.f32());
    let product = whole.to_float(whole.sub(product, whole.mul(zero, sum)));
    let number = real.mul_add(product, real.mul(scale, column), shift);
    if BENT { bend(isa, number) } else { number }
}

#[inline(always)]
fn fold<S: Simd<Elem = f32>>(lanes: S, first: f32, with: impl Fn(f32, f32) -> f32) -> f32 {
    lanes.to_array().into_iter().fold(first, with)
}

/// Half of `x` and of `x * erf(x / sqrt 2)`: a polynomial that is at most 0.0001 away from GELU. What comes of it is rounded
/// to eight bits next, which moves it a hundred times further.
#[inline(always)]
fn bend<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    const END: f32 = 4.2;
    const ODD: [f32; 9] = [
        0.797_669_1,
        -0.132_444_1,
        0.019_481_85,
        -0.002_172_908,
        0.000_179_670_2,
        -1.057_896_4e-5,
        4.144_858e-7,
        -9.591_032e-9,
        9.847_264e-11,
    ];
    let real = isa.f32();
    let within = real.clamp(x, real.splat(-END), real.splat(END));
    let square = real.mul(within, within);
    let mut sum = real.splat(ODD[8]);
    for factor in ODD[..8].iter().rev() {
        sum = real.mul_add(sum, square, real.splat(*factor));
    }
    let erf = real.mul(sum, within);
    // Further out it is one, with the sign of x.
    let far = real.ge(real.abs(x), real.splat(END));
    let erf = real.select(real.clamp(x, real.splat(-1.0), real.splat(1.0)), erf, far);
    let half = real.mul(x, real.splat(0.5));
    real.mul_add(half, erf, half)
}

struct Normed<'a> {
    norm: &'a Norm,
    row: &'a mut [f32],
    more: &'a [f32],
}

impl SimdOp for Normed<'_> {
    type Output = Span;

    /// Rows are as wide as the network, which every machine's instructions divide.
    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) -> Span {
        let real = isa.f32();
        let (count, lanes) = (self.row.len(), real.len());
        let (row, more) = (&mut self.row[..count], &self.more[..count]);
        let (by, shift) = (&self.norm.scale[..count], &self.norm.shift[..count]);
        let mut sum = real.zero();
        let mut at = 0;
        while at + lanes <= count {
            let number = real.add(real.load(&row[at..]), real.load(&more[at..]));
            real.store(number, &mut row[at..]);
            sum = real.add(sum, number);
            at += lanes;
        }
        let mean = real.splat(fold(sum, 0.0, |one, other| one + other) / count as f32);
        let mut squares = real.zero();
        at = 0;
        while at + lanes <= count {
            let away = real.sub(real.load(&row[at..]), mean);
            squares = real.mul_add(away, away, squares);
            at += lanes;
        }
        let spread = fold(squares, 0.0, |one, other| one + other) / count as f32;
        let scale = real.splat(1.0 / (spread + LEAST).sqrt());
        let (mut low, mut high) = (real.splat(f32::INFINITY), real.splat(f32::NEG_INFINITY));
        at = 0;
        while at + lanes <= count {
            let away = real.mul(real.sub(real.load(&row[at..]), mean), scale);
            let number = real.mul_add(away, real.load(&by[at..]), real.load(&shift[at..]));
            real.store(number, &mut row[at..]);
            (low, high) = (real.min(low, number), real.max(high, number));
            at += lanes;
        }
        Span { low: fold(low, f32::INFINITY, f32::min), high: fold(high, f32::NEG_INFINITY, f32::max) }
    }
}

struct Round<'a> {
    row: &'a [f32],
    small: &'a mut [u8],
    by: f32,
    zero: f32,
    most: f32,
}

impl SimdOp for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let real = isa.f32();
        let to = (real.splat(self.by), real.splat(self.zero), real.splat(self.most));
        let lanes = real.len();
        let wide = 4 * lanes;
        let mut rows = self.row.chunks_exact(wide);
        let mut smalls = self.small.chunks_exact_mut(wide);
        for (row, small) in rows.by_ref().zip(smalls.by_ref()) {
            let [a, b, c, d] = real.load_many::<4>(row);
            let (a, b) = (step(isa, a, to), step(isa, b, to));
            let (c, d) = (step(isa, c, to), step(isa, d, to));
            let (low, high) = (isa.i32().narrow_saturate(a, b), isa.i32().narrow_saturate(c, d));
            isa.u8().store(isa.i16().narrow_saturate(low, high), small);
        }
        for (number, small) in rows.remainder().iter().zip(smalls.into_remainder()) {
            *small = (number * self.by + self.zero).min(self.most).round_ties_even() as u8;
        }
    }
}

#[inline(always)]
fn step<I: Isa>(isa: I, x: I::F32, (by, zero, most): (I::F32, I::F32, I::F32)) -> I::I32 {
    let real = isa.f32();
    real.to_int_round(real.min(real.mul_add(x, by, zero), most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// GELU by the series of the error function, in twice the precision.
    fn gelu(x: f64) -> f64 {
        let z = x / std::f64::consts::SQRT_2;
        let (mut term, mut sum) = (z, z);
        for n in 1..200 {
            term *= -z * z / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        x / 2.0 * (1.0 + sum * std::f64::consts::FRAC_2_SQRT_PI)
    }

    #[test]
    fn bending_is_gelu_to_four_digits() {
        let products: Vec<i32> = (-5_500..=5_500).collect();
        let count = products.len();
        let columns = Columns { sums: vec![0; count], scales: vec![1.0; count], shift: vec![0.0; count] };
        let mut bent = vec![0.0; count];
        let span = columns.unround_bent(&products, Steps { scale: 1e-3, zero: 0 }, &mut bent);
        for (product, bent) in products.iter().zip(&bent) {
            let exact = gelu(f64::from(*product) * 1e-3);
            assert!((f64::from(*bent) - exact).abs() < 1e-4, "{product} {bent} {exact}");
        }
        assert_eq!(span, super::span(&bent), "the least and the greatest are found on the way");
        // Far out it is the number itself, or nothing.
        columns.unround_bent(&[90, -90], Steps { scale: 1.0, zero: 0 }, &mut bent[..2]);
        assert_eq!(bent[..2], [90.0, 0.0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn a_rounded_row_is_at_most_half_a_step_away(row in proptest::collection::vec(-9.0f32..5.0, 1..200)) {
            let mut small = vec![0; row.len()];
            let steps = round(&row, span(&row), 255.0, &mut small);
            for (number, small) in row.iter().zip(small) {
                let back = (f32::from(small) - steps.zero as f32) * steps.scale;
                prop_assert!((number - back).abs() <= steps.scale * 1.01, "{number} {back}");
            }
        }

        #[test]
        fn a_normed_row_has_its_scale(row in proptest::collection::vec(-9.0f32..5.0, 128..=128)) {
            let norm = Norm { scale: vec![2.0; 128], shift: vec![1.0; 128] };
            let mut found = row.clone();
            let span = norm.add(&mut found, &[0.5; 128]);
            let mean = row.iter().sum::<f32>() / 128.0;
            let spread = (row.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 128.0).sqrt();
            for (number, found) in row.iter().zip(&found) {
                prop_assert!(((number - mean) / spread * 2.0 + 1.0 - found).abs() < 1e-3);
            }
            prop_assert_eq!(span, super::span(&found));
        }
    }
}
