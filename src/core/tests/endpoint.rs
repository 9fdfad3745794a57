//! Endpoints as a driver sees them: connections, departure, wake-ups, bounds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod support;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use firedrill_core::id::CounterName;
use firedrill_core::io::{
    CloseReason, Command, EndpointInput, EndpointOutput, Event, InboundId, LinkId, Refusal, Reply,
    ResetReason, Wake,
};
use firedrill_core::limits::{INBOUND_MAX, SEND_QUEUE_FRAMES};
use proptest::prelude::*;
use support::{Bench, config, frame, vectors};

fn dialled(outputs: &[EndpointOutput]) -> Vec<LinkId> {
    let dial = |output: &EndpointOutput| {
        if let EndpointOutput::Dial { link, .. } = output { Some(*link) } else { None }
    };
    outputs.iter().filter_map(dial).collect()
}

fn written(outputs: &[EndpointOutput]) -> Vec<Bytes> {
    let write = |output: &EndpointOutput| {
        if let EndpointOutput::Write { frame, .. } = output { Some(frame.clone()) } else { None }
    };
    outputs.iter().filter_map(write).collect()
}

/// The departure among `outputs`: whether it was flushed.
fn departed(outputs: &[EndpointOutput]) -> Option<bool> {
    outputs.iter().find_map(|output| {
        if let EndpointOutput::Departed { flushed } = output { Some(*flushed) } else { None }
    })
}

/// Wakes the endpoint until it dials, and reports the dial as a success.
fn connect(bench: &mut Bench) -> (LinkId, Vec<EndpointOutput>) {
    loop {
        let outputs = bench.wake().unwrap();
        if let [link] = dialled(&outputs)[..] {
            return (link, bench.input(EndpointInput::Connected { link }));
        }
    }
}

/// A network without latency: every dial succeeds, every write arrives, in the order of the outputs.
struct Network {
    hosts: Vec<Bench>,
    /// Who dialled whom, over which of the receiver's connections.
    pipes: BTreeMap<(usize, LinkId), (usize, u64)>,
    connections: u64,
    events: Vec<(usize, Event)>,
}

impl Network {
    /// Hosts on ports 7000 and up; all but the first are seeded with the first.
    fn new(hosts: usize) -> Self {
        let host = |at: usize| {
            let seeds: &[u16] = if at == 0 { &[] } else { &[7000] };
            Bench::new(&config(&format!("node-{at}"), 7000 + u16::try_from(at).unwrap(), seeds))
        };
        Self {
            hosts: (0..hosts).map(host).collect(),
            pipes: BTreeMap::new(),
            connections: 0,
            events: Vec::new(),
        }
    }

    fn run_until(&mut self, micros: u64) {
        loop {
            let wake = |at: usize| self.hosts[at].endpoint.next_wake().map(|(due, _)| (due.as_micros(), at));
            let Some((due, at)) =
                (0..self.hosts.len()).filter_map(wake).min().filter(|(due, _)| *due <= micros)
            else {
                break;
            };
            self.hosts.iter_mut().for_each(|host| host.micros = due);
            self.input(at, EndpointInput::Wake);
        }
        self.hosts.iter_mut().for_each(|host| host.micros = micros);
    }

    /// Hands `input` to one host and carries out all that follows; gives back that host's outputs.
    fn input(&mut self, at: usize, input: EndpointInput) -> Vec<EndpointOutput> {
        let (mut waiting, mut own) = (VecDeque::from([(at, input)]), Vec::new());
        while let Some((host, input)) = waiting.pop_front() {
            for output in self.hosts[host].input(input) {
                self.carry_out(host, &output, &mut waiting);
                if host == at {
                    own.push(output);
                }
            }
        }
        own
    }

