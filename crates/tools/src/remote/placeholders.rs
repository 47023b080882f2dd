//! `${NAME}` in the entry of a server: replaced by a variable of the environment, or by a named secret of the instance's tenant.
//!
//! Variables are for entries of the settings, whose author chooses what the program may read. They come first: otherwise a tenant could
//! give another meaning to a name that the operator's environment has. See ADR 63.

use std::collections::BTreeMap;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::redact::Redactor;
use orchestr8_secrets::{SecretText, SecretUse, SecretVault, Sink};
use reqwest::Url;

use super::Link;
use super::served_server::ServedServer;

/// The place in a binding that means the arguments of a program.
const ARGUMENTS: &str = "args";

/// The place in a binding that means the path and the query of an address.
const ADDRESS: &str = "url";

/// Where names are looked up.
#[derive(Clone, Default)]
pub struct NameSources {
    /// The variables that entries of the settings name, as far as they are set.
    pub environment: BTreeMap<String, String>,
    pub vault: Option<SecretVault>,
}

/// How a server is reached, with every name replaced.
#[derive(Clone)]
pub struct ResolvedLink {
    pub link: Link,
    /// Values that must not be shown.
    pub secrets: Vec<SecretText>,
}

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'t> {
    Text(&'t str),
    Name(&'t str),
}

/// The names that a text refers to.
pub fn names_in(text: &str) -> Vec<&str> {
    let names = pieces(text).into_iter();
    names
        .filter_map(|piece| match piece {
            Piece::Name(name) => Some(name),
            Piece::Text(_) => None,
        })
        .collect()
}

/// The names that the entry of a server refers to.
pub fn names_of(link: &Link) -> Vec<&str> {
    let texts: Vec<&String> = match link {
        Link::Stdio { args, env, .. } => args.iter().chain(env.values()).collect(),
        Link::Http { url, headers } => std::iter::once(url).chain(headers.values()).collect(),
    };
    texts.into_iter().flat_map(|text| names_in(text)).collect()
}

/// What is not the form of a name stays as it is; `$${NAME}` stands for `${NAME}` itself.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find("${") {
        let name = rest[at + 2..].split_once('}').map(|(name, _)| name).filter(|name| is_name(name));
        let Some(name) = name else {
            found.push(Piece::Text(&rest[..at + 2]));
            rest = &rest[at + 2..];
            continue;
        };
        let end = at + 2 + name.len() + 1;
        if rest[..at].ends_with('$') {
            found.extend([Piece::Text(&rest[..at - 1]), Piece::Text(&rest[at..end])]);
        } else {
            found.extend([Piece::Text(&rest[..at]), Piece::Name(name)]);
        }
        rest = &rest[end..];
    }
    found.push(Piece::Text(rest));
    found
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

impl NameSources {
    /// The link of a server for the instance of a tenant.
    pub async fn resolve(&self, served: &ServedServer, tenant: &Tenant) -> Result<ResolvedLink, Fault> {
        if let Some(vault) = &self.vault
            && !names_of(&served.server.link).is_empty()
        {
            vault.load().await?;
        }
        let mut resolver = Resolver { sources: self, served, tenant, secrets: Vec::new() };
        let link = resolver.link()?;
        Ok(ResolvedLink { link, secrets: resolver.secrets })
    }
}

struct Resolver<'r> {
    sources: &'r NameSources,
    served: &'r ServedServer,
    tenant: &'r Tenant,
    secrets: Vec<SecretText>,
}

