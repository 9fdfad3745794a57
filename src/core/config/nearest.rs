//! The known word that a mistyped one most likely meant.
//!
//! Shared by everything that refuses unknown words: keys here, verbs and hosts in scenarios, commands.
//! Case and the choice between `-` and `_` never count as a difference.

use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

/// Shortest word that may be matched as a part of another: below it nearly everything contains it.
const PART_CHARS_MIN: usize = 4;

/// The candidate nearest to `word`, or `None` when nothing is near enough to be what was meant.
///
/// Near means an edit distance (insert, delete, replace, swap neighbours) of at most a third of the longer
/// word, at least 1. Failing that, a word that is part of a candidate or the reverse counts: `suspicion` for
/// `suspicion_timeout_ms`. The first of equally near candidates wins.
///
/// ```
/// use firedrill_core::config::nearest;
/// assert_eq!(nearest("push_intervall", ["push_interval_ms", "node_id"]), Some("push_interval_ms"));
/// assert_eq!(nearest("colour", ["push_interval_ms", "node_id"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = fold(word);
    let mut best: Option<(usize, &'a str)> = None;
    let mut part = None;
    for candidate in candidates {
        let folded = fold(candidate);
        if let Some(distance) = distance_within(&word, &folded)
            && best.is_none_or(|(least, _)| distance < least)
        {
            best = Some((distance, candidate));
        }
        if part.is_none() && one_holds_the_other(&word, &folded) {
            part = Some(candidate);
        }
    }
    best.map(|(_, candidate)| candidate).or(part)
}

fn fold(word: &str) -> Vec<char> {
    word.chars().flat_map(char::to_lowercase).map(|c| if c == '-' { '_' } else { c }).collect()
}

fn one_holds_the_other(a: &[char], b: &[char]) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    short.len() >= PART_CHARS_MIN
        && long.iter().collect::<String>().contains(short.iter().collect::<String>().as_str())
}

/// The edit distance, if it is small enough to matter. Lengths are compared first, so that a word of many
/// kilobytes costs nothing.
fn distance_within(a: &[char], b: &[char]) -> Option<usize> {
    let most = (a.len().max(b.len()) / 3).max(1);
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let distance = distance(a, b);
    (distance <= most).then_some(distance)
}

/// Edit distance with swaps of neighbours (optimal string alignment), over three rows of the usual table.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        let mut left = i + 1;
        row.push(left);
        for (j, &y) in b.iter().enumerate() {
            let replaced = above[j] + usize::from(x != y);
            let mut least = replaced.min(above[j + 1] + 1).min(left + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
            left = least;
        }
        before = mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(a: &str, b: &str) -> usize {
        distance(&fold(a), &fold(b))
    }

    #[test]
    fn distance_counts_insertions_deletions_replacements_and_swaps() {
        assert_eq!(between("kitten", "sitting"), 3);
        assert_eq!(between("secret", "secert"), 1);
        assert_eq!(between("", "abc"), 3);
        assert_eq!(between("abc", ""), 3);
        assert_eq!(between("Bind-Addr", "bind_addr"), 0);
    }

    #[test]
    fn a_typo_finds_its_word_and_an_unrelated_word_finds_none() {
        let keys = ["enabled", "secret", "bind_addr", "suspicion_timeout_ms"];
        assert_eq!(nearest("secert", keys), Some("secret"));
        assert_eq!(nearest("BIND-ADDR", keys), Some("bind_addr"));
        assert_eq!(nearest("suspicion", keys), Some("suspicion_timeout_ms"));
        assert_eq!(nearest("cluster_secret", keys), Some("secret"));
        assert_eq!(nearest("addr", keys), Some("bind_addr"));
        assert_eq!(nearest("ms", keys), None, "two letters are part of too much");
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest("vegetable", keys), None);
    }

    #[test]
    fn the_first_of_equally_near_words_wins() {
        assert_eq!(nearest("kilx", ["kill", "kilt"]), Some("kill"));
    }
}
