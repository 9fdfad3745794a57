//! A number of a stream names one row, in whatever spine and whatever boot: spines that hold two under one number
//! differ for ever.
//!
//! Where two boots began with one incarnation nothing is demanded: the stream is named by it.

use super::books::{Twice, told};
use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Looks at every row that a spine takes.
#[derive(Debug)]
pub(super) struct NumbersOnce;

impl NumbersOnce {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for NumbersOnce {
    const RULE: Rule = Rule {
        name: "numbers_once",
        invariant: "no two different rows ever bear one number of one stream",
        source: "docs/issuance.md, Rows",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        let Some(Twice { origin, seq, first, other }) = turn.books.twice() else { return Ok(()) };
        if !sight.world.reused().is_empty() {
            return Ok(());
        }
        Err(Broken::new(
            vec![sight.name()],
            format!("number {seq} of {origin} is {} at {}", told(other), sight.name()),
            format!("it was {} before", told(first)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, mint, row, stamped};

    #[test]
    fn a_number_used_for_two_rows_fires() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.take(0, 2, mint("a", vec![stamped("a.1", 1, row(9, 10, 1, 0, "a"))])).unwrap();
        let other = mint("b", vec![stamped("a.1", 1, row(10, 11, 1, 0, "a"))]);
        assert_eq!(bench.take(1, 2, other).unwrap_err().oracle, "numbers_once");
    }
}
