//! What is wrong with a scenario file, told so that a stranger can mend it.
//!
//! A [`Report`] holds every problem of a scenario, in the order of the files; each is a miette diagnostic of
//! its own, with the place, what is wrong there and what to do.
//!
//! Absent: printing. [`Report::render`] makes the text; the command decides where it goes and how wide.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode, SourceSpan,
};

use super::model::{SourceFile, Span};

/// Everything wrong with one scenario; never empty.
#[derive(Debug)]
pub struct Report {
    path: String,
    problems: Vec<Problem>,
}

impl Report {
    /// Each problem, in the order of the files.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The whole report as text, with the theme and the width (in columns) of the caller's terminal.
    pub fn render(&self, theme: GraphicalTheme, width: usize) -> String {
        let handler = GraphicalReportHandler::new_themed(theme).with_width(width).with_links(false);
        let mut text = String::new();
        for problem in &self.problems {
            if handler.render_report(&mut text, problem).is_err() {
                // Only a span outside its source fails, and a report without its picture is still a report.
                text.push_str(&problem.to_string());
            }
            text.push('\n');
        }
        text.push_str(&self.to_string());
        text.push('\n');
        text
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.len() {
            1 => write!(f, "{}: 1 problem; nothing was run", self.path),
            n => write!(f, "{}: {n} problems; nothing was run", self.path),
        }
    }
}

impl std::error::Error for Report {}

impl Diagnostic for Report {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.problems.iter().map(|problem| problem as &dyn Diagnostic)))
    }
}

/// One thing that is wrong.
#[derive(Debug)]
pub struct Problem {
    message: String,
    help: Option<String>,
    labels: Vec<(Span, String)>,
    source: Option<NamedSource<Arc<str>>>,
}

impl Problem {
    /// What is wrong, at which place; the label stands under the caret.
    pub(super) fn new(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, labels: vec![(span, label.into())], source: None }
    }

    /// What is wrong with a file that cannot be shown.
    pub(super) fn without_place(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, labels: Vec::new(), source: None }
    }

    /// What to do about it.
    pub(super) fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    /// A second place that matters.
    pub(super) fn also(&mut self, span: Span, label: impl Into<String>) -> &mut Self {
        self.labels.push((span, label.into()));
        self
    }

    /// Where the problem is: the first label's place.
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|(span, _)| *span)
    }

    /// Where the problem is, for programs: file, line and column, both from 1, the column in characters.
    pub fn place(&self) -> Option<(&str, usize, usize)> {
        let source = self.source.as_ref()?;
        let before = source.inner().get(..self.span()?.start)?;
        let line = before.rsplit('\n').next().unwrap_or("");
        Some((source.name(), before.matches('\n').count() + 1, line.chars().count() + 1))
    }

    /// Gives the problem the text it points into; labels in other files become part of the help.
    fn attach(&mut self, files: &[SourceFile]) {
        let Some(main) = self.span() else { return };
        let Some(file) = files.get(main.file) else { return };
        self.source = Some(NamedSource::new(&file.path, Arc::clone(&file.text)));
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.labels).into_iter().partition(|(span, _)| span.file == main.file);
        self.labels = here;
        for (span, label) in elsewhere {
            let Some(other) = files.get(span.file) else { continue };
            let line = other.text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1);
            let note = format!("{}:{line}: {label}", other.path);
            self.help = Some(match self.help.take() {
                Some(help) => format!("{help}\n{note}"),
                None => note,
            });
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.source.as_ref()?;
        Some(Box::new(self.labels.iter().enumerate().map(|(n, (span, label))| {
            let place = SourceSpan::new(span.start.into(), span.end.saturating_sub(span.start));
            let label = (!label.is_empty()).then(|| label.clone());
            match n {
                0 => LabeledSpan::new_primary_with_span(label, place),
                _ => LabeledSpan::new_with_span(label, place),
            }
        })))
    }
}

/// Where readers leave what they find wrong.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    /// Adds one; the result takes help and further places.
    pub(super) fn add(
        &mut self,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> &mut Problem {
        self.push(Problem::new(span, message, label))
    }

    /// Adds one that is complete.
    pub(super) fn push(&mut self, problem: Problem) -> &mut Problem {
        let at = self.0.len();
        self.0.push(problem);
        &mut self.0[at]
    }

    /// How many there are so far.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// `value` when nothing is wrong, else the report: in the order of the files, each problem once.
    pub(super) fn finish<T>(mut self, files: &[SourceFile], value: Option<T>) -> Result<T, Report> {
        let path = files.first().map_or_else(String::new, |file| file.path.clone());
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => {
                // Every host reads the common configuration, and finds the same there.
                let mut seen = BTreeSet::new();
                let place = |problem: &Problem| problem.span().map(|span| (span.file, span.start));
                self.0.retain(|problem| seen.insert((place(problem), problem.message.clone())));
                self.0.sort_by_key(place);
                let shown: Vec<SourceFile> = files.iter().map(masked).collect();
                for problem in &mut self.0 {
                    problem.attach(&shown);
                }
                Err(Report { path, problems: self.0 })
            }
        }
    }
}

/// The file as it may be shown: the values of keys called `secret` are covered, byte for byte. The secret of
/// a drill protects nothing, but people paste what they have at hand.
fn masked(file: &SourceFile) -> SourceFile {
    let mut text = String::with_capacity(file.text.len());
    let mut rest: &str = &file.text;
    while let Some((before, after)) = rest.split_once("secret") {
        text.push_str(before);
        text.push_str("secret");
        let part_of_a_word = before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
        let value = after.trim_start_matches(['"', '\'', ' ', '\t']);
        let Some(value) = value.strip_prefix('=').filter(|_| !part_of_a_word) else {
            rest = after;
            continue;
        };
        let value = value.trim_start_matches([' ', '\t']);
        text.push_str(&after[..after.len() - value.len()]);
        let end = value_end(value);
        text.extend(value[..end].chars().flat_map(|c| match c {
            '\n' => std::iter::repeat_n('\n', 1),
            other => std::iter::repeat_n('*', other.len_utf8()),
        }));
        rest = &value[end..];
    }
    text.push_str(rest);
    SourceFile { path: file.path.clone(), text: text.into() }
}

/// Where a value ends: at its closing quotes, or with the line where it has none.
fn value_end(value: &str) -> usize {
    for quote in ["\"\"\"", "'''", "\"", "'"] {
        if let Some(inner) = value.strip_prefix(quote) {
            let line = if quote.len() == 1 { inner.find('\n') } else { None };
            let inner = &inner[..line.unwrap_or(inner.len())];
            let escaped = |at: usize| inner[..at].ends_with('\\');
            let close = inner.match_indices(quote).map(|(at, _)| at).find(|at| !escaped(*at));
            return quote.len() + close.map_or(inner.len(), |at| at + quote.len());
        }
    }
    value.find('\n').unwrap_or(value.len())
}
