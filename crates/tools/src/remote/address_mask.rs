//! Masks addresses in the reasons why a server is not there: user names, passwords and queries may be credentials.

/// What stands in the place of a masked part.
const MASKED: &str = "[REDACTED]";

/// The text with every address reduced to its scheme, host and path.
pub fn mask_addresses(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        masked.push_str(before);
        let end = after.find(|letter: char| letter.is_whitespace() || "\"'<>()`".contains(letter));
        let (address, behind) = after.split_at(end.unwrap_or(after.len()));
        mask(address, &mut masked);
        rest = behind;
    }
    masked.push_str(rest);
    masked
}

/// What follows the scheme of one address.
fn mask(address: &str, masked: &mut String) {
    let (place, query) = address.split_at(address.find(['?', '#']).unwrap_or(address.len()));
    let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    match authority.rsplit_once('@') {
        Some((_, host)) => [MASKED, "@", host].iter().for_each(|part| masked.push_str(part)),
        None => masked.push_str(authority),
    }
    masked.push_str(path);
    if !query.is_empty() {
        masked.push('?');
        masked.push_str(MASKED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_queries_of_addresses_are_masked_and_nothing_else() {
        for (text, expected) in [
            ("it ended with 1", "it ended with 1"),
            ("no answer from https://up.example/mcp", "no answer from https://up.example/mcp"),
            (
                "error sending request for url (https://ada:pa@ss@up.example:1/mcp?key=k#f): refused",
                "error sending request for url (https://[REDACTED]@up.example:1/mcp?[REDACTED]): refused",
            ),
            ("http://a?x \"http://b@c\" ://", "http://a?[REDACTED] \"http://[REDACTED]@c\" ://"),
        ] {
            assert_eq!(mask_addresses(text), expected);
        }
    }
}
