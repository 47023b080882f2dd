//! What is open in the executions of the driver, by the keys of calls.

use std::collections::BTreeMap;

use orchestr8_workflows::engine::event::Task;
use orchestr8_workflows::engine::scope;
use orchestr8_workflows::engine::state::{Phase, State};

use super::engine_driver::EngineDriver;
use super::reference::run::Open;

impl EngineDriver {
    /// Everything that is open: execution, task and kind by key.
    pub fn named(&self) -> BTreeMap<String, (String, Task, Open)> {
        let mut all = BTreeMap::new();
        for (path, execution) in &self.executions {
            let mut add = |task: Task, open| {
                let key = key_of(path, &execution.state, task);
                all.insert(key, (path.clone(), task, open));
            };
            let work = &execution.state.work;
            execution.running.iter().for_each(|task| add(*task, Open::Call));
            execution.questions.iter().for_each(|task| add(*task, Open::Approval));
            for (task, work) in work {
                match &work.phase {
                    Phase::Waiting { event: Some(_), .. } => add(*task, Open::Event),
                    Phase::Waiting { event: None, .. } if execution.timers.contains(task) => {
                        add(*task, Open::Timer)
                    }
                    Phase::Retrying { .. } if execution.timers.contains(task) => add(*task, Open::Backoff),
                    Phase::Resting { .. } if execution.timers.contains(task) => add(*task, Open::Rest),
                    Phase::Unknown => add(*task, Open::Unknown),
                    _ => {}
                }
            }
        }
        all
    }

    pub fn find(&self, key: &str) -> (String, Task) {
        let named = self.named();
        let (path, task, _) = &named[key];
        (path.clone(), *task)
    }
}

/// The key of a piece of work, with the path of its execution instead of the id.
fn key_of(path: &str, state: &State, task: Task) -> String {
    let key = scope::key(state, task).unwrap();
    format!("{path}{}", key.strip_prefix("execution:").unwrap_or(&key))
}
