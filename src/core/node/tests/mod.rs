//! One node under hand-made frames: each rule of the spec that a single receiver shows.

mod arbitrary;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::config::Secret;
use crate::limits::{COUNTERS_MAX, MEMBERS_MAX, WATERMARKS_MAX};
use crate::time::WallTime;
use crate::wire::message::{Addr, MemberRecord};

const BOOT: u64 = 1_000_000;
const P: u64 = 500;
const S: u64 = 2500;

fn config(id: &str) -> Config {
    let cluster = crate::config::ClusterConfig {
        enabled: true,
        secret: Secret::new("0123456789abcdef"),
        cluster_name: ClusterName::new("test").unwrap(),
        node_id: Some(NodeId::new(id).unwrap()),
        bind_addr: "10.0.0.1:1".parse().unwrap(),
        advertise_addr: None,
        seed_peers: vec!["10.0.0.9:1".parse().unwrap()],
        push_interval_ms: P,
        suspicion_timeout_ms: S,
    };
    cluster.into()
}

fn id(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn record(addr: &str, incarnation: u64, status: RecordStatus) -> MemberRecord {
    MemberRecord { addr: Addr::new(addr), incarnation: Incarnation(incarnation), status }
}

fn alive(incarnation: u64) -> MemberRecord {
    record("10.0.0.2:1", incarnation, RecordStatus::Alive)
}

fn left(incarnation: u64) -> MemberRecord {
    record("10.0.0.2:1", incarnation, RecordStatus::Left)
}

fn push_of(members: &[(&str, MemberRecord)]) -> Message {
    let members = members.iter().map(|(name, record)| (id(name), record.clone())).collect();
    Message::StatePush { state: Arc::new(Document { members, counters: BTreeMap::new() }) }
}

/// A node `self` with a clock in milliseconds, and the sequence numbers of its peers.
struct Rig {
    node: Node,
    now_ms: u64,
    seqs: BTreeMap<(String, u64), u64>,
    events: Vec<Event>,
    sent: Vec<Outgoing>,
}

impl Rig {
    fn new() -> Self {
        Self::with_guards(Guards::ON)
    }

    fn with_guards(guards: Guards) -> Self {
        Self::seeded(1, guards)
    }

    fn seeded(seed: u64, guards: Guards) -> Self {
        let now = Now { instant: Instant::ZERO, wall: WallTime::from_unix_ms(BOOT as i64) };
        let node =
            Node::with_guards(&config("self"), Seed::from_u64(seed), Recovered::default(), now, guards);
        Self { node, now_ms: 0, seqs: BTreeMap::new(), events: Vec::new(), sent: Vec::new() }
    }

    fn handle(&mut self, input: NodeInput) -> Vec<NodeOutput> {
        let instant = Instant::from_micros(self.now_ms * 1000);
        let mut out = Outbox::new();
        self.node.handle(Now { instant, wall: WallTime::default() }, input, &mut out);
        let outputs: Vec<_> = out.drain().collect();
        for output in &outputs {
            match output {
                NodeOutput::Event(event) => self.events.push(event.clone()),
                NodeOutput::Send(outgoing) => self.sent.push(outgoing.clone()),
                NodeOutput::Reply(_)
                | NodeOutput::Persist { .. }
                | NodeOutput::Departed
                | NodeOutput::Alarm(_) => {}
            }
        }
        outputs
    }

    /// Runs every wake-up until `ms`.
    fn until(&mut self, ms: u64) {
        while let Some((at, _)) = self.node.next_wake().filter(|(at, _)| at.as_micros() <= ms * 1000) {
            self.now_ms = at.as_micros().div_ceil(1000).max(self.now_ms);
            self.handle(NodeInput::Wake);
            assert!(self.node.next_wake().is_none_or(|(next, _)| next > at), "a wake-up makes progress");
        }
        self.now_ms = ms;
    }

    fn frame(&mut self, sender: &str, incarnation: u64, seq: u64, message: Message) -> Option<Reject> {
        let header = Header { sender: id(sender), incarnation: Incarnation(incarnation), seq: Seq(seq) };
        let outputs = self.handle(NodeInput::Frame { header, payload: Payload::Value(message) });
        outputs.iter().find_map(|output| {
            if let NodeOutput::Event(Event::Rejected { reason, .. }) = output { Some(*reason) } else { None }
        })
    }

    /// The next frame of that sender and incarnation.
    fn hear(&mut self, sender: &str, incarnation: u64, message: Message) -> Option<Reject> {
        let seq = self.seqs.entry((String::from(sender), incarnation)).or_default();
        let number = *seq;
        *seq += 1;
        self.frame(sender, incarnation, number, message)
    }

    /// `b` announces itself alive at `incarnation`.
    fn hear_b(&mut self, incarnation: u64) -> Option<Reject> {
        self.hear("b", incarnation, push_of(&[("b", alive(incarnation))]))
    }

    fn view(&self) -> Vec<&str> {
        self.node.peers_in_view().map(|(id, _)| id.as_str()).collect()
    }

    fn record_of(&self, name: &str) -> Option<&MemberRecord> {
        self.node.document().members.get(&id(name))
    }

    fn increment(&mut self, counter: &str) {
        let counter = CounterName::new(counter).unwrap();
        self.handle(NodeInput::Command(Command::Increment { counter, by: 1 }));
    }

    fn saw(&self, wanted: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| wanted(event)).count()
    }
}

