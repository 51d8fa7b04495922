//! Counters: what was sent, repeated, heard, and why something was dropped.

/// Counters of one connection since it was begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Messages taken from the program.
    pub messages_sent: u64,
    /// Messages given to the program.
    pub messages_received: u64,
    /// Frames that left, of every kind.
    pub frames_sent: u64,
    /// Frames of this connection that arrived and were believed.
    pub frames_received: u64,
    /// Acknowledgements that left alone.
    pub acks_sent: u64,
    /// Messages repeated because later ones arrived.
    pub repeated_early: u64,
    /// Times that nothing was acknowledged in time.
    pub timeouts: u64,
    /// Messages that arrived before an earlier one and were held.
    pub held: u64,
    /// Messages that arrived again and were dropped.
    pub duplicates: u64,
    /// Messages that arrived beyond the room that was told, or after the last one, and were dropped.
    pub beyond: u64,
    /// Frames dropped because they acknowledge what was never sent.
    pub wild_acks: u64,
    /// Questions whether the other side is there.
    pub probes: u64,
    /// Frames that the up-link had no room for at first.
    pub refused_by_uplink: u64,
    /// Messages taken and not yet acknowledged: they may have arrived or not.
    pub unacknowledged: u32,
    /// Smoothed round-trip time in nanoseconds.
    pub round_trip_ns: u64,
    /// How long an answer is waited for now, in nanoseconds.
    pub timeout_ns: u64,
    /// Nanoseconds between two frames because of losses or a configured rate; 0: none.
    pub spacing_ns: u64,
}

/// Counters of an endpoint: frames that belong to no connection, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointStats {
    /// Frames taken from the up-link.
    pub frames: u64,
    /// Of another protocol, or for another station or endpoint. On a shared interface these are normal.
    pub foreign: u64,
    /// Shorter than a head, or than the message they claim.
    pub short: u64,
    /// Longer than head, message and the padding of a shortest frame.
    pub long: u64,
    /// Frames of another version of the protocol.
    pub version: u64,
    /// Of a kind, with a flag, or with room that cannot be.
    pub malformed: u64,
    /// From a group address, or from this endpoint itself.
    pub source: u64,
    /// Of sessions that are not known; answered with a reset.
    pub unknown_session: u64,
    /// Of sessions that ended not long ago: late frames, or replayed ones.
    pub ended_session: u64,
    /// Answers to questions that were never asked, or are asked no more.
    pub unasked: u64,
    /// Requests to open a connection that were answered.
    pub opens: u64,
    /// Requests that were refused.
    pub refused: u64,
    pub resets_sent: u64,
    /// Answers to unmatched frames that the up-link had no room for; their senders ask again.
    pub answers_lost: u64,
}
