//! The command `firedrill`: parse, call, exit code. The only place that prints.
//!
//! Absent: anything that decides; all of it is in [`command`].

mod command;

use std::process::ExitCode;

use anstream::AutoStream;

fn main() -> ExitCode {
    let mut out = AutoStream::auto(std::io::stdout().lock());
    // Not locked: a panic on a drill's thread has to be able to say so.
    let mut err = AutoStream::auto(std::io::stderr());
    command::main(std::env::args_os(), &mut out, &mut err).into()
}
