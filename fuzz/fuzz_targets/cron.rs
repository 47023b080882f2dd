//! Any text as a cron expression in any zone: refused, or its times grow.
#![no_main]

use libfuzzer_sys::fuzz_target;
use orchestr8_workflows::Schedule;
use serde_json::json;

fuzz_target!(|input: (&str, u8, i64)| {
    let (cron, zone, after_ms) = input;
    let zones = ["UTC", "Europe/Zurich", "America/New_York", "Pacific/Apia", "Asia/Kathmandu"];
    let zone = zones[usize::from(zone) % zones.len()];
    let spec = json!({"workflowId": "w", "cron": cron, "timeZone": zone});
    let Ok(schedule) = serde_json::from_value::<Schedule>(spec) else { return };
    if schedule.check().is_err() {
        return;
    }
    let mut at_ms = after_ms;
    for _ in 0..3 {
        let Ok(Some(next_ms)) = schedule.next_after(at_ms) else { return };
        assert!(next_ms > at_ms, "{cron} in {zone}: {next_ms} is not after {at_ms}");
        at_ms = next_ms;
    }
});
