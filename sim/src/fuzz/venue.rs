//! Where the drill of a seed runs: drawn from the seed, unless the campaign fixes it.

use firedrill_core::rng::Seed;
use serde::{Deserialize, Serialize};

use crate::engine::{EngineKind, Wire};

/// One seed in so many runs on turmoil, where both engines take part.
const TURMOIL_ONE_IN: u64 = 500;
/// One seed in so many of the event engine runs on the full wire, where both wires take part.
const FULL_ONE_IN: u64 = 16;
/// Turmoil's tick in a campaign, in milliseconds: its cost follows ticks.
const TICK_MS: u64 = 10;

/// An engine, and its wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Venue {
    /// The event engine, messages as values.
    Fast,
    /// The event engine, real bytes over modelled connections.
    Full,
    /// The production driver on turmoil.
    Turmoil,
}

impl Venue {
    /// Its engine.
    pub const fn engine(self) -> EngineKind {
        match self {
            Self::Fast | Self::Full => EngineKind::Event,
            Self::Turmoil => EngineKind::Turmoil,
        }
    }

    /// Its wire, on the event engine.
    pub const fn wire(self) -> Option<Wire> {
        match self {
            Self::Fast => Some(Wire::Fast),
            Self::Full => Some(Wire::Full),
            Self::Turmoil => None,
        }
    }

    /// Turmoil's tick, in milliseconds.
    pub const fn tick_ms(self) -> u64 {
        TICK_MS
    }

    /// What the command line calls it: `event, full wire`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "event, fast wire",
            Self::Full => "event, full wire",
            Self::Turmoil => "turmoil",
        }
    }
}

/// Which engines take part in a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineMix {
    /// Most seeds on the event engine, one in 500 on turmoil.
    Mix,
    /// The event engine alone.
    Event,
    /// Turmoil alone.
    Turmoil,
}

/// Which wires of the event engine take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WireMix {
    /// Most seeds fast, one in 16 full.
    Mix,
    /// Fast alone.
    Fast,
    /// Full alone.
    Full,
}

/// Which venues take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix {
    /// Engines.
    pub engine: EngineMix,
    /// Wires.
    pub wire: WireMix,
}

impl Mix {
    /// Everything, in the usual shares.
    pub const ALL: Self = Self { engine: EngineMix::Mix, wire: WireMix::Mix };

    /// One venue for every seed.
    pub const fn only(venue: Venue) -> Self {
        match venue {
            Venue::Fast => Self { engine: EngineMix::Event, wire: WireMix::Fast },
            Venue::Full => Self { engine: EngineMix::Event, wire: WireMix::Full },
            Venue::Turmoil => Self { engine: EngineMix::Turmoil, wire: WireMix::Mix },
        }
    }

    /// Where this seed runs.
    pub fn venue(self, seed: u64) -> Venue {
        let mut rng = Seed::from_u64(seed).fork("venue").rng();
        let (turmoil, full) = (rng.between(1, TURMOIL_ONE_IN) == 1, rng.between(1, FULL_ONE_IN) == 1);
        match (self.engine, self.wire) {
            (EngineMix::Turmoil, _) => Venue::Turmoil,
            (EngineMix::Mix, _) if turmoil => Venue::Turmoil,
            (_, WireMix::Full) => Venue::Full,
            (_, WireMix::Mix) if full => Venue::Full,
            (_, WireMix::Mix | WireMix::Fast) => Venue::Fast,
        }
    }

    /// Whether any seed can run there.
    pub const fn reaches(self, venue: Venue) -> bool {
        match venue {
            Venue::Fast => !matches!(self.engine, EngineMix::Turmoil) && !matches!(self.wire, WireMix::Full),
            Venue::Full => !matches!(self.engine, EngineMix::Turmoil) && !matches!(self.wire, WireMix::Fast),
            Venue::Turmoil => !matches!(self.engine, EngineMix::Event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_seeds_run_fast_one_in_sixteen_full_and_one_in_five_hundred_on_turmoil() {
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..32_000 {
            *counts.entry(Mix::ALL.venue(seed)).or_insert(0_u32) += 1;
        }
        assert!((45..85).contains(&counts[&Venue::Turmoil]), "{counts:?}");
        assert!((1_850..2_150).contains(&counts[&Venue::Full]), "{counts:?}");
    }

    #[test]
    fn a_mix_reaches_exactly_the_venues_it_draws() {
        for engine in [EngineMix::Mix, EngineMix::Event, EngineMix::Turmoil] {
            for wire in [WireMix::Mix, WireMix::Fast, WireMix::Full] {
                let mix = Mix { engine, wire };
                let drawn: std::collections::BTreeSet<Venue> = (0..5_000).map(|s| mix.venue(s)).collect();
                for venue in [Venue::Fast, Venue::Full, Venue::Turmoil] {
                    assert_eq!(mix.reaches(venue), drawn.contains(&venue), "{mix:?} {venue:?}");
                }
            }
        }
    }
}