impl Resolver<'_> {
    fn link(&mut self) -> Result<Link, Fault> {
        Ok(match &self.served.server.link {
            Link::Stdio { command, args, env, cwd } => {
                let at = |variable: &str| Sink::Program {
                    program: command.clone(),
                    variable: variable.to_owned(),
                };
                let args = args.iter().enumerate().map(|(index, arg)| {
                    self.expand(arg, &format!("args[{index}]"), Some(&at(ARGUMENTS)), false)
                });
                let args = args.collect::<Result<_, _>>()?;
                let is_secret = Redactor::default();
                let env = env.iter().map(|(name, value)| {
                    let is_hidden = is_secret.is_secret(name);
                    let value = self.expand(value, &format!("env.{name}"), Some(&at(name)), is_hidden)?;
                    Ok((name.clone(), value))
                });
                let env = env.collect::<Result<_, Fault>>()?;
                Link::Stdio { command: command.clone(), args, env, cwd: cwd.clone() }
            }
            Link::Http { url, headers } => {
                let url = self.address(url)?;
                let at = |part: &str| header_sink(&url, part);
                let headers = headers.iter().map(|(name, value)| {
                    let value = self.expand(value, &format!("headers.{name}"), at(name).as_ref(), true)?;
                    Ok((name.clone(), value))
                });
                let headers = headers.collect::<Result<_, Fault>>()?;
                Link::Http { url, headers }
            }
        })
    }

    /// Scheme, host and port come from the entry and the environment, never from a secret: it is bound to them.
    fn address(&mut self, url: &str) -> Result<String, Fault> {
        let start = url.find("://").map_or(0, |at| at + 3);
        let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
        let origin = self.expand(&url[..end], "url", None, false)?;
        let sink = header_sink(&origin, ADDRESS);
        Ok(format!("{origin}{}", self.expand(&url[end..], "url", sink.as_ref(), false)?))
    }

    /// Replaces the names of one field. `sink`: where a secret would go; without one no secret may stand there. `is_hidden`: what the
    /// environment holds is a credential there too.
    fn expand(
        &mut self,
        text: &str,
        field: &str,
        sink: Option<&Sink>,
        is_hidden: bool,
    ) -> Result<String, Fault> {
        let mut expanded = String::new();
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => expanded.push_str(text),
                Piece::Name(name) => expanded.push_str(&self.value(name, field, sink, is_hidden)?),
            }
        }
        Ok(expanded)
    }

    fn value(
        &mut self,
        name: &str,
        field: &str,
        sink: Option<&Sink>,
        is_hidden: bool,
    ) -> Result<String, Fault> {
        let is_of_settings = self.served.key.owner.is_none();
        if let Some(value) = self.sources.environment.get(name).filter(|_| is_of_settings) {
            if is_hidden || Redactor::default().is_secret(name) {
                self.secrets.push(SecretText::new(value.as_str()));
            }
            return Ok(value.clone());
        }
        let server = &self.served.server.name;
        let Some(sink) = sink else {
            let what = format!(
                "the MCP server '{server}' needs {name} for the host in its url; a secret cannot stand there, since it is bound to the host"
            );
            return Err(Fault::new(Code::Configuration, what).with("server", server.as_str()));
        };
        let agent = format!("mcp:{server}");
        let usage = SecretUse {
            tenant: self.tenant.as_str(),
            name,
            workflow: None,
            hash: None,
            agent: Some(&agent),
            sink,
        };
        let vault = self.sources.vault.as_ref();
        let revealed = vault.filter(|vault| vault.locked().is_some() || vault.has(usage.tenant, name));
        let why = match revealed.map(|vault| vault.reveal(&usage)) {
            Some(Ok(value)) => {
                let text = value.expose().to_owned();
                self.secrets.push(value);
                return Ok(text);
            }
            Some(Err(fault)) => fault.message.into_owned(),
            None if is_of_settings => format!(
                "there is neither an environment variable {name} nor a secret of the tenant '{}' with this name",
                self.tenant
            ),
            None => format!("the tenant '{}' has no secret with this name", self.tenant),
        };
        let command = format!("orchestr8 secrets set {name} --agent {agent} --to {sink}");
        let what =
            format!("the MCP server '{server}' needs {name} in {field}: {why}; create it with: {command}");
        Err(Fault::new(Code::SecretNotAllowed, what).with("server", server.as_str()).with("secret", name))
    }
}

/// A header of requests to the host of an address.
fn header_sink(url: &str, part: &str) -> Option<Sink> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?.to_owned();
    Some(Sink::header(url.scheme() == "https", &host, url.port_or_known_default()?, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_the_form_of_a_name_is_one() {
        assert_eq!(names_in("Bearer ${TOKEN} and ${OTHER-1}"), ["TOKEN", "OTHER-1"]);
        assert_eq!(names_in("$TOKEN ${} ${a.b} ${unfinished $${ESCAPED}"), [""; 0]);
        let text = |text| -> String {
            let piece = |piece| match piece {
                Piece::Text(text) => text,
                Piece::Name(_) => "!",
            };
            pieces(text).into_iter().map(piece).collect()
        };
        assert_eq!(text("a ${B} $${C} ${d.e} ${f"), "a ! ${C} ${d.e} ${f");
        assert_eq!(text("${A}${B}"), "!!");
    }

    #[test]
    fn a_secret_is_bound_to_the_host_and_the_header_it_stands_in() {
        let sink = |url| header_sink(url, "Authorization").map(|sink| sink.to_string());
        assert_eq!(sink("https://api.example.com/mcp").as_deref(), Some("api.example.com:authorization"));
        assert_eq!(sink("http://127.0.0.1:90").as_deref(), Some("http://127.0.0.1:90:authorization"));
        assert_eq!(sink("nonsense"), None);
    }
}
