//! What must be true of the issuance once the cluster has settled, and whether it is: one lease, one spine, and
//! somebody who issues.
//!
//! An issuer is demanded where one can be: with failover, wherever a node that may issue has heard of another such
//! since its boot; without, where the configured issuer runs. Not demanded: on an empty spine without the configured
//! issuer, without a majority of the electorate where a fence wants one, where an operator paused a node, where
//! nodes are configured differently, and where clocks are not sane: they differ by more than half of `silence_z`, or
//! the tip is ahead of them all.
//!
//! Spec: docs/issuance.md, Election; What partitions do.

use std::time::Duration;

use firedrill_core::config::{Fencing, IssuanceConfig};
use firedrill_core::issuance::row::{Lease, Stamped};
use firedrill_core::issuance::spine::Spine;
use firedrill_core::issuance::window::{Window, Z};
use firedrill_core::time::{Instant, micros};

use super::books::{Account, Books};
use super::world::World;
use super::{Broken, clock};
use crate::scenario::model::HostIx;

/// Slack on top of a pull for what lies between a row that is durable here and durable there: two frames, two disks.
const PULL_SLACK: Duration = Duration::from_secs(2);
/// Windows that may pass until the next row is durable.
const WINDOWS_BETWEEN_ROWS: u64 = 3;

type Verdict = Result<(), Box<Broken>>;

/// How the three demands fare.
#[derive(Debug, Clone)]
pub struct Closing {
    /// One lease.
    pub leases: Verdict,
    /// One spine.
    pub spines: Verdict,
    /// Somebody issues.
    pub seals: Verdict,
}

impl Closing {
    /// Nothing is demanded where no node issues.
    pub const NOTHING: Self = Self { leases: Ok(()), spines: Ok(()), seals: Ok(()) };
}

/// A host that takes part, with what it holds.
type Member<'a> = (HostIx, &'a Account, &'a IssuanceConfig);

/// The hosts that run an issuance and are neither held nor leaving.
fn members<'a>(world: &'a World, books: &'a Books) -> Vec<Member<'a>> {
    let hosts = world.hosts().iter().enumerate();
    let takes_part =
        hosts.filter(|(_, host)| host.running().is_some() && host.paused_since.is_none() && !host.departs);
    let account = |position| {
        let account = books.account(HostIx(position));
        account.config.as_ref().map(|config| (HostIx(position), account, config))
    };
    takes_part.filter_map(|(position, _)| account(position)).collect()
}

/// Whether the cluster has settled as far as its issuance goes; cheap, asked again and again.
///
/// # Errors
/// Who contradicts whom.
pub fn settled(world: &World, books: &Books, at: Instant) -> Verdict {
    let members = members(world, books);
    leases(world, &members)?;
    seals(world, &members, at)?;
    rows(world, books, &members, at)
}

/// The verdict of the end, over whole spines.
pub fn close(world: &World, books: &Books, at: Instant, spines: &[Option<Spine>]) -> Closing {
    let members = members(world, books);
    Closing {
        leases: leases(world, &members),
        seals: seals(world, &members, at),
        spines: rows(world, books, &members, at).and_then(|()| winners(world, &members, at, spines)),
    }
}

