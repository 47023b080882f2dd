//! Named secrets from the command line: created, listed, rotated, deleted, encrypted under another key, and refused without one.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::program::{Place, Said};
use crate::workflows::json_of;

const VALUE: &str = "vault-canary-0123456789";

fn place() -> Place {
    Place::new().with("ORCHESTR8_HTTP_LISTEN", "127.0.0.1:1").with("VALUE", VALUE)
}

fn set(place: &Place, more: &[&str]) -> Said {
    let fixed = ["secrets", "set", "SHOP", "--workflow", "shop", "--to", "api.shop.example:Authorization"];
    place.run(&[&fixed, more].concat())
}

fn listed(place: &Place) -> Value {
    json_of(&place.run(&["secrets", "list", "--json"]))
}

fn key_file(place: &Place) -> std::path::PathBuf {
    place.path().join("home/.config/orchestr8/secrets.key")
}

fn is_in_data(place: &Place, text: &str) -> bool {
    let files = std::fs::read_dir(place.data_file().parent().unwrap()).unwrap();
    files.into_iter().any(|file| {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn a_secret_is_created_listed_rotated_and_deleted_without_showing_its_value() {
    let place = place();
    let said = set(&place, &["--from-env", "VALUE"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "SHOP is stored (version 1)\n"), "{said:?}");
    let mode = std::fs::metadata(key_file(&place)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let said = place.run(&["secrets", "list"]);
    assert!(said.out.contains("SHOP") && said.out.contains("api.shop.example:authorization"), "{said:?}");
    let said = place.run_with(&["secrets", "rotate", "SHOP"], "another-vault-canary\n");
    assert_eq!((said.code, said.out.as_str()), (Some(0), "SHOP has a new value (version 2)\n"), "{said:?}");
    place.write("value.txt", "yet-another-vault-canary\n");
    let loose = place.run(&["secrets", "rotate", "SHOP", "--from-file", "value.txt"]);
    assert_eq!(loose.code, Some(2), "others can read the file: {loose:?}");
    std::fs::set_permissions(place.path().join("value.txt"), PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(place.run(&["secrets", "rotate", "SHOP", "--from-file", "value.txt"]).code, Some(0));
    assert_eq!(listed(&place)["secrets"][0]["version"], 3);
    assert!(!is_in_data(&place, "vault-canary"));
    let backup = place.run(&["backup", "copy.sqlite3"]);
    assert_eq!(backup.code, Some(0), "{backup:?}");
    let copy = std::fs::read(place.path().join("copy.sqlite3")).unwrap();
    assert!(!copy.windows(12).any(|window| window == b"vault-canary"));
    assert_eq!(place.run(&["secrets", "delete", "SHOP"]).code, Some(2), "it is asked first");
    assert_eq!(place.run(&["secrets", "delete", "SHOP", "--yes"]).code, Some(0));
    assert_eq!(listed(&place)["secrets"], json!([]));
    assert_eq!(place.run(&["secrets", "rotate", "SHOP", "--from-env", "VALUE"]).code, Some(3));
}

#[test]
fn what_is_not_bound_or_too_short_is_refused() {
    let place = place().with("SHORT", "1234567");
    let short = set(&place, &["--from-env", "SHORT"]);
    assert_eq!(short.code, Some(2), "{short:?}");
    assert!(!short.err.contains("1234567"), "{short:?}");
    let alone = place.run(&["secrets", "set", "SHOP", "--from-env", "VALUE", "--to", "api.example:X-Key"]);
    assert_eq!(alone.code, Some(2), "no workflow and no agent: {alone:?}");
    let wrong =
        place.run(&["secrets", "set", "SHOP", "--from-env", "VALUE", "--workflow", "a", "--to", "*:X-Key"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let nameless = place.run(&[
        "secrets",
        "set",
        "A B",
        "--from-env",
        "VALUE",
        "--workflow",
        "a",
        "--to",
        "h.example:X",
    ]);
    assert_eq!(nameless.code, Some(2), "{nameless:?}");
    assert_eq!(listed(&place)["secrets"], json!([]));
}

#[test]
fn after_rekey_the_new_key_opens_everything_and_the_old_one_nothing() {
    let place = place();
    assert_eq!(set(&place, &["--from-env", "VALUE"]).code, Some(0));
    let old = std::fs::read_to_string(key_file(&place)).unwrap();
    let said = place.run(&["secrets", "rekey", "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let new = std::fs::read_to_string(key_file(&place)).unwrap();
    assert_ne!(old, new);
    assert_eq!(listed(&place)["locked"], Value::Null);
    // As if the process had died between the commit and the renaming of the key file.
    std::fs::rename(key_file(&place), key_file(&place).with_extension("key.new")).unwrap();
    std::fs::write(key_file(&place), &old).unwrap();
    std::fs::set_permissions(key_file(&place), PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(listed(&place)["secrets"][0]["name"], "SHOP");
    assert_eq!(std::fs::read_to_string(key_file(&place)).unwrap(), new, "the key that fits takes its place");
    std::fs::write(key_file(&place), &old).unwrap();
    let locked = listed(&place);
    assert!(locked["locked"].as_str().unwrap().contains("does not fit"), "{locked}");
    let refused = set(&place, &["--from-env", "VALUE"]);
    assert_eq!(refused.code, Some(7), "{refused:?}");
    assert!(refused.err.contains("SECRETS_UNAVAILABLE"), "{refused:?}");
}

#[test]
fn the_key_comes_from_where_the_settings_say_and_never_from_beside_the_data() {
    let key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    let place = place().with("MY_KEY", key).with("NEXT_KEY", &"0f".repeat(32));
    place.write("orchestr8.json", &json!({"secrets": {"key": {"env": "MY_KEY"}}}).to_string());
    assert_eq!(set(&place, &["--from-env", "VALUE"]).code, Some(0));
    assert!(!key_file(&place).exists());
    let said = place.run(&["secrets", "rekey", "--yes"]);
    assert_eq!(said.code, Some(2), "where is the new one? {said:?}");
    assert_eq!(place.run(&["secrets", "rekey", "--new-env", "NEXT_KEY", "--yes"]).code, Some(0));
    assert!(listed(&place)["locked"].is_string());
    place.write(
        "orchestr8.json",
        &json!({"secrets": {"key": {"command": ["printenv", "NEXT_KEY"]}}}).to_string(),
    );
    let place = place.with("PATH", "/usr/bin:/bin");
    assert_eq!(listed(&place)["secrets"][0]["name"], "SHOP");
    assert!(!is_in_data(&place, key) && !is_in_data(&place, VALUE));
    let beside = place.data_file().parent().unwrap().join("key");
    place.write("orchestr8.json", &json!({"secrets": {"key": {"file": beside}}}).to_string());
    let said = place.run(&["secrets", "list"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("data directory"), "{said:?}");
}
