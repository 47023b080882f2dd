//! Nothing gets out: a corpus of paths, and links and folders that are swapped while paths are looked up.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use proptest::prelude::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

/// A folder with a workspace in it, and beside it what must not be reached.
struct World {
    folder: tempfile::TempDir,
    root: Arc<Root>,
}

use std::sync::Arc;

const SECRET: &str = "outside";

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let make = |path: &str| std::fs::create_dir_all(folder.path().join(path)).unwrap();
        make("w/a/b");
        make("outside/b");
        for path in ["outside/file", "outside/b/file", "secret"] {
            std::fs::write(folder.path().join(path), SECRET).unwrap();
        }
        for path in ["w/a/file", "w/a/b/file"] {
            std::fs::write(folder.path().join(path), "inside").unwrap();
        }
        let outside = folder.path().join("outside");
        symlink(&outside, folder.path().join("w/absolute")).unwrap();
        symlink("../outside", folder.path().join("w/relative")).unwrap();
        symlink("../../outside/file", folder.path().join("w/a/out")).unwrap();
        symlink("/proc/self/root", folder.path().join("w/magic")).unwrap();
        symlink("a/b", folder.path().join("w/in")).unwrap();
        let root = Arc::new(Root::open(folder.path().join("w").to_str().unwrap()).unwrap());
        Self { folder, root }
    }

    fn put(&self, path: &str, text: &str) -> Result<Placed, Refusal> {
        let path = self.root.inside(path)?;
        let before = self.root.look(&path)?;
        Placed::put(&self.root, &path, before, text.as_bytes(), String::from(".tmp"))
    }

    /// What lies beside the workspace is as it was.
    fn assert_untouched(&self) {
        let names = |path: &str| {
            let entries = std::fs::read_dir(self.folder.path().join(path)).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(names("outside"), ["b", "file"]);
        assert_eq!(names("outside/b"), ["file"]);
        for path in ["outside/file", "outside/b/file", "secret"] {
            assert_eq!(std::fs::read_to_string(self.folder.path().join(path)).unwrap(), SECRET);
        }
    }
}

/// Ways out, written in many ways, before and after what is there.
fn corpus() -> Vec<String> {
    let ups = [
        "..",
        "../..",
        "./..",
        "a/../..",
        "a/b/../../..",
        "..//..",
        ".././..",
        "in/../..",
        "relative/..",
        "a/out/..",
        "..\\..",
        "%2e%2e",
        "%2e%2e%2f",
        "..%2f",
        "..%00",
        "\u{ff0e}\u{ff0e}",
        "..;",
        "....",
        "...",
        "~",
        "..\u{200b}",
        "a/b/..",
    ];
    let targets =
        ["secret", "outside/file", "etc/passwd", "outside/b/file", "", "./secret", "proc/self/environ"];
    let mut corpus: Vec<String> = Vec::new();
    for up in ups {
        for target in targets {
            for form in ["{u}/{t}", "./{u}/{t}", "a/{u}/{t}", "{u}//{t}"] {
                corpus.push(form.replace("{u}", up).replace("{t}", target));
            }
        }
    }
    let direct = [
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/root/etc/passwd",
        "absolute/file",
        "absolute/b/file",
        "relative/file",
        "relative/b/file",
        "a/out",
        "magic/etc/passwd",
        "magic",
        "absolute",
        "relative",
        "absolute/../secret",
        "/../secret",
        "file:///etc/passwd",
        "C:\\secret",
        "\\\\server\\share",
        "a\0/../../secret",
        "in/../../../secret",
        "relative/../secret",
    ];
    corpus.extend(direct.map(str::to_owned));
    corpus
}

#[test]
fn no_path_of_the_corpus_leads_out() {
    let world = World::new();
    let corpus = corpus();
    assert!(corpus.len() >= 500, "{} paths", corpus.len());
    for path in &corpus {
        if let Ok(found) = world.root.inside(path).and_then(|path| world.root.read(&path)) {
            assert_eq!(found.bytes, b"inside", "{path}");
        }
        // Whatever can be written is written inside, and taken back.
        drop(world.put(path, "written"));
    }
    world.assert_untouched();
}

