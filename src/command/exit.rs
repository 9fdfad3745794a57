//! Exit codes: what a script learns without reading.
//!
//! Declared from mild to grave: of several results the gravest one decides, and a finding outranks a file
//! that could not be run.

use std::process::ExitCode;

use firedrill_sim::outcome::Verdict;

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Everything that ran passed.
    Pass,
    /// No scenario was found where one was expected, or the engine could run none of them; or a campaign failed at
    /// nothing and yet did not test what it should have.
    NothingRan,
    /// Wrong usage, or a scenario that is not valid.
    Invalid,
    /// A cluster did not converge within its bound.
    Liveness,
    /// An oracle fired or an expectation failed.
    Violated,
    /// Two runs of one seed differed.
    NotDeterministic,
    /// A bug of this program.
    Internal,
    /// Ctrl-C.
    Interrupted,
}

impl Exit {
    /// The process's exit code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Violated => 1,
            Self::Invalid => 2,
            Self::Liveness => 3,
            Self::NothingRan => 4,
            Self::NotDeterministic => 5,
            Self::Internal => 70,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Liveness => Self::Liveness,
            Verdict::Expectation | Verdict::Safety => Self::Violated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violated_invariant_outranks_an_invalid_file_and_a_bug_outranks_both() {
        let gravest = |exits: &[Exit]| exits.iter().copied().max().map(Exit::code);
        assert_eq!(gravest(&[Exit::Pass, Exit::Violated, Exit::Invalid]), Some(1));
        assert_eq!(gravest(&[Exit::Liveness, Exit::Pass, Exit::NothingRan]), Some(3));
        assert_eq!(gravest(&[Exit::Internal, Exit::NotDeterministic, Exit::Violated]), Some(70));
    }
}
