//! Vectors as small whole numbers: a coarse byte and a fine byte for each of their members, and one scale. The coarse bytes are
//! scanned; the fine ones make the scores of the best exact again, to about the precision of a 16-bit number.

/// What a coarse byte counts to.
const COARSE: f32 = 127.0;

/// Steps of the fine byte within one step of the coarse one.
const FINE: f32 = 254.0;

/// What a member of a query counts to: more than a byte, since there is but one of it.
const QUERY: f32 = 2_047.0;

/// Members that are summed side by side.
const LANES: usize = 16;

/// A vector as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Coded {
    pub coarse: Vec<i8>,
    pub fine: Vec<i8>,
    pub scale: f32,
}

/// A vector of length one, or none if it points nowhere.
pub fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if !length.is_finite() || length <= f64::EPSILON {
        return None;
    }
    Some(vector.iter().map(|x| (f64::from(*x) / length) as f32).collect())
}

/// Codes a vector of length one.
pub fn code(unit: &[f32]) -> Coded {
    let scale = largest(unit) / COARSE;
    let mut coded =
        Coded { coarse: Vec::with_capacity(unit.len()), fine: Vec::with_capacity(unit.len()), scale };
    for x in unit {
        let steps = if scale > 0.0 { x / scale } else { 0.0 };
        let coarse = steps.round().clamp(-COARSE, COARSE);
        let fine = ((steps - coarse) * FINE).round().clamp(-COARSE, COARSE);
        // Both are whole and within a byte by now.
        coded.coarse.push(coarse as i8);
        coded.fine.push(fine as i8);
    }
    coded
}

/// The signs of its members, one bit each: vectors that point the same way differ in few of them.
pub fn sketch(unit: &[f32]) -> Vec<u64> {
    let word = |members: &[f32]| members.iter().rev().fold(0, |word, x| word << 1 | u64::from(*x > 0.0));
    unit.chunks(64).map(word).collect()
}

/// In how many signs each of many sketches differs from one; they lie one after another.
#[inline(always)]
pub fn apart(one: &[u64], many: &[u64]) -> Vec<u16> {
    match one.len() {
        0 => Vec::new(),
        // As long as those of well-known models: the loop over one sketch is then no loop.
        6 => apart_all::<6>(one, many),
        12 => apart_all::<12>(one, many),
        16 => apart_all::<16>(one, many),
        24 => apart_all::<24>(one, many),
        words => {
            let differing = |other: &[u64]| one.iter().zip(other).map(|(a, b)| (a ^ b).count_ones() as u16).sum();
            many.chunks_exact(words).map(differing).collect()
        }
    }
}

#[inline(always)]
fn apart_all<const WORDS: usize>(one: &[u64], many: &[u64]) -> Vec<u16> {
    let Some(one) = one.first_chunk::<WORDS>() else { return Vec::new() };
    let many = many.as_chunks::<WORDS>().0;
    let mut distances = Vec::with_capacity(many.len());
    for other in many {
        let mut differing = 0;
        for word in 0..WORDS {
            differing += (one[word] ^ other[word]).count_ones();
        }
        distances.push(differing as u16);
    }
    distances
}

/// A query as numbers of four bits, one word of bits for each power of two: what is compared with the signs of others tells
/// more than its own signs do.
pub struct Planes {
    words: usize,
    bits: Vec<u64>,
}

/// Bits of a number, and the largest number of so many.
const BITS: usize = 4;
const LARGEST: f32 = 15.0;

impl Planes {
    pub fn new(unit: &[f32]) -> Self {
        let (words, top) = (unit.len().div_ceil(64), largest(unit));
        let mut bits = vec![0; BITS * words];
        for (at, x) in unit.iter().enumerate() {
            // From zero on, whatever its sign; half of the largest is nothing.
            let number = if top > 0.0 { ((x / top + 1.0) * LARGEST / 2.0).round() as u64 } else { 0 };
            for plane in 0..BITS {
                bits[plane * words + at / 64] |= (number >> plane & 1) << (at % 64);
            }
        }
        Self { words, bits }
    }

    /// How near it is to what has these signs; only to be compared with others.
    #[inline(always)]
    pub fn near(&self, sketch: &[u64]) -> i32 {
        match sketch.first_chunk::<6>() {
            Some(sketch) if self.words == 6 => self.near_to(sketch),
            Some(_) | None => self.near_to(sketch),
        }
    }

