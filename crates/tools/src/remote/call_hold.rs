//! What a call occupies until its server has answered, even if the caller waits no more: a slot of the server and its instance.

use std::sync::Arc;

use orchestr8_contract::Fault;
use orchestr8_kernel::slots::Slot;
use orchestr8_kernel::{Context, Kernel, Principal};

use super::desk::{Desk, InstanceUse};

/// Clones share what they hold; it is free when the last is dropped.
#[derive(Clone)]
pub struct CallHold {
    _of_instance: Arc<(Slot, InstanceUse)>,
    kernel: Kernel,
    principal: Arc<Principal>,
}

impl CallHold {
    pub fn new(desk: &Desk, in_use: InstanceUse, context: &Context) -> Result<Self, Fault> {
        Ok(Self {
            _of_instance: Arc::new((desk.slot(&context.principal)?, in_use)),
            kernel: context.kernel.clone(),
            principal: context.principal.clone(),
        })
    }

    /// Goes on holding, with a slot of our own too, for a call whose run is about to end.
    pub fn outlive(self) -> OutlivingHold {
        let slot = self.kernel.slot_for_outliving(&self.principal);
        OutlivingHold { _slot: slot, _hold: self }
    }
}

/// What a call occupies that no client waits for any more.
pub struct OutlivingHold {
    _slot: Slot,
    _hold: CallHold,
}
