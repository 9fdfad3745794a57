//! All rows that one node knows: streams without gaps, one winner a window, and the lease they fold into.
//!
//! Rows arrive in the order of their stream ([`Spine::take`]) and count for the fold at once; they become durable
//! later, as a prefix of their stream ([`Spine::persisted`]), and only then win or lose their window, are shown,
//! sent on or audited. A node's own row enters when it is durable already.
//!
//! # Invariants
//! - A stream has no gap: row `n` of an origin is held only with all below it. Cursors never skip.
//! - Fold and winners depend on the set of rows alone, not on the order or the number of their arrivals.
//! - A row is never dropped. The loser of a window is replicated as any other and never counted.
//!
//! # Cost
//! The fold is kept, never computed. A durable row costs about 170 bytes: 112 for itself, 8 in its stream, 50 as
//! the winner of its window. A day of one-tick windows with a row each is 111,000 rows or 19 MB.
//!
//! Absent: a node's own rows in flight to the disk, the disk, and any bound: rows are money and are never
//! forgotten, and each boot that seals adds an origin.
//!
//! Spec: docs/issuance.md, Rows; Lease; Merge of rows; Replication.

#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, btree_map};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use super::row::Lease;
use super::row::{Origin, Row, Stamped};
use super::window::Window;
use crate::id::{Incarnation, NodeId, Seq};

/// The rules that make all spines equal, as switches: a simulation may turn one off to see what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Of two rows for one window the better one wins, not the one that came first.
    pub merged: bool,
    /// Within an epoch the lowest issuer holds the lease, not the one that stamped the highest window.
    pub lowest_holds: bool,
}

impl Rules {
    /// The protocol.
    pub const ON: Self = Self { merged: true, lowest_holds: true };
}

/// What the known rows add up to: who may seal, and up to where was sealed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fold {
    /// The highest epoch of any row, held by the lowest of its issuers; legacy rows carry none.
    pub lease: Option<Lease>,
    /// The highest window of any row of any epoch.
    pub tip: Option<Window>,
    /// The highest window that the holder stamped in its epoch.
    pub sealed_to: Option<Window>,
}

impl Fold {
    /// Adds a row. The order of additions does not matter, nor does repetition.
    pub fn add(&mut self, row: &Row) {
        self.add_by(Rules::ON, row);
    }

    fn add_by(&mut self, rules: Rules, row: &Row) {
        self.tip = self.tip.max(Some(row.window));
        let Some(lease) = &row.lease else { return };
        let moves = match &self.lease {
            None => true,
            Some(held) if lease.epoch != held.epoch => lease.epoch > held.epoch,
            Some(held) if lease.holder == held.holder => {
                self.sealed_to = self.sealed_to.max(Some(row.window));
                false
            }
            Some(held) if rules.lowest_holds => lease.holder < held.holder,
            Some(_) => Some(row.window) > self.sealed_to,
        };
        if moves {
            self.lease = Some(lease.clone());
            self.sealed_to = Some(row.window);
        }
    }
}

/// All rows known to one node.
#[derive(Debug, Clone)]
pub struct Spine {
    node: NodeId,
    rules: Rules,
    streams: Vec<Stream>,
    /// Where in `streams` an origin stands.
    index: BTreeMap<Origin, usize>,
    /// The durable winner of each window.
    winners: BTreeMap<Window, Place>,
    /// The durable rows that lost their window. Few, and listed alike by every node.
    superseded: BTreeMap<(Window, Origin, Seq), Place>,
    fold: Fold,
    own_tip: Option<Window>,
    durable_rows: u64,
    known_rows: u64,
    version: u64,
}

/// The rows of one origin, the first of them durable.
#[derive(Debug, Clone)]
struct Stream {
    origin: Origin,
    rows: Vec<Arc<Row>>,
    durable: usize,
}

/// A row as the position of its stream and its position there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    stream: usize,
    position: usize,
}

