//! `[issuance]`: what it says, and the rules that relate its keys.
//!
//! Absent: what ticks are in seconds; see `issuance::window`.

pub(super) mod keys;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::problem::{Place, Problem};
use super::read::{Provenance, Reader, Slot};
use super::value;
use crate::id::NodeId;
use crate::issuance::decimal::Decimal;
use crate::issuance::window::Z;

/// Fewest electors of which a majority is worth asking: of two, a majority is both.
const ELECTORS_MIN: usize = 3;
/// A fence may last at most this much of the silence, in tenths.
const FENCE_TENTHS_MAX: u64 = 8;

const FENCING_WORDS: [(&str, Fencing); 2] = [("none", Fencing::None), ("majority", Fencing::Majority)];

/// `[issuance]`, enabled and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuanceConfig {
    /// The node that seals first, and the only one without failover; in `eligible` unless that is empty.
    pub issuer: NodeId,
    /// Ticks in a window, at least 1.
    pub width: u64,
    /// What one window issues, above 0.
    pub rate: Decimal,
    /// Unix milliseconds of z 0.
    pub genesis_ms: u64,
    /// Most windows that one row covers, at least 1.
    pub max_elapsed_per_seal: u64,
    /// Most windows that one row covers when catching up; 0 turns it off.
    pub catchup_max_z: Z,
    /// Whether another node takes over from a silent issuer.
    pub failover: bool,
    /// Silence of the spine after which its holder may be replaced.
    pub silence_z: Z,
    /// Time after a start without elections.
    pub boot_grace_z: Z,
    /// Time between elections.
    pub check_z: Z,
    /// Time between pulls.
    pub pull_z: Z,
    /// How long a probe may take to be answered, in milliseconds.
    pub probe_timeout_ms: u64,
    /// Who may become issuer; everybody when empty.
    pub eligible: BTreeSet<NodeId>,
    /// Whether an issuer needs the consent of a majority of `eligible`.
    pub fencing: Fencing,
    /// How long a promise binds an elector.
    pub fence_z: Z,
}

impl IssuanceConfig {
    /// Most windows that one row covers: catching up is a part of failover.
    pub const fn elapsed_max(&self) -> u64 {
        elapsed_max(self.failover, self.max_elapsed_per_seal, self.catchup_max_z)
    }
}

const fn elapsed_max(failover: bool, per_seal: u64, catchup: Z) -> u64 {
    if failover && catchup.0 > per_seal { catchup.0 } else { per_seal }
}

/// What keeps two nodes from issuing at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fencing {
    /// Nothing while the network is split; the spine merges afterwards.
    None,
    /// A lease that a majority of the electorate consents to.
    Majority,
}

/// Every key of the section, read but not yet related to the others.
pub(super) struct IssuanceDraft {
    enabled: Slot<bool>,
    issuer: Slot<NodeId>,
    width: Slot<u64>,
    rate: Slot<Decimal>,
    genesis_ms: Slot<u64>,
    max_elapsed_per_seal: Slot<u64>,
    catchup_max_z: Slot<u64>,
    failover: Slot<bool>,
    silence_z: Slot<u64>,
    boot_grace_z: Slot<u64>,
    check_z: Slot<u64>,
    pull_z: Slot<u64>,
    probe_timeout_ms: Slot<u64>,
    eligible: Slot<BTreeSet<NodeId>>,
    fencing: Slot<Fencing>,
    fence_z: Slot<u64>,
}

const WIDTH: u64 = 1;
const RATE: Decimal = Decimal::from_units(999_999_999_999);
const MAX_ELAPSED_PER_SEAL: u64 = 8;
const SILENCE_Z: u64 = 60;
const CHECK_Z: u64 = 16;
const PULL_Z: u64 = 20;
const FENCE_Z: u64 = 45;

