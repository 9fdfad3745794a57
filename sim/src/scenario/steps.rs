//! `[[step]]`: when each fires, what its one verb is, and whether the chosen engine can do it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::catalog::{self, Kind, VerbName};
use super::document::{Entry, Table, Value};
use super::expects;
use super::facts;
use super::fields::{self, Fields, list};
use super::model::{HostIx, Span, Start, Step, StepIx, Target, Verb};
use super::report::Problems;
use super::scope::Scope;
use super::values::words;
use super::verbs;
use crate::engine::{EngineKind, Wire};

/// The ids of all steps, with their places. Two steps with one id are a problem.
pub(super) fn ids(tables: &[(Span, &Table)], problems: &mut Problems) -> BTreeMap<String, (StepIx, Span)> {
    let mut ids: BTreeMap<String, (StepIx, Span)> = BTreeMap::new();
    for (ix, (_, table)) in tables.iter().enumerate() {
        let Some(entry) = table.get("id") else { continue };
        let Some(id) = fields::text(entry, Kind::Id, problems) else { continue };
        if let Err(why) = fields::id(id) {
            fields::wrong(entry, Kind::Id, &why, problems);
        } else if let Some((_, first)) = ids.get(id) {
            problems
                .add(entry.node.span, format!("two steps have the id `{id}`"), "the second")
                .also(*first, "the first")
                .help("ids are unique, over included files too");
        } else {
            ids.insert(id.to_owned(), (StepIx(ix), entry.node.span));
        }
    }
    ids
}

/// Every step, and the earliest moment that each can fire.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) steps: Vec<Step>,
    pub(super) earliest: Vec<Duration>,
    /// Whether a step needs real bytes.
    pub(super) bytes: bool,
    /// The latest `at` so far: steps stand in the order they fire.
    latest_at: Option<(Duration, Span)>,
    /// Hosts of `nodes.later` that a step so far starts.
    added: Vec<HostIx>,
}

/// Reads every step.
pub(super) fn steps(tables: &[(Span, &Table)], scope: &Scope<'_>, problems: &mut Problems) -> Steps {
    let mut steps = Steps::default();
    for (ix, (span, table)) in tables.iter().enumerate() {
        let step = steps.step(StepIx(ix), table, *span, scope, problems);
        steps.steps.extend(step);
    }
    for (ix, host) in scope.nodes.names.iter().enumerate().filter(|(_, host)| !host.from_start) {
        if !steps.added.contains(&HostIx(ix)) {
            problems
                .add(host.span, format!("no step starts `{}`", host.name), "it would never run")
                .help(format!("add a [[step]] with add_node = \"{}\", or leave the host out", host.name));
        }
    }
    steps
}

impl Steps {
    fn step(
        &mut self,
        ix: StepIx,
        table: &Table,
        span: Span,
        scope: &Scope<'_>,
        problems: &mut Problems,
    ) -> Option<Step> {
        let before = problems.len();
        let words: Vec<&'static str> =
            catalog::VERBS.iter().map(|verb| verb.name).chain(catalog::LATER_VERBS.iter().copied()).collect();
        let fields = Fields::open_with(table, catalog::STEP, &words, "a step", span, problems);
        let typo = problems.len() > before;
        let start = self.start(ix, &fields, span, scope, problems);
        self.note_earliest(start.as_ref(), &fields, scope, problems);
        let lasts = fields.period("for", problems);
        let (every, until) = repeats(&fields, self.earliest.get(ix.0).copied(), scope, problems);
        self.over_in_time(&fields, lasts, (every, until), scope, problems);
        let found: Vec<&Entry> =
            table.entries.iter().filter(|entry| words.contains(&entry.key.as_str())).collect();
        let (word, entry) = one_verb(&found, span, typo, problems)?;
        can_do(word, entry, scope, problems);
        self.bytes |= word.bytes;
        can_end(word, entry, &fields, problems);
        let verb = verbs::verb(word, entry, scope, problems)?;
        self.comes_and_goes(&verb, entry, scope, problems);
        let id = table.get("id").and_then(|entry| match &entry.node.value {
            Value::Text(id) => Some(id.clone()),
            Value::Int(_)
            | Value::Float(_)
            | Value::Bool(_)
            | Value::Date
            | Value::List(_)
            | Value::Table(_) => None,
        });
        Some(Step { id, start: start?, verb, lasts, every, until, span })
    }