/// What became of rows that were offered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// New rows, in the order they were offered: they are in the fold and wait to be persisted.
    pub rows: Vec<Stamped>,
    /// Rows that were held already.
    pub held: u64,
    /// Rows ahead of their turn: an earlier one of their stream is missing.
    pub ahead: u64,
    /// Rows that contradict the one held under their number: their origin used it twice.
    pub conflicting: u64,
}

/// A row in the spine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Who wrote it, in which boot.
    pub origin: &'a Origin,
    /// Its number within that boot.
    pub seq: Seq,
    /// The row.
    pub row: &'a Arc<Row>,
    /// Whether another row won its window.
    pub superseded: bool,
}

impl Entry<'_> {
    /// The entry as it travels.
    pub fn to_stamped(self) -> Stamped {
        Stamped { origin: self.origin.clone(), seq: self.seq, row: Arc::clone(self.row) }
    }
}

impl Spine {
    /// An empty spine of `node`.
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            rules: Rules::ON,
            streams: Vec::new(),
            index: BTreeMap::new(),
            winners: BTreeMap::new(),
            superseded: BTreeMap::new(),
            fold: Fold::default(),
            own_tip: None,
            durable_rows: 0,
            known_rows: 0,
            version: 0,
        }
    }

    /// The same spine under other rules; to be called before it has rows.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The spine of `node` that `rows` from its disk make, and what could not be used: see [`Spine::recover`].
    pub fn from_rows(node: NodeId, rows: Vec<Stamped>) -> (Self, Vec<Stamped>) {
        let mut spine = Self::new(node);
        let unusable = spine.recover(rows);
        (spine, unusable)
    }

    /// Takes `rows` from disk, durable all of them, in any order. What cannot be used is handed back: rows beyond
    /// a gap in their stream, or in contradiction to another under their number.
    pub fn recover(&mut self, mut rows: Vec<Stamped>) -> Vec<Stamped> {
        rows.sort_by(|a, b| (&a.origin, a.seq).cmp(&(&b.origin, b.seq)));
        let mut unusable = Vec::new();
        for stamped in rows {
            let taken = self.take([stamped.clone()]);
            if taken.ahead + taken.conflicting > 0 {
                unusable.push(stamped);
            }
        }
        for (origin, seq) in self.cursors() {
            self.persisted(&origin, seq);
        }
        unusable
    }

    /// Takes the rows whose turn it is; they count for the fold from now on. Persist what is returned, then say so
    /// with [`Spine::persisted`].
    pub fn take(&mut self, rows: impl IntoIterator<Item = Stamped>) -> Taken {
        let mut taken = Taken::default();
        for stamped in rows {
            let held = self.index.get(&stamped.origin).map_or(&[][..], |stream| &self.streams[*stream].rows);
            let position = usize::try_from(stamped.seq.0).ok().and_then(|seq| seq.checked_sub(1));
            match position {
                Some(position) if position < held.len() => {
                    let same = Arc::ptr_eq(&held[position], &stamped.row) || held[position] == stamped.row;
                    *if same { &mut taken.held } else { &mut taken.conflicting } += 1;
                }
                Some(position) if position == held.len() => taken.rows.push(self.append(stamped)),
                Some(_) => taken.ahead += 1,
                // Numbers begin at 1.
                None => taken.conflicting += 1,
            }
        }
        taken
    }

    fn append(&mut self, stamped: Stamped) -> Stamped {
        let Stamped { origin, seq, mut row } = stamped;
        let stream = match self.index.entry(origin) {
            btree_map::Entry::Occupied(known) => *known.get(),
            btree_map::Entry::Vacant(place) => {
                let stream = self.streams.len();
                self.streams.push(Stream { origin: place.key().clone(), rows: Vec::new(), durable: 0 });
                *place.insert(stream)
            }
        };
        let stream = &mut self.streams[stream];
        if let Some(row) = Arc::get_mut(&mut row) {
            row.share_issuer(&stream.origin.node);
        }
        stream.rows.push(Arc::clone(&row));
        self.fold.add_by(self.rules, &row);
        if stream.origin.node == self.node {
            self.own_tip = self.own_tip.max(Some(row.window));
        }
        self.known_rows += 1;
        self.version += 1;
        Stamped { origin: stream.origin.clone(), seq, row }
    }

    /// Marks the rows of `origin` up to `seq` durable; each wins or loses its window now. Marks never go back,
    /// and stop at what is known. Returns how many rows became durable.
    pub fn persisted(&mut self, origin: &Origin, seq: Seq) -> u64 {
        let Some(&stream) = self.index.get(origin) else { return 0 };
        let known = self.streams[stream].rows.len();
        let durable = usize::try_from(seq.0).map_or(known, |seq| seq.min(known));
        let before = self.streams[stream].durable;
        for position in before..durable {
            self.enter(Place { stream, position });
        }
        let entered = durable.saturating_sub(before);
        if entered == 0 {
            return 0;
        }
        self.streams[stream].durable = durable;
        self.version += 1;
        self.durable_rows += entered as u64;
        entered as u64
    }

    /// Lets a row that became durable win or lose its window.
    fn enter(&mut self, place: Place) {
        let window = self.row(place).window;
        let loser = match self.winners.get(&window) {
            None => None,
            Some(&rival) if self.rules.merged && self.precedes(place, rival) => Some(rival),
            Some(_) => Some(place),
        };
        if loser != Some(place) {
            self.winners.insert(window, place);
        }
        if let Some(loser) = loser {
            let Entry { origin, seq, .. } = self.entry(loser, true);
            self.superseded.insert((window, origin.clone(), seq), loser);
        }
    }

    /// Which of two rows for one window wins; between equal rows, the one of the lower origin and number.
    fn precedes(&self, one: Place, other: Place) -> bool {
        let stamp = |place: Place| (&self.streams[place.stream].origin, place.position);
        self.row(one).precedence(self.row(other)).then_with(|| stamp(one).cmp(&stamp(other))).is_lt()
    }

    fn row(&self, place: Place) -> &Arc<Row> {
        &self.streams[place.stream].rows[place.position]
    }

    fn entry(&self, place: Place, superseded: bool) -> Entry<'_> {
        let seq = Seq(place.position as u64 + 1);
        Entry { origin: &self.streams[place.stream].origin, seq, row: self.row(place), superseded }
    }
}

