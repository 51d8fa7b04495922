//! Kinds of links without a common kernel that are built so far, and what each declares.

use beeline_contract_link::{Evidence, Heartbeat, LinkKind};

/// Memory that both sides map and nothing else: a plain file, as guests and containers are given one.
///
/// A second, because the sides are scheduled: a guest without help of its processor, on a machine that is overloaded, is
/// kept waiting for hundreds of milliseconds. Ten beats are missed until then, so that no single one decides.
#[derive(Clone, Copy, Debug)]
pub enum MappedFile {}

impl LinkKind for MappedFile {
    const EVIDENCE: Evidence = Evidence::Heartbeat(Heartbeat::from_millis(100, 1000));
}
