//! What somebody probably meant.

/// The nearest of the known names, if it is near enough to be a slip of the hand.
pub fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const SHORTEST_ALLOWANCE: usize = 1;
    let lower = name.to_lowercase();
    let near = known.map(|known| (strsim::damerau_levenshtein(&lower, &known.to_lowercase()), known));
    let (distance, best) = near.min_by_key(|(distance, _)| *distance)?;
    let allowance = (name.chars().count() / 3).max(SHORTEST_ALLOWANCE);
    (distance <= allowance).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["defaultTimeoutMs", "maxPayloadBytes", "filter"];
        let meant = |name| suggestion(name, known.iter().copied());
        assert_eq!(meant("defaultTimoutMs"), Some("defaultTimeoutMs"));
        assert_eq!(meant("MAXPAYLOADBYTES"), Some("maxPayloadBytes"));
        assert_eq!(meant("fliter"), Some("filter"));
        assert_eq!(meant("colour"), None);
        assert_eq!(suggestion("x", [].into_iter()), None);
    }
}
