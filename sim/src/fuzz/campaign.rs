//! A campaign: many seeds on several threads, one report.
//!
//! Seeds are handed out in order and folded into the report in order, so the report does not tell how many threads
//! there were. A campaign that is stopped finishes what it has handed out: what was played is always the beginning
//! of its seeds.
//!
//! Absent: a clock. The caller is called about ten times a second and says when it is enough, or that a seed has
//! been running for too long to ever end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use firedrill_core::guards::Guards;

use super::report::Report;
use super::seeds::{Seeds, Shard};
use super::{Mix, Profile, Tested, try_seed};
use crate::drill::RunError;

/// How often the caller is asked whether to go on, at least.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// No seed: a thread that plays none.
const IDLE: u64 = u64::MAX;

/// What to play.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Who draws the drills.
    pub profile: &'static dyn Profile,
    /// Where they run.
    pub mix: Mix,
    /// Which guards of the protocol stand.
    pub guards: Guards,
    /// Name of the guard that is off, for the report.
    pub sabotage: Option<&'static str>,
    /// All seeds of the campaign.
    pub seeds: Seeds,
    /// Which of them are played here.
    pub shard: Shard,
    /// Threads, at least one.
    pub jobs: usize,
    /// Ends at the first failure.
    pub fail_fast: bool,
}

/// How far a campaign has come.
#[derive(Debug)]
pub struct Progress<'a> {
    /// What is known so far.
    pub report: &'a Report,
    /// Seeds to play in all.
    pub seeds: u64,
    /// What each thread is at.
    pub running: &'a [Option<u64>],
}

/// What the caller wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Go on.
    GoOn,
    /// Hand out no more seeds.
    Finish,
    /// These seeds' threads never come back: report them, wait for nobody.
    Abandon {
        /// A seed that hangs.
        seed: u64,
    },
}

/// Plays a campaign.
///
/// # Errors
/// [`RunError`] when the profile drew a drill that its venue cannot run: an error of the profile.
///
/// # Panics
/// If a generator panics; a panic inside a drill is a failure of that drill.
pub fn play(plan: &Plan, watch: &mut dyn FnMut(&Progress<'_>) -> Wish) -> Result<Report, RunError> {
    let crew = Crew::hire(plan);
    let mut report = Report::new(plan);
    let seeds = plan.shard.count(plan.seeds);
    let mut early: BTreeMap<u64, Result<Tested, RunError>> = BTreeMap::new();
    let mut next = 0;
    loop {
        match crew.results.recv_timeout(ASK_EVERY) {
            Ok((nth, tested)) => {
                early.insert(nth, tested);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        while let Some(tested) = early.remove(&next) {
            next += 1;
            let tested = tested?;
            let failed = tested.failure.is_some();
            report.add(&tested);
            if failed && plan.fail_fast {
                crew.stop();
                report.finish(next == seeds);
                return Ok(report);
            }
        }
        match watch(&Progress { report: &report, seeds, running: &crew.running() }) {
            Wish::GoOn => {}
            Wish::Finish => crew.stop(),
            Wish::Abandon { seed } => {
                crew.stop();
                report.add_hung(seed, plan.mix.venue(seed));
                report.finish(false);
                return Ok(report);
            }
        }
    }
    crew.dismiss();
    report.finish(next == seeds);
    Ok(report)
}

/// The threads that play.
struct Crew {
    threads: Vec<JoinHandle<()>>,
    results: Receiver<(u64, Result<Tested, RunError>)>,
    playing: Arc<Vec<AtomicU64>>,
    stop: Arc<AtomicBool>,
}

impl Crew {
    fn hire(plan: &Plan) -> Self {
        let (sender, results) = channel();
        let jobs = plan.jobs.max(1);
        let playing: Arc<Vec<AtomicU64>> = Arc::new((0..jobs).map(|_| AtomicU64::new(IDLE)).collect());
        let (stop, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let hire = |job| {
            let (plan, sender) = (*plan, sender.clone());
            let (playing, stop, next) = (Arc::clone(&playing), Arc::clone(&stop), Arc::clone(&next));
            std::thread::spawn(move || work(&plan, &next, &stop, &playing[job], &sender))
        };
        let threads = (0..jobs).map(hire).collect();
        Self { threads, results, playing, stop }
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// What each thread is at.
    fn running(&self) -> Vec<Option<u64>> {
        let seed = |playing: &AtomicU64| Some(playing.load(Ordering::Relaxed)).filter(|&seed| seed != IDLE);
        self.playing.iter().map(seed).collect()
    }

    /// Waits for everybody.
    fn dismiss(self) {
        for thread in self.threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// One thread: seed after seed, until there are no more.
fn work(
    plan: &Plan,
    next: &AtomicU64,
    stop: &AtomicBool,
    playing: &AtomicU64,
    results: &Sender<(u64, Result<Tested, RunError>)>,
) {
    while !stop.load(Ordering::Relaxed) {
        let nth = next.fetch_add(1, Ordering::Relaxed);
        let Some(seed) = plan.shard.nth(plan.seeds, nth) else { break };
        playing.store(seed, Ordering::Relaxed);
        let tested = try_seed(plan.profile, seed, plan.mix, plan.guards);
        playing.store(IDLE, Ordering::Relaxed);
        if results.send((nth, tested)).is_err() {
            break; // nobody wants to know any more
        }
    }
}
