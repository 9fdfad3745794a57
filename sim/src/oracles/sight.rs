//! What an oracle sees of one step, and what it can ask of the node.
//!
//! [`Subject`] is the part of a node's interface that oracles need. It is implemented by the real [`Node`] and,
//! in tests, by a puppet that can be put into states a correct node never reaches: an oracle that cannot be
//! made to fire proves nothing.

use std::net::SocketAddr;

use firedrill_core::endpoint::{Endpoint, LinkSizes, LinkStates};
use firedrill_core::id::{ClusterName, Incarnation, NodeId, Seq};
use firedrill_core::io::{Alarm, Event};
use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::issuance::machine::Issuance;
use firedrill_core::metrics::Metrics;
use firedrill_core::node::{MemberStatus, Node, TableSizes};
use firedrill_core::time::{Instant, Now};
use firedrill_core::wire::message::Document;

use super::books::{Account, Books};
use super::ledger::{Held, HostLedger, Ledger};
use super::world::{Host, PeerIx, World};
use crate::engine::{Cause, Counts, Step};
use crate::scenario::model::HostIx;

/// What oracles ask of a node. Every method is cheap; see [`Node`] for their meaning.
pub trait Subject {
    /// Its id.
    fn id(&self) -> &NodeId;
    /// Its present incarnation.
    fn incarnation(&self) -> Incarnation;
    /// The cell its increments go to.
    fn cell_incarnation(&self) -> Incarnation;
    /// Its document.
    fn document(&self) -> &Document;
    /// Rises with every change of the document.
    fn document_version(&self) -> u64;
    /// Who is in view, itself excluded, by id.
    fn peers_in_view(&self) -> impl Iterator<Item = (&NodeId, MemberStatus)>;
    /// Rises with every change of the view.
    fn view_version(&self) -> u64;
    /// How full its tables are.
    fn sizes(&self) -> TableSizes;
    /// Its counts.
    fn metrics(&self) -> &Metrics;
    /// Whether it has departed.
    fn has_departed(&self) -> bool;
    /// Its cluster.
    fn cluster(&self) -> &ClusterName;
    /// The number of its next frame.
    fn next_seq(&self) -> Seq;
    /// How many payload texts it has read.
    fn payloads_read(&self) -> u64;
    /// Its issuance, if it has one.
    fn issuance(&self) -> Option<&Issuance>;
}

impl Subject for Node {
    fn id(&self) -> &NodeId {
        self.id()
    }
    fn incarnation(&self) -> Incarnation {
        self.incarnation()
    }
    fn cell_incarnation(&self) -> Incarnation {
        self.cell_incarnation()
    }
    fn document(&self) -> &Document {
        self.document()
    }
    fn document_version(&self) -> u64 {
        self.document_version()
    }
    fn peers_in_view(&self) -> impl Iterator<Item = (&NodeId, MemberStatus)> {
        self.peers_in_view()
    }
    fn view_version(&self) -> u64 {
        self.view_version()
    }
    fn sizes(&self) -> TableSizes {
        self.sizes()
    }
    fn metrics(&self) -> &Metrics {
        self.metrics()
    }
    fn has_departed(&self) -> bool {
        self.has_departed()
    }
    fn cluster(&self) -> &ClusterName {
        self.cluster()
    }
    fn next_seq(&self) -> Seq {
        self.next_seq()
    }
    fn payloads_read(&self) -> u64 {
        self.payloads_read()
    }
    fn issuance(&self) -> Option<&Issuance> {
        self.issuance()
    }
}

/// What oracles ask of the connections around a node. Each call looks at every connection, so it is made rarely.
pub trait Connections {
    /// How they fare.
    fn states(&self) -> LinkStates;
    /// Calls `visit` for every target, with the dials made to it.
    fn dials(&self, visit: &mut dyn FnMut(SocketAddr, u64));
}

impl Connections for Endpoint {
    fn states(&self) -> LinkStates {
        self.links()
    }
    fn dials(&self, visit: &mut dyn FnMut(SocketAddr, u64)) {
        self.dials().for_each(|(addr, dials)| visit(addr, dials));
    }
}

