//! Annotations of GitHub Actions: workflow commands on standard output, a line each.
//!
//! GitHub shows ten errors of a step and drops the rest without a word: the last one shown here speaks for all that
//! found no place. What a scenario or a node says is escaped, so that no text can pass for a command.

use super::{Case, Finding, Level, Place, Results, Verdict};

/// Annotations of a kind that GitHub shows of one step.
const SHOWN_MAX: usize = 10;

/// The results as workflow commands, ended by a notice.
pub(super) fn text(results: &Results) -> String {
    let mut text = String::new();
    let errors: Vec<_> = results.errors().collect();
    for (case, finding) in shown(&errors) {
        text.push_str(&annotation("error", case, finding));
    }
    if let Some(rest) = rest(&errors) {
        text.push_str(&command("error", None, "firedrill: more failures", &rest));
    }
    let notes = results.findings().filter(|(_, finding)| finding.level == Level::Note);
    for (case, finding) in notes.take(SHOWN_MAX) {
        text.push_str(&annotation("warning", case, finding));
    }
    for (case, reason) in results.cases.iter().filter_map(skipped).take(SHOWN_MAX - 1) {
        let title = format!("firedrill: {} skipped", case.name);
        let place = case.file.as_deref().map(Place::top);
        text.push_str(&command("notice", place.as_ref(), &title, reason));
    }
    let title = format!("firedrill {}", results.series);
    text.push_str(&command("notice", None, &title, &results.headline));
    text
}

/// A drill that was skipped, and why. The goals of a campaign that are not demanded yet are no news.
fn skipped(case: &Case) -> Option<(&Case, &str)> {
    match &case.verdict {
        Verdict::Skipped(reason) if case.file.is_some() => Some((case, reason)),
        Verdict::Skipped(_) | Verdict::Passed | Verdict::Failed | Verdict::Broke => None,
    }
}

/// Those that get an annotation of their own.
fn shown<'a, 'r>(errors: &'a [(&'r Case, &'r Finding)]) -> &'a [(&'r Case, &'r Finding)] {
    if errors.len() <= SHOWN_MAX { errors } else { &errors[..SHOWN_MAX - 1] }
}

/// The others, in one text.
fn rest(errors: &[(&Case, &Finding)]) -> Option<String> {
    let rest = &errors[shown(errors).len()..];
    let lines = rest.iter().map(|(case, finding)| format!("{}: {}", case.name, finding.message));
    let lines: Vec<_> = lines.collect();
    (!rest.is_empty()).then(|| format!("{} more, not annotated:\n{}", rest.len(), lines.join("\n")))
}

fn annotation(kind: &str, case: &Case, finding: &Finding) -> String {
    command(kind, finding.place.as_ref(), &case.title(finding), &finding.in_full())
}

/// One workflow command.
fn command(kind: &str, place: Option<&Place>, title: &str, message: &str) -> String {
    let place = place.map_or_else(String::new, |place| {
        format!("file={},line={},col={},", property(&place.file), place.line, place.column)
    });
    format!("::{kind} {place}title={}::{}\n", property(title), data(message))
}

/// What stands behind the second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// What stands behind a `=`.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_pass_for_a_command_or_end_a_property() {
        let place = Place { file: "odd,name:50%.toml".to_owned(), line: 3, column: 7 };
        assert_eq!(
            command("error", Some(&place), "a: b, c", "100 %\r\n::error::no"),
            "::error file=odd%2Cname%3A50%25.toml,line=3,col=7,title=a%3A b%2C c::100 %25%0D%0A::error::no\n"
        );
    }
}
