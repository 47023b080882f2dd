//! Which tenants may use folders of the settings that are not of one tenant.

use std::collections::BTreeSet;
use std::fmt;

use orchestr8_contract::id::Tenant;

use crate::grant::TokenTable;

/// The tenant of tokens that name none.
const DEFAULT: &str = "default";

/// A folder without `{tenant}` in its path serves all tenants only while there is one, or if the settings say that it is shared.
#[derive(Clone, Default)]
pub struct FolderSharing {
    /// The settings say so.
    pub shared: bool,
    /// The tenants of tokens in the settings.
    pub configured: Vec<Tenant>,
    /// The API tokens of the store.
    pub tokens: Option<TokenTable>,
}

impl fmt::Debug for FolderSharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FolderSharing").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl FolderSharing {
    /// Whether work of this tenant may use a folder that has no tenant. With several tenants only that of the operator may.
    pub fn admits(&self, tenant: &Tenant) -> bool {
        self.shared || is_operators(tenant) || !self.has_several()
    }

    fn has_several(&self) -> bool {
        let mut tenants: BTreeSet<Tenant> = self.configured.iter().cloned().collect();
        tenants.extend(self.tokens.iter().flat_map(TokenTable::tenants));
        tenants.remove(&Tenant::local());
        tenants.len() > 1
    }
}

fn is_operators(tenant: &Tenant) -> bool {
    *tenant == Tenant::local() || tenant.as_str() == DEFAULT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_tenant_serves_one_tenant_or_the_operator() {
        let tenant = |name: &str| Tenant::parse(name).unwrap();
        let one =
            FolderSharing { configured: vec![tenant("acme"), Tenant::local()], ..FolderSharing::default() };
        assert!(one.admits(&tenant("acme")) && one.admits(&Tenant::local()));
        let two = FolderSharing { configured: vec![tenant("acme"), tenant("rival")], ..one };
        assert!(
            !two.admits(&tenant("acme")) && two.admits(&tenant("default")) && two.admits(&Tenant::local())
        );
        assert!(FolderSharing { shared: true, ..two }.admits(&tenant("rival")));
    }
}