    #[inline(always)]
    fn near_to(&self, sketch: &[u64]) -> i32 {
        let mut sum = 0;
        for (plane, bits) in self.bits.chunks_exact(sketch.len()).enumerate() {
            let both: u32 = bits.iter().zip(sketch).map(|(a, b)| (a & b).count_ones()).sum();
            sum += (both as i32) << (plane + 1);
        }
        let held: u32 = sketch.iter().map(|word| word.count_ones()).sum();
        sum - LARGEST as i32 * held as i32
    }
}

/// A query, as it is compared with coarse bytes. Its scale is left out: it changes no order.
pub fn wanted(unit: &[f32]) -> Vec<i16> {
    let scale = largest(unit) / QUERY;
    let whole = |x: &f32| if scale > 0.0 { (x / scale).round() as i16 } else { 0 };
    unit.iter().map(whole).collect()
}

/// How near a query is to coarse bytes, in steps of both scales.
#[inline(always)]
pub fn near(wanted: &[i16], coarse: &[i8]) -> i32 {
    wanted.iter().zip(coarse).map(|(one, other)| i32::from(*one) * i32::from(*other)).sum()
}

/// How near a query is to a vector, from both of its bytes.
///
/// It is summed in lanes: in one sum each addition would have to wait for the one before it.
#[inline(always)]
pub fn exact(query: &[f32], coarse: &[i8], fine: &[i8], scale: f32) -> f32 {
    let mut sums = [0.0f32; LANES];
    let ((queries, query), (coarses, coarse), (fines, fine)) =
        (query.as_chunks::<LANES>(), coarse.as_chunks::<LANES>(), fine.as_chunks::<LANES>());
    let member = |q: f32, c: i8, f: i8| q * (f32::from(c) + f32::from(f) / FINE);
    for (q, (c, f)) in queries.iter().zip(coarses.iter().zip(fines)) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum += member(q[lane], c[lane], f[lane]);
        }
    }
    let rest: f32 = query.iter().zip(coarse.iter().zip(fine)).map(|(q, (c, f))| member(*q, *c, *f)).sum();
    (sums.iter().sum::<f32>() + rest) * scale
}

fn largest(vector: &[f32]) -> f32 {
    vector.iter().fold(0.0, |most, x| most.max(x.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_points_nowhere_has_no_direction() {
        assert_eq!(unit(&[0.0; 4]), None);
        assert_eq!(unit(&[f32::NAN, 1.0]), None);
        assert_eq!(unit(&[f32::INFINITY, 1.0]), None);
        assert_eq!(unit(&[3.0, 4.0]).unwrap(), [0.6, 0.8]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn planes_and_signs_make_the_product_of_a_query_and_signs(
            one in proptest::collection::vec(-1.0f32..1.0, 100),
            other in proptest::collection::vec(-1.0f32..1.0, 100),
        ) {
            let (Some(one), Some(other)) = (unit(&one), unit(&other)) else { return Ok(()) };
            let step = 2.0 * largest(&one) / LARGEST;
            let held: f32 = one.iter().zip(&other).filter(|(_, sign)| **sign > 0.0).map(|(x, _)| x).sum();
            let found = Planes::new(&one).near(&sketch(&other)) as f32 * step / 2.0;
            // Half a step of rounding for each member.
            prop_assert!((found - held).abs() <= 50.5 * step, "{found} {held}");
        }

        #[test]
        fn sketches_of_any_length_differ_in_as_many_signs(
            words in 1usize..30,
            seed in any::<u64>(),
        ) {
            let word = |n: usize| seed.wrapping_mul(n as u64 * 2 + 1).rotate_left(n as u32);
            let all: Vec<u64> = (0..words * 6).map(word).collect();
            let (one, many) = all.split_at(words);
            let exact: Vec<u16> = many
                .chunks(words)
                .map(|other| one.iter().zip(other).map(|(a, b)| (a ^ b).count_ones() as u16).sum())
                .collect();
            prop_assert_eq!(apart(one, many), exact);
        }

        #[test]
        fn two_bytes_are_as_good_as_the_number(
            one in proptest::collection::vec(-1.0f32..1.0, 64),
            other in proptest::collection::vec(-1.0f32..1.0, 64),
        ) {
            let (Some(one), Some(other)) = (unit(&one), unit(&other)) else { return Ok(()) };
            let coded = code(&other);
            let real: f32 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
            prop_assert!((exact(&one, &coded.coarse, &coded.fine, coded.scale) - real).abs() < 1e-4);
            let steps = largest(&one) / QUERY;
            let coarse = near(&wanted(&one), &coded.coarse) as f32 * coded.scale * steps;
            prop_assert!((coarse - real).abs() < 0.02);
        }
    }
}
