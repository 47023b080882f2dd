//! `orchestr8 knowledge edit`: a document in an editor, and back. What cannot be written is kept in a file.

use std::path::PathBuf;

use clap::Args;
use http::Method;
use orchestr8_contract::Code;
use orchestr8_knowledge::folder;
use serde_json::{Value, json};

use super::super::Shell;
use super::Asking;
use super::get::file;
use super::put::Wish;
use super::shelf::{document, fresh_id};
use crate::failure::Failure;

#[derive(Args)]
pub struct Edit {
    /// The document: its id, or its path such as /Handbook/Setup.
    document: String,
    #[command(flatten)]
    asking: Asking,
}

impl Edit {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| shell.environment.get(name));
        let Some(editor) = editor.filter(|editor| !editor.trim().is_empty()) else {
            return Err(Failure::new(Code::Configuration, "no editor is named")
                .hinting("set VISUAL or EDITOR, or use `knowledge get -f -o FILE` and `knowledge put`"));
        };
        let old = self.asking.run(shell, async |shelf| {
            let id = shelf.id(&self.document).await?;
            shelf.document(&id, None).await
        })?;
        // Nobody else's store is held while somebody thinks.
        let before = folder::write(&file(&old));
        let folder = shell.environment.get("TMPDIR").filter(|folder| !folder.is_empty()).unwrap_or("/tmp");
        let path = PathBuf::from(folder).join(format!("orchestr8-{}.md", fresh_id()));
        super::super::sessions::write(&path, &before)?;
        let edited = open(editor, &path)?;
        if edited == before {
            let _ = std::fs::remove_file(&path);
            shell.terminal.note("nothing was changed");
            return Ok(());
        }
        match self.write(shell, &old, &edited) {
            Ok(answer) => {
                let _ = std::fs::remove_file(&path);
                match shell.terminal.json {
                    true => shell.terminal.value(&answer),
                    false => shell.terminal.note(&format!("changed, revision {}", answer["revision"])),
                }
                Ok(())
            }
            Err(failure) => Err(failure.hinting(format!("your text is in {}", path.display()))),
        }
    }

    fn write(&self, shell: &Shell, old: &Value, edited: &str) -> Result<Value, Failure> {
        let file = folder::read(&self.document, edited)
            .map_err(|wrong| Failure::new(Code::InvalidArgument, wrong.to_string()))?;
        let wish = Wish {
            body: file.body,
            metadata: file.metadata,
            whole: true,
            front: Some((file.human, file.mime)),
        };
        let (mask, patch) = wish.change(old, None);
        let id = super::super::words::text(old, "id");
        let args = json!({"patch": patch, "update_mask": mask, "last_known_revision": old["revision"]});
        if mask.is_empty() {
            return Ok(json!({"id": id, "revision": old["revision"], "unchanged": true}));
        }
        self.asking.run(shell, async |shelf| shelf.ask(Method::PATCH, &document(id), Some(&args)).await)
    }
}

/// Waits for the editor, which may be a command with options, and reads what it left.
fn open(editor: &str, path: &PathBuf) -> Result<String, Failure> {
    let wrong = |what: String| {
        Failure::new(Code::Unavailable, what).hinting(format!("the text is in {}", path.display()))
    };
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or(editor);
    let ended = std::process::Command::new(program).args(words).arg(path).status();
    match ended {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(wrong(format!("{program} ended with {status}; nothing was changed"))),
        Err(cause) => return Err(wrong(format!("{program} cannot be started: {cause}"))),
    }
    std::fs::read_to_string(path).map_err(|cause| wrong(format!("{}: {cause}", path.display())))
}
