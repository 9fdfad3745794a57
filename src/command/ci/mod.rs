//! Results for the machines that watch: JUnit, SARIF, annotations of GitHub, and the summary of a job.
//!
//! A run of drills and a campaign of seeds both become [`Results`]: cases, each with a verdict and findings that point
//! into a file. The renderers ([`junit`], [`sarif`], [`github`], [`summary`]) know nothing else, so they agree with
//! each other, and what a campaign tells is told by the same code as what a run tells.
//!
//! Absent: real time, threads and folders of this machine. The same report gives the same bytes.

pub(crate) mod campaign;
pub(crate) mod drill;
mod github;
mod junit;
mod sarif;
mod summary;

use std::io::{self, Write};
use std::path::Path;

use firedrill_sim::oracles::RULES;
use firedrill_sim::scenario::model::{SourceFile, Span};

use super::cli::Format;
use super::exit::Exit;
pub(crate) use summary::append as append_summary;

/// Everything that one call of the command found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Results {
    /// What was done, as a path: `run`, `fuzz/gossip`. Tools tell one series of results from another by it.
    pub(crate) series: String,
    /// How the command ends.
    pub(crate) exit: Exit,
    /// One line for people: how many of what, and how they ended.
    pub(crate) headline: String,
    /// What is true of all cases, in the order it is told.
    pub(crate) facts: Vec<Fact>,
    /// What was judged, in order.
    pub(crate) cases: Vec<Case>,
}

/// A label and its value.
pub(crate) type Fact = (&'static str, String);

/// One thing that was judged: a drill, an invariant of a campaign, a goal of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    /// What it belongs to: the folder of a drill, a part of a campaign.
    pub(crate) suite: String,
    /// Its name, unique in its suite.
    pub(crate) name: String,
    /// The file it stands in, if it stands in one.
    pub(crate) file: Option<String>,
    /// How it ended.
    pub(crate) verdict: Verdict,
    /// What is true of it whatever the verdict.
    pub(crate) facts: Vec<Fact>,
    /// What is wrong with it, gravest first, then what is merely odd.
    pub(crate) findings: Vec<Finding>,
}

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As it should.
    Passed,
    /// Not judged, for this reason; nothing is wrong with it.
    Skipped(String),
    /// What must hold did not.
    Failed,
    /// It could not be judged: an invalid file, an interruption, a bug of this program.
    Broke,
}

/// One thing to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The rule that it offends: an oracle, or one of [`OWN_RULES`].
    pub(crate) rule: String,
    /// How grave it is.
    pub(crate) level: Level,
    /// Where to look.
    pub(crate) place: Option<Place>,
    /// What is wrong, in one line.
    pub(crate) message: String,
    /// The nodes concerned.
    pub(crate) nodes: Vec<String>,
    /// What a person needs to judge it, in order.
    pub(crate) details: Vec<Fact>,
    /// The line to paste.
    pub(crate) reproduce: Option<String>,
    /// The text of the file that `place` names, where that file is no part of the repository yet.
    pub(crate) text: Option<String>,
}

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// It decides the verdict.
    Error,
    /// Worth a look: a fault that changed nothing.
    Note,
}

/// A place in a file of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// From the root of the repository, with `/`.
    pub(crate) file: String,
    /// From 1.
    pub(crate) line: usize,
    /// In characters, from 1.
    pub(crate) column: usize,
}

/// A rule that a finding may offend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it demands, as a sentence without its full stop.
    pub(crate) demand: &'static str,
    /// Where it comes from.
    pub(crate) source: &'static str,
    /// `safety`, `liveness` or `drill`.
    pub(crate) kind: &'static str,
}

/// What is found beside broken invariants.
pub(crate) const OWN_RULES: [Rule; 11] = [
    own("expectation", "what the file expects holds"),
    own("step_never_fired", "every step of the file fires"),
    own("fault_without_effect", "a fault changes something: one that does not tests nothing"),
    own("not_deterministic", "two runs of one seed are the same, event for event"),
    own("invalid_scenario", "a scenario file is valid, and its engine can express it"),
    own("interrupted", "what began is judged to its end"),
    own("internal", "the testbed itself does not fail"),
    own("nothing_ran", "something runs"),
    own("goal_missed", "a campaign reaches, some time, everything that it exists to test"),
    own("shard_missing", "the report of every shard of a campaign is there"),
    own("sabotage_unnoticed", "some drill notices that a guard of the protocol is off"),
];

const fn own(name: &'static str, demand: &'static str) -> Rule {
    Rule { name, demand, source: "docs/ci.md", kind: "drill" }
}

