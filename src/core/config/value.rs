//! One value, from the type it has in a file or the environment to the type it should have.
//!
//! A rule that concerns one value alone is checked here; what relates two of them is in `read`.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::num::IntErrorKind;
use core::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::{Secret, nearest};
use crate::id::{NameError, NodeId};
use crate::issuance::decimal::Decimal;

/// Most characters of a value that a message quotes.
const EXCERPT_CHARS_MAX: usize = 60;

/// A value as somebody wrote it.
#[derive(Clone, Copy)]
pub(super) enum Given<'a> {
    Toml(&'a Spanned<DeValue<'a>>),
    Env(&'a str),
}

/// What is wrong with a value, as the rest of a sentence that begins with its key.
pub(super) struct Fault {
    /// Which entry of a list.
    pub(super) index: Option<usize>,
    /// The entry's bytes, where it has some of its own.
    pub(super) span: Option<Range<usize>>,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Fault {
    fn new(message: String, help: Option<&str>) -> Self {
        Self { index: None, span: None, message, help: help.map(ToOwned::to_owned) }
    }
}

pub(super) type Parsed<T> = Result<T, Vec<Fault>>;

fn refuse<T>(message: String, help: Option<&str>) -> Parsed<T> {
    Err(Vec::from([Fault::new(message, help)]))
}

pub(super) fn boolean(given: Given<'_>) -> Parsed<bool> {
    const EXPECTED: &str = "must be true or false";
    match given {
        Given::Env("true") => Ok(true),
        Given::Env("false") => Ok(false),
        Given::Env(text) => refuse(format!("{EXPECTED}, not {}", quoted(text)), None),
        Given::Toml(value) => match value.get_ref().as_bool() {
            Some(value) => Ok(value),
            None => wrong_type(EXPECTED, value.get_ref(), bare_hint(value.get_ref())),
        },
    }
}

/// A whole number from `min` to `u64::MAX`; `why` gives the reason for the lower bound.
pub(super) fn integer(given: Given<'_>, min: u64, why: &str) -> Parsed<u64> {
    const EXPECTED: &str = "must be a whole number";
    let (shown, parsed) = match given {
        Given::Env(text) => (text.to_owned(), text.parse::<i128>()),
        Given::Toml(value) => match value.get_ref().as_integer() {
            Some(number) => (number.to_string(), i128::from_str_radix(number.as_str(), number.radix())),
            None => return wrong_type(EXPECTED, value.get_ref(), bare_hint(value.get_ref())),
        },
    };
    match parsed.map_err(|error| *error.kind()) {
        Ok(number) if number < 0 => below(&shown, min),
        Ok(number) => match u64::try_from(number) {
            Ok(number) if number < min => {
                let help = format!("give {min} or more");
                refuse(format!("is {number}, but at least {min} is needed: {why}"), Some(&help))
            }
            Ok(number) => Ok(number),
            Err(_) => above(&shown),
        },
        Err(IntErrorKind::PosOverflow) => above(&shown),
        Err(IntErrorKind::NegOverflow) => below(&shown, min),
        Err(_) => refuse(format!("{EXPECTED}, not {}", quoted(&shown)), None),
    }
}

fn below<T>(shown: &str, min: u64) -> Parsed<T> {
    let help = format!("give {min} or more");
    refuse(format!("is {}, but must not be negative: at least {min} is needed", excerpt(shown)), Some(&help))
}

fn above<T>(shown: &str) -> Parsed<T> {
    refuse(format!("is {}, but at most {} fits 64 bits", excerpt(shown), u64::MAX), None)
}

/// The secret: any string. Its length matters only when the cluster is enabled, which is a relation.
pub(super) fn secret(given: Given<'_>) -> Parsed<Secret> {
    match given {
        Given::Env(text) => Ok(Secret::new(text)),
        Given::Toml(value) => match value.get_ref().as_str() {
            Some(text) => Ok(Secret::new(text)),
            None => {
                let found = value.get_ref().type_str();
                let message = format!("must be a string, but is of type {found} (its value is not shown)");
                refuse(message, Some("put it in double quotes"))
            }
        },
    }
}

/// A name, checked by the type it becomes.
pub(super) fn name<T>(given: Given<'_>, new: fn(&str) -> Result<T, NameError>) -> Parsed<T> {
    named(text(given, NAME_EXPECTED)?, new).map_err(single)
}

const NAME_EXPECTED: &str = "must be a string";

fn named<T>(text: &str, new: fn(&str) -> Result<T, NameError>) -> Result<T, Fault> {
    let help = "choose a plain name, such as web-1 or eu-staging";
    new(text).map_err(|error| Fault::new(format!("{} {error}", quoted(text)), Some(help)))
}

/// An address to listen at.
pub(super) fn listen_addr(given: Given<'_>) -> Parsed<SocketAddr> {
    address(text(given, ADDRESS_EXPECTED)?).map_err(single)
}

/// An address that others dial.
pub(super) fn dial_addr(given: Given<'_>) -> Parsed<SocketAddr> {
    dialable(text(given, ADDRESS_EXPECTED)?).map_err(single)
}

/// An amount above zero, given as a string: a number of the file would have passed through a float.
pub(super) fn amount(given: Given<'_>) -> Parsed<Decimal> {
    const EXPECTED: &str = "must be a decimal in quotes, such as \"0.5\"";
    let text = match given {
        Given::Toml(value) if value.get_ref().is_integer() || value.get_ref().is_float() => {
            return wrong_type(
                EXPECTED,
                value.get_ref(),
                Some("put it in double quotes, so that it stays exact"),
            );
        }
        Given::Toml(_) | Given::Env(_) => text(given, EXPECTED)?,
    };
    match text.parse() {
        Ok(Decimal::ZERO) => refuse(format!("is {}, but must be above 0", quoted(text)), None),
        Ok(amount) => Ok(amount),
        Err(error) => refuse(format!("{} {error}", quoted(text)), None),
    }
}

/// A list of addresses to dial. Every bad entry is named by its index.
pub(super) fn dial_addrs(given: Given<'_>) -> Parsed<Vec<SocketAddr>> {
    list(given, "must be a list of addresses, such as [\"10.0.1.8:7946\"]", ADDRESS_EXPECTED, dialable)
}

/// A set of node ids, given as a list in which none stands twice. Every bad entry is named by its index.
pub(super) fn node_ids(given: Given<'_>) -> Parsed<BTreeSet<NodeId>> {
    let mut ids = BTreeSet::new();
    list(given, "must be a list of node ids, such as [\"a\", \"b\", \"c\"]", NAME_EXPECTED, |text| {
        let id = named(text, NodeId::new)?;
        if ids.insert(id) {
            Ok(())
        } else {
            Err(Fault::new(format!("names {} again", quoted(text)), Some("name each node once")))
        }
    })?;
    Ok(ids)
}

/// A list, each entry a string that `parse` takes.
fn list<T>(
    given: Given<'_>,
    expected: &str,
    entry_expected: &str,
    mut parse: impl FnMut(&str) -> Result<T, Fault>,
) -> Parsed<Vec<T>> {
    let mut entries = Vec::new();
    let mut faults = Vec::new();
    let mut take = |span: Option<Range<usize>>, entry: Result<T, Fault>| match entry {
        Ok(entry) => entries.push(entry),
        Err(fault) => faults.push(Fault { index: Some(entries.len() + faults.len()), span, ..fault }),
    };
    match given {
        Given::Env(list) => list.split(',').for_each(|entry| take(None, parse(entry.trim()))),
        Given::Toml(value) => {
            let Some(array) = value.get_ref().as_array() else {
                let help = value.get_ref().is_str().then_some("put it in square brackets");
                return wrong_type(expected, value.get_ref(), help);
            };
            for entry in array {
                let wrong_type = || wrong_type_fault(entry_expected, entry.get_ref(), None);
                let text = entry.get_ref().as_str().ok_or_else(wrong_type);
                take(Some(entry.span()), text.and_then(&mut parse));
            }
        }
    }
    if faults.is_empty() { Ok(entries) } else { Err(faults) }
}

/// One of a few words.
pub(super) fn choice<T: Copy>(given: Given<'_>, words: &[(&str, T)]) -> Parsed<T> {
    let known = || words.iter().map(|(word, _)| quoted(word)).collect::<Vec<_>>().join(" or ");
    let text = text(given, &format!("must be {}", known()))?;
    match words.iter().find(|(word, _)| *word == text) {
        Some((_, meaning)) => Ok(*meaning),
        None => {
            let near = nearest(text, words.iter().map(|(word, _)| *word));
            let help = near.map(|near| format!("did you mean {}?", quoted(near)));
            refuse(format!("must be {}, not {}", known(), quoted(text)), help.as_deref())
        }
    }
}

/// Whether an address stands for every address of a host, IPv4 written as IPv6 included.
pub(super) fn is_wildcard(addr: SocketAddr) -> bool {
    addr.ip().to_canonical().is_unspecified()
}

const ADDRESS_EXPECTED: &str = "must be an address such as \"10.0.1.7:7946\"";

fn dialable(text: &str) -> Result<SocketAddr, Fault> {
    let addr = address(text)?;
    let why = match (is_wildcard(addr), addr.port() == 0) {
        (false, false) => return Ok(addr),
        (true, false) => "is a wildcard, which no peer can dial",
        (false, true) => "has port 0, which no peer can dial",
        (true, true) => "is a wildcard with port 0; no peer can dial either",
    };
    let help = "give the address and port at which the node listens as others see it, such as 10.0.1.7:7946";
    Err(Fault::new(format!("{} {why}", quoted(text)), Some(help)))
}

fn address(text: &str) -> Result<SocketAddr, Fault> {
    text.parse()
        .map_err(|_| Fault::new(format!("{ADDRESS_EXPECTED}, not {}", quoted(text)), address_hint(text)))
}

/// What is likely wrong with a text that is no address.
fn address_hint(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("remove what is empty, or give an IP address and a port");
    }
    if text.parse::<IpAddr>().is_ok() {
        return Some("add a port, such as :7946 (an IPv6 address goes in square brackets before it)");
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let bare_ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    if bare_ip && port.parse::<u16>().is_err() {
        Some("the port must be a number from 0 to 65535")
    } else if bare_ip {
        Some("an IPv6 address goes in square brackets, such as [::1]:7946")
    } else if host.contains(|c: char| c.is_ascii_alphabetic()) {
        Some("host names are not resolved: give the IP address")
    } else {
        None
    }
}

fn text<'a>(given: Given<'a>, expected: &str) -> Parsed<&'a str> {
    match given {
        Given::Env(text) => Ok(text),
        Given::Toml(value) => match value.get_ref().as_str() {
            Some(text) => Ok(text),
            None => wrong_type(expected, value.get_ref(), None),
        },
    }
}

