//! Dependencies point one way: contract <- kernel <- stores, domains, edge, faces; app may use all. Nothing but tests uses
//! what only tests need.
use serde_json::Value;

const CRATES: &str = "/crates/";

pub fn check(metadata: &Value) -> Vec<String> {
    let packages: Vec<Package> =
        metadata["packages"].as_array().into_iter().flatten().filter_map(package).collect();
    let mut complaints = Vec::new();
    for package in &packages {
        for name in &package.uses {
            let Some(used) = packages.iter().find(|other| other.name == *name) else { continue };
            if !may_use(package.layer, used.layer) {
                let what =
                    format!("{} ({:?}) may not use {name} ({:?})", package.name, package.layer, used.layer);
                complaints.push(format!("{}/Cargo.toml:1: {what}", package.folder));
            }
        }
    }
    complaints
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Layer {
    Contract,
    Kernel,
    /// The VFS below the store, which knows nothing of us.
    SqliteVfs,
    Stores,
    /// Signed heads of the logs in a store.
    TransparencyLog,
    /// Language models: what domains think with, below all of them.
    Models,
    /// Programs of this machine, for domains that run some.
    Process,
    /// Calls to servers out there, for domains that make some.
    Outbound,
    /// Named secrets, for domains that use some.
    Secrets,
    /// Messages between agents, for faces that take some.
    Broker,
    Domain,
    Edge,
    Face,
    App,
    Testing,
}

fn may_use(user: Layer, used: Layer) -> bool {
    let allowed: &[Layer] = match user {
        Layer::Contract => &[],
        Layer::SqliteVfs => &[Layer::Contract],
        Layer::Kernel => &[Layer::Contract],
        Layer::Stores => &[Layer::Contract, Layer::Kernel, Layer::SqliteVfs],
        Layer::Models | Layer::Process | Layer::Outbound | Layer::Secrets | Layer::Broker | Layer::Edge => {
            &[Layer::Contract, Layer::Kernel]
        }
        Layer::Domain => {
            &[Layer::Contract, Layer::Kernel, Layer::Models, Layer::Process, Layer::Outbound, Layer::Secrets]
        }
        Layer::TransparencyLog => &[Layer::Contract, Layer::Kernel, Layer::Stores, Layer::Outbound],
        Layer::Face => &[Layer::Contract, Layer::Kernel, Layer::Edge, Layer::Broker, Layer::Secrets],
        Layer::App => return used != Layer::Testing,
        Layer::Testing => &[Layer::Contract, Layer::Kernel, Layer::Stores],
    };
    allowed.contains(&used)
}

struct Package {
    name: String,
    folder: String,
    layer: Layer,
    uses: Vec<String>,
}

fn package(value: &Value) -> Option<Package> {
    let manifest = value["manifest_path"].as_str()?;
    let (_, inside) = manifest.rsplit_once(CRATES)?;
    let folder = inside.strip_suffix("/Cargo.toml")?;
    let layer = match folder {
        "contract" => Layer::Contract,
        "kernel" => Layer::Kernel,
        "sqlite-vfs" => Layer::SqliteVfs,
        "stores" => Layer::Stores,
        "tlog" => Layer::TransparencyLog,
        "models" => Layer::Models,
        "outbound" => Layer::Outbound,
        "broker" => Layer::Broker,
        "process" => Layer::Process,
        "secrets" => Layer::Secrets,
        "edge" => Layer::Edge,
        "app" => Layer::App,
        "testing" => Layer::Testing,
        face if face.starts_with("faces/") => Layer::Face,
        _ => Layer::Domain,
    };
    // A dev-dependency shapes tests, not the program.
    let normal = |dependency: &&Value| dependency["kind"].as_str() != Some("dev");
    let dependencies = value["dependencies"].as_array()?;
    let uses =
        dependencies.iter().filter(normal).filter_map(|one| Some(one["name"].as_str()?.to_owned())).collect();
    Some(Package {
        name: value["name"].as_str()?.to_owned(),
        folder: format!("crates/{folder}"),
        layer,
        uses,
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use serde_json::{Value, json};

    fn package(folder: &str, uses: &[(&str, Value)]) -> Value {
        let uses: Vec<Value> = uses.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
        json!({"name": folder, "manifest_path": format!("/x/crates/{folder}/Cargo.toml"), "dependencies": uses})
    }

    fn complaints(packages: &[Value]) -> usize {
        check(&json!({ "packages": packages })).len()
    }

    #[test]
    fn the_right_way_is_silent() {
        let face =
            package("faces/mcp", &[("kernel", Value::Null), ("edge", Value::Null), ("serde", Value::Null)]);
        let rest =
            [package("kernel", &[]), package("edge", &[]), package("tools", &[("kernel", Value::Null)])];
        assert_eq!(complaints(&[&[face], &rest[..]].concat()), 0);
    }

    #[test]
    fn each_wrong_way_is_named() {
        let domains = [package("tools", &[("agents", Value::Null)]), package("agents", &[])];
        assert_eq!(complaints(&domains), 1);
        assert_eq!(complaints(&[package("kernel", &[("stores", Value::Null)]), package("stores", &[])]), 1);
        assert_eq!(complaints(&[package("faces/mcp", &[("tools", Value::Null)]), package("tools", &[])]), 1);
    }

    #[test]
    fn nothing_but_tests_uses_what_only_tests_need() {
        let testing = package("testing", &[("kernel", Value::Null), ("stores", Value::Null)]);
        let around = |user, kind| {
            [
                package(user, &[("testing", kind)]),
                testing.clone(),
                package("kernel", &[]),
                package("stores", &[]),
            ]
        };
        for user in ["contract", "tools", "faces/mcp", "app"] {
            assert_eq!(
                (complaints(&around(user, Value::Null)), complaints(&around(user, json!("dev")))),
                (1, 0)
            );
        }
    }

    #[test]
    fn tests_may_use_what_they_like() {
        assert_eq!(complaints(&[package("kernel", &[("stores", json!("dev"))]), package("stores", &[])]), 0);
    }
}
