//! `firedrill list` and `firedrill validate`: what there is, and whether it is sound.

use std::io::{self, Write};

use firedrill_sim::engine::EngineKind;
use firedrill_sim::oracles::RULES;
use firedrill_sim::oracles::sabotage::SABOTAGE;
use firedrill_sim::scenario::catalog::{EVENTS, EXPECT, FACTS, Key, Kind, SYMBOLS, VERBS};

use super::cli::{ListWhat, ValidateArgs};
use super::exit::Exit;
use super::files::{self, Found};
use super::testbed::{self, Refused};
use super::text::style::{ASKED, BAD, FAINT, GOOD, STRONG, paint, plural};
use super::text::wrap::{hanging, padded, width};
use super::{problems_text, terminal_cells};

/// Checks each file without running it.
pub(crate) fn validate(args: &ValidateArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let Some(found) = find(&args.paths, err)? else { return Ok(Exit::Invalid) };
    let (mut valid, mut beyond) = (0, 0);
    for file in &found {
        match testbed::load(&file.path, args.engine.into(), None) {
            Ok(_) => valid += 1,
            Err(Refused::Beyond(problems)) if file.from_folder => {
                beyond += 1;
                let reason = problems.problems().first().map(ToString::to_string).unwrap_or_default();
                writeln!(out, "{}", paint(FAINT, format!("  - {}: {reason}", file.path.display())))?;
            }
            Err(Refused::Beyond(problems) | Refused::Invalid(problems)) => {
                write!(err, "{}", problems_text(&problems, terminal_cells()))?;
            }
        }
    }
    let invalid = found.len() - valid - beyond;
    if found.is_empty() {
        writeln!(err, "nothing to check: no scenario (*.toml) there")?;
        return Ok(Exit::NothingRan);
    }
    let (mark, style, exit) =
        if invalid == 0 { ("✓", GOOD, Exit::Pass) } else { ("✗", BAD, Exit::Invalid) };
    let mut text = format!("{} valid", plural(valid, "scenario"));
    for (number, what) in [(invalid, "invalid"), (beyond, "beyond this engine")] {
        if number > 0 {
            text.push_str(&format!(", {number} {what}"));
        }
    }
    writeln!(out, "  {} {text}", paint(style, mark))?;
    Ok(exit)
}

/// Lists scenarios, verbs, facts, oracles or sabotages.
pub(crate) fn list(what: &ListWhat, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    match what {
        ListWhat::Scenarios { paths } => scenarios(paths, out, err),
        ListWhat::Verbs => verbs(out),
        ListWhat::Facts => facts(out),
        ListWhat::Oracles => oracles(out),
        ListWhat::Sabotages => sabotages(out),
    }
}

fn scenarios(paths: &[std::path::PathBuf], out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let Some(found) = find(paths, err)? else { return Ok(Exit::Invalid) };
    if found.is_empty() {
        writeln!(err, "no scenario (*.toml) there")?;
        return Ok(Exit::NothingRan);
    }
    let cells = terminal_cells();
    let mut exit = Exit::Pass;
    for Found { path, .. } in &found {
        match testbed::load(path, EngineKind::Event, None) {
            Ok(scenario) => {
                writeln!(out, "{}", paint(STRONG, path.display()))?;
                writeln!(out, "  {}", hanging(&scenario.about, 2, cells))?;
            }
            Err(Refused::Beyond(_) | Refused::Invalid(_)) => {
                exit = Exit::Invalid;
                writeln!(out, "{}", paint(STRONG, path.display()))?;
                let text = "invalid: `firedrill validate` shows why";
                writeln!(out, "  {}", paint(BAD, text))?;
            }
        }
    }
    Ok(exit)
}

fn verbs(out: &mut dyn Write) -> io::Result<Exit> {
    let cells = terminal_cells();
    let name_cells = VERBS.iter().map(|verb| width(verb.name)).max().unwrap_or(0);
    let indent = 2 + name_cells + 2;
    for verb in VERBS {
        let name = padded(verb.name, name_cells);
        writeln!(out, "  {}  {}", paint(STRONG, name), hanging(verb.doc, indent, cells))?;
        let gap = " ".repeat(indent);
        let example = hanging(verb.example, indent, cells);
        writeln!(out, "{gap}{}", paint(ASKED, example))?;
        let mut notes = Vec::new();
        if let Some(ends) = verb.ends {
            notes.push(format!("`for` {ends}"));
        }
        if verb.bytes {
            notes.push("runs on the full wire".to_owned());
        }
        if verb.engines == [EngineKind::Event] {
            notes.push("event engine only".to_owned());
        }
        if !notes.is_empty() {
            writeln!(out, "{gap}{}", paint(FAINT, notes.join(" · ")))?;
        }
    }
    writeln!(out, "\nA target is a host, a list of hosts, or:")?;
    words(SYMBOLS.iter().map(|&(name, doc)| Word { name, doc, ..Word::default() }), out)?;
    Ok(Exit::Pass)
}