fn wrong_type<T>(expected: &str, value: &DeValue<'_>, help: Option<&str>) -> Parsed<T> {
    Err(single(wrong_type_fault(expected, value, help)))
}

fn wrong_type_fault(expected: &str, value: &DeValue<'_>, help: Option<&str>) -> Fault {
    Fault::new(format!("{expected}, but is {}", found(value)), help)
}

fn single(fault: Fault) -> Vec<Fault> {
    Vec::from([fault])
}

fn bare_hint(value: &DeValue<'_>) -> Option<&'static str> {
    value.is_str().then_some("write it without quotes")
}

/// The type of a value, and the value where it fits a line. Never for a secret.
fn found(value: &DeValue<'_>) -> String {
    let shown = match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => excerpt(&number.to_string()),
        DeValue::Float(number) => excerpt(number.as_str()),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(value) => value.to_string(),
        DeValue::Array(_) => return "a list".to_owned(),
        DeValue::Table(_) => return "a table".to_owned(),
    };
    format!("the {} {shown}", value.type_str())
}

/// A text in quotes, with control characters escaped and a long end cut off.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{:?}... ({} bytes)", &text[..end], text.len()),
        None => format!("{text:?}"),
    }
}

/// A number as it was written, with a long end cut off.
fn excerpt(number: &str) -> String {
    match number.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &number[..end]),
        None => number.to_owned(),
    }
}
