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

/// In how many of its signs one sketch differs from another.
#[inline(always)]
fn apart(one: &[u64], other: &[u64]) -> u16 {
    let differing: u32 = one.iter().zip(other).map(|(a, b)| (a ^ b).count_ones()).sum();
    differing as u16
}

/// How many of some sketches are at each distance from one.
#[inline(always)]
pub fn counted(one: &[u64], some: impl Iterator<Item = usize>, sketches: &[u64]) -> Vec<usize> {
    let words = one.len();
    let mut counts = vec![0; words * 64 + 1];
    for slot in some {
        counts[usize::from(apart(one, &sketches[slot * words..(slot + 1) * words]))] += 1;
    }
    counts
}

/// The slots of all that are at most so far from one sketch. There is room for `about` as many.
#[inline(always)]
pub fn nearer(one: &[u64], sketches: &[u64], most: u16, about: usize) -> Vec<usize> {
    match one.len() {
        0 => Vec::new(),
        // As long as those of well-known models: the loop over one sketch is then no loop.
        6 => nearer_all::<6>(one, sketches, most, about),
        12 => nearer_all::<12>(one, sketches, most, about),
        16 => nearer_all::<16>(one, sketches, most, about),
        24 => nearer_all::<24>(one, sketches, most, about),
        words => {
            let all = sketches.chunks_exact(words).enumerate();
            all.filter(|(_, other)| apart(one, other) <= most).map(|(slot, _)| slot).collect()
        }
    }
}

/// Each slot is written down, and kept only if it is near: a processor cannot guess which are.
#[inline(always)]
fn nearer_all<const WORDS: usize>(one: &[u64], sketches: &[u64], most: u16, about: usize) -> Vec<usize> {
    const BLOCK: usize = 64;
    let Some(one) = one.first_chunk::<WORDS>() else { return Vec::new() };
    let (mut slots, mut next) = (vec![0; about + BLOCK], 0);
    for (number, block) in sketches.as_chunks::<WORDS>().0.chunks(BLOCK).enumerate() {
        if slots.len() < next + BLOCK {
            slots.resize(2 * slots.len(), 0);
        }
        let (room, mut kept) = (&mut slots[next..next + BLOCK], 0);
        for (at, other) in block.iter().enumerate() {
            room[kept.min(BLOCK - 1)] = number * BLOCK + at;
            kept += usize::from(apart(one, other) <= most);
        }
        next += kept;
    }
    slots.truncate(next);
    slots
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

    /// How near it is to what has the signs of each of these slots; only to be compared with each other.
    #[inline(always)]
    pub fn near(&self, sketches: &[u64], slots: &[usize]) -> Vec<(i32, usize)> {
        match self.words {
            6 => self.near_all::<6>(sketches, slots),
            12 => self.near_all::<12>(sketches, slots),
            16 => self.near_all::<16>(sketches, slots),
            24 => self.near_all::<24>(sketches, slots),
            words => {
                let near =
                    |slot: &usize| (lean(&self.bits, &sketches[slot * words..(slot + 1) * words]), *slot);
                slots.iter().map(near).collect()
            }
        }
    }

    #[inline(always)]
    fn near_all<const WORDS: usize>(&self, sketches: &[u64], slots: &[usize]) -> Vec<(i32, usize)> {
        let (sketches, planes) = (sketches.as_chunks::<WORDS>().0, self.bits.as_chunks::<WORDS>().0);
        let mut scored = Vec::with_capacity(slots.len());
        if let Some(planes) = planes.first_chunk::<BITS>() {
            for slot in slots {
                scored.push((lean(planes.as_flattened(), &sketches[*slot]), *slot));
            }
        }
        scored
    }
}

#[inline(always)]
fn lean(planes: &[u64], sketch: &[u64]) -> i32 {
    let mut sum = 0;
    for (plane, bits) in planes.chunks_exact(sketch.len()).enumerate() {
        let both: u32 = bits.iter().zip(sketch).map(|(a, b)| (a & b).count_ones()).sum();
        sum += (both as i32) << (plane + 1);
    }
    let held: u32 = sketch.iter().map(|word| word.count_ones()).sum();
    sum - LARGEST as i32 * held as i32
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

/// A vector as it was coded.
pub fn decoded(coarse: &[i8], fine: &[i8], scale: f32) -> Vec<f32> {
    let member = |(coarse, fine): (&i8, &i8)| (f32::from(*coarse) + f32::from(*fine) / FINE) * scale;
    coarse.iter().zip(fine).map(member).collect()
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
            let found = Planes::new(&one).near(&sketch(&other), &[0])[0].0 as f32 * step / 2.0;
            // Half a step of rounding for each member.
            prop_assert!((found - held).abs() <= 50.5 * step, "{found} {held}");
        }

        #[test]
        fn whatever_is_near_enough_is_found_in_sketches_of_any_length(
            words in 1usize..30,
            count in 1usize..200,
            seed in any::<u64>(),
        ) {
            let word = |n: usize| seed.wrapping_mul(n as u64 * 2 + 1).rotate_left(n as u32);
            let all: Vec<u64> = (0..words * (count + 1)).map(word).collect();
            let (one, many) = all.split_at(words);
            let apart: Vec<u16> = many.chunks(words).map(|other| apart(one, other)).collect();
            let most = apart[count / 2];
            let exact: Vec<usize> = (0..count).filter(|slot| apart[*slot] <= most).collect();
            let counts = counted(one, 0..count, many);
            prop_assert_eq!(counts[..=usize::from(most)].iter().sum::<usize>(), exact.len());
            prop_assert_eq!(nearer(one, many, most, 5), exact);
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
