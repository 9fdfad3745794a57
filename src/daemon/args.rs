//! The command line of `firedrilld`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Runs one node of a firedrill cluster.
///
/// The node finds its peers through cluster.seed_peers, keeps a list of who is up, and shares counters with
/// them. An admin server on server.bind_addr answers /counters/NAME, /members, /health, /health/ready and
/// /metrics.
#[derive(Debug, Parser)]
#[command(name = "firedrilld", version, after_long_help = EXAMPLES)]
pub struct Args {
    /// The configuration file. Without it ./firedrill.toml is read if there is one, else the environment alone
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Check the configuration, say every problem with its line, and exit
    #[arg(long)]
    pub check: bool,

    /// Describe every configuration key, its default, its rule and its environment variable, and exit
    #[arg(long)]
    pub keys: bool,

    /// Where the rows of an issuance are kept: an SQLite file, made if it is not there; :memory: keeps none
    #[arg(long, env = "FIREDRILL_STORE", default_value = "firedrill.db", value_name = "FILE")]
    pub store: PathBuf,

    /// How log lines look
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub log_format: LogFormat,

    /// What is logged: a level, or levels by module, such as info,firedrill_runtime=debug
    #[arg(long, env = "RUST_LOG", default_value = "info", value_name = "FILTER")]
    pub log: String,
}

/// How log lines look. They go to standard error either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

const EXAMPLES: &str = "\
A smallest configuration (--keys describes every key):
  [cluster]
  enabled = true
  secret = \"at least sixteen bytes\"   # better: FIREDRILL_CLUSTER__SECRET
  bind_addr = \"127.0.0.1:7946\"
  seed_peers = [\"127.0.0.1:7947\"]     # whom to contact first; one direction is enough
  [server]
  bind_addr = \"127.0.0.1:3000\"

Two nodes in two terminals, by environment alone:
  export FIREDRILL_CLUSTER__ENABLED=true
  export FIREDRILL_CLUSTER__SECRET=dev-only-secret-change-me

  FIREDRILL_CLUSTER__NODE_ID=node-a FIREDRILL_CLUSTER__BIND_ADDR=127.0.0.1:7946 \\
  FIREDRILL_SERVER__BIND_ADDR=127.0.0.1:3000 firedrilld

  FIREDRILL_CLUSTER__NODE_ID=node-b FIREDRILL_CLUSTER__SEED_PEERS=127.0.0.1:7946 \\
  FIREDRILL_SERVER__BIND_ADDR=127.0.0.1:3001 firedrilld

  curl -X POST localhost:3000/counters/sightings
  curl localhost:3001/counters/sightings

SIGTERM or Ctrl-C stops gracefully: requests drain, then the node leaves and its
peers drop it at once. A second one cuts the draining short.

Exit codes:
  0  stopped as asked
  1  could not start or run, such as a port in use
  2  bad usage or configuration";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }
}
