//! Whether the running nodes agree: on who runs, on the records of who runs, and on every counter.
//!
//! Agreement compares ids and numbers, never suspicion, and leaves tombstones out: each node forgets them at a
//! time of its own. A node is read anew only when its versions moved, and the verdict is kept until something
//! changed, so asking often is cheap.
//!
//! A host takes part while it runs and is neither held nor departed. Where nothing leads from some hosts to the
//! others any more (a seed's host is gone or moved before anybody heard of the rest), agreement is not demanded.
//!
//! Spec: docs/protocol.md, View; Bounds after a heal; decision 15.

use std::collections::BTreeMap;

use firedrill_core::id::{Cell, CounterName, Incarnation, NodeId};
use firedrill_core::issuance::spine::Spine;
use firedrill_core::limits::COUNTERS_MAX;
use firedrill_core::time::Instant;
use firedrill_core::wire::message::{Document, MemberRecord, RecordStatus};

use super::books::Books;
use super::closing::{self, Closing};
use super::sight::Subject;
use super::world::World;
use super::{Broken, Nodes};
use crate::scenario::model::HostIx;

/// What a running node believes.
#[derive(Debug, Clone)]
pub struct Belief {
    boot: u32,
    document_version: u64,
    view_version: u64,
    incarnation: Incarnation,
    departed: bool,
    /// Itself included, sorted.
    view: Vec<NodeId>,
    document: Document,
}

/// The beliefs of all running nodes.
#[derive(Debug, Clone)]
pub struct Agreement {
    beliefs: Vec<Option<Belief>>,
    verdict: Option<(u64, Result<(), String>)>,
    closing: Closing,
}

impl Agreement {
    /// Before anything was read.
    pub fn new(world: &World) -> Self {
        Self { beliefs: vec![None; world.hosts().len()], verdict: None, closing: Closing::NOTHING }
    }

    /// The last look at the issuance: whole spines, by host.
    pub(super) fn close(&mut self, world: &World, books: &Books, at: Instant, spines: &[Option<Spine>]) {
        self.closing = closing::close(world, books, at, spines);
    }

    /// How the demands on the issuance fare.
    pub const fn closing(&self) -> &Closing {
        &self.closing
    }

    /// Reads every node that takes part and whose versions moved.
    pub fn take_in(&mut self, world: &World, nodes: &Nodes<'_>) {
        for (position, host) in world.hosts().iter().enumerate() {
            match host.running() {
                Some(boot) if host.paused_since.is_none() => {
                    nodes(HostIx(position), &mut |node| self.read(HostIx(position), boot.boot, node));
                }
                Some(_) | None => self.forget(HostIx(position)),
            }
        }
    }

    /// Whether all agree.
    ///
    /// # Errors
    /// Who disagrees with whom about what.
    pub fn check(&mut self, world: &World) -> Result<(), String> {
        if let Some((changes, verdict)) = &self.verdict
            && *changes == world.changes()
        {
            return verdict.clone();
        }
        let checks = [Self::views, Self::documents, Self::counters];
        let verdict = checks
            .iter()
            .try_for_each(|check| check(self, world))
            .map_err(|broken| format!("{}; {}", broken.fact, broken.contradiction));
        self.verdict = Some((world.changes(), verdict.clone()));
        verdict
    }

    pub(super) fn read<S: Subject>(&mut self, host: HostIx, boot: u32, node: &S) {
        let versions = (boot, node.document_version(), node.view_version(), node.has_departed());
        let known = self.beliefs[host.0]
            .as_ref()
            .map(|belief| (belief.boot, belief.document_version, belief.view_version, belief.departed));
        if known == Some(versions) {
            return;
        }
        let mut view: Vec<NodeId> = node.peers_in_view().map(|(id, _)| id.clone()).collect();
        view.push(node.id().clone());
        view.sort_unstable();
        self.verdict = None;
        self.beliefs[host.0] = Some(Belief {
            boot,
            document_version: versions.1,
            view_version: versions.2,
            incarnation: node.incarnation(),
            departed: versions.3,
            view,
            document: node.document().clone(),
        });
    }

    pub(super) fn forget(&mut self, host: HostIx) {
        if self.beliefs[host.0].take().is_some() {
            self.verdict = None;
        }
    }

    /// Whether some of those who take part cannot hear of the others: neither a seed nor a record leads to where
    /// they listen now, either way. No bound is promised then, since nobody would know whom to dial.
    pub fn is_parted(&self, world: &World) -> bool {
        let all: Vec<(HostIx, &Belief)> = self.taking_part().collect();
        let leads = |from: &(HostIx, &Belief), to: &(HostIx, &Belief)| {
            let facts = &world.host(to.0).facts;
            let record = from.1.document.members.get(&facts.id).and_then(|record| record.addr.socket());
            record == Some(facts.addr) || world.host(from.0).facts.seeds.contains(&facts.addr)
        };
        let mut reached: Vec<usize> = (0..all.len().min(1)).collect();
        let mut apart: Vec<usize> = (1..all.len()).collect();
        let mut next = 0;
        while let Some(&here) = reached.get(next) {
            let near = |&there: &usize| leads(&all[here], &all[there]) || leads(&all[there], &all[here]);
            reached.extend(apart.extract_if(.., |there| near(there)));
            next += 1;
        }
        !apart.is_empty()
    }

