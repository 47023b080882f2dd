//! Times as definitions and expressions give them.

use jiff::{Span, SpanRelativeTo, Timestamp, Unit};
use orchestr8_contract::Fault;
use serde_json::Value;

use super::limits;

/// Milliseconds of a wait: a number of them, or an ISO 8601 duration such as `PT15M` or `P1DT12H`. A day has 24 hours here,
/// a week seven days; months and years have no fixed length and are refused.
pub fn duration_ms(value: &Value) -> Result<u64, Fault> {
    let ms = match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => iso_ms(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    ms.filter(|ms| *ms <= limits::DURATION_MS).ok_or_else(|| {
        Fault::invalid(format!(
            "a wait needs milliseconds or an ISO 8601 duration such as PT15M, ten years at most, and gets {value}"
        ))
    })
}

/// Milliseconds since 1970 of a moment such as `2027-01-31T08:00:00Z`, or of a number that is that already.
pub fn moment_ms(value: &Value) -> Result<i64, Fault> {
    let moment = match value {
        Value::String(text) => text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond),
        Value::Number(number) => number.as_i64(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    moment.ok_or_else(|| {
        Fault::invalid(format!("a moment needs a time zone, such as 2027-01-31T08:00:00Z, and gets {value}"))
    })
}

fn iso_ms(text: &str) -> Option<u64> {
    // The parser also takes words such as `5 minutes`; definitions are written in one way.
    if !text.starts_with('P') {
        return None;
    }
    let span: Span = text.parse().ok()?;
    if span.get_years() != 0 || span.get_months() != 0 {
        return None;
    }
    let ms = span.total((Unit::Millisecond, SpanRelativeTo::days_are_24_hours())).ok()?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (0.0..=limits::DURATION_MS as f64).contains(&ms).then_some(ms as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn durations_are_milliseconds_or_iso() {
        for (value, ms) in [
            (json!(0), 0),
            (json!(1500), 1500),
            (json!("PT15M"), 900_000),
            (json!("PT0.5S"), 500),
            (json!("P1DT12H"), 129_600_000),
            (json!("P1W"), 604_800_000),
        ] {
            assert_eq!(duration_ms(&value).unwrap(), ms, "{value}");
        }
        for value in [
            json!(-1),
            json!(1.5),
            json!("15 minutes"),
            json!("P1M"),
            json!("-PT1S"),
            json!("P20000D"),
            json!(null),
        ] {
            assert!(duration_ms(&value).is_err(), "{value}");
        }
    }

    #[test]
    fn moments_have_a_zone() {
        assert_eq!(moment_ms(&json!("1970-01-01T00:00:01Z")).unwrap(), 1000);
        assert_eq!(moment_ms(&json!("1970-01-01T02:00:00+02:00")).unwrap(), 0);
        assert_eq!(moment_ms(&json!(5)).unwrap(), 5);
        assert!(moment_ms(&json!("1970-01-01T00:00:01")).is_err());
    }
}
