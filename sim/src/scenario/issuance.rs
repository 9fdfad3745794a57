//! Facts about the issuance: lease, role, decision, audit.

use std::str::FromStr as _;

use firedrill_core::issuance::decimal::Decimal;
use firedrill_core::issuance::election::Decision;
use firedrill_core::issuance::window::Epoch;

use super::catalog::{self, AUDIT_FIGURES, Kind, ROLES};
use super::document::{Entry, Value};
use super::facts::{on, one_bound};
use super::fields::{self, Fields, suggestion};
use super::model::{AuditFigure, Bound, Fact, Span};
use super::report::Problems;
use super::scope::Scope;

/// The decision that names a successor.
const SUCCESSOR_IS: &str = "successor_is";

/// Reports that a word speaks of issuance where no host takes part in it; whether it is so.
pub(super) fn is_missing(word: &str, span: Span, scope: &Scope<'_>, problems: &mut Problems) -> bool {
    let missing = !scope.issuance;
    if missing {
        problems
            .add(span, format!("`{word}` is about issuance, and no host has any"), "nobody to ask")
            .help("add [config.issuance] with issuer = \"a\", or whoever is to seal first");
    }
    missing
}

/// `{ holder = "b", epoch = 1 }`.
pub(super) fn lease(entry: &Entry, scope: &Scope<'_>, problems: &mut Problems) -> Option<Fact> {
    let table = fields::entry_table(entry, Kind::Table(catalog::LEASE), problems)?;
    let fields = Fields::open(table, catalog::LEASE, "`lease`", entry.key_span, problems);
    let on = on(&fields, scope, problems);
    let epoch = fields.count("epoch", problems).map(Epoch);
    let holder = match fields.entry("holder") {
        Some(holder) => {
            let name = fields::text(holder, Kind::Host, problems)?;
            Some(scope.id(scope.host(name, holder.node.span, problems)?)?)
        }
        None => None,
    };
    if fields.entry("holder").is_none() && fields.entry("epoch").is_none() {
        problems
            .add(entry.key_span, "`lease` says nothing about the lease", "neither `holder` nor `epoch`")
            .help("write for example: lease = { holder = \"b\", epoch = 1 }");
        return None;
    }
    (fields.entry("epoch").is_none() || epoch.is_some()).then_some(())?;
    Some(Fact::Lease { on: on?, holder, epoch })
}

/// `{ on = "a", is = "replica" }`.
pub(super) fn role(entry: &Entry, scope: &Scope<'_>, problems: &mut Problems) -> Option<Fact> {
    let table = fields::entry_table(entry, Kind::Table(catalog::ROLE), problems)?;
    let fields = Fields::open(table, catalog::ROLE, "`role`", entry.key_span, problems);
    let on = on(&fields, scope, problems);
    let is = fields.choice("is", problems).and_then(|word| ROLES.get(word)).copied();
    Some(Fact::Role { on: on?, is: is? })
}

/// `{ on = "c", is = "successor_is_b" }`; the successor by the name of its host.
pub(super) fn decision(entry: &Entry, scope: &Scope<'_>, problems: &mut Problems) -> Option<Fact> {
    let table = fields::entry_table(entry, Kind::Table(catalog::DECISION), problems)?;
    let fields = Fields::open(table, catalog::DECISION, "`decision`", entry.key_span, problems);
    let on = on(&fields, scope, problems);
    let word = fields.text("is", problems)?;
    let span = fields.entry("is")?.node.span;
    let successor = word.strip_prefix(SUCCESSOR_IS).and_then(|rest| rest.strip_prefix('_'));
    let (name, successor) = match successor {
        Some(host) => (SUCCESSOR_IS, Some(scope.id(scope.host(host, span, problems)?)?)),
        None => (word, None),
    };
    let known = || Decision::NAMES.into_iter();
    let decision = known().position(|known| known == name);
    if decision.is_none() {
        problems.add(span, format!("no election decides `{word}`"), "no such decision").help(suggestion(
            word,
            known,
            "the decisions",
        ));
    }
    Some(Fact::Decision { on: on?, decision: decision?, successor })
}

/// `{ figure = "under_issued", at_most = 54 }`.
pub(super) fn audit(entry: &Entry, scope: &Scope<'_>, problems: &mut Problems) -> Option<Fact> {
    let table = fields::entry_table(entry, Kind::Table(catalog::AUDIT), problems)?;
    let fields = Fields::open(table, catalog::AUDIT, "`audit`", entry.key_span, problems);
    let on = on(&fields, scope, problems);
    let figure = fields.choice("figure", problems).and_then(|word| AUDIT_FIGURES.get(word)).copied();
    let given = one_bound(&fields, "audit", entry.key_span, problems)?;
    let value = reading(given, figure?, problems)?;
    let value = match given.key.as_str() {
        "at_least" => Bound::AtLeast(value),
        "at_most" => Bound::AtMost(value),
        _ => Bound::Equals(value),
    };
    Some(Fact::Audit { on: on?, figure: figure?, value })
}

/// A count, or an amount as its twelfth places.
fn reading(entry: &Entry, figure: AuditFigure, problems: &mut Problems) -> Option<u64> {
    match &entry.node.value {
        Value::Text(text) if figure.is_amount() => {
            let amount = Decimal::from_str(text).map_err(|error| error.to_string());
            let places = amount.and_then(|amount| {
                u64::try_from(amount.units()).map_err(|_| "it is too large to be compared".to_owned())
            });
            match places {
                Ok(places) => Some(places),
                Err(why) => {
                    fields::wrong(entry, Kind::NumberOrAmount, &why, problems);
                    None
                }
            }
        }
        Value::Text(_) => {
            let what = format!("`{}` counts, it is no amount", catalog::figure_name(figure));
            problems.add(entry.node.span, what, "an amount").help("write a whole number, without quotes");
            None
        }
        Value::Int(number) => {
            let places = if figure.is_amount() { Decimal::ONE.units() } else { 1 };
            let count = number
                .and_then(|number| u128::try_from(number).ok())
                .and_then(|number| number.checked_mul(places));
            let count = count.and_then(|count| u64::try_from(count).ok());
            if count.is_none() {
                let what = format!("`{}` is out of range", entry.key);
                problems.add(entry.node.span, what, "must be 0 or more, and not beyond 64 bits");
            }
            count
        }
        Value::Float(_) | Value::Bool(_) | Value::Date | Value::List(_) | Value::Table(_) => {
            fields::mistyped(entry, Kind::NumberOrAmount, problems);
            None
        }
    }
}