    fn is_full(&self) -> bool {
        self.taking_part().any(|(_, belief)| belief.document.counters.len() >= COUNTERS_MAX)
    }

    fn taking_part(&self) -> impl Iterator<Item = (HostIx, &Belief)> {
        let all = self.beliefs.iter().enumerate();
        all.filter_map(|(position, belief)| Some((HostIx(position), belief.as_ref()?)))
            .filter(|(_, belief)| !belief.departed)
    }

    /// Every view is the set of ids that take part.
    ///
    /// # Errors
    /// The first view that is not.
    pub fn views(&self, world: &World) -> Result<(), Box<Broken>> {
        let mut running: Vec<NodeId> =
            self.taking_part().map(|(host, _)| world.host(host).facts.id.clone()).collect();
        running.sort_unstable();
        running.dedup();
        let Some((host, belief)) = self.taking_part().find(|(_, belief)| belief.view != running) else {
            return Ok(());
        };
        let lacks: Vec<&NodeId> = running.iter().filter(|id| !belief.view.contains(id)).collect();
        let extra: Vec<&NodeId> = belief.view.iter().filter(|id| !running.contains(id)).collect();
        let mut nodes = vec![world.name(host).to_owned()];
        nodes.extend(lacks.iter().chain(&extra).map(ToString::to_string));
        let differs = [("lacks", &lacks), ("has too much", &extra)].map(|(what, ids)| match ids.is_empty() {
            true => String::new(),
            false => format!("; it {what}: {}", list(ids.iter().copied())),
        });
        Err(Broken::new(
            nodes,
            format!("the view of {} is {}{}{}", world.name(host), list(&belief.view), differs[0], differs[1]),
            format!("the nodes that run are {}", list(&running)),
        ))
    }

