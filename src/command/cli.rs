//! The arguments: what `firedrill` understands, and the help that teaches it.
//!
//! Absent: defaults that depend on a scenario. A seed that is not given comes from the file, a wire from its verbs.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use firedrill_sim::fuzz::seeds::{Seeds, SeedsError, Shard};
use firedrill_sim::fuzz::{EngineMix, PROFILES, WireMix};
use firedrill_sim::oracles::sabotage::{self, SABOTAGE, Sabotage};

const LONG_ABOUT: &str = "\
Fire drills for clustered services.

A drill is a file: some nodes, some faults, and what must hold. firedrill runs the real cluster code under \
those faults, in simulated time, from a seed: the same seed gives the same run, bit for bit. Invariants are \
checked after every event, and a failure comes with the two facts that contradict each other.";

const LESSON: &str = "\
First drill:
  firedrill run scenarios/gossip/partition-heal.toml

A drill of your own:
  firedrill list verbs          what a step can do
  firedrill list facts          what an expectation can demand
  firedrill schema              every key, for an editor
  firedrill validate FILE       every mistake at once, each with its line

What the output means:
  the header      what ran: seed, engine, nodes, timers, network
  the timeline    ▲ a fault  · something a node saw  ◇ an expectation decided  ✗ an invariant broken
  expectations    what the file demands: ✓ held, ✗ did not, with what was seen instead
  the numbers     how long the cluster took to agree again, against its bound; how much it talked
  the digest      a fingerprint of every event: same scenario, same seed, same digest
  on a failure    the last line shows it again; `firedrill explain FILE` tells how it came to it

Engines:
  event           time jumps from event to event: minutes of a cluster in milliseconds (default)
  turmoil         the production network code on a simulated network: slower, closer to life

Exit codes:
  0    pass
  1    an invariant or an expectation failed
  2    wrong usage, or an invalid scenario
  3    a cluster did not converge
  4    nothing ran, or a campaign did not test what it should have: a goal was never reached, a
       shard is missing, no drill noticed a sabotage
  5    not deterministic
  70   a bug of firedrill
  130  interrupted";

/// Fire drills for clustered services: replay partitions, kills, pauses and clock steps from a seed.
#[derive(Debug, Parser)]
#[command(name = "firedrill", version, long_about = LONG_ABOUT, after_help = LESSON)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run drills and tell what happened
    Run(RunArgs),
    /// Play drills drawn from seeds, shrink what fails, keep it
    Fuzz(FuzzArgs),
    /// Make a failing drill as small as it can be
    Shrink(ShrinkArgs),
    /// Tell the story of one drill: what broke, who believed what, which rule that contradicts
    Explain(ExplainArgs),
    /// Run a recorded failure again: is it still the same run?
    Replay(ReplayArgs),
    /// Merge the reports of a campaign's shards, and end as the campaign
    Merge(MergeArgs),
    /// Check scenario files without running them
    Validate(ValidateArgs),
    /// List what there is: scenarios, or the words they are written in
    List(ListArgs),
    /// Print the JSON schema of scenario files, for editors
    Schema,
}

/// `firedrill run`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  firedrill run scenarios/gossip/partition-heal.toml            one drill, told in full
  firedrill run scenarios                                       every drill, a line each
  firedrill run scenarios --engine turmoil                      every drill that turmoil can express
  firedrill run scenarios/gossip/pause.toml --seed 7 --twice    is seed 7 deterministic?
  firedrill run scenarios --format json | jq .verdict           one JSON object a line")]
