//! A page as it looks, and that nothing of a conversation gets out of its place in it.

use std::collections::BTreeSet;

use orchestr8_models::{Thinking, User};
use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::record::{Entry, Stats};

fn header(name: &str, leaf: Option<Place>) -> Header {
    Header {
        owner: None,
        shared: Default::default(),
        name: Some(name.into()),
        cwd: "/work".into(),
        provider: "offline".into(),
        model: "echo".into(),
        thinking: Thinking::Off,
        auto_compaction: true,
        auto_retry: true,
        system: None,
        tools: None,
        parent: None,
        file: None,
        leaf,
        next: 0,
        messages: 0,
        stats: Stats::default(),
    }
}

fn node(parent: Option<Place>, label: Option<&str>, body: Body) -> Node {
    Node { label: label.map(str::to_owned), entry: Entry { parent, at_ms: 1_767_225_600_000, body } }
}

fn said(message: Message) -> Body {
    Body::Message { message }
}

fn answer(content: Vec<Block>) -> Body {
    said(Message::Assistant(Assistant {
        content,
        provider: "offline".into(),
        model: "echo".into(),
        usage: Usage { input: 1200, output: 34, cache_read: 5, cache_write: 0, cost: 0.25 },
        stop_reason: StopReason::Stop,
        timestamp: 1,
        error_message: None,
    }))
}

/// Every kind of entry and block, with the same texts everywhere.
fn everything(text: &str, mime_type: &str, data: &str) -> Tree {
    let own = || text.to_owned();
    let arguments = Map::from_iter([(own(), json!([text]))]);
    let image = Block::Image { data: data.to_owned(), mime_type: mime_type.to_owned() };
    let call = Block::ToolCall { id: own(), name: own(), arguments };
    let thought = Block::Thinking { thinking: own(), signature: None };
    let result = ToolResult {
        tool_call_id: own(),
        tool_name: own(),
        content: vec![Block::text(text), image.clone()],
        is_error: true,
        timestamp: 1,
    };
    let bash = BashExecution {
        command: own(),
        output: own(),
        exit_code: Some(1),
        cancelled: false,
        truncated: true,
        timestamp: 1,
        exclude_from_context: true,
    };
    let bodies = [
        said(Message::User(User { content: vec![Block::text(text), image], timestamp: 1 })),
        answer(vec![thought, Block::text(text), call]),
        said(Message::ToolResult(result)),
        said(Message::BashExecution(bash)),
        Body::ModelChange { provider: own(), model_id: own() },
        Body::ThinkingLevelChange { thinking_level: Thinking::High },
        Body::Compaction { summary: own(), first_kept: 0, tokens_before: 1 },
        Body::BranchSummary { summary: own(), from: 0 },
    ];
    let mut tree = Tree::default();
    for body in bodies {
        let parent = tree.next().checked_sub(1);
        tree.push(node(parent, Some(text), body));
    }
    tree
}

fn render(name: &str, tree: &Tree) -> String {
    let header = header(name, tree.next().checked_sub(2));
    page(&About { id: "s", created_ms: 1_767_225_600_000, header: &header, tree }).unwrap()
}

/// Everything between `<` and `>` after the head.
fn tags(page: &str) -> Vec<&str> {
    let body = page.split_once("<body>").unwrap().1;
    body.split('<').skip(1).map(|rest| rest.split_once('>').unwrap().0).collect()
}