/// Every node names one lease.
fn leases(world: &World, members: &[Member<'_>]) -> Verdict {
    let Some(((first, reference, _), others)) = members.split_first() else { return Ok(()) };
    let Some((host, account, _)) =
        others.iter().find(|(_, account, _)| account.told_lease != reference.told_lease)
    else {
        return Ok(());
    };
    let tell = |host: HostIx, lease: &Option<Lease>| match lease {
        Some(Lease { epoch, holder }) => {
            format!("{} takes {holder} for the holder of epoch {epoch}", world.name(host))
        }
        None => format!("{} knows of no lease", world.name(host)),
    };
    Err(Broken::new(
        vec![world.name(*first).to_owned(), world.name(*host).to_owned()],
        tell(*first, &reference.told_lease),
        tell(*host, &account.told_lease),
    ))
}

/// Somebody issues, where that can be demanded.
fn seals(world: &World, members: &[Member<'_>], at: Instant) -> Verdict {
    if !is_due(world, members) {
        return Ok(());
    }
    let recently = |(_, account, config): &&Member<'_>| {
        let pace = Z(config.width.saturating_mul(WINDOWS_BETWEEN_ROWS)).duration();
        account.sealed_at.is_some_and(|sealed| sealed.after(pace.saturating_add(PULL_SLACK)) >= at)
    };
    if members.iter().filter(|(_, account, _)| account.issues).any(|member| recently(&member)) {
        return Ok(());
    }
    let last = members.iter().filter_map(|(_, account, _)| account.sealed_at).max();
    let issuers = members.iter().filter(|(_, account, _)| account.issues);
    let issuers: Vec<&str> = issuers.map(|(host, ..)| world.name(*host)).collect();
    Err(Broken::new(
        members.iter().map(|(host, ..)| world.name(*host).to_owned()).collect(),
        match last {
            Some(last) => format!("at {} nobody has sealed since {}", clock(at), clock(last)),
            None => format!("at {} nobody that runs has sealed anything", clock(at)),
        },
        match issuers.is_empty() {
            true => String::from("a node that may be elected runs, and nobody is issuer"),
            false => format!("the role of {} is issuer", issuers.join(" and ")),
        },
    ))
}

/// Whether an issuer can be demanded.
fn is_due(world: &World, members: &[Member<'_>]) -> bool {
    let Some((_, _, config)) = members.first() else { return false };
    let alike = |other: &IssuanceConfig| {
        (&other.issuer, &other.eligible, other.width, other.genesis_ms, other.fencing, other.failover)
            == (
                &config.issuer,
                &config.eligible,
                config.width,
                config.genesis_ms,
                config.fencing,
                config.failover,
            )
    };
    let id = |host: HostIx| &world.host(host).facts.id;
    let configured_runs = members.iter().any(|(host, ..)| *id(*host) == config.issuer);
    let tip = members.iter().filter_map(|(_, account, _)| account.tip).max();
    if !members.iter().all(|(_, _, other)| alike(other))
        || members.iter().any(|(_, account, _)| account.paused)
    {
        return false;
    }
    if !clocks_sane(members, tip) {
        return false;
    }
    let may = |id| config.eligible.is_empty() || config.eligible.contains(id);
    let supported = members.iter().filter(|(host, ..)| config.eligible.contains(id(*host))).count();
    if config.fencing == Fencing::Majority && supported * 2 <= config.eligible.len() {
        return false;
    }
    if !config.failover || tip.is_none() {
        return configured_runs;
    }
    members.iter().any(|(host, account, _)| {
        may(id(*host)) && account.heard.iter().any(|other| other != id(*host) && may(other))
    })
}

/// Whether nobody's clock keeps it from sealing.
fn clocks_sane(members: &[Member<'_>], tip: Option<Window>) -> bool {
    let walls = || members.iter().map(|(_, account, _)| account.wall_off_us);
    let (Some(least), Some(most)) = (walls().min(), walls().max()) else { return false };
    let silence = members.iter().map(|(_, _, config)| config.silence_z.duration()).min().unwrap_or_default();
    let apart = u128::from(most.abs_diff(least));
    let now = members.iter().map(|(_, account, _)| account.window).min().flatten();
    apart <= u128::from(micros(silence) / 2)
        && now.is_some()
        && tip <= members.iter().map(|(_, account, _)| account.window).max().flatten()
}

/// The tip of one pull ago: what was sealed by then is everywhere by now.
fn tip_of_one_pull_ago(world: &World, members: &[Member<'_>], at: Instant) -> Option<Window> {
    let pull =
        members.iter().map(|(host, _, config)| world.host(*host).true_time(config.pull_z.duration())).max();
    let frames = world.frame_delay_max().saturating_mul(2);
    let ago = pull.unwrap_or_default().saturating_add(frames).saturating_add(PULL_SLACK);
    // Of those that run: what a dead node alone knew is nobody's.
    let then = Instant::from_micros(at.as_micros().saturating_sub(micros(ago)));
    members.iter().filter_map(|(_, account, _)| account.tip_at(then)).max()
}

/// Every node has every row up to there that any of them has.
fn rows(world: &World, books: &Books, members: &[Member<'_>], at: Instant) -> Verdict {
    let Some(tip) = tip_of_one_pull_ago(world, members, at) else { return Ok(()) };
    for (number, stream) in books.streams().iter().enumerate() {
        let below = stream.rows.partition_point(|row| row.window <= tip);
        let durable = |(_, account, _): &&Member<'_>| account.of(number).1;
        let Some(most) = members.iter().max_by_key(durable) else { return Ok(()) };
        let wanted = durable(&most).min(below);
        if let Some(lacks) = members.iter().find(|member| durable(member) < wanted) {
            let (has, lacking) = (world.name(most.0), world.name(lacks.0));
            return Err(Broken::new(
                vec![lacking.to_owned(), has.to_owned()],
                format!("{lacking} has {} rows of {}", durable(&lacks), stream.origin),
                format!("{has} has {wanted} up to window {tip}, the tip of one pull ago"),
            ));
        }
    }
    Ok(())
}

/// On every node the same rows count and the same have lost, up to there.
fn winners(world: &World, members: &[Member<'_>], at: Instant, spines: &[Option<Spine>]) -> Verdict {
    let Some(tip) = tip_of_one_pull_ago(world, members, at) else { return Ok(()) };
    let spine = |host: HostIx| spines.get(host.0).and_then(Option::as_ref);
    let counted = |spine: &Spine| -> Vec<Stamped> {
        spine.winners().take_while(|entry| entry.row.window <= tip).map(|entry| entry.to_stamped()).collect()
    };
    let lost = |spine: &Spine| -> Vec<Stamped> {
        let lost = spine.superseded().filter(|entry| entry.row.window <= tip);
        lost.map(|entry| entry.to_stamped()).collect()
    };
    let mut spines = members.iter().filter_map(|(host, ..)| Some((*host, spine(*host)?)));
    let Some((first, reference)) = spines.next() else { return Ok(()) };
    let (theirs, their_lost) = (counted(reference), lost(reference));
    for (host, spine) in spines {
        for (what, one, other) in
            [("counts", &theirs, counted(spine)), ("has lost", &their_lost, lost(spine))]
        {
            let place = one.iter().zip(&other).position(|(one, other)| one != other);
            let Some(place) =
                place.or_else(|| (one.len() != other.len()).then(|| one.len().min(other.len())))
            else {
                continue;
            };
            let tell = |host: HostIx, rows: &[Stamped]| match rows.get(place) {
                Some(Stamped { origin, seq, row }) => {
                    format!(
                        "{} {what} number {} of {origin} at window {}",
                        world.name(host),
                        seq.0,
                        row.window
                    )
                }
                None => format!("{} {what} nothing more up to window {tip}", world.name(host)),
            };
            return Err(Broken::new(
                vec![world.name(first).to_owned(), world.name(host).to_owned()],
                tell(first, one),
                tell(host, &other),
            ));
        }
    }
    Ok(())
}
