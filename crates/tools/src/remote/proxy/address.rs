//! The addresses of other servers' resources: `mcp://<server>/<its own address>`. They cannot collide, and say where they lead.

use std::borrow::Cow;

use orchestr8_contract::Content;
use orchestr8_contract::content::ResourceContents;

/// What the addresses of all of them begin with.
pub const SCHEME: &str = "mcp://";

/// Our address of a resource, or of a template, of a server.
pub fn ours(server: &str, uri: &str) -> String {
    format!("{SCHEME}{server}/{uri}")
}

/// The server of an address of ours, and its own address there.
pub fn theirs(uri: &str) -> Option<(&str, &str)> {
    uri.strip_prefix(SCHEME)?.split_once('/').filter(|(server, own)| !server.is_empty() && !own.is_empty())
}

/// What all addresses of a server begin with.
pub fn prefix(server: &str) -> String {
    ours(server, "")
}

/// Content of a server, with addresses that can be read here.
pub fn content(server: &str, mut block: Content) -> Content {
    match &mut block {
        Content::ResourceLink(link) => link.uri = ours(server, &link.uri),
        Content::Resource { resource, .. } => resource.uri = ours(server, &resource.uri),
        Content::Text { .. } | Content::Image { .. } | Content::Audio { .. } => {}
    }
    block
}

/// What a resource of a server holds. The address that was asked for stays as it was written.
pub fn contents(server: &str, asked: &str, contents: ResourceContents) -> ResourceContents {
    let uri: Cow<'_, str> = match theirs(asked) {
        Some((_, own)) if own == contents.uri => asked.into(),
        Some(_) | None => ours(server, &contents.uri).into(),
    };
    ResourceContents { uri: uri.into_owned(), ..contents }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_where_it_came_from() {
        for own in ["file:///a/b", "demo://x/{id}?q=1#f", "plain", "mcp://other/x://y", "{+path}"] {
            assert_eq!(theirs(&ours("a_B-1", own)), Some(("a_B-1", own)), "{own}");
        }
        for none in ["file:///a", "mcp://", "mcp://a", "mcp://a/", "mcp:///x"] {
            assert_eq!(theirs(none), None, "{none}");
        }
        assert!(ours("a", "x").starts_with(&prefix("a")) && !ours("ab", "x").starts_with(&prefix("a")));
    }
}
