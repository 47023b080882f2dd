//! `orchestr8 knowledge`: the tree of documents, its search, and folders of Markdown.

mod check;
mod edit;
mod folder;
mod get;
mod history;
mod mv;
mod put;
mod query;
mod restore;
mod rm;
mod shelf;
mod tree;
mod webhooks;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Shell;
use super::reaching::{Intent, Reaching, key_file};
use crate::failure::{Failure, exit};
use crate::reach::Signer;
use shelf::Shelf;

#[derive(Subcommand)]
pub enum Knowledge {
    /// Show the documents as a tree.
    Tree(tree::Tree),
    /// Print a document.
    Get(get::Get),
    /// Write a document, from a file or from stdin: a new one, or a new revision.
    Put(put::Put),
    /// Open a document in your editor, and write it when you are done.
    Edit(edit::Edit),
    /// Move a document below another one.
    Mv(mv::Mv),
    /// Delete documents and all below them; for 90 days they can be restored.
    Rm(rm::Rm),
    /// Bring a deleted document back, with all that went with it.
    Restore(restore::Restore),
    /// List the revisions of a document.
    History(history::History),
    /// Ask a question; the answer comes with the passages it is from.
    Query(query::Query),
    /// Make the tree what a folder of Markdown says. Nothing is deleted.
    Import(folder::Import),
    /// Write the tree to a folder of Markdown. Files that were changed there are left alone.
    Export(folder::Export),
    /// Take changes of a folder to the tree and changes of the tree to the folder.
    Sync(folder::Sync),
    /// Compare the index of the search with the documents.
    Verify(check::Verify),
    /// Make the index of the search anew from the documents.
    Reindex(check::Reindex),
    /// Say who is told of changes.
    #[command(subcommand)]
    Webhooks(webhooks::Webhooks),
}

impl Knowledge {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let ok = |()| exit::OK;
        match self {
            Knowledge::Tree(command) => command.run(shell).map(ok),
            Knowledge::Get(command) => command.run(shell).map(ok),
            Knowledge::Put(command) => command.run(shell).map(ok),
            Knowledge::Edit(command) => command.run(shell),
            Knowledge::Mv(command) => command.run(shell).map(ok),
            Knowledge::Rm(command) => command.run(shell).map(ok),
            Knowledge::Restore(command) => command.run(shell).map(ok),
            Knowledge::History(command) => command.run(shell).map(ok),
            Knowledge::Query(command) => command.run(shell).map(ok),
            Knowledge::Import(command) => command.run(shell),
            Knowledge::Export(command) => command.run(shell),
            Knowledge::Sync(command) => command.run(shell),
            Knowledge::Verify(command) => command.run(shell),
            Knowledge::Reindex(command) => command.run(shell).map(ok),
            Knowledge::Webhooks(command) => command.run(shell).map(ok),
        }
    }
}

/// Whom to ask, and for whom.
#[derive(Args, Clone)]
pub struct Asking {
    /// The tenant whose documents are meant [default: your own].
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Sign with this secret key, as `orchestr8 keys new --out` wrote it, for a server that asks for signatures [default:
    /// $ORCHESTR8_KEY_FILE].
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    reaching: Reaching,
}

impl Asking {
    /// Finds the documents, does the work, and lets go of them in order.
    fn run<T>(
        &self,
        shell: &Shell,
        work: impl AsyncFnOnce(&Shelf<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let key = key_file(self.key.as_deref(), shell);
        let signer = key.as_deref().map(Signer::read).transpose()?;
        self.reaching.run_signed(shell, Intent::Record, signer, async |reach| {
            let shelf = Shelf::new(reach, self.tenant.clone(), key.is_some());
            work(&shelf).await
        })
    }

    /// The same as it is written on a command line.
    fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut pair = |name: &str, value: &OsStr| words.extend([OsString::from(name), value.to_owned()]);
        if let Some(tenant) = &self.tenant {
            pair("--tenant", tenant.as_ref());
        }
        if let Some(key) = &self.key {
            pair("--key", key.as_os_str());
        }
        if let Some(server) = &self.reaching.server {
            pair("--server", server.as_ref());
        }
        if let Some(folder) = &self.reaching.running.data_dir {
            pair("--data-dir", folder.as_os_str());
        }
        if self.reaching.embedded {
            words.push(OsString::from("--embedded"));
        }
        words
    }
}
