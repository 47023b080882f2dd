//! What contradicts itself is refused; what does not means what it says.

use super::*;

fn settings(text: &str, variables: &[(&str, &str)], mode: Mode) -> Result<Settings, Failure> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orchestr8.toml");
    std::fs::write(&path, text).unwrap();
    let environment = Environment::of(variables);
    Settings::new(config::load(Some(&path), Vec::new(), &environment)?, mode, &environment)
}

fn lines(text: &str) -> Vec<String> {
    let failure = settings(text, &[("HOME", "/home/ada")], Mode::default()).err().unwrap();
    failure.lines.iter().map(|line| line.split(" (in ").next().unwrap().to_owned()).collect()
}

#[test]
fn data_is_kept_where_the_nearest_wish_says() {
    let home = [("HOME", "/home/ada")];
    let there =
        |text: &str, variables: &[(&str, &str)], mode| settings(text, variables, mode).unwrap().store.place;
    let file = |path: &str, explicit| Place::File { path: path.into(), explicit };
    let dir = Mode { data_dir: Some("d".into()), ..Mode::default() };
    assert_eq!(
        there("", &home, Mode::default()),
        file("/home/ada/.local/share/orchestr8/orchestr8.sqlite3", false)
    );
    let variable = [("ORCHESTR8_DATA_DIR", "/v"), ("HOME", "/home/ada")];
    assert_eq!(there("", &variable, Mode::default()), file("/v/orchestr8.sqlite3", false));
    assert_eq!(there("store.path = 'x.db'", &variable, Mode::default()), file("x.db", true));
    assert_eq!(there("store.path = 'x.db'", &variable, dir), file("d/orchestr8.sqlite3", true));
    assert_eq!(there("", &home, Mode { ephemeral: true, ..Mode::default() }), Place::Memory);
    assert_eq!(settings("", &[], Mode::default()).err().unwrap().code, Code::Configuration);
}

#[test]
fn admin_tools_need_both_flags() {
    let admin = |text: &str| settings(text, &[("HOME", "/")], Mode::default()).unwrap().admin;
    assert_eq!(admin("tools.adminRegistrationEnabled = true"), None);
    assert_eq!(admin("security.dynamicRegistrationEnabled = true"), None);
    let both = "tools.adminRegistrationEnabled = true\nsecurity.dynamicRegistrationEnabled = true\n";
    assert_eq!(admin(both), Some(AdminMode::DenyAll));
    assert_eq!(
        admin(&format!("{both}tools.adminPolicy.mode = 'local_stdio_only'")),
        Some(AdminMode::LocalStdioOnly)
    );
}

#[test]
fn a_token_policy_needs_a_token() {
    let mode = "tools.adminPolicy.mode = 'token'\n";
    assert_eq!(lines(mode), ["tools.adminPolicy.tokenEnvVar: is missing; mode token needs it (the default)"]);
    let named = format!("{mode}tools.adminPolicy.tokenEnvVar = 'SECRET'");
    let what =
        "tools.adminPolicy.tokenEnvVar: names the environment variable SECRET, which is not set or empty";
    assert_eq!(lines(&named), [what]);
    assert!(
        settings(&named, &[("HOME", "/"), ("SECRET", "x")], Mode::default()).unwrap().admin_token.is_some()
    );
}