    fn carry_out(
        &mut self,
        host: usize,
        output: &EndpointOutput,
        waiting: &mut VecDeque<(usize, EndpointInput)>,
    ) {
        match output {
            EndpointOutput::Persist { .. } => unreachable!("there is no issuance"),
            EndpointOutput::Dial { link, addr } => {
                let peer = usize::from(addr.port() - 7000);
                self.connections += 1;
                self.pipes.insert((host, *link), (peer, self.connections));
                waiting.push_back((peer, EndpointInput::Accepted { inbound: InboundId(self.connections) }));
                waiting.push_back((host, EndpointInput::Connected { link: *link }));
            }
            EndpointOutput::Write { link, frame } => {
                let (peer, inbound) = self.pipes[&(host, *link)];
                waiting.push_back((
                    peer,
                    EndpointInput::Received { inbound: InboundId(inbound), bytes: frame.clone() },
                ));
                waiting.push_back((host, EndpointInput::Written { link: *link }));
            }
            EndpointOutput::Event(event) => self.events.push((host, event.clone())),
            EndpointOutput::Alarm(alarm) => panic!("{alarm}"),
            EndpointOutput::CloseLink { .. }
            | EndpointOutput::CloseInbound { .. }
            | EndpointOutput::PauseAccept
            | EndpointOutput::ResumeAccept
            | EndpointOutput::Reply(_)
            | EndpointOutput::Departed { .. } => {}
        }
    }

    fn members(&self, host: usize) -> usize {
        self.hosts[host].endpoint.view().members.len()
    }
}

#[test]
fn three_hosts_find_each_other_share_a_counter_and_notice_a_departure() {
    let mut network = Network::new(3);
    network.run_until(3_000_000);
    assert_eq!((0..3).map(|host| network.members(host)).collect::<Vec<_>>(), [3, 3, 3]);

    let sightings = CounterName::new("sightings").unwrap();
    for host in 0..3 {
        let increment = Command::Increment { counter: sightings.clone(), by: 1 << host };
        network.input(host, EndpointInput::Command(increment));
    }
    network.run_until(4_000_000);
    assert!(network.hosts.iter().all(|host| host.endpoint.node().counter(&sightings) == 7));

    let outputs = network.input(2, EndpointInput::Command(Command::Leave));
    assert!(outputs.contains(&EndpointOutput::Reply(Ok(Reply::Leaving))));
    assert_eq!(departed(&outputs), Some(true), "both farewells reached both peers");
    assert_eq!((network.members(0), network.members(1)), (2, 2));

    network.run_until(60_000_000);
    assert_eq!((network.members(0), network.members(1)), (2, 2));
    let rejected = network.events.iter().filter(|(_, event)| matches!(event, Event::Rejected { .. })).count();
    assert_eq!(rejected, 0);
}

#[test]
fn steady_peers_keep_their_connections() {
    let mut network = Network::new(3);
    network.run_until(10_000_000);
    let connections = network.connections;
    network.run_until(120_000_000);
    assert_eq!(network.connections, connections);
    let closed = |event: &Event| matches!(event, Event::InboundClosed { .. });
    assert!(!network.events.iter().any(|(_, event)| closed(event)));
}

#[test]
fn a_push_is_sealed_once_and_its_targets_share_the_bytes() {
    let mut bench = Bench::new(&config("node-self", 7000, &[7001, 7002]));
    let links = loop {
        let outputs = bench.wake().unwrap();
        if dialled(&outputs).len() == 2 {
            break dialled(&outputs);
        }
    };
    let outputs: Vec<_> =
        links.into_iter().flat_map(|link| bench.input(EndpointInput::Connected { link })).collect();
    let frames = written(&outputs);
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[0].as_ptr(), frames[1].as_ptr());
}