/// Every rule: the oracles in the order they are asked, then [`OWN_RULES`].
pub(crate) fn rules() -> impl Iterator<Item = Rule> {
    let oracles = RULES.iter().map(|rule| Rule {
        name: rule.name,
        demand: rule.invariant,
        source: rule.source,
        kind: if rule.liveness { "liveness" } else { "safety" },
    });
    oracles.chain(OWN_RULES)
}

impl Results {
    /// Findings that decide a verdict, each with its case.
    fn errors(&self) -> impl Iterator<Item = (&Case, &Finding)> {
        self.findings().filter(|(_, finding)| finding.level == Level::Error)
    }

    /// All findings, each with its case.
    fn findings(&self) -> impl Iterator<Item = (&Case, &Finding)> {
        self.cases.iter().flat_map(|case| case.findings.iter().map(move |finding| (case, finding)))
    }

    /// How many cases passed, failed (or broke) and were skipped.
    fn count(&self) -> (usize, usize, usize) {
        let mut counts = (0, 0, 0);
        for case in &self.cases {
            match case.verdict {
                Verdict::Passed => counts.0 += 1,
                Verdict::Failed | Verdict::Broke => counts.1 += 1,
                Verdict::Skipped(_) => counts.2 += 1,
            }
        }
        counts
    }
}

impl Case {
    /// The case and the rule it offends; once where it is the case of that rule.
    fn title(&self, finding: &Finding) -> String {
        if self.name == finding.rule { self.name.clone() } else { format!("{}: {}", self.name, finding.rule) }
    }
}

impl Finding {
    /// A finding that decides the verdict, with nothing but a message.
    fn error(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            rule: rule.into(),
            level: Level::Error,
            place: None,
            message: message.into(),
            nodes: Vec::new(),
            details: Vec::new(),
            reproduce: None,
            text: None,
        }
    }

    /// Message, details and the line to paste, a line each: for what shows plain text.
    fn in_full(&self) -> String {
        let mut text = self.message.clone();
        for (label, value) in &self.details {
            text.push_str(&format!("\n{label}: {value}"));
        }
        if let Some(reproduce) = &self.reproduce {
            text.push_str(&format!("\nsee it again: {reproduce}"));
        }
        text
    }
}

impl Place {
    /// The beginning of a file.
    fn top(path: &str) -> Self {
        Self { file: from_root(path), line: 1, column: 1 }
    }

    /// Where a span of these files begins; the beginning of `path` where it stands in none.
    fn of(span: Span, files: &[SourceFile], path: &str) -> Self {
        let before = |file: &SourceFile| file.text.get(..span.start).map(str::to_owned);
        match files.get(span.file).filter(|_| span.start < span.end) {
            Some(file) => match before(file) {
                Some(before) => {
                    let line = before.rsplit('\n').next().unwrap_or("");
                    Self {
                        file: from_root(&file.path),
                        line: before.matches('\n').count() + 1,
                        column: line.chars().count() + 1,
                    }
                }
                None => Self::top(&file.path),
            },
            None => Self::top(path),
        }
    }
}

/// A path as CI knows it: from the folder it started in, with `/` and without `./`.
fn from_root(path: &str) -> String {
    let here = std::env::current_dir().ok();
    let path = Path::new(path);
    let path = here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
    let path = path.to_string_lossy().replace('\\', "/");
    path.trim_start_matches("./").to_owned()
}

