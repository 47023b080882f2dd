//! The entry of a server that is added at run time: the members of `mcpServers` in the settings, checked and stored as JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;

use orchestr8_contract::Fault;
use orchestr8_kernel::redact::Redactor;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::placeholders::names_in;
use super::{Link, Server, limits};

/// What stands in the place of a value that may be a credential.
const MASKED: &str = "[REDACTED]";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ServerEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
}

/// The members of an entry as JSON Schema, with the name of the server.
pub fn schema() -> Value {
    let text = |limit: usize| json!({"type": "string", "minLength": 1, "maxLength": limit});
    let texts = |limit: usize| json!({"type": "array", "maxItems": limits::ENTRY_ITEMS, "items": {"type": "string", "maxLength": limit}});
    let pairs = json!({"type": "object", "maxProperties": limits::ENTRY_ITEMS,
        "additionalProperties": {"type": "string", "maxLength": limits::ENTRY_TEXT_CHARACTERS}});
    let timeout = |min: u64| json!({"type": "integer", "minimum": min, "maximum": limits::ENTRY_TIMEOUT_MS});
    json!({
        "name": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,32}$"},
        "command": text(limits::ENTRY_TEXT_CHARACTERS), "args": texts(limits::ENTRY_TEXT_CHARACTERS), "env": pairs,
        "cwd": text(limits::ENTRY_TEXT_CHARACTERS), "url": text(limits::ENTRY_TEXT_CHARACTERS), "headers": pairs,
        "prefix": text(64), "allow": texts(128), "deny": texts(128),
        "maxConcurrent": {"type": "integer", "minimum": 1, "maximum": 10_000},
        "startTimeoutMs": timeout(1), "timeoutMs": timeout(1), "idleTimeoutMs": timeout(0),
    })
}

impl ServerEntry {
    pub fn read(value: Value) -> Result<Self, Fault> {
        serde_json::from_value(value)
            .map_err(|error| Fault::invalid(format!("the entry of the server cannot be read: {error}")))
    }

    /// Refuses an entry that could not work, or that holds a credential itself: it is stored and shown.
    pub fn check(&self) -> Result<(), Fault> {
        match (&self.command, &self.url) {
            (Some(_), None) => self.check_program(),
            (None, Some(url)) => self.check_address(url),
            (Some(_), Some(_)) => Err(wrong("url", "stands beside command; give one of them")),
            (None, None) => Err(wrong("command", "is missing; give command, or url")),
        }
    }

