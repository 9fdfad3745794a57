//! The value of each verb, read into a [`Verb`].

use super::catalog::{self, DISK_STATES, FLOOD_KINDS, Kind, VerbName};
use super::document::{Entry, Node, Value};
use super::fields::{self, Fields};
use super::issuance;
use super::model::{DiskSpec, DiskState, HostIx, Target, Verb};
use super::report::Problems;
use super::scope::{Scope, symbol};

/// Reads what stands behind a verb.
pub(super) fn verb(
    word: &catalog::Verb,
    entry: &Entry,
    scope: &Scope<'_>,
    problems: &mut Problems,
) -> Option<Verb> {
    let plain = |problems: &mut Problems| scope.target(entry, problems);
    match word.verb {
        VerbName::Kill => plain(problems).map(Verb::Kill),
        VerbName::Stop => plain(problems).map(Verb::Stop),
        VerbName::Pause => plain(problems).map(Verb::Pause),
        VerbName::Resume => plain(problems).map(Verb::Resume),
        VerbName::Isolate => plain(problems).map(Verb::Isolate),
        VerbName::ClockFreeze => plain(problems).map(Verb::ClockFreeze),
        VerbName::AddNode => plain(problems).map(Verb::AddNode),
        VerbName::RemoveNode => plain(problems).map(Verb::RemoveNode),
        VerbName::PauseIssuance | VerbName::ResumeIssuance
            if issuance::is_missing(word.name, entry.key_span, scope, problems) =>
        {
            None
        }
        VerbName::PauseIssuance => plain(problems).map(Verb::PauseIssuance),
        VerbName::ResumeIssuance => plain(problems).map(Verb::ResumeIssuance),
        VerbName::Restart if !matches!(entry.node.value, Value::Table(_)) => plain(problems)
            .map(|target| Verb::Restart { target, wall_step_us: None, addr: None, lose_disk: false }),
        VerbName::Partition => partition(entry, scope, problems).map(Verb::Partition),
        VerbName::Heal => heal(entry, problems),
        VerbName::Restart
        | VerbName::Cut
        | VerbName::Hold
        | VerbName::Release
        | VerbName::Link
        | VerbName::HalfOpen
        | VerbName::ClockStep
        | VerbName::ClockRate
        | VerbName::Disk
        | VerbName::ReplayFrames
        | VerbName::CorruptFrames
        | VerbName::ForgeFrames
        | VerbName::Flood => {
            let table = match &entry.node.value {
                Value::Table(table) => table,
                other @ (Value::Text(_)
                | Value::Int(_)
                | Value::Float(_)
                | Value::Bool(_)
                | Value::Date
                | Value::List(_)) => {
                    problems
                        .add(
                            entry.node.span,
                            format!("`{}` wants a table, not {}", word.name, other.what()),
                            "not a table",
                        )
                        .help(format!("write for example: {}", word.example));
                    return None;
                }
            };
            let what = format!("`{}`", word.name);
            let fields = Fields::open(table, word.keys, &what, entry.key_span, problems);
            Long { fields, entry, scope, problems }.verb(word.verb)
        }
    }
}

/// A verb in its long form, a table.
struct Long<'t, 's, 'p> {
    fields: Fields<'t>,
    entry: &'t Entry,
    scope: &'s Scope<'s>,
    problems: &'p mut Problems,
}