pub(crate) struct RunArgs {
    /// Scenario files, or folders of them (names that begin with `_` are for includes and are skipped)
    #[arg(required = true, value_name = "FILE|FOLDER")]
    pub(crate) paths: Vec<PathBuf>,
    /// Seed of every random choice [default: the scenario's own]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// What runs the cluster
    #[arg(long, value_enum, default_value_t = EngineArg::Event)]
    pub(crate) engine: EngineArg,
    /// What crosses the event engine's network [default: full where a verb needs bytes, else fast]
    #[arg(long, value_enum)]
    pub(crate) wire: Option<WireArg>,
    /// Turn a guard of the protocol off, to see who notices (`firedrill list sabotages`)
    #[arg(long, value_name = "NAME", value_parser = sabotages(), hide_possible_values = true)]
    pub(crate) sabotage: Option<&'static Sabotage>,
    /// Run twice at once and compare every event
    #[arg(long)]
    pub(crate) twice: bool,
    /// How to tell it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Say only what failed, and a last line
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Show every line of the timeline, and every drill of several in full
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// `firedrill fuzz`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  firedrill fuzz                                      2,000 seeds on all cores: a few seconds
  firedrill fuzz --budget 5min --seed-from-commit     five minutes, other seeds for every commit
  firedrill fuzz --seeds 0..100000 --shard 1/4        the first of four equal parts
  firedrill fuzz --seeds 4711 --engine event          one seed again
  firedrill fuzz --sabotage refutation                seeds until the lack of this guard is noticed
  firedrill fuzz --sabotage all                       the same for every guard, as a table

Most seeds run on the event engine with values for messages, one in 16 with real bytes, one in 500 on turmoil. \
Each kind of failure is shrunk, and its first seed kept as two files: a scenario for `firedrill run` and \
`firedrill explain`, and an artifact for `firedrill replay`. What is printed on standard output is the same for \
the same seeds, whatever --jobs is. Ctrl-C ends a campaign with the report so far.

Exit codes:
  0    every invariant held; of --sabotage all: every guard's lack was noticed
  1    an invariant did not hold
  2    wrong usage
  3    a cluster did not converge
  4    no seed was played, 5,000 seeds and more never reached a goal, or no drill noticed --sabotage
  70   a bug of firedrill
  130  interrupted, and nothing had failed until then")]
pub(crate) struct FuzzArgs {
    /// Seeds to play: FROM..TO (without TO), or one [default: 0..2000, or as many as the budget allows]
    #[arg(long, value_name = "RANGE")]
    pub(crate) seeds: Option<Seeds>,
    /// Stop after this much real time, such as 5min
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) budget: Option<Duration>,
    /// Simulations at a time, at most 1,024 [default: as many as there are cores]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(JOBS_MAX)))]
    pub(crate) jobs: Option<u16>,
    /// Play one of N equal parts, at most 10,000: I/N from 1, or `auto` in an indexed Kubernetes Job
    #[arg(long, value_name = "I/N|auto")]
    pub(crate) shard: Option<ShardArg>,
    /// Which drills are drawn: gossip, or with --sabotage those that can show its guard, when not given
    #[arg(long, value_parser = profiles())]
    pub(crate) profile: Option<String>,
    /// Which engines take part
    #[arg(long, value_enum, default_value_t = EngineMixArg::Mix)]
    pub(crate) engine: EngineMixArg,
    /// Which wires of the event engine take part
    #[arg(long, value_enum, default_value_t = WireMixArg::Mix)]
    pub(crate) wire: WireMixArg,
    /// Count seeds from a number made of the checked-out commit
    #[arg(long)]
    pub(crate) seed_from_commit: bool,
    /// Turn a guard of the protocol off and play until a drill notices (`firedrill list sabotages`), or `all` in turn;
    /// where none notices, the campaign fails with code 4
    #[arg(long, value_name = "NAME|all", value_parser = sabotages_or_all(), hide_possible_values = true)]
    pub(crate) sabotage: Option<SabotageArg>,
    /// Folder for the drills and artifacts of failures
    #[arg(long, short, value_name = "FOLDER", default_value = "findings")]
    pub(crate) keep: PathBuf,
    /// Stop at the first failure
    #[arg(long)]
    pub(crate) fail_fast: bool,
    /// How to tell it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Say nothing on the way
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Most simulations at a time: each is a thread of its own, and machines have hundreds of cores at most.
pub(crate) const JOBS_MAX: u16 = 1_024;

/// A shard, as the command line names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShardArg {
    /// Read from the environment of an indexed Job.
    Auto,
    /// This one.
    This(Shard),
}

impl FromStr for ShardArg {
    type Err = SeedsError;

    fn from_str(text: &str) -> Result<Self, SeedsError> {
        if text == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::This) }
    }
}

/// A guard to turn off, or all in turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SabotageArg {
    /// Which; all when `None`.
    pub(crate) guard: Option<&'static Sabotage>,
}

/// Names of guards, and `all`.
fn sabotages_or_all() -> impl TypedValueParser<Value = SabotageArg> {
    let names = PossibleValuesParser::new(SABOTAGE.iter().map(|row| row.guard).chain(["all"]));
    names.map(|name| SabotageArg { guard: sabotage::find(&name) })
}

/// Names of profiles.
fn profiles() -> PossibleValuesParser {
    PossibleValuesParser::new(PROFILES.iter().map(|profile| profile.name()))
}

/// Which engines take part in a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineMixArg {
    /// Mostly the event engine, one seed in 500 on turmoil
    Mix,
    /// The event engine alone
    Event,
    /// Turmoil alone
    Turmoil,
}

