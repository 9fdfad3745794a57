//! The story of a drill: short enough to read in a minute.
//!
//! Sections in the order in which a person asks: what was up, what was done, what failed, which rule that
//! contradicts and why there is one, who believed what, how it came to this, where to look next. The marks are those
//! of the timeline. The last line is the command that shows the run, alone on its line.

use std::fmt::{self, Display};
use std::time::Duration;

use anstyle::Style;
use firedrill_sim::explain::{Act, Beliefs, Broken, Cast, Deadline, Story, Trouble};

use super::style::{ASKED, BAD, FAINT, FAULT, GOOD, STRONG, count, moment, paint, plural, span};
use super::wrap::{hanging, padded, width};
use super::{header, timeline};
use crate::command::exit::Exit;
use crate::command::report::Report;

/// The tombstone window and the reap memory, in suspicion timeouts: docs/protocol.md, Limits.
const TOMBSTONE_S: u64 = 10;
const MEMORY_S: u64 = 20;
/// Cells before the value of a labelled line.
const INDENT: usize = 14;
/// Acts shown at the most; the middle ones are left out.
const ACTS_MAX: usize = 12;
/// Further failures told of at the most.
const ALSO_MAX: usize = 2;
/// Longest label of a belief that gets a column of its own.
const LABEL_CELLS_MAX: usize = 20;

/// A story with the run that it tells of.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    /// The story.
    pub(crate) story: &'a Story,
    /// The run.
    pub(crate) report: &'a Report,
    /// Whether it was told of an artifact, and is shown again by `firedrill explain`, which takes no `--verbose`.
    pub(crate) is_artifact: bool,
    /// Cells of the terminal.
    pub(crate) cells: usize,
}

impl Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { story, report, is_artifact, cells } = *self;
        header::write(f, report, cells)?;
        cast(f, &story.cast, cells)?;
        acts(f, &story.acts, cells)?;
        match &story.trouble {
            Some(trouble) => self.failed(f, trouble)?,
            None => self.survived(f)?,
        }
        title(f, "Where to look next")?;
        next(f, report, is_artifact, cells)?;
        writeln!(f, "{}", report.reproduce)
    }
}

impl Page<'_> {
    fn failed(&self, f: &mut fmt::Formatter<'_>, told: &Trouble) -> fmt::Result {
        let Self { story, cells, .. } = *self;
        trouble(f, told, cells)?;
        also(f, &story.also, cells)?;
        if let Some(broken) = &story.rule {
            rule(f, broken, cells)?;
        }
        if let Some(beliefs) = &story.beliefs {
            believed(f, beliefs, cells)?;
        }
        if !story.chain.is_empty() {
            title(f, "How it came to this")?;
            timeline::lines(f, &story.chain, true, cells)?;
        }
        Ok(())
    }

    fn survived(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.report.outcome;
        writeln!(f)?;
        let held = match outcome.expectations.len() {
            0 => "Every invariant held".to_owned(),
            number => format!("{} and every invariant held", plural(number, "expectation")),
        };
        let numbers = &outcome.numbers;
        let lost = match numbers.frames_lost {
            0 => String::new(),
            lost => format!(" {} frames were lost on the way.", count(lost)),
        };
        let agreed = match numbers.convergence_us {
            Some(0) => " When the last fault was over, all nodes agreed already.".to_owned(),
            Some(taken) => format!(
                " After the last fault all nodes agreed again within {}, of the {} that the protocol allows.",
                span(Duration::from_micros(taken)),
                span(Duration::from_micros(numbers.convergence_bound_us))
            ),
            None => String::new(),
        };
        let text = format!("{held}.{agreed}{lost} There is no failure to explain.");
        writeln!(f, "  {}  {}", paint(GOOD.bold(), "PASS"), hanging(&text, 8, self.cells))
    }
}

fn title(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    writeln!(f, "\n  {}", paint(STRONG, text))
}

