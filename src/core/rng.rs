//! Randomness as the core sees it: one seed, forked by label.
//!
//! A fork depends only on the parent seed and the label, so one more draw in one place moves nothing in
//! another. The generator is ChaCha8, the same on every platform.
//!
//! Absent: the operating system's randomness. Whoever creates the first [`Seed`] decides where it is from.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use sha2::{Digest as _, Sha256};

/// 32 bytes that all draws of a machine come from.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed([u8; 32]);

impl core::fmt::Debug for Seed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Seed(..)")
    }
}

impl Seed {
    /// A seed from 32 bytes, for a driver that has real randomness.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A seed from a number, for simulations: the number is what people paste.
    pub fn from_u64(number: u64) -> Self {
        Self(Sha256::digest(number.to_be_bytes()).into())
    }

    /// An independent seed for the purpose that `label` names.
    #[must_use]
    pub fn fork(&self, label: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(label.as_bytes());
        Self(hash.finalize().into())
    }

    /// An independent seed for the `index`-th thing of the kind that `label` names.
    #[must_use]
    pub fn fork_index(&self, label: &str, index: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(label.as_bytes());
        hash.update([0]);
        hash.update(index.to_be_bytes());
        Self(hash.finalize().into())
    }

    /// A generator that draws from this seed.
    pub fn rng(&self) -> Rng {
        Rng(ChaCha8Rng::from_seed(self.0))
    }
}

/// A stream of draws from one [`Seed`].
#[derive(Debug, Clone)]
pub struct Rng(ChaCha8Rng);

impl Rng {
    /// A number over the whole range.
    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `low..=high`. `low` itself when the range is empty.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let Some(width) = high.checked_sub(low) else { return low };
        let draw = self.u64();
        match width.checked_add(1) {
            // Multiply-shift: the bias is at most width / 2^64.
            Some(span) => low + high_half(draw, span),
            None => draw,
        }
    }

    /// True with probability `per_million` in a million.
    pub fn chance_ppm(&mut self, per_million: u32) -> bool {
        per_million > 0 && high_half(self.u64(), 1_000_000) < u64::from(per_million)
    }
}

/// `a * b / 2^64`.
fn high_half(a: u64, b: u64) -> u64 {
    let product = (u128::from(a) * u128::from(b)) >> 64;
    product as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_depend_on_the_label_alone() {
        let seed = Seed::from_u64(7);
        let mut used = seed.rng();
        used.u64();
        assert_eq!(seed.fork("a").rng().u64(), seed.fork("a").rng().u64());
        assert_ne!(seed.fork("a").rng().u64(), seed.fork("b").rng().u64());
        assert_ne!(seed.fork_index("a", 0).rng().u64(), seed.fork_index("a", 1).rng().u64());
    }

    #[test]
    fn between_keeps_its_ends() {
        let mut rng = Seed::from_u64(1).rng();
        let draws: alloc::vec::Vec<u64> = (0..200).map(|_| rng.between(3, 5)).collect();
        assert!((3..=5).all(|n| draws.contains(&n)) && draws.iter().all(|n| (3..=5).contains(n)));
        assert_eq!(rng.between(9, 3), 9);
        rng.between(0, u64::MAX);
        assert!(!rng.chance_ppm(0) && rng.chance_ppm(1_000_000));
    }
}