impl Long<'_, '_, '_> {
    fn verb(&mut self, verb: VerbName) -> Option<Verb> {
        let Self { fields, .. } = *self;
        match verb {
            VerbName::Restart => {
                let target = self.target("target");
                let wall_step_us = fields.offset_us("wall", self.problems);
                let addr = fields.address("addr", self.problems);
                if let (Some(Target::Hosts(hosts)), Some(_), Some(entry)) =
                    (&target, addr, fields.entry("addr"))
                    && hosts.len() > 1
                {
                    self.problems
                        .add(entry.key_span, "several hosts cannot start at one address", "one address")
                        .help("restart them one by one");
                }
                let lose_disk = fields.bool("lose_disk", self.problems).unwrap_or(false);
                Some(Verb::Restart { target: target?, wall_step_us, addr, lose_disk })
            }
            VerbName::Cut => self.link().map(|(from, to)| Verb::Cut { from, to }),
            VerbName::Hold => self.link().map(|(from, to)| Verb::Hold { from, to }),
            VerbName::Release => self.link().map(|(from, to)| Verb::Release { from, to }),
            VerbName::HalfOpen => self.link().map(|(from, to)| Verb::HalfOpen { from, to }),
            VerbName::Link => self.reshape(),
            VerbName::ClockStep => {
                let target = self.target("target");
                let by_us = fields.offset_us("by", self.problems);
                Some(Verb::ClockStep { target: target?, by_us: by_us? })
            }
            VerbName::ClockRate => {
                let target = self.target("target");
                let rate_ppm = fields.rate_ppm("rate", self.problems);
                Some(Verb::ClockRate { target: target?, rate_ppm: rate_ppm? })
            }
            VerbName::Disk => {
                let target = self.target("target");
                let state = fields.choice("state", self.problems);
                let state =
                    state.and_then(|state| DISK_STATES.get(state)).copied().unwrap_or(DiskState::Works);
                let latency = fields.duration("latency", self.problems).unwrap_or_default();
                if fields.entry("state").is_none() && fields.entry("latency").is_none() {
                    self.problems
                        .add(self.entry.key_span, "`disk` changes nothing", "neither `state` nor `latency`")
                        .help("add state = \"full\", latency = \"2s\", or both");
                }
                Some(Verb::Disk { target: target?, disk: DiskSpec { latency, state } })
            }
            VerbName::ReplayFrames => {
                let link = self.link();
                let captured = fields.stretch("captured", self.problems);
                let count = fields.size("count", self.problems);
                let (from, to) = link?;
                Some(Verb::ReplayFrames {
                    from,
                    to,
                    captured_from: captured.map_or_else(Default::default, |(first, _)| first),
                    captured_until: captured.map(|(_, last)| last),
                    count: count?,
                })
            }
            VerbName::CorruptFrames => {
                let link = self.link();
                let rate_ppm = fields.share_ppm("rate", self.problems);
                let (from, to) = link?;
                Some(Verb::CorruptFrames { from, to, rate_ppm: rate_ppm? })
            }
            VerbName::ForgeFrames => {
                let (sender, to) = (self.target("sender"), self.target("to"));
                let count = fields.size("count", self.problems);
                Some(Verb::ForgeFrames { sender: sender?, to: to?, count: count? })
            }
            VerbName::Flood => {
                let to = self.target("to");
                let connections = fields.size("connections", self.problems);
                let kind = fields.choice("send", self.problems);
                let garbage = kind.and_then(|kind| FLOOD_KINDS.get(kind)).copied();
                Some(Verb::Flood { to: to?, connections: connections?, garbage: garbage? })
            }
            // These have no long form; `verb` has read them.
            VerbName::Kill
            | VerbName::Stop
            | VerbName::Pause
            | VerbName::Resume
            | VerbName::Partition
            | VerbName::Isolate
            | VerbName::Heal
            | VerbName::ClockFreeze
            | VerbName::AddNode
            | VerbName::RemoveNode
            | VerbName::PauseIssuance
            | VerbName::ResumeIssuance => None,
        }
    }

    fn target(&mut self, key: &str) -> Option<Target> {
        self.scope.target(self.fields.entry(key)?, self.problems)
    }

    /// `from` and `to`, which must not be one and the same host.
    fn link(&mut self) -> Option<(Target, Target)> {
        let (from, to) = (self.target("from"), self.target("to"));
        if let (Some(Target::Hosts(from)), Some(Target::Hosts(to))) = (&from, &to)
            && from == to
            && from.len() == 1
        {
            self.problems
                .add(
                    self.entry.node.span,
                    format!("`{}` leads from a host to itself", self.entry.key),
                    "no such link",
                )
                .help("name two hosts");
        }
        Some((from?, to?))
    }

    fn reshape(&mut self) -> Option<Verb> {
        let Self { fields, .. } = *self;
        let link = self.link();
        let latency = fields.latency("latency", self.problems);
        let loss_ppm = fields.share_ppm("loss", self.problems);
        let duplicate_ppm = fields.share_ppm("duplicate", self.problems);
        let reorder_ppm = fields.share_ppm("reorder", self.problems);
        let bandwidth = fields.bandwidth("bandwidth", self.problems);
        let changes = ["latency", "loss", "duplicate", "reorder", "bandwidth"];
        if changes.iter().all(|key| fields.entry(key).is_none()) {
            self.problems
                .add(self.entry.key_span, "`link` changes nothing", "no property")
                .help(format!("add one of {}", fields::list(changes.into_iter())));
        }
        let (from, to) = link?;
        Some(Verb::Link { from, to, latency, loss_ppm, duplicate_ppm, reorder_ppm, bandwidth })
    }
}

