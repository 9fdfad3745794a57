//! `firedrill merge`: the reports of shards become the report of their campaign.
//!
//! It ends as one machine would have ended that played every seed. A shard that is not there is not a failure of the
//! cluster, and not a pass either: what it would have found is unknown, so the command ends like a campaign that
//! missed a goal. A shard that stopped early, because its time was up, is there and is told.
//!
//! What a shard judged by itself stays judged: a seed that was a hundred times as busy as the median of its shard is a
//! failure of the campaign too, whatever the median of all shards is. The merge adds to that and takes nothing back.
//!
//! Absent: playing, and changing the reports. A report that cannot be merged is refused whole, with what to do.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use firedrill_sim::fuzz::Report;
use firedrill_sim::fuzz::report::{FORMAT, MergeError};
use serde::Deserialize;

use super::ci::{
    self,
    campaign::{Demand, Kept},
};
use super::cli::{Format, MergeArgs};
use super::exit::Exit;
use super::terminal_cells;
use super::text::campaign::Page;
use super::text::style::{BAD, paint};

/// Reads, merges, tells.
pub(crate) fn merge(args: &MergeArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let report = match read_all(&args.files).and_then(merged) {
        Ok(report) => report,
        Err(refused) => {
            writeln!(err, "{}: {refused}", paint(BAD, "error"))?;
            return Ok(Exit::Invalid);
        }
    };
    let (demand, lost) = (Demand::EveryShard, BTreeSet::new());
    let kept = Kept { folder: &args.kept.to_string_lossy(), lost: &lost };
    let results = ci::campaign::results(&report, demand, kept);
    match args.format {
        // The files of failures are where the shards ran, not here.
        Format::Text => {
            write!(out, "{}", Page { report: &report, demand, kept: None, cells: terminal_cells() })?;
        }
        Format::Json => {
            serde_json::to_writer(&mut *out, &report)?;
            writeln!(out)?;
        }
        format @ (Format::Junit | Format::Sarif | Format::Github) => ci::write(format, &results, out)?,
    }
    ci::append_summary(&results, err)?;
    if let Some(missing) = ci::campaign::missing(&report) {
        writeln!(err, "{}: {missing}", paint(BAD, "incomplete"))?;
    }
    Ok(results.exit)
}

/// A report and where it was read.
#[derive(Debug)]
struct Read {
    path: PathBuf,
    report: Report,
}

/// Why there is nothing to tell: what, where, and what to do.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("{} cannot be read: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error(
        "{} is empty: its shard ended before it could write a report. Leave the file out to merge the others; \
         the shard is then told as missing", path.display()
    )]
    Empty { path: PathBuf },
    #[error(
        "{} is not the report of a campaign: {error}. `firedrill fuzz --format json` writes one to its standard \
         output",
        path.display()
    )]
    NotAReport { path: PathBuf, error: serde_json::Error },
    #[error(
        "{} has format {format}, and this firedrill reads format {FORMAT}: merge it with the version that wrote it{}",
        path.display(), version.as_ref().map_or_else(String::new, |version| format!(", {version}"))
    )]
    OtherFormat { path: PathBuf, format: u32, version: Option<String> },
    #[error(
        "shard {shard} is there twice, in {} and in {}: give the report of each shard once",
        one.display(), other.display()
    )]
    Twice { shard: String, one: PathBuf, other: PathBuf },
    #[error(
        "{} and {} are not of one campaign: {what} is {here} in the first and {there} in the other. Merge only \
         reports that were written by one version with the same options", one.display(), other.display()
    )]
    Differs { one: PathBuf, other: PathBuf, what: &'static str, here: String, there: String },
    #[error("{0}")]
    Other(MergeError),
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<Read>, Refused> {
    paths.iter().map(|path| Ok(Read { path: path.clone(), report: read(path)? })).collect()
}

/// What every version of a report begins with.
#[derive(Deserialize)]
struct Header {
    format: u32,
    version: Option<String>,
}

fn read(path: &Path) -> Result<Report, Refused> {
    let path = path.to_path_buf();
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return Err(Refused::Unreadable { path, error }),
    };
    if text.trim().is_empty() {
        return Err(Refused::Empty { path });
    }
    match serde_json::from_str::<Header>(&text) {
        Ok(Header { format: FORMAT, .. }) => {}
        Ok(Header { format, version }) => return Err(Refused::OtherFormat { path, format, version }),
        Err(error) => return Err(Refused::NotAReport { path, error }),
    }
    serde_json::from_str(&text).map_err(|error| Refused::NotAReport { path, error })
}

fn merged(reads: Vec<Read>) -> Result<Report, Refused> {
    match Report::merge(reads.iter().map(|read| read.report.clone())) {
        Ok(report) => Ok(report),
        Err(error) => Err(blame(error, &reads)),
    }
}

/// Finds the two files that do not go together.
fn blame(error: MergeError, reads: &[Read]) -> Refused {
    for (index, other) in reads.iter().enumerate() {
        for one in &reads[..index] {
            let (path, other_path) = (one.path.clone(), other.path.clone());
            match Report::merge([one.report.clone(), other.report.clone()]) {
                Ok(_) | Err(MergeError::Nothing) => {}
                Err(MergeError::Twice { shard }) => {
                    return Refused::Twice { shard: shard.to_string(), one: path, other: other_path };
                }
                Err(MergeError::Differs { what, one: here, other: there }) => {
                    return Refused::Differs { one: path, other: other_path, what, here, there };
                }
            }
        }
    }
    Refused::Other(error)
}