/// Looking in.
impl Spine {
    /// Rises with every change: a row taken, or a row that became durable.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What all known rows add up to.
    pub fn fold(&self) -> &Fold {
        &self.fold
    }

    /// The highest window that this node sealed, in any of its boots.
    pub fn own_tip(&self) -> Option<Window> {
        self.own_tip
    }

    /// The highest window of a durable row.
    pub fn durable_tip(&self) -> Option<Window> {
        self.winners.last_key_value().map(|(window, _)| *window)
    }

    /// How many rows are known, durable or not, winners and losers.
    pub fn known_rows(&self) -> u64 {
        self.known_rows
    }

    /// How many rows are durable, winners and losers.
    pub fn durable_rows(&self) -> u64 {
        self.durable_rows
    }

    /// The last number known of each origin: what to pull after.
    pub fn cursors(&self) -> BTreeMap<Origin, Seq> {
        self.marks(|stream| stream.rows.len())
    }

    /// The last durable number of each origin: what to show.
    pub fn durable_cursors(&self) -> BTreeMap<Origin, Seq> {
        self.marks(|stream| stream.durable)
    }

    fn marks(&self, mark: impl Fn(&Stream) -> usize) -> BTreeMap<Origin, Seq> {
        let marks = self.streams.iter().map(|stream| (stream.origin.clone(), Seq(mark(stream) as u64)));
        marks.filter(|(_, seq)| seq.0 > 0).collect()
    }

    /// Every stream, in the order in which they became known: its origin, its rows, and how many of them are durable.
    pub fn streams(&self) -> impl Iterator<Item = (&Origin, &[Arc<Row>], usize)> + Clone {
        self.streams.iter().map(|stream| (&stream.origin, &stream.rows[..], stream.durable))
    }

