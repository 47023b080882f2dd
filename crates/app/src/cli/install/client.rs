//! The clients we can introduce ourselves to: where each keeps its list of MCP servers, and how it writes an entry.

use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::json;

use super::document::Entry;
use crate::config::Environment;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Claude Code.
    Claude,
    Cursor,
    /// Visual Studio Code.
    Vscode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Scope {
    /// In the working directory, for everybody who works on the project.
    #[default]
    Project,
    /// For this user, in every project.
    User,
}

impl Client {
    /// Where the list is; None where there is no home directory.
    pub fn file(self, scope: Scope, environment: &Environment) -> Option<PathBuf> {
        let home = || environment.path("HOME");
        Some(match (self, scope) {
            (Client::Claude, Scope::Project) => PathBuf::from(".mcp.json"),
            (Client::Claude, Scope::User) => home()?.join(".claude.json"),
            (Client::Cursor, Scope::Project) => PathBuf::from(".cursor/mcp.json"),
            (Client::Cursor, Scope::User) => home()?.join(".cursor/mcp.json"),
            (Client::Vscode, Scope::Project) => PathBuf::from(".vscode/mcp.json"),
            (Client::Vscode, Scope::User) => {
                let folder = environment.path("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))?;
                folder.join("Code/User/mcp.json")
            }
        })
    }

    /// The member of the file that holds the entries.
    pub fn section(self) -> &'static str {
        match self {
            Client::Claude | Client::Cursor => "mcpServers",
            Client::Vscode => "servers",
        }
    }

    pub fn entry(self, command: &str, args: &[String]) -> Entry {
        let mut entry = Entry::new();
        match self {
            Client::Claude | Client::Cursor => {}
            Client::Vscode => {
                entry.insert("type", json!("stdio"));
            }
        }
        entry.extend([("command", json!(command)), ("args", json!(args))]);
        entry
    }

    pub fn name(self) -> &'static str {
        match self {
            Client::Claude => "Claude Code",
            Client::Cursor => "Cursor",
            Client::Vscode => "Visual Studio Code",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_place_in_both_scopes() {
        let environment = Environment::of(&[("HOME", "/home/ada")]);
        for client in Client::value_variants() {
            assert!(client.file(Scope::Project, &environment).unwrap().is_relative());
            assert!(client.file(Scope::User, &environment).unwrap().starts_with("/home/ada"));
            assert_eq!(client.file(Scope::User, &Environment::default()), None);
        }
    }
}