fn heal(entry: &Entry, problems: &mut Problems) -> Option<Verb> {
    match entry.node.value {
        Value::Bool(true) => Some(Verb::Heal),
        Value::Bool(false)
        | Value::Text(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Date
        | Value::List(_)
        | Value::Table(_) => {
            problems
                .add(entry.node.span, "`heal` heals everything and takes no target", "write true")
                .help("write heal = true; to heal one fault only, give it a `for`");
            None
        }
    }
}

/// Groups of hosts; no host in two, none empty, and somebody on the other side.
fn partition(entry: &Entry, scope: &Scope<'_>, problems: &mut Problems) -> Option<Vec<Target>> {
    let Value::List(items) = &entry.node.value else {
        fields::mistyped(entry, Kind::Groups, problems);
        return None;
    };
    let mut groups = Vec::with_capacity(items.len());
    let mut placed: Vec<(HostIx, &Node)> = Vec::new();
    for item in items {
        match &item.value {
            Value::Text(word) if symbol(word).is_some_and(|symbol| symbol != Target::All) => {
                if items.len() > 1 {
                    problems
                        .add(
                            item.span,
                            format!("`{word}` cannot stand beside other groups"),
                            "drawn while the drill runs",
                        )
                        .help(format!(
                            "write partition = [\"{word}\"]; whoever is in no group forms one more"
                        ));
                }
                groups.extend(symbol(word));
            }
            Value::List(hosts) if hosts.is_empty() => {
                problems
                    .add(item.span, "a group of this partition is empty", "nobody")
                    .help("leave the group out; whoever is in no group forms one more");
            }
            Value::List(_) => {
                let group = Entry { key: entry.key.clone(), key_span: entry.key_span, node: item.clone() };
                let Some(hosts) = scope.hosts(&group, problems) else { continue };
                for host in &hosts {
                    if let Some((_, first)) = placed.iter().find(|(other, _)| other == host) {
                        let name = scope.nodes.names.get(host.0).map_or("", |host| host.name.as_str());
                        problems
                            .add(item.span, format!("`{name}` is in two groups"), "the second")
                            .also(first.span, "the first")
                            .help("a host is on one side of a partition only");
                    }
                }
                placed.extend(hosts.iter().map(|host| (*host, item)));
                groups.push(Target::Hosts(hosts));
            }
            Value::Text(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Bool(_)
            | Value::Date
            | Value::Table(_) => {
                problems
                    .add(item.span, "a partition is made of groups, each a list of hosts", "not a group")
                    .help("write for example: partition = [[\"a\"], [\"b\", \"c\"]]");
            }
        }
    }
    let everybody = placed.len() >= scope.nodes.names.len();
    if items.is_empty() || (items.len() == 1 && everybody && !scope.nodes.names.is_empty()) {
        problems
            .add(entry.node.span, "this partition separates nobody", "one side only")
            .help("write at least two groups, or leave hosts out; they form one more");
    }
    (!groups.is_empty()).then_some(groups)
}
