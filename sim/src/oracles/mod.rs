//! Oracles: what must hold at every moment, whatever the drill does.
//!
//! An [`Oracle`] is one invariant of the spec in one file. [`Oracles`] holds them all and shows each handled
//! input to each of them, by static dispatch; a step that changed nothing costs comparisons only. What several
//! need is kept once: [`World`] is the truth as the harness knows it, [`Ledger`] what the steps told.
//!
//! Order of calls: tell [`World`] first (a boot, a fault, a node down), then show the step with
//! [`Oracles::after`]; at the end [`Oracles::at_end`] looks at every running node once more, in full, and lets
//! the liveness oracles speak. The first [`Violation`] ends a run.
//!
//! Absent: expectations of a scenario (they are the drill's), and any demand on time that the spec does not
//! make. A panic is reported by the harness under [`no_alarm::RULE`].
//!
//! Spec: docs/protocol.md, Decisions; Bounds after a heal. Each rule names its own place in it.

pub mod agreement;
mod audit_exact;
pub mod books;
pub mod bounds;
mod cell_follows_boot;
mod cell_single_writer;
pub mod closing;
mod counter_bounded;
mod counter_monotonic;
mod counters_exact;
mod dead_leaves_view;
mod decided_by_answers;
mod departs_in_time;
mod dials_paced;
mod documents_agree;
mod duplicate_told;
mod durable_first;
mod epochs_once;
mod farewell_first;
mod farewell_heard;
mod fence_excludes;
mod fold_exact;
mod frame_cap;
mod frames_authentic;
mod host;
mod idle_closed;
mod incarnation_from_clock;
mod incarnation_rises;
mod issuer_seals;
mod late_round;
mod leases_agree;
pub mod ledger;
mod left_by_own_word;
mod nature;
pub mod no_alarm;
mod no_false_replay;
mod no_false_suspicion;
mod nudges_spaced;
mod numbers_once;
mod one_row_a_window;
pub mod progress;
mod promoted_by_rule;
mod promoted_in_silence;
mod promotions_lapse;
mod records_monotone;
mod refused_unread;
mod refutation_told;
mod rounds_paced;
pub mod sabotage;
mod sealed_by_issuer;
mod seals_above_tip;
mod seals_by_sane_clock;
mod seals_caught_up;
mod seals_one_by_one;
mod seq_monotone;
pub mod sight;
mod silence_alone;
mod silent_buried;
mod spines_agree;
mod strangers_make_room;
mod stray;
mod strikes_close;
mod supply_bounded;
mod tables_bounded;
#[cfg(test)]
mod testing;
mod tombstones_kept;
mod unable_asks_nothing;
mod unheard_redialled;
mod view_no_down;
mod views_agree;
pub mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use firedrill_core::endpoint::LinkSizes;
use firedrill_core::node::Node;
use firedrill_core::time::{Instant, micros};

use self::agreement::Agreement;
use self::ledger::Ledger;
use self::sight::{Changed, Look, Sight, Subject};
pub use self::world::World;
use crate::engine::{Cause, Step};
use crate::outcome::Violation;
use crate::scenario::model::HostIx;

/// What an oracle demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The name that scenarios and reports use.
    pub name: &'static str,
    /// The invariant in a sentence.
    pub invariant: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether it speaks only at the end, about what must have come true by then.
    pub liveness: bool,
}

/// Two facts that contradict each other, found by an oracle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The nodes concerned.
    pub nodes: Vec<String>,
    /// One fact …
    pub fact: String,
    /// … and the one it contradicts.
    pub contradiction: String,
}

impl Broken {
    /// Boxed, because a finding is rare and a verdict is returned after every step.
    pub fn new(nodes: Vec<String>, fact: String, contradiction: String) -> Box<Self> {
        Box::new(Self { nodes, fact, contradiction })
    }
}

/// One invariant, watched over a whole run.
pub trait Oracle {
    /// What it demands.
    const RULE: Rule;

    /// Looks at what a step changed.
    ///
    /// # Errors
    /// The two facts that contradict each other.
    fn after<S: Subject>(&mut self, _sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        Ok(())
    }

    /// A host went down; the world knows it already.
    fn down(&mut self, _world: &World, _host: HostIx) {}

    /// Looks at the cluster after the liveness phase.
    ///
    /// # Errors
    /// The two facts that contradict each other.
    fn at_end(&mut self, _world: &World, _nodes: &Agreement) -> Result<(), Box<Broken>> {
        Ok(())
    }
}

/// Access to a running host's node, as an engine gives it.
pub type Nodes<'a> = dyn Fn(HostIx, &mut dyn FnMut(&Node)) + 'a;

/// An oracle that a scenario names and that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no oracle {name:?}; `firedrill list oracles` shows them all")]
pub struct UnknownOracle {
    /// The name.
    pub name: String,
}

