//! Words as a shell takes them, so that a line can be pasted.

use std::path::Path;

use super::testbed::Plan;

/// The command that repeats a drill wherever its file is the same.
///
/// `seed` and `wire` are those that the run resolved to.
pub(crate) fn repeat(
    program: &str,
    verb: &str,
    path: &Path,
    plan: &Plan,
    seed: u64,
    wire: Option<&str>,
) -> String {
    let (program, path) = (quoted(program), quoted(&path.display().to_string()));
    let mut command = format!("{program} {verb} {path} --seed {seed} --engine {}", plan.engine_name());
    if let Some(wire) = wire {
        command.push_str(&format!(" --wire {wire}"));
    }
    if let Some(sabotage) = plan.sabotage {
        command.push_str(&format!(" --sabotage {}", sabotage.guard));
    }
    command
}

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