/// A label in its column and a text that wraps behind it.
fn labelled(f: &mut fmt::Formatter<'_>, label: &str, text: &str, style: Style, cells: usize) -> fmt::Result {
    let label = paint(FAINT, format!("  {label:<width$}", width = INDENT - 2));
    writeln!(f, "{label}{}", paint(style, hanging(text, INDENT, cells)))
}

/// What the timers mean, and who is set up otherwise.
fn cast(f: &mut fmt::Formatter<'_>, cast: &Cast, cells: usize) -> fmt::Result {
    if let [suspicion_ms] = cast.suspicion_timeout_ms[..] {
        let times = |factor: u64| span(Duration::from_millis(suspicion_ms.saturating_mul(factor)));
        let text = format!(
            "a silent member is dropped after {}, recorded as left after {}, forgotten {} later, and barred from \
             returning below that record for {} more",
            times(1),
            times(TOMBSTONE_S),
            times(TOMBSTONE_S),
            times(MEMORY_S)
        );
        labelled(f, "silence", &text, Style::new(), cells)?;
    }
    for odd in &cast.odd {
        labelled(f, "odd", odd, Style::new(), cells)?;
    }
    Ok(())
}

/// What was done, each with what nodes saw of it.
fn acts(f: &mut fmt::Formatter<'_>, acts: &[Act], cells: usize) -> fmt::Result {
    title(f, "What was done to it")?;
    if acts.is_empty() {
        return writeln!(f, "  {}", paint(FAINT, "nothing: the nodes were left alone"));
    }
    let time_cells = acts.iter().map(|act| moment(act.at_us).len()).max().unwrap_or(0);
    let indent = 2 + time_cells + 4;
    let left_out = acts.len().saturating_sub(ACTS_MAX);
    let skipped = if left_out > 1 { ACTS_MAX / 2..ACTS_MAX / 2 + left_out } else { 0..0 };
    for (position, act) in acts.iter().enumerate() {
        let gap = " ".repeat(time_cells);
        if skipped.contains(&position) {
            if position == skipped.start {
                writeln!(
                    f,
                    "  {gap}  {}",
                    paint(FAINT, format!("⋮ {left_out} more (run --verbose shows them)"))
                )?;
            }
            continue;
        }
        let time = paint(FAINT, format!("{:>time_cells$}", moment(act.at_us)));
        let mut text = act.text.clone();
        if act.times > 1 {
            text.push_str(&format!(", {} times until {}", act.times, moment(act.last_us)));
        }
        if act.without_effect {
            text.push_str(", without effect");
        }
        writeln!(f, "  {time}  {} {}", paint(FAULT, "▲"), paint(FAULT, hanging(&text, indent, cells)))?;
        for seen in &act.seen {
            writeln!(f, "  {gap}  · {}", hanging(seen, indent, cells))?;
        }
    }
    Ok(())
}

/// What failed: the two facts that contradict each other.
fn trouble(f: &mut fmt::Formatter<'_>, trouble: &Trouble, cells: usize) -> fmt::Result {
    title(f, "What failed")?;
    match trouble {
        Trouble::Invariant { oracle, at_us, fact, contradiction, .. } => {
            let what = format!("{oracle}, at {}", moment(*at_us));
            mark(f, &what, cells)?;
            labelled(f, "fact", fact, STRONG, cells)?;
            labelled(f, "but", contradiction, STRONG, cells)
        }
        Trouble::Expectation { text, at_us, seen, path, line, .. } => {
            mark(f, &format!("an expectation of the file, at {}", moment(*at_us)), cells)?;
            labelled(f, "expected", text, STRONG, cells)?;
            if let Some(seen) = seen {
                labelled(f, "but", seen, STRONG, cells)?;
            }
            let place = line.map_or_else(|| path.clone(), |line| format!("{path}:{line}"));
            labelled(f, "where", &place, FAINT, cells)
        }
        Trouble::StepNeverFired { steps } => {
            mark(f, "the drill did not go as its file says: what should have been done never was", cells)?;
            for step in steps {
                labelled(f, "never fired", step, STRONG, cells)?;
            }
            Ok(())
        }
    }
}

