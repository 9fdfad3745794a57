//! Which host an address leads to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Where a message for some address goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Hop {
    /// To the process of this host.
    Host(u32),
    /// To this host, where nobody listens at that address.
    Refused(u32),
    /// Nowhere.
    Nobody,
}

/// The present address of every host.
#[derive(Debug, Default)]
pub(in crate::engine) struct Directory {
    by_addr: BTreeMap<SocketAddr, u32>,
    /// Rises with every change, so that resolved routes know when they are stale.
    epoch: u64,
}

impl Directory {
    /// Gives a host an address, in place of the one it had.
    pub(in crate::engine) fn set(&mut self, host: u32, addr: SocketAddr) {
        self.by_addr.retain(|_, holder| *holder != host);
        self.by_addr.insert(addr, host);
        self.epoch += 1;
    }

    /// Where a message for `addr` goes. Another port of a host's IP reaches the host and is refused there;
    /// with several hosts on one IP, by the one with the lowest port.
    pub(in crate::engine) fn resolve(&self, addr: SocketAddr) -> Hop {
        if let Some(host) = self.by_addr.get(&addr) {
            return Hop::Host(*host);
        }
        let neighbour = self.by_addr.iter().find(|(held, _)| held.ip() == addr.ip());
        neighbour.map_or(Hop::Nobody, |(_, host)| Hop::Refused(*host))
    }
}

/// The last list of targets that a host sent to, resolved. A node sends to the same `Arc` until its members
/// change, so nearly every push finds its route here.
#[derive(Debug, Default)]
pub(in crate::engine) struct Route {
    /// Kept, so that the pointer cannot be given to another list meanwhile.
    targets: Option<Arc<[SocketAddr]>>,
    epoch: u64,
    hops: Vec<Hop>,
}

impl Route {
    /// The hops of `targets`, in order.
    pub(in crate::engine) fn resolve(&mut self, targets: Arc<[SocketAddr]>, directory: &Directory) -> &[Hop] {
        let known = self.epoch == directory.epoch
            && self.targets.as_ref().is_some_and(|last| Arc::ptr_eq(last, &targets));
        if !known {
            self.hops.clear();
            self.hops.extend(targets.iter().map(|addr| directory.resolve(*addr)));
            self.epoch = directory.epoch;
            self.targets = Some(targets);
        }
        &self.hops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_follows_a_host_to_its_new_address() {
        let addr = |ip: u8, port: u16| SocketAddr::from(([10, 0, 0, ip], port));
        let mut directory = Directory::default();
        directory.set(0, addr(1, 7946));
        directory.set(1, addr(2, 7946));
        let targets: Arc<[SocketAddr]> = Arc::from([addr(2, 7946), addr(2, 80), addr(3, 7946)]);
        let mut route = Route::default();
        let hops = route.resolve(Arc::clone(&targets), &directory);
        assert_eq!(hops, [Hop::Host(1), Hop::Refused(1), Hop::Nobody]);
        directory.set(1, addr(3, 7946));
        let hops = route.resolve(targets, &directory);
        assert_eq!(hops, [Hop::Nobody, Hop::Nobody, Hop::Host(1)]);
    }
}