#[test]
fn a_departure_is_flushed_when_every_farewell_is_written() {
    let mut bench = Bench::new(&config("node-self", 7000, &[7001]));
    let (link, outputs) = connect(&mut bench);
    assert_eq!(written(&outputs).len(), 1);
    let outputs = bench.input(EndpointInput::Command(Command::Leave));
    assert_eq!(outputs, [EndpointOutput::Reply(Ok(Reply::Leaving))], "one write at a time");
    for farewell in 0..2 {
        let outputs = bench.input(EndpointInput::Written { link });
        assert_eq!((written(&outputs).len(), departed(&outputs)), (1, None), "farewell {farewell}");
    }
    assert_eq!(bench.input(EndpointInput::Written { link }), [EndpointOutput::Departed { flushed: true }]);
}

#[test]
fn a_departure_nobody_takes_ends_after_250_milliseconds() {
    let mut bench = Bench::new(&config("node-self", 7000, &[7001]));
    let (_, outputs) = connect(&mut bench);
    assert_eq!(written(&outputs).len(), 1);
    let start = bench.micros;
    bench.input(EndpointInput::Command(Command::Leave));
    assert_eq!(bench.endpoint.next_wake().map(|(_, wake)| wake), Some(Wake::Departure));
    assert_eq!(bench.wake(), Some(vec![EndpointOutput::Departed { flushed: false }]));
    assert_eq!(bench.micros - start, 250_000);
}

#[test]
fn a_farewell_lost_with_its_connection_is_not_called_flushed() {
    let mut bench = Bench::new(&config("node-self", 7000, &[7001]));
    let (link, _) = connect(&mut bench);
    bench.input(EndpointInput::Written { link });
    assert_eq!(written(&bench.input(EndpointInput::Command(Command::Leave))).len(), 1);
    bench.input(EndpointInput::LinkClosed { link });
    let (link, outputs) = connect(&mut bench);
    assert_eq!(written(&outputs).len(), 1, "the leave goes over a new connection");
    assert_eq!(bench.input(EndpointInput::Written { link }), [EndpointOutput::Departed { flushed: false }]);
}

#[test]
fn a_departing_endpoint_reads_nothing_and_takes_no_connection() {
    let mut bench = Bench::new(&config("node-self", 7000, &[7001]));
    bench.accept(1);
    bench.input(EndpointInput::Command(Command::Leave));
    assert_eq!(bench.receive(1, &frame("no envelope")), []);
    assert_eq!(bench.accept(2), [EndpointOutput::CloseInbound { inbound: InboundId(2) }]);
    let refused = [EndpointOutput::Reply(Err(Refusal::Departed))];
    assert_eq!(bench.input(EndpointInput::Command(Command::Leave)), refused);
}

#[test]
fn a_lonely_host_departs_at_once() {
    let mut bench = Bench::new(&config("node-self", 7000, &[]));
    let outputs = bench.input(EndpointInput::Command(Command::Leave));
    assert_eq!(
        outputs,
        [EndpointOutput::Reply(Ok(Reply::Leaving)), EndpointOutput::Departed { flushed: true }]
    );
}

#[test]
fn after_the_departure_commands_are_refused_and_everything_else_is_ignored() {
    let mut bench = Bench::new(&config("node-self", 7000, &[]));
    bench.accept(1);
    bench.input(EndpointInput::Command(Command::Leave));
    assert_eq!(bench.endpoint.next_wake(), None);
    let refused = [EndpointOutput::Reply(Err(Refusal::Departed))];
    assert_eq!(bench.input(EndpointInput::Command(Command::Leave)), refused);
    let increment = Command::Increment { counter: CounterName::new("c").unwrap(), by: 1 };
    assert_eq!(bench.input(EndpointInput::Command(increment)), refused);
    bench.micros += 60_000_000;
    assert_eq!(bench.input(EndpointInput::Wake), []);
    assert_eq!(bench.accept(2), []);
    assert_eq!(bench.receive(1, &frame(&vectors()[0].body)), []);
    assert_eq!(bench.input(EndpointInput::AcceptFailed), []);
    assert_eq!(bench.endpoint.next_wake(), None);
}

