//! Words as a shell takes them, so that a line can be pasted.

/// `word` as one argument of a POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |character: char| {
        character.is_alphanumeric() || matches!(character, '/' | '.' | '-' | '_' | '+' | '=' | ':')
    };
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn only_words_that_need_it_are_quoted() {
        assert_eq!(quoted("scenarios/gossip/pause.toml"), "scenarios/gossip/pause.toml");
        assert_eq!(quoted("my drills/it's.toml"), r"'my drills/it'\''s.toml'");
        assert_eq!(quoted(""), "''");
    }
}