    fn check_program(&self) -> Result<(), Fault> {
        if !self.headers.is_empty() {
            return Err(wrong("headers", "are for servers with a url"));
        }
        if self.cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
            return Err(wrong("cwd", "must be an absolute path"));
        }
        let is_variable = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
        if let Some(name) = self.env.keys().find(|name| !is_variable(name)) {
            return Err(wrong(&format!("env/{name}"), "is not the name of a variable"));
        }
        let has_nul = |text: &String| text.contains('\0');
        if self.command.iter().chain(&self.args).chain(self.env.values()).any(has_nul) {
            return Err(wrong("command", "has a NUL character in it, its arguments or its environment"));
        }
        check_secrets("env", &self.env)
    }

    fn check_address(&self, url: &str) -> Result<(), Fault> {
        if !self.args.is_empty() || !self.env.is_empty() || self.cwd.is_some() {
            return Err(wrong("args", "args, env and cwd are for servers with a command"));
        }
        let parsed = Url::parse(url).map_err(|error| wrong("url", &format!("cannot be read: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
            return Err(wrong("url", "must begin with http:// or https:// and name a host"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(wrong("url", "holds credentials; give them in a header, as ${NAME} of a secret"));
        }
        check_secrets("headers", &self.headers)
    }

    pub fn server(&self, name: &str) -> Server {
        let link = match (&self.command, &self.url) {
            (Some(command), _) => Link::Stdio {
                command: command.clone(),
                args: self.args.clone(),
                env: self.env.clone(),
                cwd: self.cwd.clone(),
            },
            (None, url) => Link::Http { url: url.clone().unwrap_or_default(), headers: self.headers.clone() },
        };
        let preset = Server::new(name, link);
        Server {
            prefix: self.prefix.clone(),
            timeout_ms: self.timeout_ms,
            start_timeout_ms: self.start_timeout_ms.unwrap_or(preset.start_timeout_ms),
            max_concurrent: self.max_concurrent.unwrap_or(preset.max_concurrent),
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            idle_timeout_ms: self.idle_timeout_ms,
            ..preset
        }
    }
}

/// A value under the name of a credential must be the name of a secret.
fn check_secrets(field: &str, values: &BTreeMap<String, String>) -> Result<(), Fault> {
    let redactor = Redactor::default();
    let is_literal =
        |(name, value): &(&String, &String)| redactor.is_secret(name) && names_in(value).is_empty();
    match values.iter().find(is_literal) {
        Some((name, _)) => Err(wrong(
            &format!("{field}/{name}"),
            "holds a credential, which would be stored and shown; write ${NAME} and create it with orchestr8 secrets set",
        )),
        None => Ok(()),
    }
}

fn wrong(path: &str, what: &str) -> Fault {
    Fault::invalid(format!("/{path}: {what}")).with("path", format!("/{path}"))
}

/// How a server is reached, as people may see it: nothing that may be a credential.
pub fn shown_link(link: &Link, is_of_settings: bool) -> Value {
    // What has no name in it may be a credential that stands there itself.
    let value = |value: &String| match is_of_settings && names_in(value).is_empty() {
        true => MASKED.to_owned(),
        false => value.clone(),
    };
    let pairs = |values: &BTreeMap<String, String>| -> Value {
        values.iter().map(|(name, text)| (name.clone(), Value::from(value(text)))).collect()
    };
    match link {
        Link::Stdio { command, args, env, cwd } => {
            let args: Vec<String> = args.iter().map(value).collect();
            json!({"type": "stdio", "command": command, "args": args, "env": pairs(env), "cwd": cwd})
        }
        Link::Http { url, headers } => {
            let url = super::address_mask::mask_addresses(url);
            json!({"type": "http", "url": url, "headers": pairs(headers)})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(entry: Value) -> Result<(), String> {
        let entry = ServerEntry::read(entry).map_err(|fault| fault.message.into_owned())?;
        entry.check().map_err(|fault| fault.message.into_owned())
    }

    #[test]
    fn an_entry_says_in_one_way_how_to_reach_its_server() {
        checked(json!({"command": "npx", "args": ["-y"], "env": {"API_TOKEN": "${TOKEN}", "MODE": "x"}}))
            .unwrap();
        checked(json!({"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${T}"}}))
            .unwrap();
        for (entry, what) in [
            (json!({}), "/command: is missing"),
            (json!({"command": "a", "url": "http://b"}), "/url: stands beside"),
            (json!({"command": "a", "headers": {"a": "b"}}), "/headers: are for"),
            (json!({"command": "a", "cwd": "b"}), "/cwd: must be"),
            (json!({"command": "a", "env": {"API_TOKEN": "literal"}}), "/env/API_TOKEN: holds a credential"),
            (json!({"url": "ftp://a"}), "/url: must begin"),
            (json!({"url": "http://a:b@c"}), "/url: holds credentials"),
            (
                json!({"url": "http://a", "headers": {"Authorization": "Bearer x"}}),
                "/headers/Authorization: holds",
            ),
            (json!({"url": "http://a", "args": ["b"]}), "/args: "),
            (json!({"shared": true}), "cannot be read"),
        ] {
            let said = checked(entry.clone()).unwrap_err();
            assert!(said.contains(what), "{entry}: {said}");
        }
    }

    #[test]
    fn nothing_that_may_be_a_credential_is_shown_of_an_entry_of_the_settings() {
        let headers = BTreeMap::from([
            ("A".to_owned(), "canary".to_owned()),
            ("B".to_owned(), "Bearer ${T}".to_owned()),
        ]);
        let link = Link::Http { url: "https://u:canary@a.example/mcp?key=canary".into(), headers };
        let shown = shown_link(&link, true);
        assert!(!shown.to_string().contains("canary"), "{shown}");
        assert_eq!(shown["headers"]["B"], "Bearer ${T}");
    }
}
