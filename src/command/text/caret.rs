//! A caret under what failed, where the scenario file says it.

use std::fmt;

use firedrill_sim::outcome::ExpectationResult;
use firedrill_sim::scenario::model::SourceFile;
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Severity,
    SourceCode,
};

/// Writes a failed expectation as a diagnostic with its line of the file; as a plain line where it has none.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    files: &[SourceFile],
    result: &ExpectationResult,
    cells: usize,
) -> fmt::Result {
    let span = result.span;
    let message = format!("expected {}", result.text);
    let seen = result.seen.as_deref().unwrap_or("this did not hold");
    let Some(file) = files.get(span.file).filter(|file| span.start < span.end && span.end <= file.text.len())
    else {
        return writeln!(f, "\n  {message}\n  seen: {seen}");
    };
    // The whole table would be underlined line by line: its first line is enough to find it.
    let text = &file.text[span.start..];
    let first_line = text.lines().next().map_or(span.end - span.start, str::len);
    let length = first_line.min(span.end - span.start);
    let diagnostic = MietteDiagnostic::new(message)
        .with_severity(Severity::Error)
        .with_label(LabeledSpan::at(span.start..span.start + length, seen));
    let source = NamedSource::new(&file.path, file.text.to_string());
    writeln!(f)?;
    f.write_str(&rendered(&Sourced { diagnostic: &diagnostic, source: &source }, cells)?)
}

/// A diagnostic as text: what miette draws, at the given width.
pub(crate) fn rendered(diagnostic: &dyn Diagnostic, cells: usize) -> Result<String, fmt::Error> {
    let mut text = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode())
        .with_width(cells)
        .with_context_lines(3)
        .without_cause_chain()
        .render_report(&mut text, diagnostic)?;
    Ok(text)
}

/// A diagnostic beside the text it points into.
#[derive(Debug)]
struct Sourced<'a> {
    diagnostic: &'a MietteDiagnostic,
    source: &'a NamedSource<String>,
}

impl fmt::Display for Sourced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.diagnostic, f)
    }
}

impl std::error::Error for Sourced<'_> {}

impl Diagnostic for Sourced<'_> {
    fn severity(&self) -> Option<Severity> {
        self.diagnostic.severity()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.diagnostic.labels()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.source)
    }
}