    /// `at`, or `when` with or without `after`, or `after` alone.
    fn start(
        &mut self,
        ix: StepIx,
        fields: &Fields<'_>,
        span: Span,
        scope: &Scope<'_>,
        problems: &mut Problems,
    ) -> Option<Start> {
        let after = fields.duration("after", problems);
        match (fields.entry("at"), fields.entry("when"), fields.entry("after")) {
            (Some(at), Some(other), _) | (Some(at), None, Some(other)) => {
                problems
                    .add(
                        other.key_span,
                        format!("`{}` and `at` both say when the step fires", other.key),
                        "the second",
                    )
                    .also(at.key_span, "the first")
                    .help(
                        "`at` counts from the start; `after` is a delay from `when` or from the step before",
                    );
                None
            }
            (Some(at), None, None) => {
                let moment = fields.duration("at", problems)?;
                scope.within_limit(Some(moment), at.node.span, "`at`", problems);
                self.in_order(moment, at, problems);
                Some(Start::At(moment))
            }
            (None, Some(when), _) => when_fires(ix, when, after.unwrap_or_default(), scope, problems),
            (None, None, Some(entry)) => match ix.0.checked_sub(1) {
                Some(before) => Some(Start::AfterStep(StepIx(before), after?)),
                None => {
                    problems
                        .add(entry.key_span, "the first step has no step before it", "after what?")
                        .help("write `at`; it counts from the start of the run");
                    None
                }
            },
            (None, None, None) => {
                problems
                    .add(span, "a step does not say when it fires", "no `at`, `when` or `after`")
                    .help("write for example: at = \"10s\", or when = { down = \"b\" }");
                None
            }
        }
    }

    /// Steps stand in the order they fire: the story reads from top to bottom.
    fn in_order(&mut self, at: Duration, entry: &Entry, problems: &mut Problems) {
        match self.latest_at {
            // Included steps stand first whatever their moment, so only one file is compared.
            Some((latest, place)) if at < latest && place.file == entry.node.span.file => {
                problems
                    .add(
                        entry.node.span,
                        format!("this step fires at {}, before one that stands above it", words(at)),
                        "earlier",
                    )
                    .also(place, format!("fires at {}", words(latest)))
                    .help(
                        "put the steps in the order they fire; `when` and `after` speak of the step before",
                    );
            }
            _ => self.latest_at = Some((at, entry.node.span)),
        }
    }

    /// The earliest moment the step can fire, as far as the file tells.
    fn note_earliest(
        &mut self,
        start: Option<&Start>,
        fields: &Fields<'_>,
        scope: &Scope<'_>,
        problems: &mut Problems,
    ) {
        let last = self.earliest.last().copied().unwrap_or_default();
        let earliest = match start {
            Some(Start::At(at)) => *at,
            Some(Start::AfterStep(step, after)) => {
                self.earliest.get(step.0).copied().unwrap_or_default().saturating_add(*after)
            }
            Some(Start::AfterEvent(_, after)) => last.saturating_add(*after),
            None => last,
        };
        if let Some(entry) = fields.entry("after").filter(|_| start.is_some()) {
            scope.within_limit(
                Some(earliest),
                entry.node.span,
                "the earliest moment of this step,",
                problems,
            );
        }
        self.earliest.push(earliest);
    }

    /// A fault is over before it fires again, and before the liveness phase.
    fn over_in_time(
        &self,
        fields: &Fields<'_>,
        lasts: Option<Duration>,
        (every, until): (Option<Duration>, Option<Duration>),
        scope: &Scope<'_>,
        problems: &mut Problems,
    ) {
        let (Some(lasts), Some(entry)) = (lasts, fields.entry("for")) else { return };
        let last_start = until.max(self.earliest.last().copied());
        let end = last_start.map(|start| start.saturating_add(lasts));
        scope.within_limit(end, entry.node.span, "the end of this fault,", problems);
        if let (Some(every), Some(other)) = (every, fields.entry("every"))
            && lasts > every
        {
            problems
                .add(
                    entry.node.span,
                    format!("the fault lasts {} but returns every {}", words(lasts), words(every)),
                    "longer",
                )
                .also(other.node.span, "shorter")
                .help("let it end before it fires again");
        }
    }