    /// The last number known of one origin; 0 when none is.
    pub fn cursor(&self, origin: &Origin) -> Seq {
        Seq(self.index.get(origin).map_or(0, |stream| self.streams[*stream].rows.len() as u64))
    }

    /// One row of a stream, durable or not.
    pub fn get(&self, origin: &Origin, seq: Seq) -> Option<&Arc<Row>> {
        let position = usize::try_from(seq.0.checked_sub(1)?).ok()?;
        self.streams[*self.index.get(origin)?].rows.get(position)
    }

    /// The durable row that won `window`.
    pub fn at(&self, window: Window) -> Option<Entry<'_>> {
        self.winners.get(&window).map(|place| self.entry(*place, false))
    }

    /// The durable winners, by window.
    pub fn winners(&self) -> impl DoubleEndedIterator<Item = Entry<'_>> {
        self.winners.values().map(|place| self.entry(*place, false))
    }

    /// The durable rows that lost their window, by window.
    pub fn superseded(&self) -> impl DoubleEndedIterator<Item = Entry<'_>> {
        self.superseded.values().map(|place| self.entry(*place, true))
    }

    /// All durable rows, stream by stream in the order of origins: what an audit reads.
    pub fn durable(&self) -> impl Iterator<Item = Entry<'_>> {
        self.index.values().flat_map(move |&stream| {
            (0..self.streams[stream].durable).map(move |position| {
                let place = Place { stream, position };
                self.entry(place, self.winners.get(&self.row(place).window) != Some(&place))
            })
        })
    }

    /// The last number known of each origin from `from` on; of all without one.
    pub fn cursors_from(&self, from: Option<&Origin>) -> impl Iterator<Item = (&Origin, Seq)> {
        let range = (from.map_or(Bound::Unbounded, Bound::Included), Bound::Unbounded);
        let known = |stream: usize| Seq(self.streams[stream].rows.len() as u64);
        self.index.range::<Origin, _>(range).map(move |(origin, stream)| (origin, known(*stream)))
    }

    /// The latest boot of `node` that a row is known of.
    pub fn last_boot(&self, node: &NodeId) -> Option<Incarnation> {
        let last = Origin { node: node.clone(), boot: Incarnation(u64::MAX) };
        let (origin, _) = self.index.range(..=last).next_back()?;
        (origin.node == *node).then_some(origin.boot)
    }

    /// The durable rows after `after` of the origins in `range` (from the first, before the second), origin by origin, as many as fit in `bytes_max` bytes inside an envelope
    /// (JSON escaped into a string, a comma after each), yet one if there is any; and whether more remain.
    pub fn page(
        &self,
        (from, until): (Option<&Origin>, Option<&Origin>),
        after: &BTreeMap<Origin, Seq>,
        bytes_max: usize,
    ) -> (Vec<Stamped>, bool) {
        let (mut page, mut bytes) = (Vec::new(), 0_usize);
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        let asked = self.index.range::<Origin, _>((from, Bound::Unbounded));
        for (origin, &stream) in asked.take_while(|(origin, _)| until.is_none_or(|until| *origin < until)) {
            let seen = after.get(origin).map_or(0, |seq| usize::try_from(seq.0).unwrap_or(usize::MAX));
            for position in seen..self.streams[stream].durable {
                let stamped = self.entry(Place { stream, position }, false).to_stamped();
                bytes += stamped.measure().escaped_bytes + 1;
                if bytes > bytes_max && !page.is_empty() {
                    return (page, true);
                }
                page.push(stamped);
            }
        }
        (page, false)
    }

    /// SHA-256 over the texts of the durable winners up to and including `to`, by window, a line feed after each.
    /// Equal on two nodes exactly when their spines are, up to there.
    pub fn digest(&self, to: Window) -> [u8; 32] {
        let (mut hash, mut text) = (Sha256::new(), String::new());
        for (_, place) in self.winners.range(..=to) {
            text.clear();
            self.row(*place).encode(&mut text);
            text.push('\n');
            hash.update(text.as_bytes());
        }
        hash.finalize().into()
    }
}
