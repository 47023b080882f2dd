//! Working directories and readable folders that would show or give away what belongs to the server or its user.

use std::os::unix::fs::symlink;

use orchestr8_process::sandbox::{Error, PrivatePlaces, SandboxLevel};

use crate::attacks::LEVELS;
use crate::world::{World, run};

/// A home with a project in it, the server's folders, credentials and files that start programs.
fn home(level: SandboxLevel) -> World {
    let mut world = World::at(level);
    for folder in
        ["home/project/deep", "home/.local/state/orchestr8", "home/.ssh", "home/.config/fish", "home/more"]
    {
        std::fs::create_dir_all(world.path(folder)).unwrap();
    }
    for file in [
        "home/.local/state/orchestr8/log.key",
        "home/.ssh/id_rsa",
        "home/.vault-token",
        "home/project/.netrc",
    ] {
        std::fs::write(world.path(file), "s3cret").unwrap();
    }
    let data = world.path("data");
    world.settings.places = PrivatePlaces {
        protected: vec![
            data,
            world.path("home/.local/state/orchestr8"),
            world.path("home/.config/orchestr8"),
        ],
        hidden: vec![world.path("home/.ssh"), world.path("home/.vault-token")],
        hidden_names: vec![".netrc".into()],
        homes: vec![world.path("home")],
        startup: vec![world.path("home/.config")],
    };
    world
}

#[tokio::test]
async fn a_home_and_what_is_around_it_is_no_working_directory() {
    for level in LEVELS {
        let world = home(level);
        symlink(world.path("home"), world.path("home/project/up")).unwrap();
        for (folder, expected) in [
            ("home", "home"),
            ("", "home"),
            ("/", "home"),
            ("home/project/up", "home"),
            ("home/.config", "startup"),
            ("home/.config/fish", "startup"),
            ("home/.ssh", "hidden"),
            ("home/.local/state/orchestr8", "hidden"),
            ("data", "hidden"),
        ] {
            let refused = world.sandbox().command(run(Some(&world.path(folder)), "true")).await;
            let found = match refused.as_ref().err() {
                Some(Error::Home(_)) => "home",
                Some(Error::Startup(_)) => "startup",
                Some(Error::Hidden(_)) => "hidden",
                Some(_) | None => "none of these",
            };
            assert_eq!(found, expected, "{level} {folder}");
            let text = refused.err().unwrap().to_string();
            assert!(text.contains("`sessions.roots`"), "{level} {folder}: {text}");
        }
    }
}

#[tokio::test]
async fn beneath_a_home_the_rest_of_it_is_not_in_reach() {
    for level in LEVELS {
        let world = home(level);
        std::fs::remove_file(world.path("home/project/.netrc")).unwrap();
        symlink(world.path("home"), world.path("home/project/up")).unwrap();
        let script = "ls ..; ls up/; cat ../.vault-token ../.ssh/id_rsa up/.local/state/orchestr8/log.key; echo x > ../.bashrc; \
                      mkdir -p ../.config/orchestr8; echo x > up/.local/state/orchestr8/trusted.json; echo x > mine; cat mine";
        let ran = world.shell_in(&world.path("home/project"), script).await;
        assert!(!ran.output.contains("s3cret") && !ran.output.contains("more"), "{level}: {}", ran.output);
        assert!(ran.output.ends_with("x\n"), "{level}: {}", ran.output);
        for file in ["home/.bashrc", "home/.config/orchestr8", "home/.local/state/orchestr8/trusted.json"] {
            assert!(!world.path(file).exists(), "{level} {file}");
        }
    }
}

