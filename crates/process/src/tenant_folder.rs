//! Folders of the settings with `{tenant}` in their path: one for each tenant.

use std::borrow::Cow;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Stands for the name of the tenant.
pub const PLACEHOLDER: &str = "{tenant}";

/// The folder of a tenant; none if the path is the same for all.
pub fn of_tenant(path: &Path, tenant: &str) -> Option<PathBuf> {
    let text = path.to_str().filter(|text| text.contains(PLACEHOLDER))?;
    Some(PathBuf::from(text.replace(PLACEHOLDER, &name(tenant))))
}

/// Creates what is missing of it, for this user alone.
pub fn create(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A tenant may be called `..`: a leading dot is written as a character that no tenant has in its name, so that the name neither leads
/// elsewhere nor is that of another tenant.
fn name(tenant: &str) -> Cow<'_, str> {
    match tenant.strip_prefix('.') {
        Some(rest) => Cow::Owned(format!("%2E{rest}")),
        None => Cow::Borrowed(tenant),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tenant_has_a_folder_of_its_own_beneath_the_path() {
        let root = Path::new("/srv/{tenant}/work");
        let of = |tenant: &str| of_tenant(root, tenant).unwrap().display().to_string();
        assert_eq!(of("acme"), "/srv/acme/work");
        assert_eq!(
            (of(".."), of("."), of(".git")),
            ("/srv/%2E./work".into(), "/srv/%2E/work".into(), "/srv/%2Egit/work".into())
        );
        assert_eq!(of_tenant(Path::new("/srv/work"), "acme"), None);
    }
}
