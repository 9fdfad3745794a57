//! The summary of a job: Markdown, appended to the file that `GITHUB_STEP_SUMMARY` names.
//!
//! It is written beside whatever format was asked for, and never decides how the command ends.

use std::fs::OpenOptions;
use std::io::{self, Write};

use super::{Case, Finding, Level, Results, Verdict};
use crate::command::exit::Exit;
use crate::command::text::style::{BAD, paint};

/// Where GitHub wants the summary of a step.
const VARIABLE: &str = "GITHUB_STEP_SUMMARY";
/// Failures told in full; GitHub drops a summary above a megabyte whole.
const TOLD_MAX: usize = 25;

/// Appends the summary where the environment asks for one. A file that cannot be written is a remark.
pub(crate) fn append(results: &Results, err: &mut dyn Write) -> io::Result<()> {
    let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) else { return Ok(()) };
    let file = OpenOptions::new().create(true).append(true).open(&path);
    match file.and_then(|mut file| file.write_all(markdown(results).as_bytes())) {
        Ok(()) => Ok(()),
        Err(error) => {
            let path = path.display();
            writeln!(
                err,
                "{}: no summary of the job: {VARIABLE} names {path}: {error}",
                paint(BAD, "warning")
            )
        }
    }
}

/// The results as a section of Markdown.
pub(super) fn markdown(results: &Results) -> String {
    let mark = if results.exit == Exit::Pass { "✅" } else { "❌" };
    let mut text =
        format!("## {mark} firedrill {}\n\n{}\n\n", cell(&results.series), cell(&results.headline));
    verdicts(&mut text, results);
    if !results.facts.is_empty() {
        text.push_str("| campaign | |\n|---|---|\n");
        for (label, value) in &results.facts {
            text.push_str(&format!("| {label} | {} |\n", cell(value)));
        }
        text.push('\n');
    }
    let errors: Vec<_> = results.errors().collect();
    if !errors.is_empty() {
        text.push_str("### Failures\n\n");
    }
    for (case, finding) in errors.iter().take(TOLD_MAX) {
        failure(&mut text, case, finding);
    }
    if let Some(more) = errors.len().checked_sub(TOLD_MAX).filter(|more| *more > 0) {
        text.push_str(&format!("… and {more} more.\n\n"));
    }
    notes(&mut text, results);
    text
}

/// How many cases of each suite ended how.
fn verdicts(text: &mut String, results: &Results) {
    let mut suites: Vec<(&str, [usize; 3])> = Vec::new();
    for case in &results.cases {
        let column = match case.verdict {
            Verdict::Passed => 0,
            Verdict::Failed | Verdict::Broke => 1,
            Verdict::Skipped(_) => 2,
        };
        match suites.iter_mut().find(|(suite, _)| *suite == case.suite) {
            Some((_, counts)) => counts[column] += 1,
            None => {
                let mut counts = [0; 3];
                counts[column] = 1;
                suites.push((&case.suite, counts));
            }
        }
    }
    if suites.is_empty() {
        return;
    }
    text.push_str("| | passed | failed | skipped |\n|---|---:|---:|---:|\n");
    for (suite, [passed, failed, skipped]) in suites {
        text.push_str(&format!("| {} | {passed} | {failed} | {skipped} |\n", cell(suite)));
    }
    text.push('\n');
}

fn failure(text: &mut String, case: &Case, finding: &Finding) {
    let place = finding
        .place
        .as_ref()
        .map_or_else(String::new, |place| format!(" at {}:{}", cell(&place.file), place.line));
    let (title, message) = (cell(&case.title(finding)), cell(&finding.message));
    text.push_str(&format!("**{title}**{place}\n\n{message}\n\n"));
    for (label, value) in &finding.details {
        text.push_str(&format!("- {label}: {}\n", cell(value)));
    }
    if !finding.details.is_empty() {
        text.push('\n');
    }
    if let Some(reproduce) = &finding.reproduce {
        text.push_str(&fenced("sh", reproduce));
    }
    if let Some(scenario) = &finding.text {
        let scenario = fenced("toml", scenario);
        text.push_str(&format!("<details><summary>the shrunk drill</summary>\n\n{scenario}</details>\n\n"));
    }
}

/// What is merely odd, and what was skipped.
fn notes(text: &mut String, results: &Results) {
    let odd = results.findings().filter(|(_, finding)| finding.level == Level::Note);
    let mut lines: Vec<_> =
        odd.map(|(case, note)| format!("- {}: {}\n", cell(&case.name), cell(&note.message))).collect();
    for case in &results.cases {
        if let (Verdict::Skipped(reason), Some(_)) = (&case.verdict, &case.file) {
            lines.push(format!("- {} was skipped: {}\n", cell(&case.name), cell(reason)));
        }
    }
    if !lines.is_empty() {
        text.push_str(&format!("<details><summary>Remarks</summary>\n\n{}\n</details>\n\n", lines.concat()));
    }
}

/// A block of code, whatever is in it.
fn fenced(language: &str, code: &str) -> String {
    let mut fence = "```".to_owned();
    while code.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{}\n{fence}\n\n", code.trim_end())
}

/// A text that stays in its line and its cell, and is not taken for markup.
fn cell(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' => safe.push(' '),
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '~' => {
                safe.push('\\');
                safe.push(character);
            }
            plain => safe.push(plain),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_in_its_cell_and_is_no_markup() {
        assert_eq!(cell("a | <b>\n*c* counter_bounded"), r"a \| &lt;b> \*c\* counter\_bounded");
    }

    #[test]
    fn a_block_of_code_is_not_ended_by_what_is_in_it() {
        assert_eq!(fenced("toml", "a\n```\nb\n"), "````toml\na\n```\nb\n````\n\n");
    }
}
