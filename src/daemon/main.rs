//! `firedrilld`: parse, call, exit code.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use firedrill_daemon::args::{Args, LogFormat};
use firedrill_daemon::{serve, settings};
use tracing_subscriber::EnvFilter;

/// Could not start, or stopped unasked.
const FAILED: u8 = 1;
/// Bad usage or configuration; clap uses it too.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    if args.keys {
        return answer(&settings::reference());
    }
    let settings = match settings::load(args.config.as_deref(), std::env::vars_os()) {
        Ok(settings) => settings,
        Err(error) => return complain(&error, USAGE),
    };
    let filter = match EnvFilter::try_new(&args.log) {
        Ok(filter) => filter,
        Err(error) => return complain(&format_args!("--log {:?}: {error}; such as info", args.log), USAGE),
    };
    if args.check {
        return answer(&format!("{}: the configuration is valid\n", settings.source_name));
    }
    start_logging(args.log_format, filter);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&format_args!("cannot start the async runtime: {error}"), FAILED),
    };
    match runtime.block_on(serve::serve(&settings.config, &args.store)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error, FAILED),
    }
}

/// Prints what was asked for.
fn answer(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has read enough, as in `firedrilld --keys | head`.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => complain(&format_args!("cannot write the answer: {error}"), FAILED),
    }
}

fn complain(error: &dyn std::fmt::Display, code: u8) -> ExitCode {
    #[expect(clippy::print_stderr, reason = "before logging starts, and for people who read no logs")]
    {
        eprintln!("firedrilld: {error}");
    }
    ExitCode::from(code)
}

fn start_logging(format: LogFormat, filter: EnvFilter) {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().init(),
    }
}
