//! Replays a recorded run and says whether it is the same run.
//!
//! The drill of the [`Artifact`] runs as it is stored. What it did to the cluster is compared first (the schedule),
//! then every event (the trail), then what came of it. Where a run differs, it is run once more, to learn which of
//! two very different things happened:
//!
//! - the two runs of now are one and the same: the program behaves differently than the one that recorded, because
//!   its code changed ([`Finding::Changed`]). The recorded failure may be gone with it.
//! - they differ too: the run is not deterministic ([`Finding::NotDeterministic`]), a bug of firedrill.
//!
//! The second run also tells what the first event that differs is. A scenario without a recording is compared with
//! itself ([`twice`]).
//!
//! Absent: what a difference looks like to a person, which is the command's part.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::artifact::Artifact;
use crate::digest::{Mark, first_difference};
use crate::drill::{self, RunError, RunOptions};
use crate::outcome::{Applied, Failure, Happening, Outcome};
use crate::scenario::{Report, Scenario};

/// A replayed run.
#[derive(Debug)]
pub struct Replay {
    /// The scenario that ran.
    pub scenario: Scenario,
    /// What came of it now.
    pub outcome: Outcome,
    /// What the comparison showed.
    pub finding: Finding,
}

/// Whether a run is the one that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Fault for fault and event for event the same, with the same end.
    Reproduced,
    /// The program behaves differently now, the same every time.
    Changed(Difference),
    /// Two runs of now differ from each other.
    NotDeterministic(Difference),
}

/// Where two runs part. What is `None` does not differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The first fault that differs.
    pub fault: Option<FaultDifference>,
    /// The first event that differs.
    pub event: Option<EventDifference>,
    /// Why either run failed, where it did.
    pub failures: (Option<Failure>, Option<Failure>),
    /// The digest of either run.
    pub digests: (String, String),
}

/// The first fault that differs, in either run; `None` where the run applied no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultDifference {
    /// Which fault, counted from 0.
    pub index: usize,
    /// In the run that came first, the recording as a rule.
    pub one: Option<Applied>,
    /// In the run that is compared with it.
    pub other: Option<Applied>,
}

/// The first event that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDifference {
    /// Which event, counted from 0.
    pub index: usize,
    /// Events of either run.
    pub events: (usize, usize),
    /// The node of the run that came first, the recording as a rule; `None` where it was over by then.
    pub one: Option<String>,
    /// The node of the run that is compared with it; `None` where it was over by then.
    pub other: Option<String>,
    /// What the event was in a run of now, where there was one.
    pub happening: Option<Happening>,
}

/// Why there is no replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The scenario in the artifact is not valid here.
    #[error("the scenario it holds is not valid for this firedrill")]
    Scenario(Report),
    /// A guard was off that this version does not have.
    #[error("it was recorded with the guard `{0}` off, and this firedrill has no such guard")]
    Guard(String),
    /// It did not run.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// What one run is compared by.
#[derive(Debug, Clone, Copy)]
struct Run<'a> {
    schedule: &'a [Applied],
    trail: &'a [Mark],
    digest: &'a str,
    failure: &'a Option<Failure>,
}

/// Runs the drill of an artifact and compares it with the recording. `cancel` ends it soon after it becomes true.
///
/// # Errors
/// [`ReplayError`] when it cannot run here, or was cancelled.
pub fn replay(artifact: &Artifact, cancel: Option<Arc<AtomicBool>>) -> Result<Replay, ReplayError> {
    replay_by(&mut drill::run, artifact, cancel)
}

/// Runs a scenario twice and compares the runs: [`Finding::Reproduced`] or [`Finding::NotDeterministic`]. Trails and
/// schedules are kept whatever the options say of them.
///
/// # Errors
/// [`RunError`] when it cannot run so, or was cancelled.
pub fn twice(scenario: Scenario, options: &RunOptions) -> Result<Replay, RunError> {
    twice_by(&mut drill::run, scenario, options)
}

/// Runs a drill; in tests of what differs, something that differs.
type Runner<'r> = &'r mut dyn FnMut(&Scenario, &RunOptions) -> Result<Outcome, RunError>;

fn replay_by(
    run: Runner<'_>,
    artifact: &Artifact,
    cancel: Option<Arc<AtomicBool>>,
) -> Result<Replay, ReplayError> {
    let scenario = artifact.scenario().map_err(ReplayError::Scenario)?;
    let options = RunOptions { cancel, ..artifact.options().map_err(ReplayError::Guard)? };
    let outcome = run(&scenario, &options)?;
    let failure = outcome.failure();
    let recorded = Run {
        schedule: &artifact.schedule,
        trail: &artifact.trail,
        digest: &artifact.digest,
        failure: &artifact.failure,
    };
    let Some(mut difference) = compare(recorded, run_of(&outcome, &failure), &scenario) else {
        return Ok(Replay { scenario, outcome, finding: Finding::Reproduced });
    };
    let tell_event = difference.event.as_ref().map(|event| event.index);
    let again = run(&scenario, &RunOptions { tell_event, timeline: false, ..options })?;
    let failure_again = again.failure();
    let finding = match compare(run_of(&outcome, &failure), run_of(&again, &failure_again), &scenario) {
        Some(difference) => Finding::NotDeterministic(difference),
        None => {
            if let Some(event) = &mut difference.event {
                event.happening = again.happening;
            }
            Finding::Changed(difference)
        }
    };
    Ok(Replay { scenario, outcome, finding })
}

