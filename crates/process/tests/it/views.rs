//! Private views of a directory: programs see it as it is, change what they like, and nothing of that is left.

use std::path::Path;

use orchestr8_process::sandbox::{
    CopyLimits, DirectoryView, Error, SandboxLevel, SandboxMode, SandboxRun, WorkingDirectory,
};

use crate::world::{Ran, World, run};

const ROOM: CopyLimits = CopyLimits { entries: 1_000, bytes: 1 << 20 };

fn directory(world: &World) -> WorkingDirectory {
    WorkingDirectory::open(&world.path("work")).unwrap()
}

/// At every level, and with a copy where an overlay would do.
fn worlds() -> Vec<World> {
    let mut worlds: Vec<World> =
        [SandboxLevel::Namespaces, SandboxLevel::Landlock].map(World::at).into_iter().collect();
    let mut off = World::new();
    off.settings.mode = SandboxMode::Off;
    worlds.push(off);
    for world in &worlds {
        for folder in ["work/src", "work/.ssh", "work/deep/er"] {
            std::fs::create_dir_all(world.path(folder)).unwrap();
        }
        for file in ["work/src/a", "work/src/b", "work/deep/er/c", "work/.ssh/id"] {
            std::fs::write(world.path(file), "before").unwrap();
        }
        std::os::unix::fs::symlink("src/a", world.path("work/link")).unwrap();
    }
    worlds.iter_mut().for_each(|world| world.settings.places.hidden_names = vec![".ssh".into()]);
    worlds
}

async fn in_view(world: &World, view: &DirectoryView, script: &str) -> Ran {
    let directory = Some(view.working_directory().unwrap());
    world.run(SandboxRun { directory, ..run(None, script) }).await
}

#[tokio::test]
async fn what_a_program_changes_is_seen_by_it_told_and_gone() {
    for world in worlds() {
        let level = world.sandbox().level().await.unwrap();
        let mut view = world.sandbox().private_view(&directory(&world), ROOM).await.unwrap();
        assert_eq!(view.is_overlay(), level == SandboxLevel::Namespaces, "{level}");
        view.put(Path::new("new/deep/file"), b"put", 0o644).unwrap();
        let script = "set -e; test \"$(cat new/deep/file link)\" = putbefore; test ! -e .ssh/id
            head -c 3000000 /dev/zero > deep/er/large; echo more >> src/a; rm src/b; mkdir -p made/in; echo x > made/in/side; ln -s / deep/er/out; chmod 000 made; echo done";
        let ran = in_view(&world, &view, script).await;
        assert_eq!((ran.code, ran.output.as_str()), (Some(0), "done\n"), "{level}");
        assert!(view.holds(b"put"));
        assert!(view.is_larger_than(2 << 20) && !view.is_larger_than(1 << 30), "{level}");
        let changed = view.changes(100).unwrap();
        assert_eq!(changed.paths, ["deep/er/large", "deep/er/out", "made/", "src/a", "src/b"], "{level}");
        let cut = view.changes(2).unwrap();
        assert!(cut.is_cut && cut.paths.len() == 2, "{level}");
        for file in ["work/src/a", "work/src/b"] {
            assert_eq!(std::fs::read_to_string(world.path(file)).unwrap(), "before", "{level}");
        }
        for path in ["work/new", "work/made", "work/deep/er/out"] {
            assert!(world.path(path).symlink_metadata().is_err(), "{level} {path}");
        }
    }
}

#[tokio::test]
async fn another_text_or_a_link_in_the_place_of_the_file_is_noticed() {
    for world in worlds() {
        for attack in ["echo x >> src/a", "rm src/a", "rm src/a; ln -s b src/a", "rm -r src; ln -s deep src"]
        {
            let mut view = world.sandbox().private_view(&directory(&world), ROOM).await.unwrap();
            view.put(Path::new("src/a"), b"before", 0o644).unwrap();
            assert!(view.holds(b"before") && !view.holds(b"other"));
            let ran = in_view(&world, &view, attack).await;
            assert!(ran.code == Some(0) && !view.holds(b"before"), "{attack}: {}", ran.output);
        }
    }
}

#[tokio::test]
async fn a_copy_has_limits_and_an_overlay_has_none() {
    for world in worlds() {
        let level = world.sandbox().level().await.unwrap();
        for room in [CopyLimits { entries: 3, ..ROOM }, CopyLimits { bytes: 10, ..ROOM }] {
            let view = world.sandbox().private_view(&directory(&world), room).await;
            match level {
                SandboxLevel::Namespaces => assert!(view.unwrap().is_overlay()),
                SandboxLevel::Landlock | SandboxLevel::Unconfined => {
                    assert!(matches!(view.unwrap_err(), Error::TooLarge { .. }), "{level}");
                }
            }
        }
    }
}