macro_rules! oracles {
    ($($module:ident :: $oracle:ident),* $(,)?) => {
        /// Every oracle's rule, safety first, in the order they are asked.
        pub const RULES: &[Rule] = &[$($module::$oracle::RULE),*];

        #[derive(Debug)]
        struct Set { $($module: Option<$module::$oracle>),* }

        impl Set {
            fn new(world: &World) -> Self {
                Self { $($module: Some($module::$oracle::new(world))),* }
            }

            fn turn_off(&mut self, name: &str) {
                $(if name == $module::$oracle::RULE.name {
                    self.$module = None;
                })*
            }

            fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), (Rule, Box<Broken>)> {
                $(if let Some(oracle) = &mut self.$module {
                    oracle.after(sight).map_err(|broken| ($module::$oracle::RULE, broken))?;
                })*
                Ok(())
            }

            fn down(&mut self, world: &World, host: HostIx) {
                $(if let Some(oracle) = &mut self.$module {
                    oracle.down(world, host);
                })*
            }

            fn at_end(&mut self, world: &World, nodes: &Agreement) -> Result<(), (Rule, Box<Broken>)> {
                $(if let Some(oracle) = &mut self.$module {
                    oracle.at_end(world, nodes).map_err(|broken| ($module::$oracle::RULE, broken))?;
                })*
                Ok(())
            }
        }
    };
}

oracles! {
    no_alarm::NoAlarm,
    progress::Progress,
    counter_monotonic::CounterMonotonic,
    counter_bounded::CounterBounded,
    cell_single_writer::CellSingleWriter,
    view_no_down::ViewNoDown,
    dead_leaves_view::DeadLeavesView,
    tables_bounded::TablesBounded,
    incarnation_rises::IncarnationRises,
    records_monotone::RecordsMonotone,
    left_by_own_word::LeftByOwnWord,
    late_round::LateRound,
    silent_buried::SilentBuried,
    rounds_paced::RoundsPaced,
    no_false_suspicion::NoFalseSuspicion,
    seq_monotone::SeqMonotone,
    frame_cap::FrameCap,
    frames_authentic::FramesAuthentic,
    refused_unread::RefusedUnread,
    no_false_replay::NoFalseReplay,
    silence_alone::SilenceAlone,
    farewell_heard::FarewellHeard,
    tombstones_kept::TombstonesKept,
    incarnation_from_clock::IncarnationFromClock,
    refutation_told::RefutationTold,
    duplicate_told::DuplicateTold,
    cell_follows_boot::CellFollowsBoot,
    nudges_spaced::NudgesSpaced,
    unheard_redialled::UnheardRedialled,
    dials_paced::DialsPaced,
    farewell_first::FarewellFirst,
    departs_in_time::DepartsInTime,
    strangers_make_room::StrangersMakeRoom,
    idle_closed::IdleClosed,
    strikes_close::StrikesClose,
    seals_above_tip::SealsAboveTip,
    seals_one_by_one::SealsOneByOne,
    sealed_by_issuer::SealedByIssuer,
    seals_caught_up::SealsCaughtUp,
    seals_by_sane_clock::SealsBySaneClock,
    numbers_once::NumbersOnce,
    one_row_a_window::OneRowAWindow,
    fold_exact::FoldExact,
    durable_first::DurableFirst,
    promoted_in_silence::PromotedInSilence,
    promoted_by_rule::PromotedByRule,
    decided_by_answers::DecidedByAnswers,
    promotions_lapse::PromotionsLapse,
    unable_asks_nothing::UnableAsksNothing,
    fence_excludes::FenceExcludes,
    epochs_once::EpochsOnce,
    supply_bounded::SupplyBounded,
    audit_exact::AuditExact,
    views_agree::ViewsAgree,
    documents_agree::DocumentsAgree,
    counters_exact::CountersExact,
    leases_agree::LeasesAgree,
    spines_agree::SpinesAgree,
    issuer_seals::IssuerSeals,
}

/// All oracles of a run.
#[derive(Debug)]
pub struct Oracles {
    ledger: Ledger,
    agreement: Agreement,
    set: Set,
}

impl Oracles {
    /// All oracles, except those that the scenario turns off with a reason.
    ///
    /// # Errors
    /// [`UnknownOracle`] for a name that no oracle bears.
    pub fn new(world: &World, off: &BTreeMap<String, String>) -> Result<Self, UnknownOracle> {
        if let Some(name) = off.keys().find(|name| RULES.iter().all(|rule| rule.name != *name)) {
            return Err(UnknownOracle { name: name.clone() });
        }
        let mut set = Set::new(world);
        off.keys().for_each(|name| set.turn_off(name));
        Ok(Self { ledger: Ledger::new(world), agreement: Agreement::new(world), set })
    }

    /// Shows a handled input to every oracle.
    ///
    /// # Errors
    /// The first invariant it broke.
    pub fn after(&mut self, world: &World, step: &Step<'_>) -> Result<(), Box<Violation>> {
        self.judge(world, &Look::from(step))
    }

    /// Tells every oracle that a host went down.
    pub fn down(&mut self, world: &World, host: HostIx) {
        self.set.down(world, host);
    }