fn twice_by(run: Runner<'_>, scenario: Scenario, options: &RunOptions) -> Result<Replay, RunError> {
    let options = RunOptions { keep_trail: true, keep_schedule: true, ..options.clone() };
    let outcome = run(&scenario, &options)?;
    let again = run(&scenario, &RunOptions { timeline: false, ..options })?;
    let (failure, failure_again) = (outcome.failure(), again.failure());
    let difference = compare(run_of(&outcome, &failure), run_of(&again, &failure_again), &scenario);
    let finding = difference.map_or(Finding::Reproduced, Finding::NotDeterministic);
    Ok(Replay { scenario, outcome, finding })
}

const fn run_of<'a>(outcome: &'a Outcome, failure: &'a Option<Failure>) -> Run<'a> {
    Run {
        schedule: outcome.schedule.as_slice(),
        trail: outcome.trail.as_slice(),
        digest: outcome.digest.as_str(),
        failure,
    }
}

/// Where two runs of one scenario part; `None` when they are one and the same.
fn compare(one: Run<'_>, other: Run<'_>, scenario: &Scenario) -> Option<Difference> {
    let longer = one.schedule.len().max(other.schedule.len());
    let fault = (0..longer).find(|&index| one.schedule.get(index) != other.schedule.get(index));
    let fault = fault.map(|index| FaultDifference {
        index,
        one: one.schedule.get(index).cloned(),
        other: other.schedule.get(index).cloned(),
    });
    let node = |trail: &[Mark], index: usize| {
        let host = scenario.hosts.get(trail.get(index)?.host().0)?;
        Some(host.name.clone())
    };
    let event = first_difference(one.trail, other.trail).map(|index| EventDifference {
        index,
        events: (one.trail.len(), other.trail.len()),
        one: node(one.trail, index),
        other: node(other.trail, index),
        happening: None,
    });
    let differs =
        fault.is_some() || event.is_some() || one.digest != other.digest || one.failure != other.failure;
    differs.then(|| Difference {
        fault,
        event,
        failures: (one.failure.clone(), other.failure.clone()),
        digests: (one.digest.to_owned(), other.digest.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::engine::EngineKind;
    use crate::scenario::LoadOptions;

    const DRILL: &str = "name = \"two\"\nabout = \"Two nodes meet.\"\ntime_limit = \"5s\"\n[nodes]\ncount = 2\n\
                         [[step]]\nat = \"2s\"\nisolate = \"b\"\nfor = \"1s\"\n";

    fn scenario() -> Scenario {
        let none = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
        Scenario::parse(DRILL, Path::new("two.toml"), &none, LoadOptions::for_engine(EngineKind::Event))
            .expect("it is valid")
    }

    fn options() -> RunOptions {
        RunOptions { keep_trail: true, keep_schedule: true, ..RunOptions::default() }
    }

    /// A runner whose runs after the first `same` differ at one event, from each other too.
    fn unsteady(same: u64) -> impl FnMut(&Scenario, &RunOptions) -> Result<Outcome, RunError> {
        let mut runs = 0;
        move |scenario, options| {
            let mut outcome = drill::run(scenario, options)?;
            runs += 1;
            if runs > same {
                outcome.trail[20] = Mark::from_bits(outcome.trail[20].bits() ^ (runs << 40));
            }
            Ok(outcome)
        }
    }

    fn parted(finding: Finding) -> EventDifference {
        match finding {
            Finding::NotDeterministic(difference) => difference.event.expect("an event differs"),
            other @ (Finding::Reproduced | Finding::Changed(_)) => panic!("{other:?}"),
        }
    }

    #[test]
    fn two_runs_of_now_that_differ_are_no_change_of_the_program() {
        let scenario = scenario();
        let outcome = drill::run(&scenario, &options()).expect("it runs");
        let artifact = Artifact::new(&scenario, &options(), &outcome, None);
        let replayed = replay_by(&mut unsteady(0), &artifact, None).expect("it runs");
        assert_eq!(parted(replayed.finding).index, 20);
        let steady = replay_by(&mut drill::run, &artifact, None).expect("it runs");
        assert_eq!(steady.finding, Finding::Reproduced);
    }

    #[test]
    fn a_scenario_is_compared_with_itself() {
        let steady = twice(scenario(), &RunOptions::default()).expect("it runs");
        assert_eq!(steady.finding, Finding::Reproduced);
        assert_eq!(steady.outcome.schedule.len(), 2, "{:?}", steady.outcome.schedule);
        let unsteady = twice_by(&mut unsteady(1), scenario(), &RunOptions::default()).expect("it runs");
        assert_eq!(parted(unsteady.finding).index, 20);
    }
}
