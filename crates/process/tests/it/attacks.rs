//! What programs try, and do not get, at both levels.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use orchestr8_process::sandbox::{Error, SandboxLevel, SandboxMode};

use crate::world::{World, run};

pub const LEVELS: [SandboxLevel; 2] = [SandboxLevel::Namespaces, SandboxLevel::Landlock];

/// A program that tells whether a call of Python succeeds.
pub fn python(line: &str) -> String {
    format!("python3 - <<'END'\nimport os, socket, ctypes\n{line}\nprint('SUCCEEDED')\nEND")
}

#[tokio::test]
async fn a_program_works_in_its_directory() {
    for level in LEVELS {
        let world = World::at(level);
        let ran = world.shell("pwd; echo hi > file && cat file; mktemp >/dev/null && echo tmp; exit 3").await;
        assert_eq!(ran.output, format!("{}\nhi\ntmp\n", world.path("work").display()));
        assert_eq!((ran.code, ran.level), (Some(3), level));
        assert_eq!(std::fs::read_to_string(world.path("work/file")).unwrap(), "hi\n");
        let ran = world.shell("kill -9 $$").await;
        assert_eq!(ran.code, Some(137), "a signal is 128 and its number");
        let ran = world
            .shell("echo '{\"a\": 1}' | python3 -c 'import json,sys; print(json.load(sys.stdin))'")
            .await;
        assert_eq!(ran.output, "{'a': 1}\n", "pipes between programs are no sockets");
        let pair = python("a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'");
        assert_eq!(world.shell(&pair).await.output, "SUCCEEDED\n", "nor are pairs");
    }
}

#[tokio::test]
async fn files_outside_are_neither_read_nor_written() {
    for level in LEVELS {
        let world = World::at(level);
        let outside = world.path("outside");
        let outside = outside.display();
        std::os::unix::fs::symlink(world.path("outside/secret"), world.path("work/link")).unwrap();
        let attacks = [
            format!("cat {outside}/secret"),
            format!("echo x >> {outside}/secret"),
            format!("truncate -s 0 {outside}/secret"),
            format!("rm {outside}/secret"),
            format!("mv {outside}/secret ."),
            format!("ln {outside}/secret hard"),
            format!("ls {outside}"),
            format!("mkdir {outside}/new"),
            String::from("cat link"),
            String::from("cat ../data/orchestr8.sqlite3"),
            String::from("cat /etc/shadow"),
            String::from("cat /etc/sudoers"),
            String::from("ls /root"),
            String::from("ls /home/*"),
            String::from("touch /usr/bin/new"),
            String::from("touch /etc/new"),
            String::from("echo x > /proc/sys/kernel/core_pattern"),
            format!("cat /proc/{}/environ", std::process::id()),
            format!("kill -0 {}", std::process::id()),
        ];
        for attack in attacks {
            let ran = world.shell(&attack).await;
            assert_ne!(ran.code, Some(0), "{level} {attack}: {}", ran.output);
            assert!(!ran.output.contains("s3cret"), "{level} {attack}");
        }
        assert_eq!(std::fs::read_to_string(world.path("outside/secret")).unwrap(), "s3cret");
    }
}

#[tokio::test]
async fn what_is_hidden_is_not_in_reach_even_inside_of_the_directory() {
    let world = World::at(SandboxLevel::Namespaces);
    let ran =
        world.shell_in(world.home.path(), "ls -A data; cat data/orchestr8.sqlite3; cat outside/secret").await;
    assert!(ran.output.ends_with("s3cret") && ran.output.matches("s3cret").count() == 1, "{}", ran.output);
    let ran =
        world.shell_in(world.home.path(), "umount data; rm -rf data; mv data other; echo x > data/x").await;
    assert_ne!(ran.code, Some(0));
    assert_eq!(std::fs::read_to_string(world.path("data/orchestr8.sqlite3")).unwrap(), "s3cret");
    for level in LEVELS {
        let world = World::at(level);
        let inside = world.sandbox().command(run(Some(&world.path("data")), "true")).await;
        assert!(matches!(inside, Err(Error::Hidden(_))), "{level}");
    }
    // Landlock cannot take anything out of what it shows.
    let world = World::at(SandboxLevel::Landlock);
    let above = world.sandbox().command(run(Some(world.home.path()), "cat data/orchestr8.sqlite3")).await;
    assert!(matches!(above, Err(Error::Hidden(_))));
}