#[test]
fn reports_of_a_connection_given_up_change_nothing() {
    let mut bench = Bench::new(&config("node-self", 7000, &[7001]));
    let (old, _) = connect(&mut bench);
    bench.input(EndpointInput::LinkClosed { link: old });
    let before = (bench.endpoint.next_wake(), bench.endpoint.metrics());
    for late in [
        EndpointInput::Connected { link: old },
        EndpointInput::Written { link: old },
        EndpointInput::DialFailed { link: old },
        EndpointInput::LinkClosed { link: old },
        EndpointInput::Received { inbound: InboundId(9), bytes: Bytes::from_static(b"late") },
        EndpointInput::InboundClosed { inbound: InboundId(9) },
    ] {
        assert_eq!(bench.input(late), []);
    }
    assert_eq!((bench.endpoint.next_wake(), bench.endpoint.metrics()), before);
}

#[test]
fn a_peer_that_takes_writes_but_is_never_heard_is_dialled_anew_every_suspicion_timeout() {
    let mut bench = Bench::new(&config("node-self", 7000, &[7001]));
    let (mut link, mut outputs) = connect(&mut bench);
    let (mut connected_at, mut resets) = (bench.micros, 0);
    while resets < 3 {
        while !written(&outputs).is_empty() {
            outputs = bench.input(EndpointInput::Written { link });
        }
        outputs = bench.wake().unwrap();
        if let [next] = dialled(&outputs)[..] {
            let silent = |output: &EndpointOutput| {
                matches!(
                    output,
                    EndpointOutput::Event(Event::LinkReset { reason: ResetReason::PeerSilent, .. })
                )
            };
            assert!(outputs.iter().any(silent));
            assert_eq!(bench.micros - connected_at, 2_500_001);
            outputs = bench.input(EndpointInput::Connected { link: next });
            (link, connected_at, resets) = (next, bench.micros, resets + 1);
        }
    }
}

#[test]
fn an_unreachable_peer_costs_one_queue_whatever_the_time() {
    let mut bench = Bench::new(&config("node-self", 7000, &[7001]));
    while bench.micros < 600_000_000 {
        let outputs = bench.wake().unwrap();
        for link in dialled(&outputs) {
            bench.input(EndpointInput::DialFailed { link });
        }
        assert!(bench.endpoint.sizes().queue_longest <= SEND_QUEUE_FRAMES);
    }
    let metrics = bench.endpoint.metrics();
    assert_eq!(metrics.frames_dropped, metrics.pushes_sent - SEND_QUEUE_FRAMES as u64);
}

#[test]
fn every_wake_up_moves_the_next_one_on() {
    let mut bench = Bench::new(&config("node-self", 7000, &[7001, 7002, 7003]));
    for inbound in 0..10 {
        bench.accept(inbound);
    }
    bench.input(EndpointInput::AcceptFailed);
    for turn in 0..5_000 {
        let outputs = bench.wake().unwrap();
        let (next, wake) = bench.endpoint.next_wake().unwrap();
        assert!(next.as_micros() > bench.micros, "turn {turn}: {wake:?} again");
        // Some dials succeed, some fail, some never end; no write ever does.
        for link in dialled(&outputs) {
            match link.0 % 3 {
                0 => drop(bench.input(EndpointInput::Connected { link })),
                1 => drop(bench.input(EndpointInput::DialFailed { link })),
                _ => {}
            }
        }
    }
}

#[test]
fn a_late_driver_gets_everything_that_is_due_in_one_call() {
    let mut bench = Bench::new(&config("node-self", 7000, &[7001]));
    bench.accept(1);
    let (link, _) = connect(&mut bench);
    bench.micros += 100_000_000;
    let outputs = bench.input(EndpointInput::Wake);
    assert!(outputs.contains(&EndpointOutput::CloseLink { link }));
    assert!(outputs.contains(&EndpointOutput::Event(Event::InboundClosed {
        inbound: InboundId(1),
        reason: CloseReason::Idle
    })));
    assert!(bench.endpoint.next_wake().unwrap().0.as_micros() > bench.micros);
}

