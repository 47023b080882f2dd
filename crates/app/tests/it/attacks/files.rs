//! Links, pipes and loose permissions where this program keeps or changes files (CWE-59, CWE-732).

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::program::Place;

const CLAUDE: [&str; 4] = ["mcp", "install", "--client", "claude"];

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_data_directory_that_others_can_write_is_refused_with_the_command_that_mends_it() {
    for mode in [0o777, 0o770] {
        let place = Place::new();
        fs::create_dir(place.path().join("data")).unwrap();
        allow(&place.path().join("data"), mode);
        for args in
            [&["list", "--data-dir", "data"][..], &["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]]
        {
            let said = place.run(args);
            assert_eq!(said.code, Some(2), "{said:?}");
            assert!(
                said.err.contains("can be written by other users")
                    && said.err.contains("chmod go-w $PLACE/data"),
                "{said:?}"
            );
        }
        assert_eq!(fs::read_dir(place.path().join("data")).unwrap().count(), 0, "nothing was put there");
        let doctor = place.run(&["doctor", "--data-dir", "data"]);
        assert!(
            doctor.code == Some(1)
                && doctor.out.contains("FAIL  permissions")
                && doctor.out.contains("chmod go-w"),
            "{doctor:?}"
        );
        allow(&place.path().join("data"), 0o700);
        assert_eq!(place.run(&["list", "--data-dir", "data"]).code, Some(0));
    }
}

#[test]
fn a_folder_of_our_own_is_for_its_owner_alone() {
    let place = Place::new();
    assert_eq!(place.run(&["list", "--data-dir", "fresh"]).code, Some(0));
    let mode = |name: &str| fs::metadata(place.path().join("fresh").join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode(""), mode("orchestr8.sqlite3"), mode("orchestr8.sqlite3.lock")), (0o700, 0o600, 0o600));
    allow(&place.path().join("fresh/orchestr8.sqlite3"), 0o644);
    let doctor = place.run(&["doctor", "--data-dir", "fresh"]);
    assert!(doctor.out.contains("warn  permissions") && doctor.out.contains("chmod 600"), "{doctor:?}");
}

#[test]
fn nothing_is_written_through_a_link_in_the_place_of_the_lock() {
    let place = Place::new();
    place.plant("victim", "precious");
    fs::create_dir(place.path().join("data")).unwrap();
    let lock = place.path().join("data/orchestr8.sqlite3.lock");
    symlink(place.path().join("victim"), &lock).unwrap();
    let said = place.run(&["list", "--data-dir", "data"]);
    assert!(said.code == Some(2) && said.err.contains("is a symbolic link"), "{said:?}");
    fs::remove_file(&lock).unwrap();
    fs::hard_link(place.path().join("victim"), &lock).unwrap();
    let said = place.run(&["list", "--data-dir", "data"]);
    assert!(said.code == Some(2) && said.err.contains("hard link"), "{said:?}");
    assert_eq!(place.read("victim"), "precious");
}

#[test]
fn the_file_of_an_editor_is_not_written_through_a_link() {
    let place = Place::new();
    place.plant("victim.json", "{}");
    symlink(place.path().join("victim.json"), place.path().join(".mcp.json")).unwrap();
    let said = place.run(&CLAUDE);
    assert!(said.code == Some(2) && said.err.contains(".mcp.json is a symbolic link"), "{said:?}");
    fs::create_dir(place.path().join("elsewhere")).unwrap();
    symlink(place.path().join("elsewhere"), place.path().join(".cursor")).unwrap();
    let said = place.run(&["mcp", "install", "--client", "cursor"]);
    assert!(said.code == Some(2) && said.err.contains(".cursor is a symbolic link"), "{said:?}");
    assert_eq!(place.read("victim.json"), "{}");
    assert_eq!(fs::read_dir(place.path().join("elsewhere")).unwrap().count(), 0);
}

#[test]
fn pipes_are_refused_and_not_waited_for() {
    let place = Place::new();
    let owner = Mode::RUSR | Mode::WUSR;
    mkfifoat(CWD, place.path().join(".mcp.json"), owner).unwrap();
    let said = place.run(&CLAUDE);
    assert!(said.code == Some(2) && said.err.contains("is not a plain file"), "{said:?}");
    mkfifoat(CWD, place.path().join("orchestr8.json"), owner).unwrap();
    let said = place.run(&["list"]);
    assert!(said.code == Some(2) && said.err.contains("orchestr8.json is not a plain file"), "{said:?}");
}

/// Two readers of such a file see two different files.
#[test]
fn a_file_with_a_member_twice_is_left_alone() {
    let place = Place::new();
    let twice = r#"{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {}}"#;
    place.plant(".mcp.json", twice);
    let said = place.run(&CLAUDE);
    assert!(said.code == Some(2) && said.err.contains("the name \"mcpServers\" is there twice"), "{said:?}");
    assert_eq!(place.read(".mcp.json"), twice);
}

#[test]
fn a_key_in_the_data_directory_is_refused_also_through_a_link() {
    let place = Place::new();
    let data = place.data_file().parent().unwrap().to_owned();
    fs::create_dir_all(&data).unwrap();
    allow(&data, 0o700);
    fs::write(data.join("inner.key"), "x").unwrap();
    symlink(data.join("inner.key"), place.path().join("outer.key")).unwrap();
    symlink(&data, place.path().join("elsewhere")).unwrap();
    for key in ["outer.key", "elsewhere/inner.key"] {
        let path = place.path().join(key).display().to_string();
        place.write("orchestr8.toml", &format!("[secrets.key]\nfile = {path:?}\n"));
        let said = place.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert!(said.code == Some(2) && said.err.contains("is in the data directory"), "{key}: {said:?}");
    }
}

#[test]
fn loose_configuration_and_tls_keys_are_warned_of_and_exports_are_private() {
    let place = Place::new();
    place.write("tls.key", "no key");
    place.write("tls.pem", "no certificate");
    place.write("own.toml", "[http.tls]\ncert = 'tls.pem'\nkey = 'tls.key'\n");
    allow(&place.path().join("tls.key"), 0o644);
    allow(&place.path().join("own.toml"), 0o666);
    let said = place.run(&["serve", "--listen", "127.0.0.1:0", "--config", "own.toml"]);
    for wanted in ["http.tls.key: ", "chmod 600", "own.toml can be changed by other users"] {
        assert!(said.err.contains(wanted), "{wanted}: {said:?}");
    }
    assert_eq!(place.run(&["tokens", "create", "--name", "ci"]).code, Some(0));
    for (args, file) in [
        (&["audit", "export", "--output", "trail.jsonl"][..], "trail.jsonl"),
        (&["backup", "copy.sqlite3"][..], "copy.sqlite3"),
    ] {
        let script = format!("umask 000; exec \"$0\" {}", args.join(" "));
        let program = place.command(&[]).get_program().to_owned();
        let mut command = place.command(args);
        let mut shell = std::process::Command::new("/bin/sh");
        shell.arg("-c").arg(script).arg(program).current_dir(place.path());
        shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        assert!(shell.status().unwrap().success(), "{args:?} {:?}", command.output());
        let mode = fs::metadata(place.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}
