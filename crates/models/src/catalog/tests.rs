//! Which models there are, in which order, and which settings are refused.

use super::*;
use crate::model::Price;
use crate::secret::Secret;
use crate::settings::Key;
use crate::wire::Reasoning;
use orchestr8_contract::Code;
use orchestr8_kernel::Log;
use orchestr8_kernel::bus::{Bus, Config};
use orchestr8_kernel::ports::clock::Simulated;
use orchestr8_kernel::ports::random::Seeded;

fn ports() -> Ports {
    let clock: Arc<dyn Clock> = Arc::new(Simulated::new());
    let bus = Bus::new(&Config::default(), clock.clone(), Log::off());
    let breakers = Arc::new(Breakers::new(clock.clone(), bus));
    Ports { clock, random: Arc::new(Seeded::new(1)), breakers }
}

fn entry(id: &str) -> Entry {
    Entry {
        id: id.into(),
        name: None,
        context_window: 1_000,
        max_output: 100,
        reasoning: Reasoning::Effort,
        images: false,
        price: Price::default(),
    }
}

fn provider(name: &str, kind: Kind, key: Key) -> Provider {
    let models = vec![entry("one"), entry("two")];
    Provider { key, models, ..Provider::new(name, kind, "https://models.example") }
}

fn catalog(providers: Vec<Provider>, default: Option<(&str, &str)>) -> Result<Catalog, Fault> {
    let default = default.map(|(provider, id)| (provider.to_owned(), id.to_owned()));
    Catalog::new(Settings { providers, default }, ports())
}

fn name(model: &Arc<dyn Model>) -> String {
    format!("{}/{}", model.about().provider, model.about().id)
}

fn given() -> Key {
    Key::Given(Secret::new("sk-1"))
}

#[test]
fn without_settings_there_is_the_offline_model() {
    let catalog = Catalog::new(Settings::default(), ports()).unwrap();
    assert_eq!(name(&catalog.default()), "offline/echo");
    assert_eq!(catalog.all().len(), 1);
    assert_eq!(name(&catalog.next("offline", "echo")), "offline/echo");
}

#[test]
fn models_are_gone_through_in_order_and_around() {
    let catalog = catalog(
        vec![provider("a", Kind::Anthropic, given()), provider("b", Kind::OpenAi, Key::Unneeded)],
        None,
    )
    .unwrap();
    let names: Vec<String> = catalog.all().iter().map(name).collect();
    assert_eq!(names, ["a/one", "a/two", "b/one", "b/two", "offline/echo"]);
    assert_eq!(name(&catalog.default()), "a/one");
    let (mut provider, mut id) = ("a".to_owned(), "one".to_owned());
    for expected in names.iter().cycle().skip(1).take(10) {
        let next = catalog.next(&provider, &id);
        assert_eq!(name(&next), *expected);
        let back = catalog.previous(&next.about().provider, &next.about().id);
        assert_eq!(name(&back), format!("{provider}/{id}"));
        (provider, id) = (next.about().provider.clone(), next.about().id.clone());
    }
    assert_eq!(name(&catalog.next("a", "gone")), "a/one");
    assert!(catalog.find("b", "two").is_some() && catalog.find("b", "three").is_none());
}

#[test]
fn providers_without_their_key_are_left_out() {
    let empty = Key::Given(Secret::new(" "));
    let providers = || {
        vec![
            provider("a", Kind::Anthropic, Key::Missing),
            provider("b", Kind::OpenAi, empty.clone()),
            provider("toy", Kind::Offline, Key::Unneeded),
        ]
    };
    let catalog = |default| catalog(providers(), default);
    let found = catalog(Some(("a", "one"))).unwrap();
    assert_eq!(
        (name(&found.default()).as_str(), found.unready()),
        ("toy/one", ["a".to_owned(), "b".to_owned()].as_slice())
    );
    assert!(found.find("a", "one").is_none());
    assert_eq!(name(&catalog(Some(("offline", "echo"))).unwrap().default()), "offline/echo");
    assert_eq!(catalog(Some(("a", "three"))).err().unwrap().code, Code::Configuration);
}

#[test]
fn wrong_settings_are_refused_without_showing_secrets() {
    let with = |entry: Entry| Provider { models: vec![entry], ..provider("a", Kind::Offline, Key::Unneeded) };
    let based = |url: &str| Provider { base_url: url.into(), ..provider("a", Kind::OpenAi, given()) };
    let wrong = [
        provider("", Kind::OpenAi, given()),
        provider("a/b", Kind::OpenAi, given()),
        provider("offline", Kind::OpenAi, given()),
        provider(&"a".repeat(65), Kind::OpenAi, given()),
        provider("a", Kind::OpenAi, Key::Given(Secret::new("sk-\u{1}"))),
        Provider { models: vec![entry("x"), entry("x")], ..provider("a", Kind::OpenAi, given()) },
        Provider {
            models: (0..MODELS).map(|n| entry(&n.to_string())).collect(),
            ..provider("a", Kind::OpenAi, given())
        },
        with(entry(" ")),
        with(entry("a\nb")),
        with(entry(&"x".repeat(257))),
        with(Entry { context_window: 0, ..entry("x") }),
        with(Entry { max_output: 0, ..entry("x") }),
        with(Entry { max_output: 1_001, ..entry("x") }),
        with(Entry { price: Price { input: -1.0, ..Price::default() }, ..entry("x") }),
        with(Entry { price: Price { output: f64::NAN, ..Price::default() }, ..entry("x") }),
        based("ftp://models.example"),
        based("models.example"),
        based("https://"),
        based("https://user:sk-2@models.example"),
        based("https://models.example/?key=sk-3"),
    ];
    for provider in wrong {
        let what = format!("{:?}", provider.base_url);
        let fault = catalog(vec![provider], None).err().unwrap_or_else(|| panic!("{what} is taken"));
        assert_eq!(fault.code, Code::Configuration);
        assert!(!fault.message.contains("sk-"), "{fault}");
    }
    let twice = vec![provider("a", Kind::Offline, Key::Missing), with(entry("x"))];
    assert_eq!(catalog(twice, None).err().unwrap().code, Code::Configuration);
    assert!(!format!("{:?}", provider("a", Kind::OpenAi, given())).contains("sk-1"));
}
