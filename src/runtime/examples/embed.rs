//! Two services in one process find each other and share a counter.
//!
//! `cargo run -p firedrill-runtime --example embed`

use std::collections::BTreeMap;
use std::error::Error;

use firedrill_core::config::Config;
use firedrill_runtime::{Cluster, MemberEvent};

/// A service embeds a node in these lines; a real one reads a file and the process's environment.
async fn service(name: &str, seed_peers: &str) -> Result<Cluster, Box<dyn Error>> {
    let text = format!(
        "[cluster]\nenabled = true\nsecret = 'for this example only'\nnode_id = '{name}'\nseed_peers = [{seed_peers}]"
    );
    let config = Config::parse(&text, &BTreeMap::new())?;
    Ok(Cluster::start(&config).await?)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn Error>> {
    let a = service("a", "").await?;
    let mut events = a.events();
    let b = service("b", &format!("'{}'", a.local_addr())).await?;

    while let Some(event) = events.next().await {
        println!("a sees {event:?}");
        if matches!(event, MemberEvent::Up { .. }) {
            break;
        }
    }
    a.counter("sightings")?.increment()?;
    b.counter("sightings")?.add(2)?;
    while a.counter("sightings")?.get() < 3 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    println!("a counts {}", a.counter("sightings")?.get());

    println!("b departs: {:?}", b.leave().await);
    while a.members().len() > 1 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    println!("a is alone again: {:?}", a.members());
    println!("a departs: {:?}", a.leave().await);
    Ok(())
}
