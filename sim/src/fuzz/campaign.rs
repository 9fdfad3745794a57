//! A campaign: many seeds on several threads, one report.
//!
//! Seeds are handed out in order and folded into the report in order, so the report does not tell how many threads
//! there were. A campaign that is stopped finishes what it has handed out: what was played is always the beginning
//! of its seeds. Only when a seed never comes back, what lies behind it and is done is reported as well.
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
    /// This seed's thread never comes back: report it and all that is done, and wait for nobody. A seed that has come
    /// back in the meantime is not abandoned.
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
    let mut early = Early::new();
    let mut next = 0;
    loop {
        let heard = crew.results.recv_timeout(ASK_EVERY);
        let all_gone = matches!(heard, Err(RecvTimeoutError::Disconnected));
        early.extend(heard);
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
        if all_gone {
            break;
        }
        match watch(&Progress { report: &report, seeds, running: &crew.running() }) {
            Wish::GoOn => {}
            Wish::Finish => crew.stop(),
            Wish::Abandon { seed } => {
                early.extend(crew.results.try_iter());
                let place = place(plan, seed);
                if place < next || early.contains_key(&place) {
                    continue;
                }
                crew.stop();
                for tested in early.into_values() {
                    report.add(&tested?);
                }
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

/// What is done and waits for a seed before it, by its place among the seeds.
type Early = BTreeMap<u64, Result<Tested, RunError>>;

/// The place of a seed among those of its shard, from 0.
const fn place(plan: &Plan, seed: u64) -> u64 {
    seed.saturating_sub(plan.seeds.from) / plan.shard.of
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
        let seed = |playing: &AtomicU64| Some(playing.load(Ordering::Acquire)).filter(|&seed| seed != IDLE);
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
        if results.send((nth, tested)).is_err() {
            break; // nobody wants to know any more
        }
    }
    // Only now: when a thread is at nothing, all its results can be had.
    playing.store(IDLE, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Condvar, Mutex, PoisonError};

    use super::*;
    use crate::engine::EngineKind;
    use crate::fuzz::coverage::Goal;
    use crate::fuzz::{Mix, Venue};
    use crate::outcome::Failure;
    use crate::scenario::{LoadOptions, Scenario};

    /// Draws a drill of one second, which fails for some seeds, and is held up by others for as long as a test wants.
    struct Held {
        holds: fn(u64) -> bool,
        fails: fn(u64) -> bool,
        drawn: AtomicUsize,
        open: Mutex<bool>,
        opened: Condvar,
    }

    impl Held {
        const fn new(holds: fn(u64) -> bool, fails: fn(u64) -> bool) -> Self {
            Self { holds, fails, drawn: AtomicUsize::new(0), open: Mutex::new(false), opened: Condvar::new() }
        }

        fn wait(&self) {
            let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            drop(self.opened.wait_while(open, |open| !*open));
        }

        fn let_go(&self) {
            *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.opened.notify_all();
        }

        /// Whether every seed has been drawn and all are done but this one.
        fn is_left_with(&self, seed: u64, progress: &Progress<'_>) -> bool {
            let drawn = self.drawn.load(Ordering::Relaxed) as u64;
            drawn == progress.seeds && progress.running.iter().flatten().eq(&[seed])
        }
    }

    impl Profile for Held {
        fn name(&self) -> &'static str {
            "held"
        }

        fn about(&self) -> &'static str {
            "drills that are held up"
        }

        fn draw(&self, seed: u64, _venue: Venue) -> Scenario {
            self.drawn.fetch_add(1, Ordering::Relaxed);
            if (self.holds)(seed) {
                self.wait();
            }
            let mut text = "name = \"held\"\nabout = \"Held.\"\ntime_limit = \"1s\"\n\
                            nodes = { names = [\"a\", \"b\"] }\n"
                .to_owned();
            if (self.fails)(seed) {
                text.push_str("[[expect]]\nby = \"900ms\"\nevent = { left = \"b\" }\n");
            }
            let none = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
            let options = LoadOptions::for_engine(EngineKind::Event);
            Scenario::parse(&text, Path::new("held.toml"), &none, options).unwrap()
        }

        fn sometimes(&self) -> &'static [Goal] {
            &[]
        }
    }

    fn plan(profile: &'static Held, to: u64, jobs: usize) -> Plan {
        Plan {
            profile,
            mix: Mix::only(Venue::Fast),
            guards: Guards::ON,
            sabotage: None,
            seeds: Seeds { from: 0, to },
            shard: Shard::WHOLE,
            jobs,
            fail_fast: false,
        }
    }

    #[test]
    fn a_drill_that_never_comes_back_is_a_failure_with_its_seed_and_hides_none_behind_it() {
        static HELD: Held = Held::new(|seed| seed == 3, |seed| seed == 5);
        let report = play(&plan(&HELD, 8, 2), &mut |progress| {
            // All others are done, and four of them wait for the one that hangs.
            if HELD.is_left_with(3, progress) { Wish::Abandon { seed: 3 } } else { Wish::GoOn }
        });
        HELD.let_go();
        let report = report.unwrap();
        assert_eq!((report.totals.seeds, report.complete), (8, false));
        let told = |failure| report.failures.iter().find(|failed| failed.failure == failure).unwrap();
        let hung = told(Failure::Invariant("progress".to_owned()));
        assert_eq!((&hung.seeds[..], &hung.hung[..], hung.first_that_ends()), (&[3][..], &[3][..], None));
        assert_eq!(told(Failure::Expectation).seeds, [5]);
    }

    #[test]
    fn a_seed_that_has_come_back_is_not_abandoned() {
        static HELD: Held = Held::new(|seed| seed == 0, |_| false);
        let mut abandoned = false;
        let report = play(&plan(&HELD, 4, 2), &mut |progress| {
            if abandoned {
                HELD.let_go();
            }
            // The others are done, and wait for the first.
            abandoned |= HELD.is_left_with(0, progress);
            if abandoned { Wish::Abandon { seed: 2 } } else { Wish::GoOn }
        });
        let report = report.unwrap();
        assert_eq!((report.totals.seeds, report.complete, &report.failures[..]), (4, true, &[][..]));
    }

    #[test]
    fn who_wishes_for_the_end_waits_for_no_seed_beyond_those_that_are_played() {
        static HELD: Held = Held::new(|_| true, |_| false);
        let mut asked = 0;
        let report = play(&plan(&HELD, 1_000, 3), &mut |_| {
            asked += 1;
            // Nobody has finished anything when the budget is over; from then on everybody may.
            if asked == 2 {
                HELD.let_go();
            }
            Wish::Finish
        });
        let report = report.unwrap();
        assert!(report.totals.seeds <= 3 && !report.complete, "{} seeds", report.totals.seeds);
        assert_eq!(HELD.drawn.load(Ordering::Relaxed) as u64, report.totals.seeds);
    }
}
