//! From files and variables to one typed whole.

use super::*;

fn written(text: &str, environment: &Environment) -> Result<Loaded, Failure> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orchestr8.toml");
    std::fs::write(&path, text).unwrap();
    load(Some(&path), Vec::new(), environment)
}

#[test]
fn nothing_written_is_the_seeds_defaults() {
    let loaded = load(None, Vec::new(), &Environment::default()).unwrap();
    let config = &loaded.config;
    assert_eq!((config.server.name.as_str(), config.server.shutdown_timeout_ms), ("orchestr8", 10_000));
    assert_eq!((config.tools.default_timeout_ms, config.tools.max_payload_bytes), (30_000, 1_048_576));
    assert_eq!((config.tools.max_state_bytes, config.resources.max_concurrent_executions), (262_144, 10));
    assert_eq!(config.tools.admin_policy.mode, AdminMode::DenyAll);
    assert!(!config.tools.admin_registration_enabled && !config.security.dynamic_registration_enabled);
    assert!(!config.security.allow_arbitrary_code_tools);
    assert_eq!((config.logging.level, config.logging.redact_keys.len()), (LogLevel::Info, 9));
    assert_eq!(config.aacp.default_ttl_ms, 86_400_000);
    assert_eq!(config.protocol.eras, [Era::Legacy, Era::Modern]);
    assert_eq!(config.store.sync, Sync::Full);
    assert!(config.auth.tokens.is_empty() && config.mcp_servers.is_empty());
}

#[test]
fn every_setting_can_be_written() {
    let text = r#"
        [server]
        name = "mine"
        instructions = "Be kind."
        [tools]
        filter = ["agent.*"]
        adminPolicy = { mode = "token", tokenEnvVar = "ADMIN" }
        [store]
        path = "data/x.sqlite3"
        sync = "normal"
        maxBytes = 1073741824
        [http]
        maxConnectionsPerIp = 5
        [[auth.tokens]]
        name = "ci"
        sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
        [protocol]
        eras = ["legacy"]
        [mcpServers.files]
        type = "stdio"
        command = "npx"
        args = ["-y", "server"]
        env = { HOME = "/" }
        cwd = "/srv"
        timeoutMs = 1000
        [mcpServers.web]
        url = "https://example.org/mcp"
        headers = { Authorization = "Bearer x" }
        disabled = true
    "#;
    let loaded = written(text, &Environment::default()).unwrap();
    let config = &loaded.config;
    assert_eq!(config.tools.admin_policy.token_env_var.as_deref(), Some("ADMIN"));
    assert_eq!(config.auth.tokens[0].tenant, "default");
    assert_eq!(config.mcp_servers["files"].args, ["-y", "server"]);
    assert!(config.mcp_servers["web"].disabled);
    assert_eq!(config.http.max_connections_per_ip, Some(5));
    assert!(matches!(loaded.origin("store.sync"), Origin::File(_)));
    assert_eq!(loaded.origin("store.retentionDays"), Origin::Default);
}

#[test]
fn all_problems_come_in_one_failure() {
    let environment = Environment::of(&[("ORCHESTR8_TOOLS_DEFAULT_TIMEOUT_MS", "fast")]);
    let failure = written("[tools]\nmaxPaylodBytes = 1\n", &environment).unwrap_err();
    assert_eq!(failure.message, "2 settings are wrong");
    assert!(
        failure.lines[0]
            .starts_with("tools.maxPaylodBytes: is not a setting; did you mean tools.maxPayloadBytes? (in ")
    );
    assert_eq!(
        failure.lines[1],
        "tools.defaultTimeoutMs: \"fast\" must be a whole number from 1 to 86400000 (from the environment variable \
         ORCHESTR8_TOOLS_DEFAULT_TIMEOUT_MS)"
    );
    assert_eq!(failure.exit_code(), crate::failure::exit::INVALID);
}
