//! The models of an installation, in the order in which they are gone through. The offline model is always the last.

use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Kernel;
use orchestr8_kernel::ports::{Clock, Random};
use orchestr8_kernel::resilience::Breakers;

use crate::limits::MODELS;
use crate::model::Model;
use crate::offline::Offline;

/// Which models there are.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Provider and id of the model that new conversations begin with. None: the first one that can be used.
    pub default: Option<(String, String)>,
}

/// What models use of the outside.
#[derive(Clone)]
pub struct Ports {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub breakers: Arc<Breakers>,
}

/// All models. Cheap to ask; it never changes.
pub struct Catalog {
    models: Vec<Arc<dyn Model>>,
    default: usize,
}

impl Ports {
    /// The ports and the breakers of the kernel.
    pub fn of(kernel: &Kernel) -> Self {
        let ports = kernel.ports();
        Self { clock: ports.clock.clone(), random: ports.random.clone(), breakers: kernel.breakers().clone() }
    }
}

impl Catalog {
    /// Refuses settings that name a model twice, too many, or a default that is not there.
    pub fn new(settings: Settings, ports: Ports) -> Result<Self, Fault> {
        let offline: Arc<dyn Model> = Arc::new(Offline::new(ports.clock));
        Self::of(vec![offline], settings.default)
    }

    /// A catalog of these models, the first of which is the default unless one is named.
    pub fn of(models: Vec<Arc<dyn Model>>, default: Option<(String, String)>) -> Result<Self, Fault> {
        if models.is_empty() || models.len() > MODELS {
            return Err(wrong(format!(
                "there must be one to {MODELS} models, and there are {}",
                models.len()
            )));
        }
        for (place, model) in models.iter().enumerate() {
            let (provider, id) = (&model.about().provider, &model.about().id);
            if position(&models[..place], provider, id).is_some() {
                return Err(wrong(format!("the model {provider}/{id} is there twice")));
            }
        }
        let default = match default {
            None => 0,
            Some((provider, id)) => position(&models, &provider, &id)
                .ok_or_else(|| wrong(format!("the default model {provider}/{id} is not among the models")))?,
        };
        Ok(Self { models, default })
    }

    pub fn find(&self, provider: &str, id: &str) -> Option<Arc<dyn Model>> {
        position(&self.models, provider, id).map(|place| self.models[place].clone())
    }

    /// All models in their order.
    pub fn all(&self) -> &[Arc<dyn Model>] {
        &self.models
    }

    /// The model that new conversations begin with.
    pub fn default(&self) -> Arc<dyn Model> {
        self.models[self.default].clone()
    }

    /// The model after this one; after the last comes the first. One that is not there is followed by the default.
    pub fn next(&self, provider: &str, id: &str) -> Arc<dyn Model> {
        self.beside(provider, id, 1)
    }

    /// The model before this one; before the first comes the last.
    pub fn previous(&self, provider: &str, id: &str) -> Arc<dyn Model> {
        self.beside(provider, id, self.models.len() - 1)
    }

    fn beside(&self, provider: &str, id: &str, steps: usize) -> Arc<dyn Model> {
        match position(&self.models, provider, id) {
            Some(place) => self.models[(place + steps) % self.models.len()].clone(),
            None => self.default(),
        }
    }
}

fn position(models: &[Arc<dyn Model>], provider: &str, id: &str) -> Option<usize> {
    models.iter().position(|model| model.about().provider == provider && model.about().id == id)
}

fn wrong(what: String) -> Fault {
    Fault::new(Code::Configuration, format!("models: {what}"))
}