impl IssuanceDraft {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        const WHY_WIDTH: &str = "a window holds one tick or more";
        const WHY_ELAPSED: &str = "a row covers its own window";
        const WHY_TIME: &str = "without any time between them it would do nothing else";
        const WHY_PROBE: &str = "no answer travels faster";
        let mut at_least = |key, min, why| reader.slot(key, |given| value::integer(given, min, why));
        let width = at_least(&keys::WIDTH, 1, WHY_WIDTH);
        let genesis_ms = at_least(&keys::GENESIS_MS, 0, "");
        let max_elapsed_per_seal = at_least(&keys::MAX_ELAPSED_PER_SEAL, 1, WHY_ELAPSED);
        let catchup_max_z = at_least(&keys::CATCHUP_MAX_Z, 0, "");
        let silence_z = at_least(&keys::SILENCE_Z, 0, "");
        let boot_grace_z = at_least(&keys::BOOT_GRACE_Z, 1, WHY_TIME);
        let check_z = at_least(&keys::CHECK_Z, 1, WHY_TIME);
        let pull_z = at_least(&keys::PULL_Z, 1, WHY_TIME);
        let probe_timeout_ms = at_least(&keys::PROBE_TIMEOUT_MS, 10, WHY_PROBE);
        let fence_z = at_least(&keys::FENCE_Z, 1, WHY_TIME);
        Self {
            enabled: reader.slot(&keys::ENABLED, value::boolean),
            issuer: reader.slot(&keys::ISSUER, |given| value::name(given, NodeId::new)),
            rate: reader.slot(&keys::RATE, value::amount),
            failover: reader.slot(&keys::FAILOVER, value::boolean),
            eligible: reader.slot(&keys::ELIGIBLE, value::node_ids),
            fencing: reader.slot(&keys::FENCING, |given| value::choice(given, &FENCING_WORDS)),
            width,
            genesis_ms,
            max_elapsed_per_seal,
            catchup_max_z,
            silence_z,
            boot_grace_z,
            check_z,
            pull_z,
            probe_timeout_ms,
            fence_z,
        }
    }

    pub(super) fn check_relations(&self, node_id: &Slot<NodeId>, problems: &mut Vec<Problem>) {
        problems.extend(self.check_issuer());
        problems.extend(self.check_node_id(node_id));
        problems.extend(self.check_issuer_eligible());
        problems.extend(self.check_amount());
        problems.extend(self.check_silence());
        problems.extend(self.check_failover());
        problems.extend(self.check_electorate());
        problems.extend(self.check_fence());
    }

    /// Issuance begins with one node that everybody knows.
    fn check_issuer(&self) -> Option<Problem> {
        let Slot::Set(true, enabled_at) = &self.enabled else { return None };
        matches!(self.issuer, Slot::Unset).then(|| Problem {
            key: keys::ISSUER.path(),
            place: Place::Missing,
            message: format!("issuance.issuer is needed, because issuance.enabled is true ({enabled_at})"),
            help: Some(String::from("name the node that seals first, the same one on every node")),
        })
    }

    /// A name drawn anew at each boot would leave the field with a candidate that never returns.
    fn check_node_id(&self, node_id: &Slot<NodeId>) -> Option<Problem> {
        let Slot::Set(true, enabled_at) = &self.enabled else { return None };
        matches!(node_id, Slot::Unset).then(|| Problem {
            key: String::from("cluster.node_id"),
            place: Place::Missing,
            message: format!(
                "cluster.node_id is needed, because issuance.enabled is true ({enabled_at}): leases speak of \
                 nodes by name, and a name drawn at boot is lost with it"
            ),
            help: Some(String::from("give this node a name of its own and keep it")),
        })
    }

    /// An issuer that may not be elected could never return once it was replaced.
    fn check_issuer_eligible(&self) -> Option<Problem> {
        let (Slot::Set(issuer, place), Slot::Set(eligible, eligible_at)) = (&self.issuer, &self.eligible)
        else {
            return None;
        };
        (!eligible.is_empty() && !eligible.contains(issuer)).then(|| Problem {
            key: keys::ISSUER.path(),
            place: place.clone(),
            message: format!(
                "issuance.issuer is \"{issuer}\", which is not in issuance.eligible ({eligible_at}): once \
                 replaced it could never be issuer again"
            ),
            help: Some(format!("add \"{issuer}\" to eligible, or name one of those as issuer")),
        })
    }

    /// Every row that may be sealed has an amount.
    fn check_amount(&self) -> Option<Problem> {
        let (rate, rate_at) = self.rate.effective(RATE)?;
        let (elapsed, _) = self.max_elapsed_per_seal.effective(MAX_ELAPSED_PER_SEAL)?;
        let (catchup, _) = self.catchup_max_z.effective(0)?;
        let (failover, _) = self.failover.effective(true)?;
        let most = elapsed_max(failover, elapsed, Z(catchup));
        let Err(overflow) = rate.checked_mul(most) else { return None };
        Some(Problem {
            key: keys::RATE.path(),
            place: rate_at.cloned().unwrap_or(Place::Missing),
            message: format!(
                "issuance.rate is {rate} ({}), and times the {most} windows that one row may cover {overflow}",
                Provenance(rate_at),
            ),
            help: Some(String::from("lower the rate, max_elapsed_per_seal or catchup_max_z")),
        })
    }

    /// Rows arrive in pulls and windows take their width: a silence must outlast both.
    fn check_silence(&self) -> Option<Problem> {
        let (silence, silence_at) = self.silence_z.effective(SILENCE_Z)?;
        let (check, check_at) = self.check_z.effective(CHECK_Z)?;
        let (pull, pull_at) = self.pull_z.effective(PULL_Z)?;
        let (width, width_at) = self.width.effective(WIDTH)?;
        let [wide_check, wide_pull, wide_width] = [check, pull, width].map(u128::from);
        let above = wide_pull + wide_check;
        let least = 2 * wide_width + 2 * wide_pull;
        let needed = least.max(above + 1);
        if u128::from(silence) >= needed {
            return None;
        }
        let help = if needed <= u128::from(u64::MAX) {
            format!("raise silence_z to {needed} or more, or lower the others")
        } else {
            String::from("lower pull_z, check_z or width")
        };
        Some(Problem {
            key: keys::SILENCE_Z.path(),
            // Where the silence is given, or else one of the others: by default they agree.
            place: [silence_at, pull_at, check_at, width_at]
                .into_iter()
                .flatten()
                .next()
                .cloned()
                .unwrap_or(Place::Missing),
            message: format!(
                "issuance.silence_z is {silence} ({}), but it must be more than pull_z + check_z = {pull} + \
                 {check} = {above} and at least 2 x width + 2 x pull_z = 2 x {width} + 2 x {pull} = {least} \
                 (pull_z: {}; check_z: {}; width: {}): otherwise a healthy issuer is replaced between two pulls",
                Provenance(silence_at),
                Provenance(pull_at),
                Provenance(check_at),
                Provenance(width_at),
            ),
            help: Some(help),
        })
    }

    fn fenced_at(&self) -> Option<&Place> {
        match &self.fencing {
            Slot::Set(Fencing::Majority, place) => Some(place),
            Slot::Set(Fencing::None, _) | Slot::Unset | Slot::Broken => None,
        }
    }

    /// Without failover nobody follows the issuer, so a fence could only stop it.
    fn check_failover(&self) -> Option<Problem> {
        let place = self.fenced_at()?;
        let Slot::Set(false, failover_at) = &self.failover else { return None };
        Some(Problem {
            key: keys::FENCING.path(),
            place: place.clone(),
            message: format!(
                "issuance.fencing is \"majority\", but issuance.failover is false ({failover_at}): with a single \
                 possible issuer there is nobody to fence off"
            ),
            help: Some(String::from("set failover to true, or fencing to \"none\"")),
        })
    }

    /// The electorate is fixed and large enough that a majority is not everybody.
    fn check_electorate(&self) -> Option<Problem> {
        let place = self.fenced_at()?;
        let (many, given) = match &self.eligible {
            Slot::Set(eligible, at) => (eligible.len(), at.to_string()),
            Slot::Unset => (0, Provenance(None).to_string()),
            Slot::Broken => return None,
        };
        (many < ELECTORS_MIN).then(|| Problem {
            key: keys::ELIGIBLE.path(),
            place: place.clone(),
            message: format!(
                "issuance.eligible names {many} nodes ({given}), but fencing \"majority\" needs {ELECTORS_MIN} \
                 or more: of fewer no majority is left when one fails"
            ),
            help: Some(String::from("name the electorate in eligible, the same on every node, rather an odd number")),
        })
    }

    /// Promises to an issuer that is gone must have run out when its successor asks.
    fn check_fence(&self) -> Option<Problem> {
        let fenced_at = self.fenced_at()?;
        let (fence, fence_at) = self.fence_z.effective(FENCE_Z)?;
        let (silence, silence_at) = self.silence_z.effective(SILENCE_Z)?;
        if u128::from(fence) * 10 <= u128::from(silence) * u128::from(FENCE_TENTHS_MAX) {
            return None;
        }
        let most = u128::from(silence) * u128::from(FENCE_TENTHS_MAX) / 10;
        Some(Problem {
            key: keys::FENCE_Z.path(),
            place: fence_at.or(silence_at).unwrap_or(fenced_at).clone(),
            message: format!(
                "issuance.fence_z is {fence} ({}), but at most 0.8 x silence_z = 0.8 x {silence} ({}) = {most} is \
                 allowed: promises to an issuer that is gone must run out before its successor asks",
                Provenance(fence_at),
                Provenance(silence_at),
            ),
            help: Some(format!("lower fence_z to {most} or less, or raise silence_z")),
        })
    }

    /// The section, unless it is off.
    pub(super) fn finish(self) -> Option<IssuanceConfig> {
        let (true, Some(issuer)) = (self.enabled.or(false), self.issuer.some()) else { return None };
        Some(IssuanceConfig {
            issuer,
            width: self.width.or(WIDTH),
            rate: self.rate.or(RATE),
            genesis_ms: self.genesis_ms.or(0),
            max_elapsed_per_seal: self.max_elapsed_per_seal.or(MAX_ELAPSED_PER_SEAL),
            catchup_max_z: Z(self.catchup_max_z.or(0)),
            failover: self.failover.or(true),
            silence_z: Z(self.silence_z.or(SILENCE_Z)),
            boot_grace_z: Z(self.boot_grace_z.or(40)),
            check_z: Z(self.check_z.or(CHECK_Z)),
            pull_z: Z(self.pull_z.or(PULL_Z)),
            probe_timeout_ms: self.probe_timeout_ms.or(2000),
            eligible: self.eligible.or(BTreeSet::new()),
            fencing: self.fencing.or(Fencing::None),
            fence_z: Z(self.fence_z.or(FENCE_Z)),
        })
    }
}
