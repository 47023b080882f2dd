//! Programs try to change what is read-only in their working directory.

use orchestr8_process::sandbox::{MissingPath, SandboxLevel, SandboxRun, SealedPath};

use crate::attacks::LEVELS;
use crate::world::{Ran, World, run};

fn repository(level: SandboxLevel) -> World {
    let world = World::at(level);
    for folder in ["work/.git/hooks", "work/.git/objects", "work/docs/plans", "work/src"] {
        std::fs::create_dir_all(world.path(folder)).unwrap();
    }
    for file in ["work/.git/config", "work/docs/plans/p.md", "work/orchestr8.json", "work/src/a"] {
        std::fs::write(world.path(file), "before").unwrap();
    }
    world
}

async fn sealed(world: &World, paths: &[(&str, MissingPath)], script: &str) -> Ran {
    let sealed = paths.iter().map(|(path, missing)| SealedPath::new(*path, *missing)).collect();
    world.run(SandboxRun { sealed, ..run(Some(&world.path("work")), script) }).await
}

const GATE: [(&str, MissingPath); 3] = [
    (".git", MissingPath::EmptyFolder),
    ("docs/plans", MissingPath::Creatable),
    ("orchestr8.json", MissingPath::Creatable),
];

#[tokio::test]
async fn what_is_sealed_is_neither_changed_nor_replaced() {
    for level in LEVELS {
        for attack in [
            "echo x > .git/hooks/post-checkout",
            "echo x >> .git/config",
            "mv .git old && mkdir -p .git/hooks",
            "rm -rf .git; test ! -e .git/config",
            "echo x > docs/plans/evil.md",
            "rm docs/plans/p.md",
            "mv docs old && mkdir -p docs/plans",
            "mv docs/plans old",
            "echo x > orchestr8.json",
            "echo x > new; mv -f new orchestr8.json",
            "ln -s /tmp docs/plans/link",
            "ln .git/config hard && echo x > hard",
        ] {
            let world = repository(level);
            let ran = sealed(&world, &GATE, attack).await;
            assert_ne!(ran.code, Some(0), "{level} {attack}: {}", ran.output);
            for file in ["work/.git/config", "work/docs/plans/p.md", "work/orchestr8.json"] {
                assert_eq!(std::fs::read_to_string(world.path(file)).unwrap(), "before", "{level} {attack}");
            }
            for file in ["work/.git/hooks/post-checkout", "work/docs/plans/evil.md", "work/docs/plans/link"] {
                assert!(!world.path(file).exists(), "{level} {attack}");
            }
        }
        // Landlock has no rule for modes and times.
        if level == SandboxLevel::Namespaces {
            let ran =
                sealed(&repository(level), &GATE, "chmod 777 .git/config || touch -d 2001-01-01 .git/config")
                    .await;
            assert_ne!(ran.code, Some(0), "{level}: {}", ran.output);
        }
        let world = repository(level);
        let script =
            "cat .git/config docs/plans/p.md; echo after > src/a; echo new > src/b; mkdir src/c; rm src/b";
        let ran = sealed(&world, &GATE, script).await;
        assert_eq!((ran.code, ran.output.as_str()), (Some(0), "beforebefore"), "{level}");
        assert_eq!(std::fs::read_to_string(world.path("work/src/a")).unwrap(), "after\n", "{level}");
    }
}

#[tokio::test]
async fn what_is_sealed_and_missing_is_not_created() {
    for level in LEVELS {
        let world = repository(level);
        std::fs::remove_dir_all(world.path("work/.git")).unwrap();
        let ran =
            sealed(&world, &GATE, "mkdir -p .git/hooks; echo x > .git/hooks/a; rmdir .git; mkdir .git/x")
                .await;
        assert_ne!(ran.code, Some(0), "{level}");
        assert!(!world.path("work/.git").exists(), "{level}: nothing is left of it");
        let shell = [(".git", MissingPath::Creatable)];
        let ran = sealed(&world, &shell, "mkdir .git && touch .git/HEAD && echo x > new").await;
        assert_eq!(ran.code, Some(0), "{level}: {}", ran.output);
    }
}

#[tokio::test]
async fn links_in_the_place_of_what_is_sealed_are_an_error() {
    for level in LEVELS {
        let world = repository(level);
        std::fs::rename(world.path("work/docs"), world.path("work/real")).unwrap();
        std::os::unix::fs::symlink("real", world.path("work/docs")).unwrap();
        let ran = sealed(&world, &GATE, "echo x > real/plans/evil.md").await;
        assert!(ran.code == Some(125) && ran.output.contains("it is a link"), "{level}: {}", ran.output);
        assert!(!world.path("work/real/plans/evil.md").exists(), "{level}");
    }
}