/// Writes results in a format that is told all at once.
pub(crate) fn write(format: Format, results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let text = match format {
        Format::Junit => junit::text(results).map_err(io::Error::other)?,
        Format::Sarif => sarif::text(results)?,
        Format::Github => github::text(results),
        Format::Text | Format::Json => return Ok(()), // told by others, drill by drill
    };
    out.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let mut names: Vec<_> = rules().map(|rule| rule.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    /// Everything there is to tell, by name.
    fn samples() -> Vec<(&'static str, Results)> {
        use crate::command::report::samples;
        let run = |exit, reports: &[crate::command::report::Report]| {
            drill::results(exit, reports.iter().map(drill::ran).collect())
        };
        let campaign =
            |report| campaign::results(&report, campaign::Demand::EveryShard, campaign::samples::KEPT);
        vec![
            ("pass", run(Exit::Pass, &[samples::passed()])),
            ("safety", run(Exit::Violated, &[samples::passed(), samples::violated()])),
            ("expectation", run(Exit::Violated, &[samples::missed()])),
            ("campaign", campaign(campaign::samples::failed())),
            ("shard_missing", campaign(campaign::samples::shard(2))),
        ]
    }

    #[test]
    fn every_format_tells_passes_failures_and_campaigns() {
        for (name, results) in samples() {
            insta::assert_snapshot!(format!("junit_{name}"), junit::text(&results).unwrap());
            insta::assert_snapshot!(format!("github_{name}"), github::text(&results));
            insta::assert_snapshot!(format!("summary_{name}"), summary::markdown(&results));
            // Rules are the same in every document, and many.
            let mut document: serde_json::Value =
                serde_json::from_str(&sarif::text(&results).unwrap()).unwrap();
            document["runs"][0]["tool"]["driver"]["rules"].as_array_mut().unwrap().truncate(1);
            insta::assert_snapshot!(
                format!("sarif_{name}"),
                serde_json::to_string_pretty(&document).unwrap()
            );
        }
    }

    /// The schema of the standard, as OASIS publishes it.
    fn schema_of_sarif(documents: &[serde_json::Value]) -> Vec<String> {
        let text = include_str!("../../../tests/schemas/sarif-2.1.0.json");
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.enable_format_assertions();
        compiler.add_resource("sarif.json", serde_json::from_str(text).unwrap()).unwrap();
        let schema = compiler.compile("sarif.json", &mut schemas).unwrap();
        let check = |document| schemas.validate(document, schema).err().map(|error| format!("{error:#}"));
        documents.iter().filter_map(check).collect()
    }

    #[test]
    fn sarif_keeps_the_schema_of_the_standard() {
        for (name, results) in samples() {
            let document: serde_json::Value = serde_json::from_str(&sarif::text(&results).unwrap()).unwrap();
            let index = &document["runs"][0]["results"][0]["ruleIndex"];
            if let Some(index) = index.as_u64() {
                let rule = &document["runs"][0]["tool"]["driver"]["rules"][usize::try_from(index).unwrap()];
                assert_eq!(rule["id"], document["runs"][0]["results"][0]["ruleId"], "{name}");
            }
            let mut broken = document.clone();
            broken["runs"][0]["tool"]["driver"]["name"] = serde_json::Value::Null;
            assert_eq!(schema_of_sarif(&[document]), [""; 0], "{name}");
            assert_eq!(schema_of_sarif(&[broken]).len(), 1, "the schema would not notice");
        }
    }

    #[test]
    fn junit_reads_back_with_its_counts() {
        for (name, results) in samples() {
            let report = quick_junit::Report::deserialize_from_str(&junit::text(&results).unwrap()).unwrap();
            let (passed, failed, skipped) = results.count();
            assert_eq!((report.tests, report.failures), (passed + failed + skipped, failed), "{name}");
        }
    }

    #[test]
    fn github_is_never_given_more_errors_than_it_shows() {
        let mut results = samples().swap_remove(3).1;
        let case = results.cases.iter().find(|case| case.verdict == Verdict::Failed).cloned().unwrap();
        results.cases = (0..14).map(|n| Case { name: format!("drill-{n}"), ..case.clone() }).collect();
        let text = github::text(&results);
        let errors: Vec<_> = text.lines().filter(|line| line.starts_with("::error ")).collect();
        assert_eq!(errors.len(), 10);
        assert!(errors[9].contains("5 more") && errors[9].contains("drill-13"), "{}", errors[9]);
    }

    #[test]
    fn the_same_report_gives_the_same_bytes_in_whatever_order_its_shards_came() {
        let merged = |order: [u64; 4]| {
            let report = firedrill_sim::fuzz::Report::merge(order.map(campaign::samples::shard)).unwrap();
            let results = campaign::results(&report, campaign::Demand::EveryShard, campaign::samples::KEPT);
            [junit::text(&results).unwrap(), sarif::text(&results).unwrap(), github::text(&results)]
        };
        assert_eq!(merged([1, 2, 3, 4]), merged([4, 2, 1, 3]));
    }

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let files = [SourceFile { path: "./a/b.toml".to_owned(), text: "x = 1\nžž = { y = 2 }\n".into() }];
        let span = |start: usize| Span { file: 0, start, end: start + 1 };
        let place = |line, column| Place { file: "a/b.toml".to_owned(), line, column };
        assert_eq!(Place::of(span(0), &files, "p.toml"), place(1, 1));
        assert_eq!(Place::of(span(13), &files, "p.toml"), place(2, 6), "ž has two bytes");
        assert_eq!(
            Place::of(span(7), &files, "p.toml"),
            place(1, 1),
            "inside a character: the file at least"
        );
        assert_eq!(Place::of(Span { file: 3, ..span(0) }, &files, "p.toml").file, "p.toml");
    }

    #[test]
    fn a_path_below_the_folder_of_the_job_is_told_from_there() {
        let here = std::env::current_dir().unwrap().join("scenarios/x.toml");
        assert_eq!(from_root(&here.to_string_lossy()), "scenarios/x.toml");
        assert_eq!(from_root("./scenarios/x.toml"), "scenarios/x.toml");
        assert_eq!(from_root("/elsewhere/x.toml"), "/elsewhere/x.toml");
    }
}