    /// Whether all running nodes agree, for the liveness phase. Nodes whose versions have not moved since the
    /// last call are not looked at again.
    ///
    /// # Errors
    /// Who disagrees with whom about what.
    pub fn convergence(&mut self, world: &World, at: Instant, nodes: &Nodes<'_>) -> Result<(), String> {
        self.agreement.take_in(world, nodes);
        self.agreement.check(world)?;
        closing::settled(world, self.ledger.books(), at)
            .map_err(|broken| format!("{}; {}", broken.fact, broken.contradiction))
    }

    /// Whether agreement is out of reach: nothing leads from some of the running nodes to the others.
    pub fn is_parted(&self, world: &World) -> bool {
        self.agreement.is_parted(world)
    }

    /// The full sweep: every running node once more as if all of it had changed, then the liveness oracles.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn at_end(&mut self, world: &World, at: Instant, nodes: &Nodes<'_>) -> Result<(), Box<Violation>> {
        for position in 0..world.hosts().len() {
            let host = HostIx(position);
            let mut verdict = Ok(());
            if world.host(host).running().is_some() {
                nodes(host, &mut |node| verdict = self.sweep(world, host, node));
            }
            verdict?;
        }
        self.agreement.take_in(world, nodes);
        let mut spines = vec![None; world.hosts().len()];
        for (position, spine) in spines.iter_mut().enumerate() {
            if world.host(HostIx(position)).running().is_some() {
                nodes(HostIx(position), &mut |node| {
                    *spine = node.issuance().map(|issuance| issuance.spine().clone());
                });
            }
        }
        self.agreement.close(world, self.ledger.books(), at, &spines);
        self.set.at_end(world, &self.agreement).map_err(|(rule, broken)| violation(rule, *broken, at))
    }

    fn judge<S: Subject>(&mut self, world: &World, look: &Look<'_, S>) -> Result<(), Box<Violation>> {
        let changed = self.ledger.take_in(world, look);
        let sight = Sight { look, world, ledger: &self.ledger, changed };
        self.set.after(&sight).map_err(|(rule, broken)| violation(rule, *broken, look.at))
    }

    /// Judges a node at its last handled instant, whatever its versions say.
    fn sweep<S: Subject>(&mut self, world: &World, host: HostIx, node: &S) -> Result<(), Box<Violation>> {
        let Some((at, now)) = self.ledger.host(host).last else { return Ok(()) };
        let boot = world.host(host).running().map_or(0, |boot| boot.boot);
        let look = Look {
            at,
            now,
            host,
            boot,
            cause: Cause::Wake,
            node,
            events: &[],
            frames_sent: 0,
            bytes_sent: 0,
            links: LinkSizes::default(),
            connections: None,
            alarms: &[],
        };
        self.ledger.take_in(world, &look);
        let issuance = node.issuance().is_some();
        let changed = Changed { boot: false, document: true, view: true, issuance, sweep: true };
        let sight = Sight { look: &look, world, ledger: &self.ledger, changed };
        self.set.after(&sight).map_err(|(rule, broken)| violation(rule, *broken, at))
    }
}

fn violation(rule: Rule, broken: Broken, at: Instant) -> Box<Violation> {
    Box::new(Violation {
        oracle: rule.name,
        invariant: rule.invariant,
        source: rule.source,
        at_us: at.as_micros(),
        nodes: broken.nodes,
        fact: broken.fact,
        contradiction: broken.contradiction,
        liveness: rule.liveness,
    })
}

/// A moment of the run, for a sentence: seconds with all six decimals.
fn clock(at: Instant) -> String {
    span(Duration::from_micros(at.as_micros()))
}

/// A duration, for a sentence.
fn span(duration: Duration) -> String {
    let micros = micros(duration);
    format!("{}.{:06} s", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::testing::Bench;
    use super::*;

    #[test]
    fn every_oracle_has_a_name_of_its_own_a_sentence_and_a_source() {
        for (position, rule) in RULES.iter().enumerate() {
            assert!(RULES[..position].iter().all(|other| other.name != rule.name), "{}", rule.name);
            assert!(rule.invariant.len() > 20 && !rule.invariant.ends_with('.'), "{}", rule.name);
            let page = ["docs/protocol.md, ", "docs/issuance.md, "];
            assert!(page.iter().any(|page| rule.source.starts_with(page)), "{}", rule.name);
        }
    }

    #[test]
    fn an_unknown_name_cannot_be_turned_off() {
        let bench = Bench::new(&["a"]);
        let off = BTreeMap::from([(String::from("no_alarms"), String::from("typo"))]);
        assert_eq!(Oracles::new(&bench.world, &off).unwrap_err().name, "no_alarms");
    }

    #[test]
    fn an_oracle_turned_off_says_nothing() {
        let alarm = firedrill_core::io::Alarm::MeasureWrong { measured: 1, encoded: 2 };
        let mut bench = Bench::new(&["a"]);
        assert_eq!(bench.alarm(0, 5, &alarm).unwrap_err().oracle, "no_alarm");
        let mut bench = Bench::new(&["a"]);
        bench.turn_off("no_alarm");
        bench.alarm(0, 5, &alarm).unwrap();
    }

    #[test]
    fn times_read_as_seconds() {
        assert_eq!(clock(Instant::from_micros(61_000_007)), "61.000007 s");
    }
}