#[tokio::test]
async fn there_is_no_network_and_no_socket() {
    for level in LEVELS {
        let world = World::at(level);
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let pathname = UnixListener::bind(world.path("work/socket")).unwrap();
        let attacks = [
            format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
            python(&format!("socket.create_connection(('127.0.0.1', {port}), 2)")),
            python("s = socket.socket(socket.AF_UNIX); s.connect('socket')"),
            python("s = socket.socket(socket.AF_UNIX); s.connect('\\0abstract')"),
            python("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"),
            python("socket.socketpair(socket.AF_INET)"),
        ];
        for attack in attacks {
            let ran = world.shell(&attack).await;
            assert_ne!(ran.code, Some(0), "{level} {attack}: {}", ran.output);
            assert!(!ran.output.contains("SUCCEEDED"), "{level} {attack}");
        }
        server.set_nonblocking(true).unwrap();
        assert!(server.accept().is_err(), "{level}: nothing came");
        pathname.set_nonblocking(true).unwrap();
        assert!(pathname.accept().is_err(), "{level}: nothing came");
    }
}

#[tokio::test]
async fn calls_that_only_attacks_need_are_refused() {
    for level in LEVELS {
        let world = World::at(level);
        // Numbers are those of x86-64; 1073741865 is `socket` in the numbers of x32.
        let numbers: &[(&str, i64)] = match cfg!(target_arch = "x86_64") {
            true => &[
                ("ptrace", 101),
                ("mount", 165),
                ("keyctl", 250),
                ("unshare", 272),
                ("io_uring_setup", 425),
                ("bpf", 321),
                ("socket of x32", 0x4000_0000 + 41),
            ],
            false => &[("io_uring_setup", 425), ("fsopen", 430)],
        };
        for (name, number) in numbers {
            // 1 as the first argument: AF_UNIX, and harmless elsewhere.
            let line = format!(
                "libc = ctypes.CDLL(None, use_errno=True)\nr = libc.syscall({number}, 1, 1, 0, 0, 0)\n\
                 print(r, ctypes.get_errno())\nassert r != -1"
            );
            let ran = world.shell(&python(&line)).await;
            let answer = ran.output.lines().next().unwrap_or_default().to_owned();
            assert!(answer == "-1 1" || answer == "-1 38", "{level} {name}: {}", ran.output);
        }
        assert_ne!(world.shell("unshare -Ur true").await.code, Some(0), "{level}");
    }
}

#[tokio::test]
async fn bombs_are_bounded() {
    for level in LEVELS {
        let world = World::at(level);
        // Without namespaces no limit of the kernel holds for root, so that a test of it would be the attack itself.
        if level == SandboxLevel::Namespaces {
            let forks = world.shell("bomb() { bomb | bomb & }; bomb; sleep 20; echo SURVIVED").await;
            assert!(!forks.output.contains("SURVIVED"), "{level}: {}", forks.output);
        }
        let many = python(
            "import time\nfor _ in range(2000):\n  if os.fork() == 0:\n    time.sleep(20)\n    os._exit(0)",
        );
        let ran = world.shell(&many).await;
        assert!(!ran.output.contains("SUCCEEDED"), "{level}: {}", ran.output);
        let memory = world.shell(&python("x = bytearray(1 << 30)")).await;
        assert!(!memory.output.contains("SUCCEEDED"), "{level}: {}", memory.output);
        // Each process stays below the limit, all together do not.
        let together = python(
            "import time\nfor _ in range(8):\n  if os.fork() == 0:\n    x = bytearray(os.urandom(1 << 20) * 64)\n    time.sleep(20)\n    os._exit(0)\ntime.sleep(20)",
        );
        let ran = world.shell(&together).await;
        assert!(ran.code == Some(137) && ran.output.contains("sandbox.memoryMb"), "{level}: {}", ran.output);
        let mut world = world;
        world.settings.limits.file_bytes = 1 << 20;
        assert_ne!(world.shell("head -c 2000000 /dev/zero > big").await.code, Some(0), "{level}");
        assert!(std::fs::metadata(world.path("work/big")).unwrap().len() <= 1 << 20, "{level}");
    }
}

