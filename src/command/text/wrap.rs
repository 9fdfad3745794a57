//! Columns: widths and wrapping.
//!
//! Works on plain text, before colours. Width counts what a terminal shows, not bytes.

use unicode_width::UnicodeWidthStr;

/// Cells that `text` takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// `text`, filled up with spaces to `cells`.
pub(crate) fn padded(text: &str, cells: usize) -> String {
    let missing = cells.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// Breaks at spaces so that no line exceeds `cells`, unless a single word does.
pub(crate) fn wrap(text: &str, cells: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && width(&line) + 1 + width(word) > cells {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Wraps `text` to `cells` in all, the first line after `indent` cells that are already written, every
/// further one behind as many spaces.
pub(crate) fn hanging(text: &str, indent: usize, cells: usize) -> String {
    let room = cells.saturating_sub(indent).max(24);
    wrap(text, room).join(&format!("\n{}", " ".repeat(indent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_hang_under_their_first_word() {
        let text = hanging("one two three four five six seven eight", 4, 28);
        assert_eq!(text, "one two three four five\n    six seven eight");
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("unbreakable-word", 4), ["unbreakable-word"]);
    }

    #[test]
    fn padding_counts_cells_not_bytes() {
        assert_eq!(padded("é→", 4), "é→  ");
    }
}
