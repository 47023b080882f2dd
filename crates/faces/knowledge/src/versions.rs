//! Which versions we speak (KNO-10): those of the envelope, of payloads, and of each action.

use orchestr8_contract::Fault;

use crate::failure::Failure;

pub(crate) const ENVELOPES: [&str; 1] = ["2.2"];
pub(crate) const SCHEMAS: [&str; 1] = ["1.0"];

/// The version of an action that names none.
pub(crate) const FIRST: &str = "1.0.0";

/// Whether an action of this version does what the asked one does: the same major, and nothing newer.
pub(crate) fn check(action: &str, asked: &str, ours: &str) -> Result<(), Failure> {
    let served = match (parse(asked), parse(ours)) {
        (Some(asked), Some(ours)) => asked[0] == ours[0] && asked <= ours,
        (Some(_) | None, _) => false,
    };
    if served {
        return Ok(());
    }
    let message = format!("/action_version: this version of {action} is not supported; supported: {ours}");
    let fault = Fault::invalid(message)
        .with("errors", serde_json::json!([{"path": "/action_version", "message": "not supported"}]))
        .with("supported_action_versions", vec![ours]);
    Err(fault.with("hint", format!("send action_version {ours}")).into())
}

/// Three numbers. Pre-releases are versions nobody promised.
fn parse(text: &str) -> Option<[u64; 3]> {
    let mut parts = text.split('.').map(|part| {
        let plain = part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
        part.parse::<u64>().ok().filter(|_| plain)
    });
    let version = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kno_10_the_same_major_and_nothing_newer() {
        for (asked, ours, served) in [
            ("1.0.0", "1.0.0", true),
            ("1.0.0", "1.2.3", true),
            ("1.2.4", "1.2.3", false),
            ("2.0.0", "1.2.3", false),
            ("0.9.0", "1.2.3", false),
            ("1.0", "1.0.0", false),
            ("1.0.0-rc1", "1.0.0", false),
            ("01.0.0", "1.0.0", false),
            ("", "1.0.0", false),
        ] {
            assert_eq!(check("a", asked, ours).is_ok(), served, "{asked} of {ours}");
        }
    }
}