#[tokio::test]
async fn a_host_that_cannot_confine_is_told_apart_and_refused() {
    let mut world = World::new();
    world.settings.launcher = None;
    let refused = world.sandbox().command(run(None, "true")).await;
    let Err(error @ Error::Unavailable(_)) = refused else { panic!("it was not refused") };
    assert!(error.to_string().contains("`sandbox.mode`"), "{error}");
    for mode in [SandboxMode::BestEffort, SandboxMode::Off] {
        world.settings.mode = mode;
        assert_eq!(world.shell("true").await.level, SandboxLevel::Unconfined);
    }
}

#[tokio::test]
async fn a_program_that_was_replaced_is_not_run() {
    use orchestr8_process::sandbox::{FileIdentity, SandboxRun};
    for level in LEVELS {
        let world = World::at(level);
        let script = world.path("outside/tool.sh");
        let mut file = std::fs::File::create(&script).unwrap();
        file.write_all(b"#!/bin/sh\necho tool\n").unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        drop(file);
        let identity = Some(FileIdentity::of(&std::fs::metadata(&script).unwrap()));
        let tool = || SandboxRun {
            program: script.clone(),
            args: Vec::new(),
            directory: None,
            sealed: Vec::new(),
            identity,
        };
        assert_eq!(world.run(tool()).await.output, "tool\n", "{level}: it can be read wherever it lies");
        std::fs::rename(&script, world.path("outside/old.sh")).unwrap();
        std::fs::copy("/usr/bin/id", &script).unwrap();
        let ran = world.run(tool()).await;
        assert!(
            ran.code == Some(125) && ran.output.contains("is not the file it was"),
            "{level}: {}",
            ran.output
        );
    }
}

/// Other users have no capability to begin with, so that both levels are built differently for them.
#[tokio::test]
async fn without_root_it_is_the_same() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        // Then all other tests show it.
        return;
    }
    for level in LEVELS {
        let world = World::at(level);
        let open = |path: &std::path::Path| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        open(world.home.path());
        let launcher = world.path("launcher");
        std::fs::copy(env!("CARGO_BIN_EXE_confine"), &launcher).unwrap();
        open(&launcher);
        for folder in ["work", "data"] {
            chown(world.path(folder), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let script = "id -u; echo x > file && echo written; cat ../outside/secret; cat ../data/orchestr8.sqlite3; \
                      grep CapPrm /proc/self/status; \
                      python3 -c 'import socket; socket.socket()'; ulimit -u; exit 0";
        let ran = std::process::Command::new(&launcher)
            .args(["serve", level.as_str()])
            .args([world.path("data"), world.path("work")])
            .arg(format!("{{ {script}; }} > said 2>&1"))
            .current_dir("/")
            .uid(NOBODY)
            .gid(NOBODY)
            .status()
            .unwrap();
        assert!(ran.success(), "{level}");
        let said = std::fs::read_to_string(world.path("work/said")).unwrap();
        assert!(said.starts_with("65534\nwritten\n"), "{level}: {said}");
        assert!(!said.contains("s3cret") && said.contains("CapPrm:\t0000000000000000"), "{level}: {said}");
        assert!(said.contains("Operation not permitted"), "{level}: {said}");
    }
}