    /// Hosts of `nodes.later`: started once, by `add_node`, before anything is done to them.
    fn comes_and_goes(&mut self, verb: &Verb, entry: &Entry, scope: &Scope<'_>, problems: &mut Problems) {
        let late = |host: &HostIx| scope.nodes.names.get(host.0).is_some_and(|name| !name.from_start);
        let name =
            |host: &HostIx| scope.nodes.names.get(host.0).map_or("", |name| name.name.as_str()).to_owned();
        match verb {
            Verb::AddNode(Target::Hosts(hosts)) => {
                for host in hosts {
                    if !late(host) {
                        problems
                            .add(
                                entry.node.span,
                                format!("`{}` runs from the start", name(host)),
                                "nothing to add",
                            )
                            .help(
                                "`add_node` starts hosts of `nodes.later`; `restart` starts what was killed",
                            );
                    } else if self.added.contains(host) {
                        problems
                            .add(
                                entry.node.span,
                                format!("`{}` has been added before", name(host)),
                                "a second time",
                            )
                            .help("to start it again, write restart");
                    } else {
                        self.added.push(*host);
                    }
                }
            }
            Verb::AddNode(_) => {
                problems
                    .add(entry.node.span, "`add_node` does not take a symbol", "whom?")
                    .help("symbols choose among hosts that are up; name hosts of `nodes.later`");
            }
            Verb::Kill(target)
            | Verb::Stop(target)
            | Verb::Restart { target, .. }
            | Verb::Pause(target)
            | Verb::Resume(target)
            | Verb::RemoveNode(target)
            | Verb::PauseIssuance(target)
            | Verb::ResumeIssuance(target) => {
                let Target::Hosts(hosts) = target else { return };
                for host in hosts.iter().filter(|host| late(host) && !self.added.contains(host)) {
                    problems
                        .add(entry.node.span, format!("`{}` does not run yet", name(host)), "not started")
                        .help(format!("put a step with add_node = \"{}\" before this one", name(host)));
                }
            }
            Verb::Partition(_)
            | Verb::Isolate(_)
            | Verb::Heal
            | Verb::Cut { .. }
            | Verb::Hold { .. }
            | Verb::Release { .. }
            | Verb::Link { .. }
            | Verb::HalfOpen { .. }
            | Verb::ClockStep { .. }
            | Verb::ClockRate { .. }
            | Verb::ClockFreeze(_)
            | Verb::Disk { .. }
            | Verb::ReplayFrames { .. }
            | Verb::CorruptFrames { .. }
            | Verb::ForgeFrames { .. }
            | Verb::Flood { .. } => {}
        }
    }
}

/// The id of an earlier step, or an event.
fn when_fires(
    ix: StepIx,
    entry: &Entry,
    after: Duration,
    scope: &Scope<'_>,
    problems: &mut Problems,
) -> Option<Start> {
    match &entry.node.value {
        Value::Table(table) => {
            facts::event(table, entry.key_span, scope, problems).map(|event| Start::AfterEvent(event, after))
        }
        Value::Text(id) => {
            let step = expects::step(id, entry, scope, problems)?;
            if step >= ix {
                let which = if step == ix { "this very step" } else { "a step that stands below" };
                let place = scope.steps.get(id).map(|(_, place)| *place);
                let problem =
                    problems.add(entry.node.span, format!("`when` names {which}"), "has to stand above");
                problem.help("put the steps in the order they fire");
                if let Some(place) = place {
                    problem.also(place, "stands here");
                }
                return None;
            }
            Some(Start::AfterStep(step, after))
        }
        Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Date | Value::List(_) => {
            fields::mistyped(entry, Kind::When, problems);
            None
        }
    }
}