#[tokio::test]
async fn credentials_in_the_working_directory_are_covered_or_the_directory_is_refused() {
    let world = home(SandboxLevel::Namespaces);
    let ran = world
        .shell_in(&world.path("home/project"), "cat .netrc; mv .netrc other; rm -f .netrc; echo x > .netrc")
        .await;
    assert!(!ran.output.contains("s3cret"), "{}", ran.output);
    assert_eq!(std::fs::read_to_string(world.path("home/project/.netrc")).unwrap(), "s3cret");
    let world = home(SandboxLevel::Landlock);
    let refused = world.sandbox().command(run(Some(&world.path("home/project")), "true")).await;
    assert!(matches!(refused, Err(Error::Hidden(path)) if path.ends_with(".netrc")));
}

#[tokio::test]
async fn readable_folders_do_not_show_what_is_private_in_them() {
    for level in LEVELS {
        let mut world = home(level);
        std::fs::write(world.path("home/more/tool"), "tool").unwrap();
        symlink(world.path("home/.ssh"), world.path("home/more/keys")).unwrap();
        symlink(world.path("data"), world.path("outside/link")).unwrap();
        world.settings.readable = vec![world.home.path().to_owned(), world.path("outside/link")];
        let home = world.path("home");
        let home = home.display();
        let script = format!(
            "cat {home}/more/tool; cat {home}/.local/state/orchestr8/log.key {home}/.ssh/id_rsa {home}/.vault-token \
             {home}/more/keys/id_rsa {home}/../data/orchestr8.sqlite3 {home}/../outside/link/orchestr8.sqlite3"
        );
        let ran = world.shell(&script).await;
        assert!(ran.output.starts_with("tool"), "{level}: {}", ran.output);
        assert!(!ran.output.contains("s3cret"), "{level}: {}", ran.output);
    }
}

#[tokio::test]
async fn what_is_hidden_is_not_moved_away_with_the_folder_around_it() {
    let mut world = World::at(SandboxLevel::Namespaces);
    std::fs::create_dir_all(world.path("work/a/b/state")).unwrap();
    std::fs::write(world.path("work/a/b/state/key"), "s3cret").unwrap();
    world.settings.places.protected.push(world.path("work/a/b/state"));
    let ran = world
        .shell("mv a c; mv a/b c; rm -rf a; mkdir -p a/b/state; echo planted > a/b/state/key; find . -type f; echo x > a/b/own")
        .await;
    assert!(!ran.output.contains("s3cret"), "{}", ran.output);
    assert_eq!(std::fs::read_to_string(world.path("work/a/b/state/key")).unwrap(), "s3cret");
    assert!(world.path("work/a/b/own").exists(), "the folder around it can be written");
    world.settings.places.protected.push(world.path("work/missing"));
    let refused = world.sandbox().command(run(Some(&world.path("work")), "true")).await;
    assert!(matches!(refused, Err(Error::Hidden(path)) if path.ends_with("missing")), "it could be created");
}

/// Only root can mount a folder twice, in a mount namespace of its own.
#[test]
fn a_second_mount_of_what_is_protected_is_no_working_directory() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for level in LEVELS {
        let world = World::at(level);
        let elsewhere = tempfile::tempdir_in("/var/tmp").unwrap();
        let serve = |mounted: &str, directory: &str| {
            let script = format!(
                "mount --bind {mounted} {alias} && exec {confine} serve {level} {data} {directory} 'find . > found'",
                mounted = world.path(mounted).display(),
                alias = elsewhere.path().display(),
                confine = env!("CARGO_BIN_EXE_confine"),
                data = world.path("data").display(),
                directory = elsewhere.path().join(directory).display(),
            );
            let mut command = std::process::Command::new("unshare");
            command.args(["-m", "--propagation", "private", "sh", "-c", &script]).status().unwrap().success()
        };
        assert!(serve("work", ""), "{level}: another folder may be mounted twice");
        assert!(world.path("work/found").exists(), "{level}");
        for (mounted, directory) in [("data", ""), ("", ""), ("", "data")] {
            assert!(!serve(mounted, directory), "{level} {mounted} {directory}");
        }
        assert!(!world.path("data/found").exists() && !world.path("found").exists(), "{level}");
    }
}
