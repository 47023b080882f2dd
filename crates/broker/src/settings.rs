//! What an installation sets for its messages.

use crate::limits;

#[derive(Debug, Clone)]
pub struct Settings {
    /// Deliveries of one message before it is a dead letter.
    pub attempts: u32,
    pub ack_deadline_ms: u64,
    pub base_delay_ms: u64,
    pub max_delay_ms: u64,
    /// Messages one tenant may have waiting.
    pub tenant_queued: usize,
    pub tenant_bytes: usize,
    /// Messages of one tenant that are worked on at once.
    pub tenant_in_flight: usize,
    /// Messages of all tenants that are worked on at once.
    pub in_flight: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            attempts: limits::ATTEMPTS,
            ack_deadline_ms: limits::ACK_DEADLINE_MS,
            base_delay_ms: limits::BASE_DELAY_MS,
            max_delay_ms: limits::MAX_DELAY_MS,
            tenant_queued: limits::TENANT_QUEUED,
            tenant_bytes: limits::TENANT_BYTES,
            tenant_in_flight: limits::TENANT_IN_FLIGHT,
            in_flight: limits::IN_FLIGHT,
        }
    }
}