#[test]
fn servers_are_reached_in_exactly_one_way() {
    let text = "[mcpServers]\na = { disabled = true }\nb = { command = 'x', url = 'http://b' }\n\
        c = { command = 'x', type = 'http' }\nd = { url = 'http://d', type = 'stdio' }\ne = { url = 'ftp://e' }\nf = { command = 'x' }\n";
    assert_eq!(
        lines(text),
        [
            "mcpServers.a.command: is missing; give command, or url (the default)",
            "mcpServers.b.url: stands beside command; give one of them",
            "mcpServers.c.type: is http or sse, which need url",
            "mcpServers.d.type: is stdio, which needs command",
            "mcpServers.e.url: must begin with http:// or https://",
        ]
    );
    let text = "[mcpServers]\na = { command = 'x', disabled = true }\nb = { command = 'x' }\n";
    let servers = settings(text, &[("HOME", "/")], Mode::default()).unwrap().upstreams.servers;
    assert_eq!(servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn the_same_token_for_two_people_is_refused() {
    let hash = "ab".repeat(32);
    let upper = hash.to_uppercase();
    let text = format!(
        "[[auth.tokens]]\nname='a'\nsha256='{hash}'\n[[auth.tokens]]\nname='b'\nsha256='{upper}'\ntenant='x y'\n"
    );
    let said = lines(&text);
    assert!(said[0].starts_with("auth.tokens[1].tenant: "), "{said:?}");
    assert_eq!(said[1], "auth.tokens[1].sha256: is there twice; which of the two names would count?");
}

#[test]
fn kno_3_a_profile_needs_what_it_checks_with() {
    assert_eq!(
        lines("knowledge.security.profile = 'basic'"),
        [
            "knowledge.security.issuer: is missing; knowledge.security.profile = \"basic\" needs it (the default)",
            "knowledge.security.audience: is missing; knowledge.security.profile = \"basic\" needs it (the default)",
            "knowledge.security.keySetFile: is missing; knowledge.security.profile = \"basic\" needs it (the default)",
        ]
    );
    let unused = lines("knowledge.security.issuer = 'https://id.example.org'");
    assert_eq!(
        unused,
        ["knowledge.security.issuer: has a meaning only for knowledge.security.profile = \"basic\""]
    );
    let basic = "[knowledge.security]\nprofile = 'basic'\nissuer = 'i'\naudience = 'a'\n";
    let home = [("HOME", "/home/ada")];
    let wrong = |text: &str| settings(text, &home, Mode::default()).err().unwrap();
    let missing = wrong(&format!("{basic}keySetFile = '/nowhere.json'"));
    assert_eq!(missing.code, Code::Configuration);
    assert!(
        missing.message.starts_with("knowledge.security.keySetFile: /nowhere.json: "),
        "{}",
        missing.message
    );
    let nonsense = wrong(&format!("{basic}keySet = '{{\"keys\":[]}}'"));
    assert!(nonsense.message.starts_with("knowledge.security.keySet: the key set: "), "{}", nonsense.message);
    let key = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    let good =
        settings(&format!("{basic}keySet = '{key}'\nrolesClaim = 'scope'"), &home, Mode::default()).unwrap();
    let orchestr8_knowledge_face::Security::Basic(trust) = good.knowledge.security else { panic!() };
    assert_eq!((trust.issuer.as_str(), trust.roles_claim.as_str()), ("i", "scope"));
}

#[test]
fn settings_of_knowledge_that_make_no_sense_together_are_refused() {
    assert_eq!(
        lines("knowledge.webBase = 'app.example.org'"),
        ["knowledge.webBase: must begin with http:// or https://"]
    );
    assert_eq!(
        lines("knowledge.pubsub.maxDelayMs = 100"),
        ["knowledge.pubsub.maxDelayMs: is less than knowledge.pubsub.baseDelayMs"]
    );
    let open = "http.listen = '0.0.0.0:8088'\nknowledge.testMode = true";
    assert_eq!(
        lines(open),
        ["knowledge.testMode: is for tests, and http.listen is an address others can reach"]
    );
    let home = [("HOME", "/home/ada")];
    let given =
        settings("knowledge.rate.perMinute = 0\nknowledge.pubsub.enabled = false", &home, Mode::default());
    let knowledge = given.unwrap().knowledge;
    assert!(knowledge.rate_per_minute.is_none() && knowledge.pubsub.is_none());
}

#[test]
fn words_take_as_much_memory_as_is_said() {
    let words =
        |text: &str| settings(text, &[("HOME", "/")], Mode::default()).unwrap().knowledge.domain.words;
    assert_eq!(words(""), orchestr8_knowledge::words::Settings::default());
    assert_eq!(words("knowledge.words.memoryMb = 16").memory_bytes, 16 << 20);
    assert_eq!(words("knowledge.words.memoryMb = 0").memory_bytes, 0);
}

#[test]
fn vectors_are_indexed_here_or_on_a_server() {
    let vectors = |text: &str| settings(text, &[("HOME", "/"), ("QKEY", "k")], Mode::default());
    let here = vectors("knowledge.vectors.memoryMb = 16").unwrap().vectors;
    assert!(matches!(here, Vectors::Embedded { memory_bytes: 16_777_216 }));
    let text = "[knowledge.vectors]\nengine = 'qdrant'\nurl = 'https://q.example'\nkeyVariable = 'QKEY'";
    let Vectors::Qdrant(there) = vectors(text).unwrap().vectors else { panic!("not there") };
    assert_eq!((there.url.as_str(), there.key.as_deref()), ("https://q.example/", Some("k")));
    for wrong in ["url = 'ftp://x'", "url = 'nothing'", "collection = 'a b'", "keyVariable = 'NOBODY'"] {
        let text = format!("[knowledge.vectors]\nengine = 'qdrant'\n{wrong}");
        assert_eq!(vectors(&text).err().unwrap().code, Code::Configuration, "{wrong}");
    }
}

#[test]
fn a_declared_secret_is_bound_and_has_a_value() {
    let home = [("HOME", "/home/ada"), ("TOKEN", "a-long-enough-value"), ("SHORT", "short")];
    let of = |rest: &str| {
        settings(&format!("[secrets.named.SHOP]\nenv = 'TOKEN'\n{rest}"), &home, Mode::default())
            .map(|settings| settings.secrets.declared.len())
            .map_err(|failure| failure.lines.join("\n"))
    };
    let bound = "workflows = ['shop']\nto = ['api.shop.example:Authorization']";
    assert_eq!(of(bound), Ok(1));
    for (wrong, key) in [
        ("", "secrets.named.SHOP.to"),
        ("workflows = ['shop']", "secrets.named.SHOP.to"),
        ("to = ['api.shop.example:Authorization']", "secrets.named.SHOP.to"),
        ("workflows = ['shop']\nto = ['everywhere']", "secrets.named.SHOP.to"),
        ("workflows = ['shop']\nto = ['h.example:X']\nfile = 'f'", "secrets.named.SHOP.file"),
        ("workflows = ['shop']\nto = ['h.example:X']\ntenant = 'a b'", "secrets.named.SHOP.tenant"),
    ] {
        let told = of(wrong).unwrap_err();
        assert!(told.contains(key), "{wrong}: {told}");
    }
    let missing = format!("[secrets.named.SHOP]\n{bound}");
    let told = settings(&missing, &home, Mode::default()).err().unwrap().lines.join("\n");
    assert!(told.contains("ORCHESTR8_SECRET_SHOP is not set"), "{told}");
    let short = format!("[secrets.named.SHOP]\nenv = 'SHORT'\n{bound}");
    assert!(settings(&short, &home, Mode::default()).is_err());
}

#[test]
fn the_data_file_is_encrypted_where_a_key_is_named() {
    let home = [("HOME", "/home/ada"), ("K", "secret")];
    let key = |text: &str| settings(text, &home, Mode::default()).map(|settings| settings.store.key);
    assert!(matches!(key(""), Ok(None)));
    assert!(matches!(key("store.key.env = 'K'"), Ok(Some(KeyLocation::Variable { value: Some(_), .. }))));
    assert!(matches!(key("store.key.file = '/k'"), Ok(Some(KeyLocation::File(_)))));
    assert!(key("store.key.env = 'K'\nstore.key.file = '/k'").is_err());
    let beside = key("store.key.file = '/home/ada/.local/share/orchestr8/key'").err().unwrap();
    assert!(beside.message.starts_with("store.key: "), "{}", beside.message);
    let read = settings("store.key.env = 'K'\nworkflows.env = ['K']", &home, Mode::default());
    assert!(read.is_err(), "definitions do not read the key");
}

#[test]
fn the_key_of_secrets_comes_from_one_place() {
    let home = [("HOME", "/home/ada")];
    let key = |text: &str| settings(text, &home, Mode::default()).map(|settings| settings.secrets.key);
    assert!(
        matches!(key(""), Ok(KeyLocation::Created(Some(path))) if path.ends_with(".config/orchestr8/secrets.key"))
    );
    assert!(matches!(key("secrets.key.env = 'K'"), Ok(KeyLocation::Variable { value: None, .. })));
    assert!(
        matches!(key("secrets.key.command = ['kms', 'print']"), Ok(KeyLocation::Command(words)) if words.len() == 2)
    );
    assert!(key("secrets.key.env = 'K'\nsecrets.key.file = '/k'").is_err());
    assert!(key("secrets.key.file = '/home/ada/.local/share/orchestr8/key'").is_err(), "beside the data");
}

#[test]
fn what_belongs_to_the_server_is_private_wherever_the_settings_put_it() {
    let variables = [("HOME", "/home/ada"), ("XDG_STATE_HOME", "/state"), ("XDG_CONFIG_HOME", "/config")];
    let secret = tempfile::NamedTempFile::new().unwrap();
    let secret = secret.path().display().to_string();
    std::fs::write(&secret, "a value of a secret").unwrap();
    let text = format!(
        "secrets.key.file = '/keys/s'\naudit.keyFile = '/keys/a'\naudit.anchors = ['file:/keys/h']\n\
         secrets.named.N = {{ file = '{secret}', workflows = ['w'], to = ['example.com:Authorization'] }}\n"
    );
    let places = settings(&text, &variables, Mode::default()).unwrap().sandbox.places;
    for folder in ["/state/orchestr8", "/config/orchestr8", "/home/ada/.local/share/orchestr8"] {
        assert!(places.protected.contains(&folder.into()), "{folder}: {:?}", places.protected);
    }
    for file in ["/keys/s", "/keys/a", "/keys/h", &secret, "/home/ada/.vault-token", "/home/ada/.npmrc"] {
        assert!(places.hidden.contains(&file.into()), "{file}");
    }
    assert!(
        places.hidden.iter().any(|path| path.ends_with("orchestr8.toml")),
        "a configuration that was named"
    );
    assert_eq!(places.homes, [std::path::PathBuf::from("/home/ada")]);
    let places = settings("store.path = '/s/x.db'", &variables, Mode::default()).unwrap().sandbox.places;
    assert!(places.hidden.contains(&"/s/x.db".into()) && places.hidden.contains(&"/s/x.db-wal".into()));
    let roots = settings("", &variables, Mode::default()).unwrap().sessions.roots;
    assert!(roots.personal.is_empty() && roots.homes == ["/home/ada"].map(std::path::PathBuf::from));
    assert!(roots.closed.contains(&"/state/orchestr8".into()), "{:?}", roots.closed);
}