/// Exactly one verb of this version.
fn one_verb<'t>(
    found: &[&'t Entry],
    span: Span,
    typo: bool,
    problems: &mut Problems,
) -> Option<(&'static catalog::Verb, &'t Entry)> {
    match found {
        [] if typo => None,
        [] => {
            problems
                .add(span, "a step does nothing", "no verb")
                .help(format!("the verbs are {}", list(catalog::VERBS.iter().map(|verb| verb.name))));
            None
        }
        [only] => match catalog::VERBS.iter().find(|verb| verb.name == only.key) {
            Some(verb) => Some((verb, only)),
            None => {
                problems
                    .add(
                        only.key_span,
                        format!("the verb `{}` arrives with a later version", only.key),
                        "not known yet",
                    )
                    .help("`firedrill list verbs` shows what this version can do");
                None
            }
        },
        [first, second, ..] => {
            problems
                .add(
                    second.key_span,
                    format!("a step does both `{}` and `{}`", first.key, second.key),
                    "the second verb",
                )
                .also(first.key_span, "the first verb")
                .help("one verb a step; two steps may fire at the same moment");
            None
        }
    }
}

/// Refuses a verb that the chosen engine or wire cannot do.
fn can_do(word: &catalog::Verb, entry: &Entry, scope: &Scope<'_>, problems: &mut Problems) {
    let engine = scope.options.engine;
    if !word.engines.contains(&engine) {
        let others: Vec<&str> = word.engines.iter().map(|engine| engine_name(*engine)).collect();
        problems
            .add(
                entry.key_span,
                format!("the {} engine cannot do `{}`", engine_name(engine), word.name),
                "cannot be done",
            )
            .help(format!("run this scenario with --engine {}", others.join(" or ")));
    }
    if word.bytes && engine == EngineKind::Event && scope.options.wire == Some(Wire::Fast) {
        problems
            .add(
                entry.key_span,
                format!("`{}` needs real bytes, and --wire fast has none", word.name),
                "needs --wire full",
            )
            .help("leave --wire out; such a scenario runs full by itself");
    }
}

/// The name by which users know an engine.
pub(super) const fn engine_name(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::Event => "event",
        EngineKind::Turmoil => "turmoil",
    }
}

/// Refuses `for` on a verb that cannot be undone.
fn can_end(word: &catalog::Verb, entry: &Entry, fields: &Fields<'_>, problems: &mut Problems) {
    let (None, Some(given)) = (word.ends, fields.entry("for")) else { return };
    let help = if matches!(word.verb, VerbName::Kill | VerbName::Stop) {
        "a node that went down stays down; add a step with `restart`".into()
    } else {
        let ending = catalog::VERBS.iter().filter(|verb| verb.ends.is_some()).map(|verb| verb.name);
        format!("`for` goes with {}", list(ending))
    };
    problems
        .add(given.key_span, format!("`{}` does not end by itself", word.name), "cannot be undone")
        .also(entry.key_span, "the verb")
        .help(help);
}

/// `every` and `until`, which go together.
fn repeats(
    fields: &Fields<'_>,
    start: Option<Duration>,
    scope: &Scope<'_>,
    problems: &mut Problems,
) -> (Option<Duration>, Option<Duration>) {
    let every = fields.period("every", problems);
    let until = fields.duration("until", problems);
    match (fields.entry("every"), fields.entry("until")) {
        (Some(entry), None) => {
            problems
                .add(entry.key_span, "`every` has no `until`", "when does it stop?")
                .help("add `until`, a moment of the run");
        }
        (None, Some(entry)) => {
            problems
                .add(entry.key_span, "`until` has no `every`", "nothing repeats")
                .help("`until` ends an `every`; to end a fault, write `for`");
        }
        (Some(_), Some(entry)) => {
            scope.within_limit(until, entry.node.span, "`until`", problems);
            if let (Some(until), Some(start)) = (until, start)
                && until < start
            {
                problems
                    .add(
                        entry.node.span,
                        format!("this ends at {}, before it begins at {}", words(until), words(start)),
                        "too early",
                    )
                    .help("`until` counts from the start of the run");
            }
        }
        (None, None) => {}
    }
    (every, until)
}
