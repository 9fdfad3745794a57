//! Results for people: calm, aligned, and complete on a failure.
//!
//! A [`Page`] tells one run in full, a [`Line`] tells one of several, a [`Summary`] ends several. All are
//! `Display`; colours are always written and dropped by the stream that does not want them.

pub(crate) mod campaign;
pub(crate) mod caret;
mod header;
mod issuance;
pub(crate) mod replay;
pub(crate) mod story;
pub(crate) mod style;
mod timeline;
mod verdict;
pub(crate) mod wrap;

use std::fmt::{self, Display};
use std::time::Duration;

use super::exit::Exit;
use super::report::Report;
use style::{BAD, FAINT, GOOD, STRONG, count, paint, plural, ratio, span};
use wrap::padded;

/// Widest text, however wide the terminal is: longer lines are hard to read.
pub(crate) const CELLS_MAX: usize = 110;

/// How much of a run is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The verdict, and on a failure its reasons.
    Verdict,
    /// Everything, the timeline folded.
    Folded,
    /// Everything.
    Whole,
}

/// One run, told in full.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    /// The run.
    pub(crate) report: &'a Report,
    /// How much of it.
    pub(crate) detail: Detail,
    /// Cells of the terminal.
    pub(crate) cells: usize,
}

impl Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, detail, cells } = *self;
        if detail != Detail::Verdict {
            header::write(f, report, cells)?;
            timeline::write(f, &report.outcome.timeline, detail == Detail::Whole, cells)?;
            verdict::expectations(f, &report.outcome.expectations, cells)?;
            verdict::remarks(f, report, cells)?;
            issuance::write(f, &report.outcome, cells)?;
            verdict::numbers(f, report, cells)?;
        } else if report.exit() != Exit::Pass {
            // A step that never fired may be the only reason.
            verdict::remarks(f, report, cells)?;
        }
        verdict::verdict(f, report, cells)
    }
}

/// One run of several, on one line.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// The run.
    pub(crate) report: &'a Report,
    /// Cells of the widest scenario name.
    pub(crate) name_cells: usize,
}

impl Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, name_cells } = *self;
        let outcome = &report.outcome;
        let (mark, style) = if report.exit() == Exit::Pass { ("✓", GOOD) } else { ("✗", BAD) };
        let engine =
            outcome.wire.map_or(outcome.engine.to_owned(), |wire| format!("{}/{wire}", outcome.engine));
        let converged =
            outcome.numbers.convergence_us.map_or("-".to_owned(), |taken| span(Duration::from_micros(taken)));
        write!(f, "  {} {}", paint(style, mark), padded(&outcome.scenario, name_cells))?;
        let facts = format!(
            "  {engine:<10}  seed {:<6}  converged {converged:>8}  {:>9} events  {:>8}",
            outcome.seed,
            count(outcome.numbers.events),
            span(report.real)
        );
        write!(f, "{}", paint(FAINT, facts))?;
        if report.exit() == Exit::Pass {
            writeln!(f)
        } else {
            writeln!(f, "  {}", paint(style, report.verdict()))
        }
    }
}

/// What came of several.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Runs that passed.
    pub(crate) passed: usize,
    /// Runs that failed in some way.
    pub(crate) failed: usize,
    /// Files that are no valid scenario.
    pub(crate) invalid: usize,
    /// Scenarios that the engine cannot express.
    pub(crate) skipped: usize,
    /// Scenarios that an interrupt ended or kept from starting.
    pub(crate) not_judged: usize,
    /// Virtual time of all runs.
    pub(crate) simulated: Duration,
    /// Real time of all runs.
    pub(crate) real: Duration,
}

impl Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = vec![format!("{} passed", self.passed)];
        let rest = [
            (self.failed, "failed"),
            (self.invalid, "invalid"),
            (self.skipped, "skipped"),
            (self.not_judged, "not judged"),
        ];
        for (number, what) in rest {
            if number > 0 {
                parts.push(format!("{number} {what}"));
            }
        }
        let style = if self.failed + self.invalid > 0 { BAD } else { STRONG };
        let drills = self.passed + self.failed + self.invalid + self.skipped + self.not_judged;
        let drills = plural(drills, "drill");
        write!(f, "  {}", paint(style, format!("{drills}: {}", parts.join(", "))))?;
        if self.passed + self.failed > 0 {
            let speed = format!(
                "  {} simulated in {}, {} × real time",
                span(self.simulated),
                span(self.real),
                ratio(self.simulated, self.real)
            );
            write!(f, "{}", paint(FAINT, speed))?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::report::{Difference, Twice, samples};

    fn plain(text: impl Display) -> String {
        anstream::adapter::strip_str(&text.to_string()).to_string()
    }

    fn page(report: &Report, detail: Detail) -> String {
        plain(Page { report, detail, cells: 100 })
    }

    #[test]
    fn a_passed_drill_tells_its_story() {
        insta::assert_snapshot!(page(&samples::passed(), Detail::Folded));
    }

    #[test]
    fn a_failed_expectation_points_at_its_line() {
        insta::assert_snapshot!(page(&samples::missed(), Detail::Folded));
    }

    #[test]
    fn a_broken_invariant_names_the_two_facts_that_contradict_each_other() {
        insta::assert_snapshot!(page(&samples::violated(), Detail::Verdict));
    }

    #[test]
    fn a_failure_ends_with_the_command_alone_on_the_last_line() {
        for report in [samples::missed(), samples::violated()] {
            for detail in [Detail::Verdict, Detail::Folded, Detail::Whole] {
                let text = page(&report, detail);
                assert_eq!(text.lines().last(), Some(report.reproduce.as_str()));
            }
        }
    }

    #[test]
    fn an_interrupted_summary_counts_what_was_not_judged() {
        let summary = Summary { passed: 3, not_judged: 57, ..Summary::default() };
        assert!(plain(summary).contains("60 drills: 3 passed, 57 not judged"));
    }

    #[test]
    fn a_step_that_never_fired_is_told_however_short_the_page() {
        for detail in [Detail::Verdict, Detail::Folded, Detail::Whole] {
            let text = page(&samples::missed(), detail);
            assert_eq!(text.matches("never fired: restart c").count(), 1, "{text}");
        }
    }

    #[test]
    fn runs_that_part_are_told_with_the_first_event_that_differs() {
        let mut report = samples::passed();
        report.twice = Some(Twice::Differs(Difference {
            event: Some(1_203),
            nodes: (Some("b".to_owned()), Some("c".to_owned())),
            events: (4_000, 4_001),
            digests: ("aa".to_owned(), "bb".to_owned()),
            lines: Some(("460000 µs, a: b is up".to_owned(), "460000 µs, a: c is up".to_owned())),
        }));
        insta::assert_snapshot!(page(&report, Detail::Verdict));
    }

    #[test]
    fn several_drills_take_a_line_each_and_end_with_a_summary() {
        let lines = [samples::passed(), samples::missed()]
            .map(|report| plain(Line { report: &report, name_cells: 20 }))
            .concat();
        let summary = Summary {
            passed: 1,
            failed: 1,
            skipped: 3,
            simulated: Duration::from_secs(70),
            real: Duration::from_millis(8),
            ..Summary::default()
        };
        insta::assert_snapshot!(format!("{lines}\n{}", plain(summary)));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for report in [samples::passed(), samples::violated()] {
            let text = plain(Page { report: &report, detail: Detail::Folded, cells: 64 });
            let command = report.reproduce.as_str();
            let wide = text.lines().filter(|line| *line != command).find(|line| wrap::width(line) > 64);
            assert_eq!(wide, None);
        }
    }
}