#[test]
fn a_flood_of_strangers_does_not_displace_a_peer() {
    let mut bench = Bench::new(&config("node-self", 7000, &[]));
    bench.accept(0);
    bench.receive(0, &frame(&vectors()[1].body));
    let outputs: Vec<_> = (1..1000).flat_map(|stranger| bench.accept(stranger)).collect();
    assert!(!outputs.contains(&EndpointOutput::CloseInbound { inbound: InboundId(0) }));
    assert!(outputs.contains(&EndpointOutput::CloseInbound { inbound: InboundId(1) }));
    assert_eq!(bench.endpoint.sizes().inbound, INBOUND_MAX);
}

#[derive(Debug, Clone)]
enum Step {
    Input(EndpointInput),
    /// A vector, or a part of it, on a connection.
    Vector(u64, usize, usize),
    Wake,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let inbound = || (0u64..300).prop_map(InboundId);
    let link = || (0u64..40).prop_map(LinkId);
    let counter = "[abc]".prop_map(|name| CounterName::new(&name).unwrap());
    let bytes = prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from);
    let input = prop_oneof![
        20 => inbound().prop_map(|inbound| EndpointInput::Accepted { inbound }),
        4 => (inbound(), bytes).prop_map(|(inbound, bytes)| EndpointInput::Received { inbound, bytes }),
        2 => inbound().prop_map(|inbound| EndpointInput::InboundClosed { inbound }),
        1 => Just(EndpointInput::AcceptFailed),
        6 => link().prop_map(|link| EndpointInput::Connected { link }),
        2 => link().prop_map(|link| EndpointInput::DialFailed { link }),
        6 => link().prop_map(|link| EndpointInput::Written { link }),
        2 => link().prop_map(|link| EndpointInput::LinkClosed { link }),
        3 => (counter, any::<u64>()).prop_map(|(counter, by)| EndpointInput::Command(Command::Increment { counter, by })),
    ];
    prop_oneof![
        20 => input.prop_map(Step::Input),
        6 => (0u64..300, 0usize..18, 0usize..400).prop_map(|(inbound, vector, cut)| Step::Vector(inbound, vector, cut)),
        10 => Just(Step::Wake),
        3 => (0u64..20_000_000).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_sequence_of_inputs_keeps_the_bounds_and_makes_progress(
        steps in prop::collection::vec(step(), 0..400), leave: bool,
    ) {
        let vectors = vectors();
        let mut bench = Bench::new(&config("node-self", 7000, &[7001, 7002]));
        for inbound in 300..420 {
            bench.accept(inbound);
        }
        for step in steps {
            let outputs = match step {
                Step::Input(input) => bench.input(input),
                Step::Vector(inbound, vector, cut) => {
                    let frame = frame(&vectors[vector].body);
                    bench.receive(inbound, &frame[..frame.len().min(cut + 4)])
                }
                Step::Wake => {
                    let outputs = bench.wake().unwrap();
                    prop_assert!(bench.endpoint.next_wake().is_some_and(|(next, _)| next.as_micros() > bench.micros));
                    outputs
                }
                Step::Wait(micros) => {
                    bench.micros += micros;
                    Vec::new()
                }
            };
            let alarm = |output: &EndpointOutput| matches!(output, EndpointOutput::Alarm(_));
            prop_assert!(!outputs.iter().any(alarm), "{:?}", outputs);
            let sizes = bench.endpoint.sizes();
            prop_assert!(sizes.inbound <= INBOUND_MAX && sizes.queue_longest <= SEND_QUEUE_FRAMES, "{:?}", sizes);
        }
        if leave {
            let mut outputs = bench.input(EndpointInput::Command(Command::Leave));
            let start = bench.micros;
            while departed(&outputs).is_none() {
                outputs = bench.wake().unwrap();
            }
            prop_assert!(bench.micros - start <= 250_000);
        }
    }
}
