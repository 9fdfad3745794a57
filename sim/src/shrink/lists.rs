//! Deletion from lists: halves first, then smaller chunks, then one by one; pairs where single ones will not go.
//!
//! A list is known by its length alone; what is left of it is told as places in the original. Both searches walk
//! from the end, because what stands late in a drill leans on what stands early.
//!
//! Absent: what the lists hold.

use std::ops::Range;

use proptest::strategy::ValueTree;

/// Deletes chunks of a list.
#[derive(Debug, Clone)]
pub(super) struct Deletion {
    /// Places in the original list that are still there.
    kept: Vec<usize>,
    /// The part of `kept` whose absence is being tried.
    tried: Range<usize>,
    chunk: usize,
}

impl Deletion {
    /// The whole list.
    pub(super) fn new(length: usize) -> Self {
        Self { kept: (0..length).collect(), tried: length..length, chunk: length }
    }

    /// Tries to leave out what ends before `end`, with smaller chunks once the front is reached.
    fn advance(&mut self, mut end: usize) -> bool {
        while self.chunk > 0 {
            if end > 0 && self.chunk <= self.kept.len() {
                self.tried = end.saturating_sub(self.chunk)..end;
                return true;
            }
            self.chunk /= 2;
            end = self.kept.len();
        }
        self.tried = 0..0;
        false
    }
}

impl ValueTree for Deletion {
    type Value = Vec<usize>;

    fn current(&self) -> Vec<usize> {
        let left = |place: &usize| !self.tried.contains(place);
        (0..self.kept.len()).filter(left).map(|place| self.kept[place]).collect()
    }

    fn simplify(&mut self) -> bool {
        let start = self.tried.start;
        self.kept.drain(self.tried.clone());
        self.advance(start)
    }

    fn complicate(&mut self) -> bool {
        self.advance(self.tried.start)
    }
}

/// Deletes two elements of a list at once.
#[derive(Debug, Clone)]
pub(super) struct Pairs {
    kept: Vec<usize>,
    /// The two places of `kept` whose absence is being tried, the earlier one first.
    tried: Option<(usize, usize)>,
    over: bool,
}

impl Pairs {
    /// The whole list.
    pub(super) fn new(length: usize) -> Self {
        Self { kept: (0..length).collect(), tried: None, over: false }
    }

    fn advance(&mut self, from: (usize, usize)) -> bool {
        let next = match from {
            (first, second) if first > 0 => Some((first - 1, second)),
            (_, second) if second > 1 => Some((second - 2, second - 1)),
            _ => None,
        };
        self.tried = next;
        self.over = next.is_none();
        !self.over
    }
}

impl ValueTree for Pairs {
    type Value = Vec<usize>;

    fn current(&self) -> Vec<usize> {
        let left = |place: &usize| self.tried.is_none_or(|(first, second)| ![first, second].contains(place));
        (0..self.kept.len()).filter(left).map(|place| self.kept[place]).collect()
    }

    fn simplify(&mut self) -> bool {
        if self.over {
            return false;
        }
        let from = match self.tried {
            // What stands behind the pair has been tried with everything before it.
            Some((first, second)) => {
                self.kept.remove(second);
                self.kept.remove(first);
                (0, second.saturating_sub(1))
            }
            None => (0, self.kept.len()),
        };
        self.advance(from)
    }

    fn complicate(&mut self) -> bool {
        match self.tried {
            Some(tried) => self.advance(tried),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shrinks as proptest's runner does.
    fn shrunk(mut tree: impl ValueTree<Value = Vec<usize>>, fails: impl Fn(&[usize]) -> bool) -> Vec<usize> {
        let mut least = tree.current();
        let mut runs = 0;
        let mut goes_on = tree.simplify();
        while goes_on {
            runs += 1;
            assert!(runs < 10_000, "the search does not end");
            let current = tree.current();
            goes_on = if fails(&current) {
                least = current;
                tree.simplify()
            } else {
                tree.complicate()
            };
        }
        assert_eq!(tree.current(), least, "a search ends at the least that fails");
        least
    }

    #[test]
    fn deletion_finds_what_is_needed_wherever_it_stands() {
        for needed in [vec![], vec![0], vec![19], vec![3, 11, 12], (0..20).collect()] {
            let fails = |left: &[usize]| needed.iter().all(|place| left.contains(place));
            assert_eq!(shrunk(Deletion::new(20), fails), needed);
        }
        assert_eq!(shrunk(Deletion::new(0), |_| true), [0; 0]);
    }

    #[test]
    fn pairs_find_what_can_only_go_together() {
        // 1 goes only with 6, 2 only with 3.
        let whole = |left: &[usize], one, other| left.contains(&one) == left.contains(&other);
        let fails = |left: &[usize]| {
            whole(left, 1, 6) && whole(left, 2, 3) && [0, 4, 5].iter().all(|place| left.contains(place))
        };
        assert_eq!(shrunk(Pairs::new(7), fails), [0, 4, 5]);
        assert_eq!(shrunk(Deletion::new(7), fails), [0, 1, 2, 3, 4, 5, 6]);
        for few in 0..2 {
            assert_eq!(shrunk(Pairs::new(few), |_| true).len(), few);
        }
    }
}
