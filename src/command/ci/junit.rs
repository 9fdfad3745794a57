//! JUnit: a suite for each folder or part, a test case for each case.
//!
//! Absent: times. The format has room for them; a report that depends on nothing but seeds has not.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::{Case, Level, Results, Verdict};

/// The results as an XML document.
pub(super) fn text(results: &Results) -> Result<String, SerializeError> {
    let mut report = Report::new(format!("firedrill {}", results.series));
    let mut cases = results.cases.iter().peekable();
    while let Some(first) = cases.next() {
        let mut suite = TestSuite::new(&first.suite);
        for (label, value) in &results.facts {
            suite.add_property((*label, value.as_str()));
        }
        suite.add_test_case(test_case(first));
        while let Some(case) = cases.next_if(|case| case.suite == first.suite) {
            suite.add_test_case(test_case(case));
        }
        report.add_test_suite(suite);
    }
    report.to_string()
}

fn test_case(case: &Case) -> TestCase {
    let mut test = TestCase::new(&case.name, status(case));
    test.set_classname(&case.suite);
    if let Some(file) = &case.file {
        test.extra.insert("file".into(), file.into());
    }
    for (label, value) in &case.facts {
        test.add_property((*label, value.as_str()));
    }
    let notes: Vec<_> = case
        .findings
        .iter()
        .filter(|finding| finding.level == Level::Note)
        .map(|note| note.in_full())
        .collect();
    if !notes.is_empty() {
        test.set_system_out(notes.join("\n"));
    }
    test
}

/// A test case holds one failure: its message is the first finding's, its text tells them all.
fn status(case: &Case) -> TestCaseStatus {
    let mut status = match &case.verdict {
        Verdict::Passed => return TestCaseStatus::success(),
        Verdict::Skipped(reason) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(reason);
            return status;
        }
        Verdict::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Verdict::Broke => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    let errors: Vec<_> = case.findings.iter().filter(|finding| finding.level == Level::Error).collect();
    if let Some(first) = errors.first() {
        status.set_type(&first.rule).set_message(&first.message);
    }
    let told = |finding: &&super::Finding| match &finding.place {
        Some(place) => format!("{}:{}:{}\n{}", place.file, place.line, place.column, finding.in_full()),
        None => finding.in_full(),
    };
    status.set_description(errors.iter().map(told).collect::<Vec<_>>().join("\n\n"));
    status
}