    /// Every node holds the same record of each node that takes part: alive, at the incarnation it runs at.
    ///
    /// # Errors
    /// The first record that differs.
    pub fn documents(&self, world: &World) -> Result<(), Box<Broken>> {
        for (subject, truth) in self.taking_part() {
            let id = &world.host(subject).facts.id;
            let Some(own) = truth.document.members.get(id) else { continue };
            let name = world.name(subject);
            if own.incarnation != truth.incarnation || own.status != RecordStatus::Alive {
                return Err(Broken::new(
                    vec![name.to_owned()],
                    format!("{name} holds of itself: {}", words(Some(own))),
                    format!("{name} runs at incarnation {}", truth.incarnation),
                ));
            }
            for (host, belief) in self.taking_part() {
                let record = belief.document.members.get(id);
                if record != Some(own) {
                    let other = world.name(host);
                    return Err(Broken::new(
                        vec![other.to_owned(), name.to_owned()],
                        format!("{other} holds of {name}: {}", words(record)),
                        format!("{name} holds of itself: {}", words(Some(own))),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Every node holds the same counters, cell by cell. Where a table of counters is full, each node may have
    /// refused others' names (decision 15), and nothing can be said.
    ///
    /// # Errors
    /// The first cell that differs.
    pub fn counters(&self, world: &World) -> Result<(), Box<Broken>> {
        if self.is_full() {
            return Ok(());
        }
        let mut all = self.taking_part();
        let Some((first, reference)) = all.next() else { return Ok(()) };
        for (host, belief) in all {
            let (ours, theirs) = (&reference.document.counters, &belief.document.counters);
            if ours == theirs {
                continue;
            }
            let difference =
                cells(ours).find(|(name, cell, value)| value_of(theirs, name, cell) != Some(*value)).or_else(
                    || cells(theirs).find(|(name, cell, value)| value_of(ours, name, cell) != Some(*value)),
                );
            let Some((name, cell, _)) = difference else { continue };
            let tell = |who: HostIx, counters| {
                let held = value_of(counters, name, cell)
                    .map_or_else(|| String::from("does not hold"), |value| format!("holds {value} in"));
                format!("{} {held} cell {cell} of counter {name}", world.name(who))
            };
            return Err(Broken::new(
                vec![world.name(first).to_owned(), world.name(host).to_owned()],
                tell(first, ours),
                tell(host, theirs),
            ));
        }
        Ok(())
    }

    /// Every node holds what the boots that take part wrote, exactly, and of others no more than they wrote: who
    /// departs, or is held, may go or be silent before anybody heard of its last increments.
    ///
    /// # Errors
    /// The first cell that lost or gained something.
    pub fn truth(&self, world: &World) -> Result<(), Box<Broken>> {
        if self.is_full() {
            return Ok(());
        }
        for (name, counter) in world.counters() {
            for (cell, truth) in counter.cells.iter().filter(|(_, truth)| !truth.shared) {
                let (writer, boot) = truth.writer;
                let lives = self.beliefs[writer.0]
                    .as_ref()
                    .is_some_and(|belief| belief.boot == boot && !belief.departed);
                for (host, belief) in self.taking_part() {
                    let held = value_of(&belief.document.counters, name, cell).unwrap_or(0);
                    if held > truth.value || (lives && held < truth.value) {
                        let lived = if lives { "has run ever since" } else { "no longer takes part" };
                        return Err(Broken::new(
                            vec![world.name(host).to_owned(), world.name(writer).to_owned()],
                            format!("{} holds {held} in cell {cell} of counter {name}", world.name(host)),
                            format!("{} wrote {} into it and {lived}", world.name(writer), truth.value),
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

type Counters = BTreeMap<CounterName, BTreeMap<Cell, u64>>;

fn cells(counters: &Counters) -> impl Iterator<Item = (&CounterName, &Cell, u64)> {
    counters.iter().flat_map(|(name, cells)| cells.iter().map(move |(cell, value)| (name, cell, *value)))
}

fn value_of(counters: &Counters, name: &CounterName, cell: &Cell) -> Option<u64> {
    counters.get(name)?.get(cell).copied()
}

fn list<'a>(ids: impl IntoIterator<Item = &'a NodeId>) -> String {
    let ids: Vec<&str> = ids.into_iter().map(NodeId::as_str).collect();
    format!("[{}]", ids.join(", "))
}

fn words(record: Option<&MemberRecord>) -> String {
    let Some(record) = record else { return String::from("nothing") };
    let status = match record.status {
        RecordStatus::Alive => "alive",
        RecordStatus::Left => "left",
    };
    format!("{status} at incarnation {}, address {}", record.incarnation, record.addr)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, ms};
    use super::*;
    use crate::engine::Fault;

    fn agreement(bench: &Bench) -> Agreement {
        let mut agreement = Agreement::new(&bench.world);
        bench.read_into(&mut agreement);
        agreement
    }

    #[test]
    fn views_that_are_the_running_set_agree_and_others_say_who_is_missing() {
        let mut bench = Bench::new(&["a", "b", "c"]);
        bench.converge();
        agreement(&bench).check(&bench.world).unwrap();
        bench.nodes[0].hide("c");
        let told = agreement(&bench).check(&bench.world).unwrap_err();
        assert_eq!(told, "the view of a is [a, b]; it lacks: [c]; the nodes that run are [a, b, c]");
        bench.kill(2, 50);
        bench.nodes[0].show("c");
        let told = agreement(&bench).check(&bench.world).unwrap_err();
        assert!(told.contains("it has too much: [c]"), "{told}");
    }

    #[test]
    fn a_held_host_takes_no_part() {
        let mut bench = Bench::new(&["a", "b", "c"]);
        bench.converge();
        bench.world.fault_applied(ms(9), &Fault::Pause(HostIx(2)));
        bench.nodes[0].hide("c");
        bench.nodes[1].hide("c");
        agreement(&bench).check(&bench.world).unwrap();
    }

    #[test]
    fn tombstones_may_differ_but_the_records_of_running_nodes_may_not() {
        let mut bench = Bench::new(&["a", "b", "c"]);
        bench.converge();
        bench.nodes[0].set_record("zz", 4, RecordStatus::Left);
        agreement(&bench).check(&bench.world).unwrap();
        let Incarnation(b) = bench.nodes[1].incarnation;
        bench.nodes[0].set_record("b", b, RecordStatus::Left);
        let told = agreement(&bench).check(&bench.world).unwrap_err();
        assert!(told.contains("a holds of b: left") && told.contains("b holds of itself: alive"), "{told}");
    }

    #[test]
    fn counters_that_differ_name_the_cell_and_both_values() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.converge();
        bench.increment(0, 10, "c", 3).unwrap();
        let told = agreement(&bench).check(&bench.world).unwrap_err();
        assert!(told.starts_with("a holds 3 in cell a#") && told.contains("b does not hold"), "{told}");
    }

    #[test]
    fn hosts_that_no_seed_and_no_record_leads_to_are_parted() {
        let mut bench = Bench::new(&["a", "b", "c"]);
        assert!(!agreement(&bench).is_parted(&bench.world), "all have one seed");
        let moved = std::net::SocketAddr::from(([192, 168, 9, 9], 7946));
        for host in 0..3 {
            let start =
                Fault::Start { host: HostIx(host), wall_step_us: None, addr: Some(moved), lose_disk: false };
            bench.world.fault_applied(ms(9), &start);
        }
        assert!(agreement(&bench).is_parted(&bench.world));
    }

    #[test]
    fn the_verdict_follows_what_changes() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.converge();
        let mut agreement = agreement(&bench);
        agreement.check(&bench.world).unwrap();
        bench.nodes[0].hide("b");
        bench.read_into(&mut agreement);
        agreement.check(&bench.world).unwrap_err();
        bench.nodes[0].show("b");
        bench.read_into(&mut agreement);
        agreement.check(&bench.world).unwrap();
        bench.kill(1, 50);
        bench.read_into(&mut agreement);
        agreement.check(&bench.world).unwrap_err();
    }
}
