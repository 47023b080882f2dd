//! The post: takes all wishes that wait, lets the desk decide, and writes everything down in one commit. Nobody is answered
//! before it is durable, and however many wait, they share one flush.

use std::sync::{Arc, Weak};

use futures::future::try_join_all;
use orchestr8_contract::Fault;
use orchestr8_kernel::Ports;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::store::Error;
use tokio::sync::oneshot;

use super::audit::Actor;
use super::desk::{Around, Desk, Done, Looked, Stop, Told, Wish};
use super::hub::{Settings, Shared, topic};
use super::ledger::Moment;
use super::needs::{Needs, acknowledged, numbered, placed, requested};
use super::record::{Known, Pair, Write};
use super::rows;
use super::tail::{Tail, Unfiled};
use crate::limits;
use crate::tables;

/// A wish on its way.
pub struct Order {
    pub wish: Wish,
    pub answer: oneshot::Sender<Result<Done, Fault>>,
}

pub struct Post {
    ports: Ports,
    settings: Arc<Settings>,
    desk: Desk,
    tail: Tail,
    hub: Weak<Shared>,
}

impl Post {
    pub fn new(ports: Ports, settings: Arc<Settings>, unfiled: Arc<Unfiled>, hub: Weak<Shared>) -> Self {
        Self { ports, settings, desk: Desk::default(), tail: Tail::new(unfiled), hub }
    }

    /// Drops what is in memory: what is true is in the store.
    pub fn doubt(&mut self) {
        self.desk.clear();
        self.tail.doubt();
    }

    /// Decides and writes. Usually nothing is a repeat, so nothing is looked for: if something is, the store says so, nothing
    /// was written, and everything is decided again with a look first.
    pub async fn settle(&mut self, group: Vec<Order>) {
        let is_asked = group.iter().any(|order| matches!(order.wish, Wish::File));
        if (is_asked || !self.tail.is_known())
            && let Err(fault) = self.file().await
        {
            return self.fail(group, &fault);
        }
        let mut look = false;
        loop {
            let decided = match self.decide(&group, look).await {
                Ok(decided) => decided,
                Err(Stop::LookFirst) if !look => {
                    self.desk.clear();
                    look = true;
                    continue;
                }
                Err(Stop::LookFirst) => {
                    return self.fail(group, &Fault::internal("a message is neither old nor new"));
                }
                Err(Stop::Fault(fault)) => return self.fail(group, &fault),
            };
            let (writes, told) = self.desk.finish();
            match self.commit(writes, &told).await {
                Ok(()) => return self.answer(group, decided, told),
                Err(Error::Conflict { .. }) if !look => {
                    self.desk.clear();
                    look = true;
                }
                Err(error) => return self.fail(group, &store_fault(error)),
            }
        }
    }

    async fn decide(&mut self, group: &[Order], look: bool) -> Result<Vec<Result<Done, Fault>>, Stop> {
        self.gather(group, look).await?;
        let ports = &self.ports;
        let (policy, fresh) = (self.settings.policy.clone(), || ports.ids.fresh(For::Record));
        let (server, mut decided) = (Actor::server(), Vec::with_capacity(group.len()));
        for order in group {
            let around = Around {
                at: Moment { now_ms: ports.clock.now_ms(), unit: ports.random.unit() },
                by: &server,
                policy: &*policy,
                fresh: &fresh,
                ttl_ms: self.settings.ttl_ms,
                timeout_ms: self.settings.timeout_ms,
                inbox_messages: self.settings.inbox_messages,
            };
            match self.desk.decide(order.wish.clone(), &around) {
                Ok(done) => decided.push(Ok(done)),
                Err(Stop::Fault(fault)) => decided.push(Err(fault)),
                Err(Stop::LookFirst) => return Err(Stop::LookFirst),
            }
        }
        Ok(decided)
    }

    /// A few changes go to the tail; many are filed at once, with what the tail has.
    async fn commit(&mut self, writes: Vec<Write>, told: &[Told]) -> Result<(), Error> {
        if writes.is_empty() {
            return Ok(());
        }
        let is_kept = self.tail.has_room(&writes);
        let now_ms = self.ports.clock.now_ms();
        let mut batch =
            if is_kept { self.tail.append(&writes, now_ms)? } else { self.tail.filing(&writes, now_ms) };
        if !is_kept {
            for write in &writes {
                rows::put(&mut batch, write.clone());
            }
        }
        for told in told {
            if let Told::Arrived(address, _, _) = told {
                batch.wake(topic(address));
            }
        }
        let committed = self.ports.store.commit(batch).await;
        match &committed {
            Ok(()) if is_kept => self.tail.appended(writes),
            Ok(()) => self.tail.filed(),
            Err(Error::Conflict { .. } | Error::Refused(_)) => {}
            Err(Error::Full(_) | Error::Corrupt(_) | Error::Closed) => self.tail.doubt(),
        }
        committed
    }

    /// Brings everything that is in the tail to where it is looked up.
    async fn file(&mut self) -> Result<(), Fault> {
        if !self.tail.is_known() {
            self.tail.recall(&self.ports.store).await.map_err(store_fault)?;
        }
        if self.tail.is_empty() {
            return Ok(());
        }
        let batch = self.tail.filing(&[], self.ports.clock.now_ms());
        match self.ports.store.commit(batch).await {
            Ok(()) => {
                self.tail.filed();
                Ok(())
            }
            Err(error) => {
                self.tail.doubt();
                Err(store_fault(error))
            }
        }
    }

