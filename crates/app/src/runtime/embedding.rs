//! The embedder of this installation, as knowledge wants it.

use std::sync::Arc;

use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_kernel::Kernel;
use orchestr8_knowledge::retrieval::dense::{self, Purpose};
use orchestr8_knowledge::text::language::Language;
use orchestr8_models::Ports;
use orchestr8_models::embedders::{self, MiniLm};

use crate::failure::Failure;
use crate::settings::Embedder;

/// None where texts are found by their words alone.
pub fn embedder(kernel: &Kernel, settings: &Embedder) -> Result<Option<Arc<dyn dense::Embedder>>, Failure> {
    let made: Arc<dyn embedders::Embedder> = match settings {
        Embedder::None => return Ok(None),
        Embedder::Nowhere => {
            kernel
                .log()
                .info("documents are searched by their words alone: data in memory has no models", ());
            return Ok(None);
        }
        Embedder::Here(file) => {
            let model = MiniLm::new(file, kernel.ports().clock.clone());
            if !embedders::Embedder::is_there(&model) {
                kernel.log().info(
                    "documents are searched by their words alone until orchestr8 models pull has fetched the embedder",
                    (),
                );
            }
            Arc::new(model)
        }
        Embedder::Remote(settings) => {
            embedders::remote(settings.clone(), Ports::of(kernel)).map_err(Failure::from)?
        }
    };
    Ok(Some(Arc::new(Adapted(made))))
}

struct Adapted(Arc<dyn embedders::Embedder>);

impl dense::Embedder for Adapted {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn dimensions(&self) -> usize {
        self.0.dimensions()
    }

    fn speaks(&self, language: Language) -> bool {
        match language {
            Language::English => true,
            Language::Vietnamese | Language::Other => self.0.is_multilingual(),
        }
    }

    fn is_there(&self) -> bool {
        self.0.is_there()
    }

    fn embed(
        &self,
        texts: Vec<String>,
        purpose: Purpose,
    ) -> BoxFuture<'static, Result<Vec<Vec<f32>>, Fault>> {
        let purpose = match purpose {
            Purpose::Query => embedders::Purpose::Query,
            Purpose::Passage => embedders::Purpose::Passage,
        };
        self.0.embed(texts, purpose)
    }
}