/// What failed beside it; a few are enough.
fn also(f: &mut fmt::Formatter<'_>, also: &[String], cells: usize) -> fmt::Result {
    let more = also.len().saturating_sub(ALSO_MAX);
    let shown = if more > 1 { ALSO_MAX } else { also.len() };
    for text in &also[..shown] {
        labelled(f, "also", text, Style::new(), cells)?;
    }
    if shown < also.len() {
        labelled(f, "", &format!("… and {more} more"), FAINT, cells)?;
    }
    Ok(())
}

/// The rule that it breaks, and why there is one.
fn rule(f: &mut fmt::Formatter<'_>, broken: &Broken, cells: usize) -> fmt::Result {
    title(f, "Which rule that breaks")?;
    labelled(f, "oracle", broken.oracle, Style::new(), cells)?;
    labelled(f, "rule", broken.invariant, Style::new(), cells)?;
    if let Some(why) = broken.why {
        labelled(f, "because", why, Style::new(), cells)?;
    }
    if let Some(deadline) = &broken.deadline {
        due(f, deadline, cells)?;
    }
    labelled(f, "source", broken.source, FAINT, cells)
}

fn mark(f: &mut fmt::Formatter<'_>, text: &str, cells: usize) -> fmt::Result {
    writeln!(f, "  {} {}", paint(BAD, "✗"), paint(BAD, hanging(text, 4, cells)))
}

/// What had to come true by when, and which rule of the bounds says so.
fn due(f: &mut fmt::Formatter<'_>, deadline: &Deadline, cells: usize) -> fmt::Result {
    let at_us = deadline.began_us.saturating_add(deadline.within_us);
    let text = format!(
        "at {}: {} after the last fault was over, at {}",
        moment(at_us),
        span(Duration::from_micros(deadline.within_us)),
        moment(deadline.began_us)
    );
    labelled(f, "was due", &text, Style::new(), cells)?;
    labelled(f, "bound", &deadline.because, FAINT, cells)
}

/// Who believed what, by subject.
fn believed(f: &mut fmt::Formatter<'_>, beliefs: &Beliefs, cells: usize) -> fmt::Result {
    title(f, &format!("What each node believed at {}", moment(beliefs.at_us)))?;
    let labels = beliefs.topics.iter().map(|topic| width(&topic.label)).max().unwrap_or(0);
    let labels = labels.clamp(INDENT - 4, LABEL_CELLS_MAX);
    let says = || beliefs.topics.iter().flat_map(|topic| &topic.says);
    let names = says().map(|says| width(&says.nodes.join(", "))).max().unwrap_or(0).min(LABEL_CELLS_MAX);
    let indent = 2 + labels + 2 + names + 2;
    for topic in &beliefs.topics {
        let mut label = topic.label.as_str();
        for says in &topic.says {
            let nodes = says.nodes.join(", ");
            let told = paint(FAINT, padded(label, labels));
            let nodes = if width(&nodes) <= names {
                padded(&nodes, names)
            } else {
                format!("{}\n{}", hanging(&nodes, 2 + labels + 2, cells), " ".repeat(indent - 2))
            };
            writeln!(f, "  {told}  {}  {}", paint(ASKED, nodes), hanging(&says.text, indent, cells))?;
            label = "";
        }
    }
    Ok(())
}

/// Where to look next.
fn next(f: &mut fmt::Formatter<'_>, report: &Report, is_artifact: bool, cells: usize) -> fmt::Result {
    let mut hint = |text: &str| writeln!(f, "  {}", hanging(text, 2, cells));
    if report.exit() != Exit::Pass && !is_artifact {
        hint(
            "With --verbose this command shows every line of the run; with --format json, every line for programs.",
        )?;
    }
    hint("The run, again:")
}