    fn answer(&mut self, group: Vec<Order>, decided: Vec<Result<Done, Fault>>, told: Vec<Told>) {
        for told in &told {
            // What has ended is read from the store if somebody asks again.
            if let Told::Settled(tenant, entry) = told {
                self.desk.requests.remove(&(tenant.clone(), entry.request.clone()));
            }
        }
        if self.desk.pairs.len() + self.desk.inboxes.len() + self.desk.requests.len() > limits::KEPT {
            self.desk.clear();
        }
        for (order, done) in group.into_iter().zip(decided) {
            // Nobody may be waiting for it any more.
            let _ = order.answer.send(done);
        }
        // Last, because whoever is woken last runs first on this thread: an inbox or an asker waits for what is told, while a
        // sender only learns that he was heard.
        if let Some(hub) = self.hub.upgrade() {
            hub.tell(told);
        }
    }

    /// Nothing is known to be written: what is in memory is dropped, and everybody is told.
    fn fail(&mut self, group: Vec<Order>, fault: &Fault) {
        self.desk.clear();
        for order in group {
            let _ = order.answer.send(Err(fault.clone()));
        }
    }

    /// Reads what the desk does not know and the group needs.
    async fn gather(&mut self, group: &[Order], look: bool) -> Result<(), Stop> {
        let mut needs = Needs::default();
        for order in group {
            needs.of(&order.wish, look);
        }
        needs.drop_known(&self.desk);
        self.read(&needs).await?;
        // A request or a response stands between two agents; what the first reading found names them.
        let mut more = Needs::default();
        for (tenant, request) in group.iter().filter_map(|order| requested(&order.wish)) {
            if let Some(entry) = self.desk.requests.get(&(tenant.clone(), request.clone())) {
                let pair = entry.pair(tenant);
                more.inboxes.push(pair.to());
                more.pairs.push(pair);
                // A repeat is compared with the message that brought the request first.
                more.messages.push((tenant.clone(), entry.message.clone()));
            }
        }
        if look {
            for (pair, seq) in group.iter().filter_map(|order| numbered(&order.wish)) {
                if self.desk.pairs.get(&pair).is_some_and(|state| seq <= state.receiving.highest()) {
                    more.places.push((pair, seq));
                }
            }
        }
        // An acknowledgement by place names no senders; they are those whose messages wait there.
        for address in group.iter().filter_map(|order| placed(&order.wish)) {
            let Some(inbox) = self.desk.inboxes.get(&address) else { continue };
            more.pairs.extend(inbox.waiting.values().map(|waiting| Pair {
                tenant: address.tenant.clone(),
                source: waiting.source.clone(),
                target: address.agent.clone(),
            }));
        }
        for (address, covers) in group.iter().filter_map(|order| acknowledged(&order.wish)) {
            let Some(inbox) = self.desk.inboxes.get(&address) else { continue };
            let requests = inbox.requests(|position, waiting| covers.holds(position, waiting));
            more.requests.extend(requests.map(|request| (address.tenant.clone(), request)));
        }
        more.drop_known(&self.desk);
        self.read(&more).await?;
        if look {
            self.look(&needs, &more).await?;
        }
        Ok(())
    }

    async fn read(&mut self, needs: &Needs) -> Result<(), Fault> {
        if needs.is_empty() {
            return Ok(());
        }
        self.file().await?;
        let store = &self.ports.store;
        let pairs = try_join_all(needs.pairs.iter().map(|pair| rows::pair(store, pair)));
        let inboxes = try_join_all(needs.inboxes.iter().map(|address| rows::inbox(store, address)));
        let requests =
            try_join_all(needs.requests.iter().map(|(tenant, id)| rows::request(store, tenant, id)));
        let (pairs, inboxes, requests) = futures::try_join!(pairs, inboxes, requests).map_err(store_fault)?;
        self.desk.pairs.extend(needs.pairs.iter().cloned().zip(pairs));
        self.desk.inboxes.extend(needs.inboxes.iter().cloned().zip(inboxes));
        let found = needs.requests.iter().cloned().zip(requests);
        self.desk.requests.extend(found.filter_map(|(key, entry)| Some((key, entry?))));
        Ok(())
    }

    async fn look(&mut self, needs: &Needs, more: &Needs) -> Result<(), Fault> {
        self.file().await?;
        let (store, now_ms) = (&self.ports.store, self.ports.clock.now_ms());
        let wanted = || needs.messages.iter().chain(&more.messages);
        let messages = try_join_all(wanted().map(|(tenant, id)| {
            rows::known(store, tables::message_known(tenant.as_str(), id.as_str(), now_ms))
        }));
        let places = try_join_all(
            more.places.iter().map(|(pair, seq)| rows::known(store, tables::message_at(pair, *seq))),
        );
        let (messages, places) = futures::try_join!(messages, places).map_err(store_fault)?;
        let mut looked = Looked::default();
        let found = wanted().cloned().zip(messages);
        looked.messages.extend(found.filter_map(|(key, known): (_, Option<Known>)| Some((key, known?))));
        let found = more.places.iter().cloned().zip(places);
        looked.places.extend(found.filter_map(|(key, known): (_, Option<Known>)| Some((key, known?))));
        self.desk.looked = Some(looked);
        Ok(())
    }
}
