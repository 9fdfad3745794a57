//! The eight steps of the receive path, through a whole endpoint: bytes in, verdicts out.

mod support;

use firedrill_core::io::{CloseReason, EndpointOutput, Event, InboundId};
use support::{Bench, config, frame, vectors, verdicts};

fn closed_because(outputs: &[EndpointOutput]) -> Option<CloseReason> {
    outputs.iter().find_map(|output| {
        if let EndpointOutput::Event(Event::InboundClosed { reason, .. }) = output {
            Some(*reason)
        } else {
            None
        }
    })
}

#[test]
fn the_vectors_give_their_verdicts_in_order() {
    let mut bench = Bench::new(&config("node-self", 7000, &[]));
    for (number, vector) in (0..).zip(vectors()) {
        // A connection each: the vectors hold more refusals than one connection may have.
        bench.accept(number);
        assert_eq!(
            verdicts(&bench.receive(number, &frame(&vector.body))),
            [vector.verdict],
            "{}",
            vector.name
        );
    }
    let metrics = bench.endpoint.metrics();
    assert_eq!(metrics.frames_rejected, [0, 1, 1, 1, 1, 2, 1, 3, 2]);
    assert_eq!(metrics.pushes_received, 3);
}

#[test]
fn frames_of_one_connection_may_arrive_in_one_piece_or_byte_by_byte() {
    let authenticated = |verdict: &str| matches!(verdict, "accept" | "self_origin" | "replay" | "payload");
    let vectors: Vec<_> = vectors().into_iter().filter(|vector| authenticated(&vector.verdict)).collect();
    let stream: Vec<u8> = vectors.iter().flat_map(|vector| frame(&vector.body)).collect();
    let expected: Vec<_> = vectors.iter().map(|vector| vector.verdict.as_str()).collect();
    for piece in [1, 7, stream.len()] {
        let mut bench = Bench::new(&config("node-self", 7000, &[]));
        bench.accept(0);
        let outputs: Vec<_> = stream.chunks(piece).flat_map(|bytes| bench.receive(0, bytes)).collect();
        assert_eq!(verdicts(&outputs), expected);
        assert_eq!(closed_because(&outputs), None);
    }
}

#[test]
fn three_charged_refusals_close_the_connection_and_what_follows_is_not_read() {
    let mut bench = Bench::new(&config("node-self", 7000, &[]));
    bench.accept(0);
    let vectors = vectors();
    let body = |verdict: &str| &vectors.iter().find(|vector| vector.verdict == verdict).unwrap().body;
    let stream: Vec<u8> = ["mac", "accept", "cluster", "version", "accept"]
        .into_iter()
        .flat_map(|verdict| frame(body(verdict)))
        .collect();
    let outputs = bench.receive(0, &stream);
    assert_eq!(verdicts(&outputs), ["mac", "accept", "cluster", "version"]);
    assert_eq!(closed_because(&outputs), Some(CloseReason::Strikes));
    assert_eq!(bench.receive(0, &frame(body("accept"))), []);
    assert_eq!(bench.endpoint.sizes().inbound, 0);
}

#[test]
fn a_bad_length_is_counted_and_closes_the_connection() {
    for prefix in [[0, 0, 0, 0], [0, 1, 0, 1]] {
        let mut bench = Bench::new(&config("node-self", 7000, &[]));
        bench.accept(0);
        let outputs = bench.receive(0, &prefix);
        assert_eq!(verdicts(&outputs), ["oversize"]);
        assert_eq!(closed_because(&outputs), Some(CloseReason::Oversize));
        assert!(outputs.contains(&EndpointOutput::CloseInbound { inbound: InboundId(0) }));
        assert_eq!(bench.endpoint.metrics().frames_rejected[0], 1);
    }
}

#[test]
fn a_frame_cut_at_any_byte_is_accepted_whole_and_says_nothing_before() {
    let whole = frame(&vectors()[1].body);
    for cut in 0..whole.len() {
        let mut bench = Bench::new(&config("node-self", 7000, &[]));
        bench.accept(0);
        assert_eq!(bench.receive(0, &whole[..cut]), [], "cut at {cut}");
        assert_eq!(verdicts(&bench.receive(0, &whole[cut..])), ["accept"], "cut at {cut}");
    }
}

#[test]
fn a_frame_shortened_at_any_byte_is_a_counted_refusal() {
    let whole = &vectors()[1].body;
    let mut bench = Bench::new(&config("node-self", 7000, &[]));
    for cut in 1..whole.len() {
        bench.accept(cut as u64);
        assert_eq!(
            verdicts(&bench.receive(cut as u64, &frame(&whole[..cut]))),
            ["malformed"],
            "cut at {cut}"
        );
        assert_eq!(bench.rejected(), cut as u64);
    }
}

#[test]
fn a_frame_with_any_bit_flipped_is_never_accepted_and_is_counted() {
    let whole = frame(&vectors()[1].body);
    let mut bench = Bench::new(&config("node-self", 7000, &[]));
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let before = bench.rejected();
        bench.accept(bit as u64);
        let outputs = bench.receive(bit as u64, &bytes);
        let verdicts = verdicts(&outputs);
        assert!(!verdicts.contains(&"accept"), "bit {bit}: {verdicts:?}");
        assert_eq!(bench.rejected() - before, verdicts.len() as u64, "bit {bit}");
        // A length raised within the cap waits for the rest; everything else gets its verdict.
        let waits =
            bit / 8 < 4 && u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize > whole.len() - 4;
        assert!(waits || !verdicts.is_empty(), "bit {bit}");
    }
}