#[test]
fn links_that_stay_inside_are_read_and_never_written_through() {
    let world = World::new();
    let read = |path: &str| world.root.read(&world.root.inside(path).unwrap());
    assert_eq!(read("in/file").unwrap().bytes, b"inside");
    assert_eq!(read("a/out").unwrap_err().code, Code::OutsideWorkspace);
    assert_eq!(world.put("in/file", "x").err().unwrap().code, Code::InvalidPath);
    assert_eq!(world.put("absolute/x", "x").err().unwrap().code, Code::OutsideWorkspace);
    assert_eq!(world.put("magic/var/x", "x").err().unwrap().code, Code::OutsideWorkspace);
}

#[test]
fn a_write_keeps_permissions_and_goes_back_unless_it_is_kept() {
    let world = World::new();
    let path = world.folder.path().join("w/a/file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
    let placed = world.put("a/file", "new").unwrap();
    assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), mode()), ("new", 0o750));
    drop(placed);
    assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), mode()), ("inside", 0o750));
    world.put("a/file", "kept").unwrap().keep();
    assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), mode()), ("kept", 0o750));
    drop(world.put("x/y/z.txt", "deep").unwrap());
    assert!(!world.folder.path().join("w/x").exists(), "folders that were made for it go with it");
    let names: Vec<String> = world.root.list("a").unwrap();
    assert!(names.iter().all(|name| !name.contains("tmp")), "{names:?}");
}

/// What somebody else writes meanwhile is neither overwritten nor taken away.
#[test]
fn whoever_writes_meanwhile_wins() {
    let world = World::new();
    let path = world.root.inside("a/file").unwrap();
    let before = world.root.look(&path).unwrap();
    std::fs::write(world.folder.path().join("w/a/file"), "other").unwrap();
    let refused = Placed::put(&world.root, &path, before, b"mine", String::from(".tmp")).err().unwrap();
    assert_eq!(refused.code, Code::HashMismatch);
    let placed = world.put("a/file", "mine").unwrap();
    std::fs::write(world.folder.path().join("w/a/file"), "later").unwrap();
    drop(placed);
    assert_eq!(std::fs::read_to_string(world.folder.path().join("w/a/file")).unwrap(), "later");
}

/// A thread swaps a folder for a link that leads out, and a file for another, 100,000 times and more, while files are read
/// and written through both.
#[test]
fn no_swap_of_links_and_folders_lets_anything_out() {
    const SWAPS: usize = 100_000;
    let world = World::new();
    symlink(world.folder.path().join("outside"), world.folder.path().join("w/other")).unwrap();
    let (swaps, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (mut reads, mut writes) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let at = |name: &str| world.folder.path().join("w").join(name);
            while swaps.load(Ordering::Relaxed) < SWAPS || !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, at("a"), CWD, at("other"), RenameFlags::EXCHANGE).unwrap();
                renameat_with(CWD, at("in"), CWD, at("relative"), RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(2, Ordering::Relaxed);
            }
        });
        while swaps.load(Ordering::Relaxed) < SWAPS || reads == 0 || writes == 0 {
            for path in ["a/file", "a/b/file", "other/file", "in/file"] {
                if let Ok(found) = world.root.read(&world.root.inside(path).unwrap()) {
                    assert_ne!(found.bytes, SECRET.as_bytes(), "{path} led out");
                    reads += 1;
                }
            }
            for path in ["a/b/file", "a/new", "in/new"] {
                writes += usize::from(world.put(path, "inside").is_ok());
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    world.assert_untouched();
    assert!(reads > 0 && writes > 0, "{reads} reads and {writes} writes succeeded");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever is written as a path: it is refused, or it is inside.
    #[test]
    fn what_is_read_is_inside(path in "[./a-c~%\\\\ ]{0,24}|(\\.\\./){0,4}[a-z/]{0,12}|\\PC{0,16}") {
        if let Ok(inside) = Inside::parse(&path, Path::new("/w")) {
            prop_assert!(!inside.as_str().starts_with('/'));
            prop_assert!(inside.as_str().split('/').all(|name| !name.is_empty() && name != "." && name != ".."));
        }
    }
}
