//! The table keeps its own promises.

use std::collections::HashSet;
use std::sync::Arc;

use super::*;
use orchestr8_kernel::ports::ids::Counted;

#[test]
fn keys_and_variables_are_unique_and_every_setting_is_documented() {
    let mut seen = HashSet::new();
    for setting in SETTINGS {
        assert!(seen.insert(setting.key.to_owned()), "{}", setting.key);
        for variable in setting.variables() {
            assert!(seen.insert(variable.clone()), "{variable}");
        }
        assert!(setting.doc.ends_with('.'), "{}", setting.key);
    }
}

#[test]
fn every_default_is_a_value_its_own_setting_takes() {
    for setting in SETTINGS {
        let Some(value) = setting.preset.value().filter(|value| !value.is_null()) else { continue };
        assert!(setting.shape.accepts(&value), "{} = {value}", setting.key);
    }
}

/// A key of a provider is named by its variable or its secret, and stands in no file of settings.
#[test]
fn no_setting_holds_a_key_of_a_provider() {
    let of_providers =
        SETTINGS.iter().map(|setting| setting.key).filter(|key| key.starts_with("models.providers."));
    let about_keys: Vec<&str> = of_providers.filter(|key| key.to_lowercase().contains("key")).collect();
    assert_eq!(about_keys, ["models.providers.*.keyVariable", "models.providers.*.keySecret"]);
}

#[test]
fn variables_follow_from_keys() {
    let variable = |key: &str| SETTINGS.iter().find(|setting| setting.key == key).unwrap().variable();
    assert_eq!(variable("tools.defaultTimeoutMs").as_deref(), Some("ORCHESTR8_TOOLS_DEFAULT_TIMEOUT_MS"));
    assert_eq!(variable("tools.adminPolicy.mode").as_deref(), Some("ORCHESTR8_TOOLS_ADMIN_POLICY_MODE"));
    assert_eq!(variable("auth.tokens[].name"), None);
    assert_eq!(variable("mcpServers.*.command"), None);
}

/// The seed's names, all of them.
#[test]
fn the_other_names_of_the_environment_are_understood() {
    let aliases: HashSet<&str> = SETTINGS.iter().filter_map(|setting| setting.alias).collect();
    let seed = "SERVER_NAME TOOLS_DEFAULT_TIMEOUT_MS TOOLS_MAX_PAYLOAD_BYTES TOOLS_MAX_STATE_BYTES \
        TOOLS_ADMIN_REGISTRATION_ENABLED TOOLS_ADMIN_POLICY_MODE RESOURCES_MAX_CONCURRENT_EXECUTIONS LOGGING_LEVEL \
        LOGGING_REDACT_KEYS SECURITY_DYNAMIC_REGISTRATION_ENABLED AACP_DEFAULT_TTL_MS";
    for name in seed.split_whitespace() {
        assert!(aliases.contains(format!("MCP_{name}").as_str()), "{name}");
    }
}

/// Each part keeps its limits with their reasons; the table shows them to people. They must not drift apart.
#[test]
fn the_defaults_of_the_parts_are_shown_as_they_are() {
    let face = orchestr8_mcp::Settings::new("", "", [0; 32]);
    let tools = orchestr8_tools::Settings::new("", "");
    let edge = orchestr8_edge::Settings::new(Arc::new(Counted::default()));
    let shown = |key: &str| match SETTINGS.iter().find(|setting| setting.key == key).unwrap().preset {
        Preset::Int(value) => value.to_string(),
        Preset::Text(text) => text.to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(shown("tools.maxResultBytes"), face.max_result_bytes.to_string());
    assert_eq!(shown("tools.searchAbove"), tools.search_above.to_string());
    assert_eq!(shown("http.listen"), edge.listen.to_string());
    assert_eq!(shown("http.bodyLimitBytes"), edge.body_limit_bytes.to_string());
    assert_eq!(shown("http.firstByteTimeoutMs"), edge.first_byte_timeout_ms.to_string());
    assert_eq!(shown("http.headerTimeoutMs"), edge.header_timeout_ms.to_string());
    assert_eq!(shown("http.bodyTimeoutMs"), edge.body_timeout_ms.to_string());
    assert_eq!(shown("http.idleTimeoutMs"), edge.idle_timeout_ms.to_string());
    assert_eq!(shown("http.writeTimeoutMs"), edge.write_timeout_ms.to_string());
    assert_eq!(shown("http.maxConnections"), edge.max_connections.to_string());
    assert_eq!(shown("server.shutdownTimeoutMs"), edge.drain_timeout_ms.to_string());
}