/// What an expectation is made of: when it holds, what holds, and the events.
fn facts(out: &mut dyn Write) -> io::Result<Exit> {
    writeln!(out, "An expectation says when …")?;
    words(EXPECT.iter().map(|&Key { name, doc, .. }| Word { name, doc, ..Word::default() }), out)?;
    writeln!(out, "\n… which fact holds. It stands beside `by`, and in the table of the others:")?;
    writeln!(out, "  {}\n", paint(ASKED, "at_end = { view = [\"a\", \"b\"] }"))?;
    let facts = FACTS.iter().map(|fact| {
        let keys = if let Kind::Table(keys) = fact.kind { keys } else { &[] };
        Word { name: fact.name, doc: fact.doc, example: fact.example, keys }
    });
    words(facts, out)?;
    writeln!(out, "\nEvents, for the fact `event` and for a step's `when`:")?;
    let events = EVENTS.iter().map(|event| Word {
        name: event.name,
        doc: event.doc,
        example: event.example,
        ..Word::default()
    });
    words(events, out)?;
    Ok(Exit::Pass)
}

/// A word of the language, as it is listed.
#[derive(Debug, Default)]
struct Word {
    name: &'static str,
    doc: &'static str,
    /// A piece to copy, if there is one.
    example: &'static str,
    /// What its table takes, if it is one.
    keys: &'static [Key],
}

/// Words in two columns, each with what belongs to it below.
fn words(words: impl Iterator<Item = Word>, out: &mut dyn Write) -> io::Result<()> {
    let words: Vec<Word> = words.collect();
    let cells = terminal_cells();
    let name_cells = words.iter().map(|word| width(word.name)).max().unwrap_or(0);
    let indent = 2 + name_cells + 2;
    let gap = " ".repeat(indent);
    for Word { name, doc, example, keys } in words {
        let name = padded(name, name_cells);
        writeln!(out, "  {}  {}", paint(STRONG, name), hanging(doc, indent, cells))?;
        if !example.is_empty() {
            writeln!(out, "{gap}{}", paint(ASKED, hanging(example, indent, cells)))?;
        }
        if !keys.is_empty() {
            let keys: Vec<_> = keys.iter().map(|key| key.name).collect();
            writeln!(out, "{gap}{}", paint(FAINT, format!("keys: {}", keys.join(", "))))?;
        }
    }
    Ok(())
}

fn oracles(out: &mut dyn Write) -> io::Result<Exit> {
    let cells = terminal_cells();
    for oracle in RULES {
        writeln!(out, "  {}", paint(STRONG, oracle.name))?;
        writeln!(out, "    {}", hanging(oracle.invariant, 4, cells))?;
        let when = if oracle.liveness { "at the end" } else { "after every event" };
        let source = format!("{when}; {}", oracle.source);
        writeln!(out, "    {}", paint(FAINT, hanging(&source, 4, cells)))?;
    }
    Ok(Exit::Pass)
}

fn sabotages(out: &mut dyn Write) -> io::Result<Exit> {
    let cells = terminal_cells();
    writeln!(out, "What a cluster does when `--sabotage NAME` turns that guard of the protocol off:")?;
    for row in SABOTAGE {
        writeln!(out, "  {}", paint(STRONG, row.guard))?;
        writeln!(out, "    {}", hanging(row.without, 4, cells))?;
        let mut tell = |text: &str| writeln!(out, "    {}", paint(FAINT, hanging(text, 4, cells)));
        let on = row.shown.map_or_else(String::new, |shown| {
            let wire = if shown.on_bytes { " --wire full" } else { "" };
            format!("{}{wire}: ", shown.scenario)
        });
        tell(&format!("shown by {on}{}", row.drill))?;
        tell(&match row.uncaught {
            Some(why) => format!("noticed by no oracle: {why}"),
            None => format!("noticed by {}", row.caught_by.join(", ")),
        })?;
    }
    Ok(Exit::Pass)
}

fn find(paths: &[std::path::PathBuf], err: &mut dyn Write) -> io::Result<Option<Vec<Found>>> {
    match files::find(paths) {
        Ok(found) => Ok(Some(found)),
        Err(unreadable) => {
            writeln!(err, "{}: {unreadable}", paint(BAD, "error"))?;
            Ok(None)
        }
    }
}
