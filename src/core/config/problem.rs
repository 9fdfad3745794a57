//! What is wrong with a configuration, where, and what to do: for people.
//!
//! No message holds a secret. The text around a span may: whoever quotes lines of a file around a problem must
//! be sure that no real secret stands in it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// Where a problem is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the text of a layer.
    File {
        /// The layer, counted from 0 in the order given; 0 for a file of its own.
        layer: usize,
        /// The layer's name ([`Origin::name`](super::Origin)); empty when it has none.
        name: String,
        /// The line, counted from 1.
        line: usize,
        /// The bytes of the layer's text that are at fault.
        span: Range<usize>,
    },
    /// In the environment.
    Env {
        /// The variable's name.
        variable: String,
    },
    /// Nowhere: something that must be given is not.
    Missing,
}

impl Place {
    /// Files in the order of the layers and then of the text, then the environment, then what is missing.
    fn order(&self) -> (usize, usize, usize, &str) {
        match self {
            Self::File { layer, span, .. } => (0, *layer, span.start, ""),
            Self::Env { variable } => (1, 0, 0, variable),
            Self::Missing => (2, 0, 0, ""),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line, .. } if name.is_empty() => write!(f, "line {line}"),
            Self::File { name, line, .. } => write!(f, "{name}:{line}"),
            Self::Env { variable } => write!(f, "environment {variable}"),
            Self::Missing => f.write_str("missing"),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key at fault, as in `cluster.push_interval_ms` or `cluster.seed_peers[1]`; empty when the text is no
    /// TOML at all.
    pub key: String,
    /// Where.
    pub place: Place,
    /// What: a phrase that stands alone, with the key, the value, the bound and why there is one.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A variable that is itself the key at fault is in the message already.
        let named = matches!(&self.place, Place::Env { variable } if *variable == self.key);
        if named {
            write!(f, "environment: {}", self.message)?;
        } else {
            write!(f, "{}: {}", self.place, self.message)?;
        }
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for Problem {}

/// Everything that is wrong with a configuration: at least one problem, each told once, in the order of the
/// text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Orders the problems; `None` when there are none.
    pub(super) fn of(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort_by(|a, b| (a.place.order(), &a.key).cmp(&(b.place.order(), &b.key)));
        (!problems.is_empty()).then_some(Self(problems))
    }

    /// A single problem.
    pub(super) fn one(problem: Problem) -> Self {
        Self(Vec::from([problem]))
    }

    /// The problems, in the order of the text.
    pub fn as_slice(&self) -> &[Problem] {
        &self.0
    }

    /// The problems, in the order of the text.
    pub fn iter(&self) -> core::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = alloc::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = core::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => write!(f, "the configuration has a problem\n{only}"),
            many => {
                write!(f, "the configuration has {} problems", many.len())?;
                many.iter().try_for_each(|problem| write!(f, "\n{problem}"))
            }
        }
    }
}

impl core::error::Error for Problems {}
