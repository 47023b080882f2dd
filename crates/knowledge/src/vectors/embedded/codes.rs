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

/// In how many signs two sketches differ.
#[inline(always)]
pub fn apart(one: &[u64], other: &[u64]) -> u16 {
    let differing: u32 = one.iter().zip(other).map(|(a, b)| (a ^ b).count_ones()).sum();
    differing as u16
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
