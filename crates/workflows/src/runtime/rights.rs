//! The rights of an execution, resolved when a step runs: what was recorded at its start, reduced to what its starter and its
//! authors are still granted.

use std::sync::Arc;

use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::authorize::revoked;
use orchestr8_kernel::principals::Standing;
use orchestr8_kernel::row_seal::RowSeal;
use orchestr8_kernel::{Kernel, Principal};
use orchestr8_secrets::SecretVault;

use super::Hub;
use super::accept::Seed;
use crate::keyed_events::EventLocks;
use crate::notifications::Notifier;
use crate::triggers::TriggerLocks;

impl Hub {
    /// What a recorded principal may do now.
    pub fn standing(&self, tenant: &Tenant, name: &str) -> Standing {
        self.0.kernel.standing(tenant, name)
    }

    /// One delivery of a trigger is taken in at a time.
    pub(crate) fn trigger_locks(&self) -> &TriggerLocks {
        &self.0.trigger_locks
    }

    /// One event of a key is taken in at a time.
    pub(crate) fn event_locks(&self) -> &EventLocks {
        &self.0.event_locks
    }

    pub(crate) fn notifier(&self) -> &Notifier {
        &self.0.notifier
    }

    pub(crate) fn vault(&self) -> &SecretVault {
        &self.0.secrets.vault
    }

    /// What runs the actions of other domains.
    pub(crate) fn kernel(&self) -> &Kernel {
        &self.0.kernel
    }

    /// Seals the rows that grant rights.
    pub fn row_seal(&self) -> &RowSeal {
        self.0.kernel.row_seal()
    }

    /// The principal that a step of this execution runs as. Fails once the credentials of its starter or of an author are gone.
    pub(super) fn current_principal(&self, seed: &Seed) -> Result<Arc<Principal>, Fault> {
        let mut principal = seed.principal.clone();
        let names = seed.given.authors.iter().map(|author| &author.name);
        for name in std::iter::once(&seed.principal.name).chain(names) {
            let standing = self.standing(&seed.tenant, name);
            if standing == Standing::Revoked {
                return Err(revoked(&Principal { name: name.clone(), ..Principal::clone(&principal) }));
            }
            if !standing.leaves(&principal) {
                principal = Arc::new(standing.reduce_principal(Principal::clone(&principal)));
            }
        }
        Ok(principal)
    }
}
