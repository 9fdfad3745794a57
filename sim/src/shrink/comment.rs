//! What a kept scenario says of itself: the comment at its head.
//!
//! Absent: the scenario's own text.

use super::Shrunk;
use crate::outcome::{Outcome, Verdict};
use crate::scenario::Scenario;

/// Longest line of a comment, in characters, its `# ` not counted.
const LINE_CHARS_MAX: usize = 108;

/// Where a kept scenario comes from.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'o> {
    /// What was shrunk, for people: `seed 4711 of profile gossip`, `storm.toml, seed 7`.
    pub found_in: &'o str,
    /// The guard that has to be turned off for the drill to fail; `None` where it fails with every guard on.
    pub sabotage: Option<&'o str>,
    /// The command that shows the failure again.
    pub command: &'o str,
}

/// The leading comment of a kept scenario: what it shows, in which two facts and when, where it comes from and how to
/// run it. Lines without their `#`, as [`Scenario::to_toml_with_comment`](crate::scenario::Scenario) takes them.
pub fn comment(outcome: &Outcome, origin: &Origin<'_>) -> String {
    let mut text = String::new();
    match &outcome.violation {
        Some(violation) if outcome.verdict != Verdict::Expectation => {
            let nodes = match violation.nodes.as_slice() {
                [] => String::new(),
                nodes => format!(", {}", nodes.join(", ")),
            };
            paragraph(&mut text, &format!("Breaks {}: {}", violation.oracle, sentence(violation.invariant)));
            paragraph(
                &mut text,
                &format!("At {}{nodes}: {}", seconds(violation.at_us), sentence(&violation.fact)),
            );
            paragraph(&mut text, &format!("But: {}", sentence(&violation.contradiction)));
        }
        _ => {
            for missed in outcome.expectations.iter().filter(|expectation| !expectation.held) {
                let seen = missed.seen.as_ref().map(|seen| format!(" Seen instead: {}", sentence(seen)));
                let text_of = sentence(&missed.text);
                let line = format!(
                    "Fails, decided at {}: {text_of}{}",
                    seconds(missed.at_us),
                    seen.unwrap_or_default()
                );
                paragraph(&mut text, &line);
            }
            for step in &outcome.unfired_steps {
                paragraph(&mut text, &format!("Never fires: {}", sentence(step)));
            }
        }
    }
    paragraph(&mut text, &format!("Shrunk from {}.", origin.found_in));
    if let Some(guard) = origin.sabotage {
        paragraph(
            &mut text,
            &format!("Passes while the guard {guard} stands, and fails with it turned off."),
        );
    }
    // A command stays in one line, however long: it is there to be pasted.
    text.push_str("Run: ");
    text.push_str(origin.command);
    text.push('\n');
    text
}

/// The whole file of a kept scenario: the comment, then the drill under this name.
pub fn file(shrunk: &Shrunk, name: &str, origin: &Origin<'_>) -> String {
    let broken = shrunk.outcome.failure().map_or_else(String::new, |failure| failure.to_string());
    let origin = &Origin { sabotage: origin.sabotage.filter(|_| shrunk.needs_sabotage), ..*origin };
    let sabotage = origin.sabotage.map_or_else(String::new, |guard| format!(" without the guard {guard}"));
    let scenario = Scenario {
        name: name.to_owned(),
        about: format!("Shrunk from {}: {broken} fails{sabotage}.", origin.found_in),
        ..shrunk.scenario.clone()
    };
    scenario.to_toml_with_comment(&comment(&shrunk.outcome, origin))
}

/// A moment of the run in seconds.
fn seconds(us: u64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// With a full stop at its end.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// Words in lines that fit a comment. What a message brings along, line feeds above all, becomes a space.
fn paragraph(text: &mut String, words: &str) {
    let mut line = String::new();
    for word in words.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > LINE_CHARS_MAX {
            text.push_str(&line);
            text.push('\n');
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drill::{RunOptions, run};
    use crate::engine::EngineKind;
    use crate::scenario::LoadOptions;

    /// Three nodes whose views an expectation wrongly wants unchanged.
    const DRILL: &str = "name = \"d\"\nabout = \"d.\"\ntime_limit = \"9s\"\nnodes = { names = [\"a\", \"b\"] }\n\
                         [[step]]\nat = \"2s\"\nkill = \"b\"\n\
                         [[expect]]\nat_end = { view = { on = \"a\", members = [\"a\", \"b\"] } }\n";

    fn origin() -> Origin<'static> {
        Origin { found_in: "seed 7", sabotage: None, command: "firedrill run d.toml" }
    }

    fn outcome() -> Outcome {
        let none = |_: &std::path::Path| Err(std::io::Error::other("no include"));
        let options = LoadOptions::for_engine(EngineKind::Event);
        let scenario = Scenario::parse(DRILL, std::path::Path::new("d.toml"), &none, options).unwrap();
        run(&scenario, &RunOptions::default()).unwrap()
    }

    #[test]
    fn a_missed_expectation_is_told_with_what_was_seen_instead() {
        let text = comment(&outcome(), &origin());
        for part in
            ["Fails, decided at ", "Seen instead: ", "Shrunk from seed 7.", "Run: firedrill run d.toml"]
        {
            assert!(text.contains(part), "{part} is missing from\n{text}");
        }
    }

    #[test]
    fn a_broken_invariant_is_told_with_its_two_facts_in_lines_that_fit() {
        let mut outcome = outcome();
        outcome.verdict = Verdict::Safety;
        outcome.violation = Some(crate::outcome::Violation {
            oracle: "no_alarm",
            invariant: "nothing panics",
            source: "docs/protocol.md",
            at_us: 12_500_000,
            nodes: vec!["a".to_owned(), "b".to_owned()],
            fact: "a panic:\n[[step]]".to_owned(),
            contradiction: "no input ".repeat(40),
            liveness: false,
        });
        let origin = Origin { sabotage: Some("refutation"), ..origin() };
        let text = comment(&outcome, &origin);
        assert!(text.starts_with(
            "Breaks no_alarm: nothing panics.\nAt 12.5 s, a, b: a panic: [[step]].\nBut: no input"
        ));
        assert!(text.contains("Passes while the guard refutation stands"), "{text}");
        let folded = |line: &str| line.starts_with("Run: ") || line.chars().count() <= LINE_CHARS_MAX;
        assert!(text.lines().all(folded), "{text}");
    }
}