const TAGS: [&str; 18] = [
    "header", "h1", "dl", "div", "dt", "dd", "main", "article", "b", "span", "time", "details", "summary",
    "pre", "code", "p", "img", "footer",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn nothing_of_a_conversation_is_taken_for_html(
        pieces in prop::collection::vec(prop_oneof![
            any::<String>(),
            prop::sample::select(vec!["<script>alert(1)</script>", "\"><img src=x onerror=a>", "</details>", "```", "`", "\n",
                "' onload='", "&lt;", "<!--", "]]>", "\u{0}", "javascript:", "</style>"]).prop_map(str::to_owned),
        ], 0..8),
        mime_type in prop_oneof![Just("image/png".to_owned()), Just("image/svg+xml".to_owned()), any::<String>()],
        data in prop_oneof![Just("aGk=".to_owned()), Just("\"><b>".to_owned()), any::<String>()],
    ) {
        let text = pieces.concat();
        let page = render(&text, &everything(&text, &mime_type, &data));
        let mut rest = BTreeSet::new();
        for tag in tags(&page) {
            let mut words = tag.trim_start_matches('/').splitn(2, ' ');
            let name = words.next().unwrap();
            if !TAGS.contains(&name) && !["/body", "/html"].contains(&tag) {
                rest.insert(tag);
            }
            for (index, part) in words.next().unwrap_or_default().split('"').enumerate() {
                // Outside of quotes there are only names of attributes that we know.
                let known = ["", "class=", "id=", "datetime=", "dir=", "alt=", "src=", "open"];
                if index % 2 == 0 && !known.contains(&part.trim()) {
                    rest.insert(tag);
                }
            }
        }
        prop_assert!(rest.is_empty(), "{rest:?}");
        let shown = page.matches("<img ").count();
        prop_assert_eq!(shown, page.matches("src=\"data:image/").count());
        if mime_type != "image/png" || STANDARD.decode(&data).is_err() {
            prop_assert_eq!(shown, 0);
        }
    }
}

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

#[test]
fn a_small_page_looks_like_this() {
    let mut tree = Tree::default();
    tree.push(node(
        None,
        Some("start"),
        said(Message::User(User::text("Is `1 < 2`?\n```\nlet a = 1;\n```", 1))),
    ));
    tree.push(node(Some(0), None, answer(vec![Block::text("It was another.")])));
    let thought = Block::Thinking { thinking: "Hm.".into(), signature: None };
    tree.push(node(Some(0), None, answer(vec![thought, Block::text("Yes.")])));
    let header = header("A & B", Some(2));
    let page = page(&About { id: "s", created_ms: 1_767_225_600_000, header: &header, tree: &tree }).unwrap();
    let (head, body) = page.split_once("<body>\n").unwrap();
    assert!(head.contains("<title>A &amp; B</title>") && head.contains("default-src 'none'"));
    let time = "<time datetime=\"2026-01-01T00:00:00.000Z\">2026-01-01 00:00 UTC</time>";
    let used = "<p class=\"used\">1,200 tokens in · 5 from the cache · 34 out · $0.2500</p>";
    let expected = format!(
        r#"<header>
<h1 dir="auto">A &amp; B</h1>
<dl class="facts">
<div><dt>Begun</dt><dd>2026-01-01 00:00 UTC</dd></div>
<div><dt>Model</dt><dd>offline/echo</dd></div>
<div><dt>Folder</dt><dd>/work</dd></div>
<div><dt>Messages</dt><dd>0</dd></div>
<div><dt>Tool calls</dt><dd>0</dd></div>
<div><dt>Tokens</dt><dd>0</dd></div>
<div><dt>Cost</dt><dd>$0.0000</dd></div>
</dl>
</header>
<main>
<article class="user" id="e-00000000"><header><b>You</b> <span class="label">start</span>{time}</header>
<div class="text" dir="auto">Is <code>1 &lt; 2</code>?</div>
<pre><code>let a = 1;
</code></pre>
</article>
<details class="branch"><summary>Another branch, 1 entry</summary>
<article class="assistant" id="e-00000001"><header><b>Agent</b><span>echo</span>{time}</header>
<div class="text" dir="auto">It was another.</div>
{used}
</article>
</details>
<article class="assistant" id="e-00000002"><header><b>Agent</b><span>echo</span>{time}</header>
<details class="thinking"><summary>Thinking</summary><div class="text" dir="auto">Hm.</div>
</details>
<div class="text" dir="auto">Yes.</div>
{used}
</article>
</main>
<footer>Exported from orchestr8</footer>
</body>
</html>
"#
    );
    assert_eq!(body, expected);
}

#[test]
fn all_entries_are_shown_whatever_the_leaf() {
    let tree = everything("x", "image/png", "aGk=");
    for leaf in [None, Some(0), Some(3), Some(7)] {
        let header = header("x", leaf);
        let page = page(&About { id: "s", created_ms: 0, header: &header, tree: &tree }).unwrap();
        let (articles, notes) = (page.matches("<article").count(), page.matches("Model: x/x").count());
        assert_eq!((articles, notes, page.matches("<img ").count()), (6, 1, 2), "{leaf:?}");
    }
}
