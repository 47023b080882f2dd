//! Any bytes as a frame of the session protocol: a command, or refused with what is wrong (SES-3.1, SES-4).
#![no_main]

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use orchestr8_kernel::Kernel;
use orchestr8_models::{Catalog, Ports};
use orchestr8_sessions::{Hub, Settings, commands, tables};
use orchestr8_sessions_face::{Commands, check_command};
use orchestr8_testing::{Parts, memory};

/// The real commands, whose own schemas look at what they take.
static KERNEL: LazyLock<(Kernel, Commands)> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _inside = runtime.enter();
    let kernel = Parts::on(Arc::new(memory(&[tables::MIGRATIONS]))).kernel();
    let catalog = Catalog::new(Default::default(), Ports::of(&kernel)).expect("a catalog");
    let settings = Settings::new(PathBuf::from("/"), PathBuf::from("/nowhere"));
    let hub = Hub::new(kernel.clone(), catalog, settings);
    for action in commands::all(&hub).expect("commands") {
        kernel.registry().register(action).expect("a free name");
    }
    (kernel, Commands::new())
});

fuzz_target!(|frame: &[u8]| {
    let (kernel, commands) = &*KERNEL;
    if let Err(refusal) = check_command(frame, commands, kernel.registry()) {
        assert!(!refusal.is_empty());
    }
});
