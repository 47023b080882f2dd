//! Texts and images of a conversation as HTML. Nothing of them is ever taken for HTML.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Kinds of images that browsers show and that cannot contain a program.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A text that stands for itself, also within an attribute.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            // These have no place in HTML.
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A text as people and models write it: code between fences and backticks is shown as code.
pub fn prose(out: &mut String, text: &str) {
    let mut code: Option<String> = None;
    let mut plain = String::new();
    for line in text.trim_end().split('\n') {
        let fence = line.trim_start().starts_with("```");
        code = match (code, fence) {
            (None, true) => {
                flush(out, &mut plain);
                Some(String::new())
            }
            (None, false) => {
                plain.push_str(line);
                plain.push('\n');
                None
            }
            (Some(code), true) => {
                block(out, &code);
                None
            }
            (Some(mut code), false) => {
                code.push_str(line);
                code.push('\n');
                Some(code)
            }
        };
    }
    // A fence that was never closed holds the rest.
    if let Some(code) = code {
        block(out, &code);
    }
    flush(out, &mut plain);
}

fn block(out: &mut String, code: &str) {
    out.push_str("<pre><code>");
    out.push_str(&escaped(code));
    out.push_str("</code></pre>\n");
}

fn flush(out: &mut String, plain: &mut String) {
    let text = std::mem::take(plain);
    let text = text.trim_matches('\n');
    if text.is_empty() {
        return;
    }
    out.push_str("<div class=\"text\" dir=\"auto\">");
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        inline(out, line);
    }
    out.push_str("</div>\n");
}

fn inline(out: &mut String, line: &str) {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('`') {
        let Some((code, after)) = after.split_once('`').filter(|(code, _)| !code.is_empty()) else { break };
        out.push_str(&escaped(before));
        out.push_str("<code>");
        out.push_str(&escaped(code));
        out.push_str("</code>");
        rest = after;
    }
    out.push_str(&escaped(rest));
}

/// An image within the page, if it is one that may be shown.
pub fn image(out: &mut String, data: &str, mime_type: &str) {
    match IMAGES.iter().find(|known| **known == mime_type).filter(|_| STANDARD.decode(data).is_ok()) {
        Some(kind) => out.push_str(&format!("<img alt=\"Image\" src=\"data:{kind};base64,{data}\">\n")),
        None => out.push_str(&format!(
            "<p class=\"note\">An image of the type {} that cannot be shown</p>\n",
            escaped(mime_type)
        )),
    }
}
