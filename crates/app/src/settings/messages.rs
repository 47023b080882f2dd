//! What the configuration means for messages between agents.

use std::sync::Arc;

use orchestr8_agents::aacp::{Backoff, Settings};

use crate::config;

pub fn of(config: &config::Aacp) -> Settings {
    let preset = Settings::default();
    let ms = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    Settings {
        ttl_ms: ms(config.default_ttl_ms),
        timeout_ms: ms(config.request_timeout_ms),
        inbox_messages: config.max_inbox_messages,
        policy: Arc::new(Backoff { max_attempts: config.max_attempts, ..Backoff::default() }),
        callbacks: orchestr8_outbound::Allowed {
            hosts: config.callbacks.allowed_hosts.clone(),
            private: config.callbacks.allow_private,
            ..preset.callbacks
        },
        vault: None,
    }
}