/// One handled input without its surroundings: a [`Step`] over any [`Subject`].
#[derive(Clone, Copy)]
pub struct Look<'a, S> {
    /// True time of the run.
    pub at: Instant,
    /// The node's own clocks.
    pub now: Now,
    /// Which host.
    pub host: HostIx,
    /// Which boot of it.
    pub boot: u32,
    /// Why it was called.
    pub cause: Cause<'a>,
    /// The node after the step.
    pub node: &'a S,
    /// What it reported, in order.
    pub events: &'a [Event],
    /// Frames it handed to the network.
    pub frames_sent: u64,
    /// Bytes of their bodies.
    pub bytes_sent: u64,
    /// How full its connection tables are.
    pub links: LinkSizes,
    /// The connections, where the engine has them.
    pub connections: Option<&'a dyn Connections>,
    /// Broken invariants it reported.
    pub alarms: &'a [Alarm],
}

impl<'a> From<&Step<'a>> for Look<'a, Node> {
    fn from(step: &Step<'a>) -> Self {
        Self {
            at: step.at,
            now: step.now,
            host: step.host,
            boot: step.boot,
            cause: step.cause,
            node: step.node,
            events: step.events,
            frames_sent: step.frames_sent,
            bytes_sent: step.bytes_sent,
            links: step.links,
            connections: match step.counts {
                Counts::Endpoint(endpoint) => Some(endpoint),
                Counts::Node | Counts::Taken(_) => None,
            },
            alarms: step.alarms,
        }
    }
}

/// What a step changed, so that an oracle looks at nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changed {
    /// It is the first step of its boot: what was kept about the host is void.
    pub boot: bool,
    /// The document's version moved.
    pub document: bool,
    /// The view's version moved.
    pub view: bool,
    /// The node's issuance did something.
    pub issuance: bool,
    /// Nothing happened: it is the last look at everything.
    pub sweep: bool,
}

/// A step in which a node's issuance did something.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    /// The issuance after the step.
    pub issuance: &'a Issuance,
    /// The account of all rows.
    pub books: &'a Books,
    /// The account of this node.
    pub account: &'a Account,
    events: &'a [Event],
}

impl<'a> Turn<'a> {
    /// What the issuance reported, in order.
    pub fn events(&self) -> impl Iterator<Item = &'a IssuanceEvent> + use<'a> {
        self.events.iter().filter_map(
            |event| {
                if let Event::Issuance(event) = event { Some(event) } else { None }
            },
        )
    }
}

/// One step as an oracle sees it: the node, the truth, and what earlier steps told.
pub struct Sight<'a, S> {
    /// The step.
    pub look: &'a Look<'a, S>,
    /// The truth.
    pub world: &'a World,
    /// What the steps so far told, this one included.
    pub ledger: &'a Ledger,
    /// What the step changed.
    pub changed: Changed,
}

impl<'a, S: Subject> Sight<'a, S> {
    /// The truth about the host of the step.
    pub fn host(&self) -> &'a Host {
        self.world.host(self.look.host)
    }

    /// What the steps of this host told.
    pub fn told(&self) -> &'a HostLedger {
        self.ledger.host(self.look.host)
    }

    /// The step's events, each with the index of the id it is about.
    pub fn events(&self) -> impl Iterator<Item = (&'a Event, Option<PeerIx>)> {
        self.look.events.iter().zip(self.ledger.subjects().iter().copied())
    }

    /// The records that the step changed: whose, before, after.
    pub fn records(&self) -> &'a [(PeerIx, Option<Held>, Option<Held>)] {
        self.ledger.record_changes()
    }

    /// The node's issuance and the oracles' own account of it, where it did something in this step.
    pub fn turn(&self) -> Option<Turn<'a>> {
        if !self.changed.issuance {
            return None;
        }
        let (look, books) = (self.look, self.ledger.books());
        let issuance = look.node.issuance()?;
        Some(Turn { issuance, books, account: books.account(look.host), events: look.events })
    }

    /// The name of the host.
    pub fn name(&self) -> String {
        String::from(self.world.name(self.look.host))
    }
}
