//! Times, durations and states as people read and write them.

use std::time::Duration;

use orchestr8_contract::Code;
use serde_json::Value;

use crate::failure::Failure;
use crate::terminal::visible_line;

/// A length of time: `12 ms`, `1.2 s`, `3 min 4 s`, `2 h 5 min`, `3 d 4 h`.
pub fn duration(ms: u64) -> String {
    let (s, min, h, d) = (ms / 1000, ms / 60_000, ms / 3_600_000, ms / 86_400_000);
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", s, ms % 1000 / 100),
        60_000..3_600_000 => format!("{min} min {} s", s % 60),
        3_600_000..86_400_000 => format!("{h} h {} min", min % 60),
        _ => format!("{d} d {} h", h % 24),
    }
}

/// Reads a length of time as people write it: `500ms`, `30s`, `5m`, `2h`, `1d`; a bare number is seconds.
pub fn read_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let at = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let unit_ms = match unit.trim() {
        "ms" => 1.0,
        "" | "s" => 1000.0,
        "m" | "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        other => return Err(format!("'{other}' is no unit of time; use ms, s, m, h or d")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("'{text}' is no length of time; write 30s or 5m"))?;
    Duration::try_from_secs_f64(number * unit_ms / 1000.0).map_err(|_| format!("'{text}' is too long"))
}

/// A moment of a record: ISO 8601, or milliseconds since 1970.
pub fn moment_ms(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.parse::<jiff::Timestamp>().ok().map(|moment| moment.as_millisecond()),
        Value::Number(number) => number.as_i64(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A moment in the time of this machine, to the second: `2026-01-31 14:05:09`.
pub fn moment(value: &Value) -> String {
    let local = |ms: i64| {
        let moment = jiff::Timestamp::from_millisecond(ms).ok()?;
        Some(moment.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string())
    };
    moment_ms(value).and_then(local).unwrap_or_else(|| String::from("-"))
}

/// A moment in the past as filters take it: ISO 8601 as it is, or a length of time ago.
pub fn since(text: &str, now_ms: i64) -> Result<String, Failure> {
    if text.parse::<jiff::Timestamp>().is_ok() || text.parse::<jiff::civil::Date>().is_ok() {
        return Ok(match text.parse::<jiff::Timestamp>() {
            Ok(_) => text.to_owned(),
            Err(_) => format!("{text}T00:00:00Z"),
        });
    }
    let ago = read_duration(text).map_err(|wrong| {
        Failure::new(Code::InvalidArgument, format!("'{text}' is no moment: {wrong}"))
            .hinting("write 2026-01-31, 2026-01-31T12:00:00Z, or how long ago: 2h")
    })?;
    let ms = now_ms.saturating_sub(i64::try_from(ago.as_millis()).unwrap_or(i64::MAX));
    Ok(orchestr8_kernel::ports::clock::iso(ms.max(0)))
}

/// Whether an execution of this status has come to its end.
pub fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled" | "compensated")
}

/// A text of a member, or nothing.
pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// The text in at most so many letters, with an ellipsis if something is missing.
pub fn cut(text: &str, letters: usize) -> String {
    let text = visible_line(text.lines().next().unwrap_or_default());
    if text.chars().count() <= letters {
        return text;
    }
    let kept: String = text.chars().take(letters.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lengths_of_time_are_written_as_people_say_them() {
        for (ms, said) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1000, "1.0 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min 0 s"),
            (3_725_000, "1 h 2 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(ms), said);
        }
    }

    #[test]
    fn lengths_of_time_are_read_and_nonsense_is_refused() {
        for (text, ms) in
            [("500ms", 500), ("30s", 30_000), ("1.5", 1500), (" 5m ", 300_000), ("2h", 7_200_000)]
        {
            assert_eq!(read_duration(text).unwrap().as_millis(), ms, "{text}");
        }
        for text in ["", "s", "5 parsecs", "-1s", "1e999d", "99999999999999999999d"] {
            assert!(read_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn moments_are_read_in_both_spellings() {
        assert_eq!(moment_ms(&json!("1970-01-01T00:00:01.500Z")), Some(1500));
        assert_eq!(moment_ms(&json!(1500)), Some(1500));
        assert_eq!(moment_ms(&json!(null)), None);
        assert_eq!(moment(&json!(null)), "-");
    }

    #[test]
    fn the_past_is_a_moment_a_day_or_a_length_of_time() {
        assert_eq!(since("2026-01-31T12:00:00Z", 0).unwrap(), "2026-01-31T12:00:00Z");
        assert_eq!(since("2026-01-31", 0).unwrap(), "2026-01-31T00:00:00Z");
        assert_eq!(since("2h", 7_200_500).unwrap(), "1970-01-01T00:00:00.500Z");
        assert_eq!(since("yesterday", 0).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn long_texts_are_cut_at_a_letter() {
        assert_eq!(cut("näher", 5), "näher");
        assert_eq!(cut("nähere", 5), "nähe…");
        assert_eq!(cut("one\ntwo", 9), "one");
    }
}