/// Which wires of the event engine take part in a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WireMixArg {
    /// Mostly fast, one seed in 16 full
    Mix,
    /// Messages as values
    Fast,
    /// Real bytes, MACs and connections
    Full,
}

impl From<EngineMixArg> for EngineMix {
    fn from(engine: EngineMixArg) -> Self {
        match engine {
            EngineMixArg::Mix => Self::Mix,
            EngineMixArg::Event => Self::Event,
            EngineMixArg::Turmoil => Self::Turmoil,
        }
    }
}

impl From<WireMixArg> for WireMix {
    fn from(wire: WireMixArg) -> Self {
        match wire {
            WireMixArg::Mix => Self::Mix,
            WireMixArg::Fast => Self::Fast,
            WireMixArg::Full => Self::Full,
        }
    }
}

/// `firedrill merge`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  firedrill fuzz --seeds 0..10000 --shard 1/2 --format json > 1.json    on one machine
  firedrill fuzz --seeds 0..10000 --shard 2/2 --format json > 2.json    on another
  firedrill merge 1.json 2.json                                         what both came to
  firedrill merge 1.json 2.json --format sarif > campaign.sarif         for code scanning

Exit codes are those of one campaign: 0 pass, 1 an invariant failed, 3 did not converge, 4 when nothing failed \
but a goal was missed, a shard is missing or no drill noticed a sabotage; 2 when the reports do not go together.

A seed that stood out of its own shard as too busy stays a failure, whatever the other shards say.")]
pub(crate) struct MergeArgs {
    /// Reports, as `firedrill fuzz --format json` writes them, one of each shard
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How to tell it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Folder that holds the scenarios the campaign kept, for annotations to point into
    #[arg(long, value_name = "FOLDER", default_value = "scenarios/regressions")]
    pub(crate) kept: PathBuf,
}

/// `firedrill shrink`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  firedrill shrink drill.toml -o small.toml           the smallest drill that fails like this one
  firedrill shrink drill.toml --seed 7 --budget 10s   from this seed; what ten seconds can do
  firedrill shrink failure.json                       the run that an artifact recorded

The small drill comes with a comment: what breaks, when, and how to run it. The same drill and seed give the \
same small drill, unless the budget cuts the search short.

Exit codes:
  0    there is a smaller drill, or none smaller fails
  2    wrong usage, an invalid scenario, or --out cannot be written
  4    the drill passes: there is nothing to shrink
  130  interrupted, with the smallest so far written")]
