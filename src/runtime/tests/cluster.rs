//! Nodes on real sockets, seen through their handles: convergence, counting, leaving, dying, coming back.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use firedrill_core::config::{ClusterConfig, Config};
use firedrill_core::io::Refusal;
use firedrill_runtime::{Cluster, CommandError, Departure, MemberEvent, StartError};
use support::{PATIENCE, SUSPICION, config, eventually, ids, start};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

#[tokio::test]
async fn two_nodes_converge_and_share_a_counter() {
    let a = start("a", &[]).await;
    let b = start("b", &[a.local_addr()]).await;
    eventually("both see both", || ids(&a) == ["a", "b"] && ids(&b) == ["b", "a"]).await;

    let (on_a, on_b) = (a.counter("sightings").unwrap(), b.counter("sightings").unwrap());
    assert_eq!(on_a.increment(), Ok(1));
    assert_eq!(on_a.get(), 1, "the writer reads its own write at once");
    eventually("b reads it", || on_b.get() == 1).await;
    assert_eq!(on_b.add(41), Ok(42));
    eventually("a reads that", || on_a.get() == 42).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_converge_through_one_seed_and_count_from_many_tasks() {
    let a = start("a", &[]).await;
    let b = start("b", &[a.local_addr()]).await;
    let c = start("c", &[a.local_addr()]).await;
    let nodes = [a.handle(), b.handle(), c.handle()];
    eventually("all see all", || nodes.iter().all(|node| node.members().len() == 3)).await;

    let workers: Vec<_> = nodes
        .iter()
        .map(|node| {
            let counter = node.counter("hits").unwrap();
            tokio::spawn(async move { (0..500).all(|_| counter.increment().is_ok()) })
        })
        .collect();
    for worker in workers {
        assert!(worker.await.unwrap());
    }
    let total = |node: &firedrill_runtime::ClusterHandle| node.counter("hits").unwrap().get();
    eventually("all count all", || nodes.iter().all(|node| total(node) == 1500)).await;
    assert!(nodes.iter().all(|node| node.metrics().frames_rejected == [0; 9]), "nothing was rejected");
}

#[tokio::test]
async fn a_graceful_leave_is_seen_within_300_ms_and_keeps_the_last_increment() {
    let a = start("a", &[]).await;
    let b = start("b", &[a.local_addr()]).await;
    eventually("both see both", || a.members().len() == 2 && b.members().len() == 2).await;
    let mut events = a.events();

    b.counter("last").unwrap().increment().unwrap();
    let begin = Instant::now();
    assert_eq!(b.leave().await, Departure::Flushed);
    eventually("a drops b", || ids(&a) == ["a"]).await;
    assert!(begin.elapsed() < Duration::from_millis(300), "it took {:?}", begin.elapsed());
    assert_eq!(a.counter("last").unwrap().get(), 1, "the farewell carries the last increment");
    let event = timeout(PATIENCE, events.next()).await.unwrap();
    assert!(matches!(event, Some(MemberEvent::Left { id }) if id.as_str() == "b"));
}

#[tokio::test]
async fn a_killed_node_is_dropped_after_the_suspicion_timeout_and_not_before() {
    let a = start("a", &[]).await;
    let b = start("b", &[a.local_addr()]).await;
    eventually("both see both", || a.members().len() == 2 && b.members().len() == 2).await;
    let mut events = a.events();

    drop(b);
    let took = eventually("a drops b", || ids(&a) == ["a"]).await;
    // The last push left at most one jittered interval before the kill.
    assert!(took > SUSPICION - support::PUSH * 2, "dropped after only {took:?}");
    let mut seen = Vec::new();
    while !matches!(seen.last(), Some(MemberEvent::Down { .. })) {
        seen.push(timeout(PATIENCE, events.next()).await.unwrap().unwrap());
    }
    assert!(matches!(&seen[0], MemberEvent::Suspect { id } if id.as_str() == "b"), "{seen:?}");
}

#[tokio::test]
async fn a_node_restarted_with_its_id_on_its_port_is_back_in_a_new_boot() {
    let a = start("a", &[]).await;
    let b = start("b", &[a.local_addr()]).await;
    eventually("both see both", || a.members().len() == 2 && b.members().len() == 2).await;
    let (addr, first_boot) = (b.local_addr(), b.view().incarnation);
    b.counter("kept").unwrap().increment().unwrap();
    eventually("a has the count", || a.counter("kept").unwrap().get() == 1).await;

    let old = b.handle().clone();
    drop(b);
    assert_eq!(old.ended().await, Departure::Cut);
    let again = support::config("b", &[a.local_addr()]);
    let again = ClusterConfig { bind_addr: addr, ..again };
    let b = retry_while_in_use(&again.into()).await;
    let boot_seen = || a.members().iter().find(|member| member.id.as_str() == "b").map(|b| b.incarnation);
    eventually("a sees the new boot", || boot_seen() > Some(first_boot)).await;
    eventually("b learns the count again", || b.counter("kept").unwrap().get() == 1).await;
}

/// A dropped node gives its port back when the runtime next gets to it.
async fn retry_while_in_use(config: &Config) -> Cluster {
    let start = Instant::now();
    loop {
        match Cluster::start(config).await {
            Ok(cluster) => return cluster,
            Err(StartError::Listen { .. }) if start.elapsed() < PATIENCE => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_hundred_and_thirty_strangers_do_not_keep_a_peer_out() {
    let a = start("a", &[]).await;
    let mut strangers = Vec::new();
    for _ in 0..130 {
        strangers.push(TcpStream::connect(a.local_addr()).await.unwrap());
    }
    let b = start("b", &[a.local_addr()]).await;
    eventually("both see both", || a.members().len() == 2 && b.members().len() == 2).await;
    drop(strangers);
}

#[tokio::test]
async fn a_node_that_has_left_refuses_commands_and_ends_its_event_streams() {
    let a = start("a", &[]).await;
    let (handle, counter, mut events) = (a.handle().clone(), a.counter("late").unwrap(), a.events());
    assert_eq!(timeout(PATIENCE, a.leave()).await, Ok(Departure::Flushed));
    assert_eq!(counter.increment(), Err(CommandError::Stopped));
    assert_eq!(counter.get(), 0);
    assert_eq!(handle.leave().await, Departure::Flushed, "a second leave tells how the first went");
    assert_eq!(timeout(PATIENCE, events.next()).await.unwrap(), None);
    assert_eq!(timeout(PATIENCE, handle.events().next()).await.unwrap(), None);
}

#[tokio::test]
async fn a_command_wakes_a_driver_that_would_sleep_for_a_minute() {
    let slow = ClusterConfig { push_interval_ms: 60_000, suspicion_timeout_ms: 180_000, ..config("a", &[]) };
    let a = Cluster::start(&slow.into()).await.unwrap();
    let mut events = a.events();
    // Let the driver fall asleep first: its first step is the node's start.
    tokio::task::yield_now().await;
    assert_eq!(timeout(PATIENCE, a.leave()).await, Ok(Departure::Flushed));
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn leaving_is_bounded_when_no_peer_can_be_reached() {
    let nobody: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let a = start("a", &[nobody]).await;
    let begin = Instant::now();
    a.leave().await;
    assert!(begin.elapsed() < Duration::from_millis(400), "it took {:?}", begin.elapsed());
}

#[tokio::test]
async fn the_sixty_fifth_counter_name_is_refused_and_nothing_changes() {
    let a = start("a", &[]).await;
    for number in 0..64 {
        a.counter(&format!("c{number}")).unwrap().increment().unwrap();
    }
    let refused = a.counter("one-too-many").unwrap().increment();
    assert_eq!(refused, Err(CommandError::Refused(Refusal::TooManyCounters)));
    assert_eq!(a.counter("c0").unwrap().increment(), Ok(2), "the names in use go on counting");
    assert!(a.counter(" ").is_err() && a.counter(&"x".repeat(65)).is_err());
}

#[tokio::test]
async fn a_start_that_fails_says_where_and_what_to_do() {
    let a = start("a", &[]).await;
    let taken = ClusterConfig { bind_addr: a.local_addr(), ..config("b", &[]) };
    let error = Cluster::start(&taken.into()).await.unwrap_err().to_string();
    assert!(
        error.contains(&a.local_addr().to_string()) && error.contains("another process has it"),
        "{error}"
    );

    let off = ClusterConfig { enabled: false, ..config("b", &[]) };
    assert!(matches!(Cluster::start(&off.into()).await, Err(StartError::Disabled)));

    let wildcard = "0.0.0.0:0".parse().unwrap();
    let wildcard = ClusterConfig { bind_addr: wildcard, ..config("b", &[]) };
    let error = Cluster::start(&wildcard.into()).await.unwrap_err().to_string();
    assert!(error.contains("advertise_addr"), "{error}");
}
