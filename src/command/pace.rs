//! How a long task is watched: a bar or plain lines, its budget, and threads that never come back.
//!
//! The only clock of a campaign is here, outside of every simulation.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::text::style::{count, span};

/// A seed that takes longer than this in real time hangs: the slowest drill takes seconds.
const HANGS_AFTER: Duration = Duration::from_secs(180);
/// Between two lines of progress where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// What a look at the threads tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// All is well.
    Fine,
    /// The budget is spent.
    Budget,
    /// This seed has been running for too long.
    Over {
        /// Which.
        seed: u64,
    },
}

/// Real time since the start, a budget of it, and since when each seed runs.
#[derive(Debug)]
pub(crate) struct Watch {
    start: Instant,
    budget: Option<Duration>,
    running: BTreeMap<u64, Duration>,
}

impl Watch {
    /// Starts now.
    pub(crate) fn new(budget: Option<Duration>) -> Self {
        #[expect(clippy::disallowed_methods, reason = "watches a campaign from outside; no drill sees it")]
        let start = Instant::now();
        Self { start, budget, running: BTreeMap::new() }
    }

    /// Since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Whether the end is known: a range of seeds, not a budget alone.
    pub(crate) const fn shows_a_bar(&self, seeds_given: bool) -> bool {
        seeds_given || self.budget.is_none()
    }

    /// Looks at what each thread is at.
    pub(crate) fn look(&mut self, running: &[Option<u64>]) -> Patience {
        self.look_at(self.elapsed(), running)
    }

    fn look_at(&mut self, now: Duration, running: &[Option<u64>]) -> Patience {
        self.running.retain(|seed, _| running.contains(&Some(*seed)));
        for &seed in running.iter().flatten() {
            let since = *self.running.entry(seed).or_insert(now);
            if now.saturating_sub(since) > HANGS_AFTER {
                return Patience::Over { seed };
            }
        }
        match self.budget {
            Some(budget) if now >= budget => Patience::Budget,
            Some(_) | None => Patience::Fine,
        }
    }
}

/// Tells how far a task has come.
#[derive(Debug)]
pub(crate) struct Meter {
    what: &'static str,
    total: Option<u64>,
    bar: Option<ProgressBar>,
    quiet: bool,
    told_at: Duration,
}

impl Meter {
    /// For `total` of what is counted; where the end is not known, without a bar.
    pub(crate) fn new(what: &'static str, total: u64, quiet: bool, ends: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        let total = ends.then_some(total);
        let bar = (terminal && !quiet).then(|| bar(what, total));
        Self { what, total, bar, quiet, told_at: Duration::ZERO }
    }

    /// So many are done and so many failed, so far.
    pub(crate) fn tell(
        &mut self,
        done: u64,
        failed: usize,
        elapsed: Duration,
        err: &mut dyn Write,
    ) -> io::Result<()> {
        let rate = rate(done, elapsed);
        let failed = match failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_message(format!("{} a second{failed}", count(rate)));
            return Ok(());
        }
        if self.quiet || elapsed < self.told_at + LINE_EVERY {
            return Ok(());
        }
        self.told_at = elapsed;
        let of = self.total.map_or_else(String::new, |total| format!(" of {}", count(total)));
        writeln!(err, "  {}{of} {}, {} a second{failed}", count(done), self.what, count(rate))
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// How it went, in a line.
    pub(crate) fn summary(&self, done: u64, elapsed: Duration) -> String {
        let rate = count(rate(done, elapsed));
        format!("{} {} in {}: {rate} a second", count(done), self.what, span(elapsed))
    }
}

fn bar(what: &str, total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::new(total),
            format!("  {{bar:30}} {{human_pos}} of {{human_len}} {what}, {{msg}}, {{eta}} left"),
        ),
        None => (ProgressBar::new_spinner(), format!("  {{elapsed}} {{human_pos}} {what}, {{msg}}")),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    // A template that does not parse leaves the library's own.
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("━━─"));
    }
    bar
}

fn rate(done: u64, elapsed: Duration) -> u64 {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    done.saturating_mul(1_000) / millis
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    #[test]
    fn a_seed_that_never_comes_back_is_noticed_and_one_that_does_is_not() {
        let mut watch = Watch::new(None);
        assert_eq!(watch.look_at(secs(0), &[Some(1), Some(2)]), Patience::Fine);
        assert_eq!(watch.look_at(secs(100), &[Some(1), Some(3)]), Patience::Fine);
        assert_eq!(watch.look_at(secs(179), &[Some(1), None]), Patience::Fine);
        assert_eq!(watch.look_at(secs(181), &[Some(1), Some(3)]), Patience::Over { seed: 1 });
        assert_eq!(watch.look_at(secs(300), &[Some(4), Some(3)]), Patience::Fine);
    }

    #[test]
    fn a_budget_ends_when_it_is_spent() {
        let mut watch = Watch::new(Some(secs(60)));
        assert_eq!(watch.look_at(secs(59), &[Some(1)]), Patience::Fine);
        assert_eq!(watch.look_at(secs(60), &[Some(1)]), Patience::Budget);
    }

    #[test]
    fn without_a_terminal_progress_is_a_line_now_and_then() {
        let mut meter =
            Meter { what: "seeds", total: Some(4_000), bar: None, quiet: false, told_at: secs(0) };
        let mut lines = Vec::new();
        for second in [1, 5, 10, 12, 21] {
            meter.tell(second * 100, usize::from(second > 20), secs(second), &mut lines).unwrap();
        }
        let lines = String::from_utf8(lines).unwrap();
        assert_eq!(
            lines,
            "  1,000 of 4,000 seeds, 100 a second\n  2,100 of 4,000 seeds, 100 a second, 1 failed\n"
        );
    }
}
