//! Which faults were applied, and which of them changed anything.

use crate::engine::FaultId;

/// One flag per applied fault.
#[derive(Debug, Default)]
pub(in crate::engine) struct FaultLog {
    had_effect: Vec<bool>,
}

impl FaultLog {
    /// Numbers a new fault.
    pub(in crate::engine) fn add(&mut self) -> FaultId {
        self.had_effect.push(false);
        FaultId(self.had_effect.len() - 1)
    }

    /// The fault changed something.
    pub(in crate::engine) fn mark(&mut self, fault: FaultId) {
        if let Some(flag) = self.had_effect.get_mut(fault.0) {
            *flag = true;
        }
    }

    /// Whether it changed anything so far.
    pub(in crate::engine) fn had_effect(&self, fault: FaultId) -> bool {
        self.had_effect.get(fault.0).copied().unwrap_or(false)
    }
}