#[test]
fn a_member_enters_with_its_first_frame_and_leaves_after_the_suspicion_timeout() {
    let mut rig = Rig::new();
    rig.hear("c", 1, push_of(&[("b", alive(5)), ("c", record("10.0.0.3:1", 1, RecordStatus::Alive))]));
    assert_eq!(rig.view(), ["c"], "b is known, but was not heard");
    rig.hear_b(5);
    assert_eq!(rig.view(), ["b", "c"]);
    rig.until(2 * P);
    assert_eq!(
        rig.saw(|e| matches!(e, Event::MemberSuspect { .. })),
        0,
        "exactly two intervals are not above them"
    );
    rig.until(2 * P + 1);
    assert_eq!(rig.saw(|e| matches!(e, Event::MemberSuspect { .. })), 2);
    assert_eq!(rig.view(), ["b", "c"]);
    rig.until(S);
    assert_eq!(rig.view(), ["b", "c"]);
    rig.until(S + 1);
    assert_eq!(rig.view(), Vec::<&str>::new());
    assert_eq!(rig.node.metrics().members, 1);
}

#[test]
fn a_suspect_that_is_heard_recovers() {
    let mut rig = Rig::new();
    rig.hear_b(5);
    rig.until(2 * P + 1);
    rig.hear_b(5);
    assert_eq!(rig.saw(|e| matches!(e, Event::MemberRecovered { .. })), 1);
    rig.until(2 * P + 1 + S);
    assert_eq!(rig.view(), ["b"]);
}

#[test]
fn the_first_push_leaves_one_jittered_interval_after_the_start_with_seq_0() {
    let mut rig = Rig::new();
    rig.until(P * 80 / 100 - 1);
    assert!(rig.sent.is_empty());
    rig.until(P * 120 / 100);
    assert_eq!(rig.sent.len(), 1);
    assert_eq!((rig.sent[0].header.seq, rig.sent[0].header.incarnation), (Seq(0), Incarnation(BOOT)));
    assert_eq!(rig.sent[0].targets[..], ["10.0.0.9:1".parse().unwrap()]);
}