pub(crate) struct ShrinkArgs {
    /// A scenario file that fails, or an artifact of a run that failed (*.json)
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Where to write the small drill [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Seed of every random choice [default: the scenario's own, or the artifact's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// What runs the cluster [default: event, or the artifact's]
    #[arg(long, value_enum)]
    pub(crate) engine: Option<EngineArg>,
    /// What crosses the event engine's network [default: full where a verb needs bytes, else fast]
    #[arg(long, value_enum)]
    pub(crate) wire: Option<WireArg>,
    /// Turn a guard of the protocol off; the small drill shows what it is for (`firedrill list sabotages`)
    #[arg(long, value_name = "NAME", value_parser = sabotages(), hide_possible_values = true)]
    pub(crate) sabotage: Option<&'static Sabotage>,
    /// Real time the search may take; most end in a second by themselves
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    pub(crate) budget: Duration,
}

/// `firedrill explain`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  firedrill explain scenarios/gossip/partition-heal.toml        what a healthy cluster survives
  firedrill explain drill.toml --seed 7 --wire full             the failure that a run has shown
  firedrill explain scenarios/gossip/clock-back-restart.toml --sabotage refutation
                                                                a failure on a healthy tree
  firedrill explain failure.json                                the run that an artifact recorded

Ends as `firedrill run` does: 0 when the drill passed, 1 or 3 when it did not.")]
pub(crate) struct ExplainArgs {
    /// A scenario file, or an artifact of a run that failed (*.json)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Seed of every random choice [default: the scenario's own, or the artifact's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// What runs the cluster [default: event, or the artifact's]
    #[arg(long, value_enum)]
    pub(crate) engine: Option<EngineArg>,
    /// What crosses the event engine's network [default: full where a verb needs bytes, else fast, or the artifact's]
    #[arg(long, value_enum)]
    pub(crate) wire: Option<WireArg>,
    /// Turn a guard of the protocol off (`firedrill list sabotages`)
    #[arg(long, value_name = "NAME", value_parser = sabotages(), hide_possible_values = true)]
    pub(crate) sabotage: Option<&'static Sabotage>,
    /// How to tell it
    #[arg(long, value_enum, default_value_t = StoryFormat::Text)]
    pub(crate) format: StoryFormat,
}

/// `firedrill replay`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  firedrill replay failure.json                             is it still the run that was recorded?
  firedrill replay found/*.json                             each of them, a line each
  firedrill replay scenarios/gossip/pause.toml              two runs of a scenario, compared
  firedrill replay failure.json --format json | jq .change  what became of the failure, for scripts

An artifact holds the drill itself, so it replays after the generator that drew it has changed. Where the run \
differs, the first fault or event that does is named, and what became of the failure.

Exit codes, of several files the gravest:
  0    the same run, fault for fault and event for event, whether it failed or not
  1    the program behaves differently now: the failure is gone, another, or came another way
  2    a file that is no artifact or no valid scenario
  5    not deterministic: two runs of now differ
  70   a bug of firedrill
  130  interrupted")]
pub(crate) struct ReplayArgs {
    /// Artifacts (*.json) of runs that failed, or scenario files (*.toml)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How to tell it
    #[arg(long, value_enum, default_value_t = StoryFormat::Text)]
    pub(crate) format: StoryFormat,
}

/// Names of guards, with a suggestion for one that does not exist.
fn sabotages() -> impl TypedValueParser<Value = &'static Sabotage> {
    let names = PossibleValuesParser::new(SABOTAGE.iter().map(|row| row.guard));
    names.try_map(|name| sabotage::find(&name).ok_or("no guard has this name"))
}

/// `firedrill validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Scenario files, or folders of them
    #[arg(required = true, value_name = "FILE|FOLDER")]
    pub(crate) paths: Vec<PathBuf>,
    /// Check against what this engine can do
    #[arg(long, value_enum, default_value_t = EngineArg::Event)]
    pub(crate) engine: EngineArg,
}

/// `firedrill list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list
    #[command(subcommand)]
    pub(crate) what: ListWhat,
}

/// What `firedrill list` lists.
#[derive(Debug, Subcommand)]
pub(crate) enum ListWhat {
    /// Each scenario with its story
    Scenarios {
        /// Where to look
        #[arg(value_name = "FILE|FOLDER", default_value = "scenarios")]
        paths: Vec<PathBuf>,
    },
    /// What a step can do, on which engine, and to whom
    Verbs,
    /// What an expectation can demand, and the events that it and `when` speak of
    Facts,
    /// The invariants that are checked, each with its source
    Oracles,
    /// The guards of the protocol that `--sabotage` turns off, what shows it, and who notices
    Sabotages,
}

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// Time jumps from event to event
    Event,
    /// The production network code on a simulated network
    Turmoil,
}

/// Which wire of the event engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WireArg {
    /// Messages as values
    Fast,
    /// Real bytes, MACs and connections
    Full,
}

/// How the story of one run is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoryFormat {
    /// For people
    Text,
    /// One JSON object
    Json,
}

/// How results are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// One JSON object a line and scenario
    Json,
    /// JUnit XML, for what shows tests
    Junit,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub Actions, at the lines of the scenarios
    Github,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    /// What follows the options, for the command and all below it, as it is written.
    fn after_texts(command: &clap::Command) -> Vec<(String, String)> {
        let own = command.get_after_help().map(|text| (command.get_name().to_owned(), text.to_string()));
        own.into_iter().chain(command.get_subcommands().flat_map(after_texts)).collect()
    }

    #[test]
    fn help_wraps_paragraphs_and_leaves_lists_as_they_are() {
        let texts = after_texts(&Cli::command());
        assert!(texts.len() >= 6, "{texts:?}");
        for (command, text) in texts {
            for block in text.split("\n\n") {
                // A paragraph is one line, for the terminal to wrap; a list is lines that fit.
                let is_list = block.contains("\n  ");
                assert!(is_list || !block.contains('\n'), "{command}: a paragraph broken by hand:\n{block}");
                let longest = block.lines().map(crate::command::text::wrap::width).max().unwrap_or(0);
                assert!(!is_list || longest <= 100, "{command}: {longest} cells:\n{block}");
            }
        }
    }

    #[test]
    fn help_names_the_limits_that_are_enforced() {
        let fuzz = Cli::command().find_subcommand_mut("fuzz").unwrap().render_long_help().to_string();
        let thousands = |number: u64| crate::command::text::style::count(number);
        for limit in [thousands(u64::from(JOBS_MAX)), thousands(firedrill_sim::fuzz::seeds::SHARDS_MAX)] {
            assert!(fuzz.contains(&format!("at most {limit}")), "{limit}: {fuzz}");
        }
    }
}