#[test]
fn rounds_are_jittered_within_a_fifth() {
    let mut rig = Rig::new();
    let mut gaps = Vec::new();
    let mut last = 0;
    for _ in 0..200 {
        let (at, wake) = rig.node.next_wake().unwrap();
        assert_eq!(wake, Wake::Round);
        gaps.push(at.as_micros() - last);
        last = at.as_micros();
        rig.now_ms = last.div_ceil(1000);
        rig.handle(NodeInput::Wake);
        last = rig.now_ms * 1000;
    }
    assert!(gaps.iter().all(|gap| (400_000..=600_000).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().any(|gap| *gap < 430_000) && gaps.iter().any(|gap| *gap > 570_000));
}

#[test]
fn a_leave_takes_the_member_out_at_once_and_names_one_incarnation_only() {
    let mut rig = Rig::new();
    rig.hear_b(5);
    rig.hear("b", 5, Message::Leave {});
    assert_eq!(rig.view(), Vec::<&str>::new());
    assert_eq!(rig.record_of("b").unwrap().status, RecordStatus::Left);
    rig.hear_b(6);
    assert_eq!(rig.view(), ["b"]);
    assert_eq!(rig.frame("b", 5, 99, Message::Leave {}), Some(Reject::Replay));
    assert_eq!(rig.record_of("b").unwrap().status, RecordStatus::Alive);
}

#[test]
fn a_final_push_that_says_left_is_a_goodbye_too() {
    let mut rig = Rig::new();
    rig.hear_b(5);
    rig.hear("b", 5, push_of(&[("b", left(5))]));
    assert_eq!(rig.view(), Vec::<&str>::new());
    assert_eq!(rig.saw(|e| matches!(e, Event::MemberLeft { .. })), 1);
}

#[test]
fn a_leave_without_a_record_writes_a_tombstone_without_address() {
    let mut rig = Rig::new();
    rig.hear("b", 5, Message::Leave {});
    assert_eq!(rig.record_of("b"), Some(&record("", 5, RecordStatus::Left)));
}

#[test]
fn a_leave_told_by_others_does_not_hide_a_member_that_is_heard() {
    let mut rig = Rig::new();
    rig.hear_b(5);
    rig.hear("c", 1, push_of(&[("b", left(5)), ("c", alive(1))]));
    assert_eq!(rig.view(), ["b", "c"]);
    assert_eq!(rig.record_of("b").unwrap().status, RecordStatus::Left, "the document converges all the same");
    rig.until(S + 1);
    assert_eq!(rig.view(), Vec::<&str>::new());
}

#[test]
fn an_unheard_member_is_buried_forgotten_and_let_back_in_at_a_higher_incarnation() {
    let mut rig = Rig::new();
    rig.hear_b(5);
    rig.until(10 * S);
    assert_eq!(rig.record_of("b").unwrap().status, RecordStatus::Alive);
    rig.until(10 * S + 2 * P);
    assert_eq!(rig.record_of("b").unwrap().status, RecordStatus::Left);
    assert!(
        rig.sent.last().unwrap().targets.contains(&"10.0.0.2:1".parse().unwrap()),
        "tombstones stay targets"
    );
    rig.until(20 * S + 4 * P);
    assert_eq!(rig.record_of("b"), None);
    assert_eq!((rig.node.sizes().watermarks, rig.node.sizes().reap_notes), (0, 1));
    assert_eq!(rig.hear_b(6), None);
    assert_eq!(rig.view(), ["b"]);
}

#[test]
fn a_reaped_member_is_not_taught_back_while_the_note_lasts() {
    let mut rig = Rig::new();
    rig.hear("b", 5, Message::Leave {});
    rig.until(10 * S + 2 * P);
    assert_eq!(rig.record_of("b"), None);
    let teach = push_of(&[("b", left(5))]);
    rig.hear("c", 1, teach.clone());
    assert_eq!(rig.record_of("b"), None);
    rig.until(31 * S);
    rig.hear("c", 1, teach);
    assert_eq!(rig.record_of("b"), Some(&left(5)), "the note has lapsed");
}

#[test]
fn a_refused_return_is_answered_with_a_tombstone_and_moves_no_watermark() {
    let mut rig = Rig::new();
    rig.hear("b", 50, Message::Leave {});
    rig.until(10 * S + 2 * P);
    assert_eq!(rig.hear_b(7), None);
    assert_eq!(rig.record_of("b"), Some(&left(50)), "at the noted incarnation, with the pushed address");
    assert_eq!(rig.node.sizes().watermarks, 0);
    assert_eq!(rig.view(), Vec::<&str>::new(), "a frame below the record is not heard");
    rig.hear_b(51);
    assert_eq!(rig.view(), ["b"]);
}

#[test]
fn replayed_frames_that_the_note_refuses_neither_blind_us_nor_raise_the_dead() {
    let mut rig = Rig::new();
    rig.hear("b", 50, push_of(&[("b", alive(50))]));
    rig.frame("b", 50, 7, Message::Leave {});
    rig.until(10 * S + 2 * P);
    for seq in 0..2 {
        assert_eq!(rig.frame("b", 50, seq, push_of(&[("b", alive(50))])), None);
    }
    assert_eq!((rig.node.sizes().watermarks, rig.view()), (0, Vec::new()));
    // The real b is back, below its old incarnation and at another address: its own words reach us, and the answer it.
    let elsewhere = "10.0.0.7:1";
    assert_eq!(rig.frame("b", 7, 0, push_of(&[("b", record(elsewhere, 7, RecordStatus::Alive))])), None);
    rig.until(rig.now_ms + 2 * P);
    let targets = &rig.sent.last().unwrap().targets;
    assert!(targets.contains(&elsewhere.parse().unwrap()), "{targets:?}");
    rig.frame("b", 51, 0, push_of(&[("b", record(elsewhere, 51, RecordStatus::Alive))]));
    assert_eq!(rig.view(), ["b"]);
}

#[test]
fn a_record_about_us_is_refuted_at_once_and_the_refutation_wins() {
    for theirs in
        [left(BOOT), left(BOOT + 40), alive(BOOT + 40), record("10.0.0.1:1", BOOT, RecordStatus::Left)]
    {
        let mut rig = Rig::new();
        rig.hear("b", 5, push_of(&[("self", theirs.clone()), ("b", alive(5))]));
        let ours = rig.record_of("self").unwrap().clone();
        let leap = ours.incarnation.0 - theirs.incarnation.next().0;
        assert!(leap <= REFUTATION_LEAP_MAX, "{leap}");
        assert_eq!(ours.status, RecordStatus::Alive);
        assert_eq!((rig.sent.len(), rig.sent[0].header.seq), (1, Seq(0)), "pushed in the same call");
    }
}

#[test]
fn an_exact_echo_and_older_records_of_ourselves_are_left_alone() {
    for theirs in [record("10.0.0.1:1", BOOT, RecordStatus::Alive), left(BOOT - 1), alive(3)] {
        let mut rig = Rig::new();
        rig.hear("b", 5, push_of(&[("self", theirs), ("b", alive(5))]));
        assert_eq!(rig.node.incarnation(), Incarnation(BOOT));
    }
}

#[test]
fn a_refutation_that_must_wait_is_made_when_it_is_allowed() {
    let mut rig = Rig::new();
    rig.hear("b", 5, push_of(&[("self", left(BOOT)), ("b", alive(5))]));
    rig.now_ms += 1;
    let first = rig.node.incarnation();
    rig.hear("b", 5, push_of(&[("self", left(first.0)), ("b", alive(5))]));
    assert_eq!(rig.node.incarnation(), first);
    rig.until(P);
    assert!(rig.node.incarnation() > first);
}

#[test]
fn boots_that_refute_one_record_go_to_different_incarnations() {
    let refuted = |seed| {
        let mut rig = Rig::seeded(seed, Guards::ON);
        rig.hear("b", 5, push_of(&[("self", left(BOOT + 40)), ("b", alive(5))]));
        rig.node.incarnation()
    };
    assert_eq!(refuted(1), refuted(1));
    assert_ne!(refuted(1), refuted(2));
}

#[test]
fn two_hosts_with_one_id_are_noticed_from_each_sign() {
    let duplicates = |rig: &Rig| rig.saw(|e| matches!(e, Event::DuplicateNodeId { .. }));
    let mut rig = Rig::new();
    rig.frame("self", BOOT, 1, Message::Leave {});
    assert_eq!(duplicates(&rig), 0, "a reflected frame of this boot is no sign");
    rig.frame("self", BOOT + 3, 0, Message::Leave {});
    assert_eq!(duplicates(&rig), 1, "an incarnation this boot did not mint");

    let mut rig = Rig::new();
    rig.hear("b", 5, push_of(&[("self", alive(BOOT)), ("b", alive(5))]));
    assert_eq!(duplicates(&rig), 1, "our incarnation at another address");

    let mut rig = Rig::new();
    for _ in 0..3 {
        let Incarnation(own) = rig.node.incarnation();
        rig.hear("b", 5, push_of(&[("self", record("", own, RecordStatus::Left)), ("b", alive(5))]));
        rig.until(rig.now_ms + P);
    }
    assert_eq!(duplicates(&rig), 1, "the third refutation in a window");

    let mut rig = Rig::new();
    rig.hear_b(9);
    for _ in 0..7 {
        rig.until(rig.now_ms + P);
        rig.hear_b(9);
        assert_eq!(rig.frame("b", 5, 0, Message::Leave {}), Some(Reject::Replay));
    }
    assert_eq!(duplicates(&rig), 1, "a heard sender whose lower incarnation goes on for a suspicion timeout");
}

#[test]
fn a_late_round_restarts_the_silence_of_those_in_view_only() {
    let mut rig = Rig::new();
    rig.hear("c", 1, push_of(&[("c", record("10.0.0.3:1", 1, RecordStatus::Alive))]));
    rig.until(S + 1);
    rig.hear_b(5);
    assert_eq!(rig.view(), ["b"]);
    rig.now_ms += 20 * S;
    rig.handle(NodeInput::Wake);
    assert_eq!(rig.view(), ["b"], "held up for 20 S, it buries nobody and lets nobody back in");
    assert_eq!(rig.record_of("c").unwrap().status, RecordStatus::Alive);
    assert_eq!(rig.saw(|e| matches!(e, Event::RoundLate { .. })), 1);
    rig.until(rig.now_ms + S + 1);
    assert_eq!(rig.view(), Vec::<&str>::new());
}

#[test]
fn a_frame_below_the_record_does_not_keep_a_dead_record_alive() {
    let mut rig = Rig::new();
    rig.hear("c", 1, push_of(&[("b", alive(50)), ("c", alive(1))]));
    for _ in 0..24 {
        rig.until(rig.now_ms + P);
        rig.hear("b", 5, push_of(&[("b", alive(5))]));
        assert!(!rig.view().contains(&"b"));
    }
    rig.until(10 * S + 2 * P);
    assert_eq!(rig.record_of("b").unwrap().status, RecordStatus::Left);
}

#[test]
fn adopting_an_incarnation_restarts_the_silence_that_buries() {
    let mut rig = Rig::new();
    rig.hear_b(5);
    rig.until(9 * S);
    rig.hear("c", 1, push_of(&[("b", alive(6)), ("c", alive(1))]));
    rig.until(18 * S);
    assert_eq!(
        rig.record_of("b"),
        Some(&alive(6)),
        "told of a new incarnation at 9 S, it is not buried before 19 S"
    );
    rig.until(19 * S + 2 * P);
    assert_eq!(rig.record_of("b").unwrap().status, RecordStatus::Left);
}

#[test]
fn a_tombstone_at_a_new_incarnation_ages_anew() {
    let mut rig = Rig::new();
    rig.hear("b", 5, Message::Leave {});
    rig.until(9 * S);
    rig.hear("c", 1, push_of(&[("b", left(6)), ("c", alive(1))]));
    rig.until(18 * S);
    assert_eq!(rig.record_of("b").unwrap().incarnation, Incarnation(6));
    rig.until(19 * S + 2 * P);
    assert_eq!(rig.record_of("b"), None);
}

#[test]
fn rejected_frames_move_no_watermark() {
    let mut rig = Rig::new();
    let header = Header { sender: id("b"), incarnation: Incarnation(5), seq: Seq(9) };
    let broken = Payload::Text(String::from(r#"{"type":"later"}"#));
    rig.handle(NodeInput::Frame { header, payload: broken });
    assert_eq!(rig.node.metrics().frames_rejected[Reject::Payload as usize], 1);
    assert_eq!(rig.frame("b", 5, 9, push_of(&[("b", alive(5))])), None);
    assert_eq!(rig.frame("b", 5, 9, Message::Leave {}), Some(Reject::Replay));
    assert_eq!(rig.view(), ["b"]);
}

#[test]
fn increments_are_read_back_at_once_and_nudge_a_push_at_most_every_quarter_interval() {
    let mut rig = Rig::new();
    let name = CounterName::new("c").unwrap();
    for ms in 0..400 {
        rig.until(ms);
        rig.increment("c");
        assert_eq!(rig.node.counter(&name), ms + 1);
    }
    let times = rig.sent.len();
    assert_eq!(times, 4, "0, 125, 250 and 375 ms");
}

#[test]
fn increments_after_a_refutation_stay_in_the_boots_cell() {
    let mut rig = Rig::new();
    rig.increment("c");
    rig.hear("b", 5, push_of(&[("self", left(BOOT + 7)), ("b", alive(5))]));
    rig.increment("c");
    let cells = rig.node.document().counters.values().next().unwrap();
    assert_eq!(cells.iter().map(|(c, v)| (c.incarnation.0, *v)).collect::<Vec<_>>(), [(BOOT, 2)]);
}

#[test]
fn a_departure_is_one_push_and_one_leave_on_the_farewell_lane() {
    let mut rig = Rig::new();
    rig.increment("c");
    rig.sent.clear();
    let outputs = rig.handle(NodeInput::Command(Command::Leave));
    assert_eq!(outputs.last(), Some(&NodeOutput::Departed));
    let Message::StatePush { state } = &rig.sent[0].message else { panic!("a push first") };
    assert_eq!(state.members[&id("self")].status, RecordStatus::Left);
    assert_eq!(state.counters.len(), 1);
    assert_eq!(rig.sent[1].message, Message::Leave {});
    assert!(rig.sent.iter().all(|sent| sent.lane == Lane::Farewell));
    assert_eq!(rig.node.next_wake(), None);
    assert_eq!(rig.node.metrics().pushes_sent, 1, "the nudge before; farewells are not counted");
    let command = Command::Increment { counter: CounterName::new("c").unwrap(), by: 1 };
    assert_eq!(rig.handle(NodeInput::Command(command)), [NodeOutput::Reply(Err(Refusal::Departed))]);
}

#[test]
fn a_document_above_the_frame_is_not_sent_and_warned_about_once_a_minute() {
    let mut rig = Rig::new();
    let long = "x".repeat(50);
    let mut counters = BTreeMap::new();
    let cells = (0..900).map(|n| (Cell { node: id(&long), incarnation: Incarnation(n) }, u64::MAX)).collect();
    counters.insert(CounterName::new("c").unwrap(), cells);
    let state = Arc::new(Document { members: BTreeMap::from([(id("b"), alive(5))]), counters });
    rig.hear("b", 5, Message::StatePush { state });
    rig.until(59_000);
    assert!(rig.sent.is_empty());
    assert!(rig.node.metrics().pushes_unsendable > 90);
    assert_eq!(rig.saw(|e| matches!(e, Event::Unsendable { .. })), 1);
    rig.until(62_000);
    assert_eq!(rig.saw(|e| matches!(e, Event::Unsendable { .. })), 2);
}

#[test]
fn tables_refuse_what_exceeds_their_bounds_and_count_it() {
    let mut rig = Rig::new();
    let crowd = |range: core::ops::Range<usize>| -> BTreeMap<NodeId, MemberRecord> {
        range.map(|n| (id(&format!("n{n:05}")), alive(1))).collect()
    };
    for start in [0, 300] {
        let state = Arc::new(Document { members: crowd(start..start + 300), counters: BTreeMap::new() });
        rig.hear("b", 5, Message::StatePush { state });
    }
    assert_eq!(rig.node.sizes().members, MEMBERS_MAX);
    assert_eq!(
        rig.node.metrics().admissions_refused[Table::Members as usize],
        600 - (MEMBERS_MAX as u64 - 1)
    );
    for n in 0..WATERMARKS_MAX + 10 {
        rig.hear(&format!("s{n}"), 1, Message::Leave {});
    }
    assert_eq!(rig.node.sizes().watermarks, WATERMARKS_MAX);
    assert_eq!(rig.saw(|e| matches!(e, Event::NotAdmitted { .. })), 11);
    for n in 0..COUNTERS_MAX + 1 {
        rig.increment(&format!("c{n}"));
    }
    assert_eq!(rig.node.sizes().counters, COUNTERS_MAX);
    assert_eq!(rig.node.metrics().admissions_refused[Table::Counters as usize], 1);
}

#[test]
fn a_pushed_document_that_dominates_is_shared_not_copied() {
    let mut rig = Rig::new();
    let own = rig.node.document().members[&id("self")].clone();
    let message = push_of(&[("b", alive(5)), ("self", own)]);
    let Message::StatePush { state } = &message else { unreachable!() };
    rig.hear("b", 5, message.clone());
    assert!(core::ptr::eq(&raw const **state, rig.node.document()));
}
