//! What an attacker's bytes go through first, reachable for the fuzz targets alone (`fuzz/`).
//!
//! Compiled only with `--cfg fuzzing`, so none of it is part of the crate's interface.

use crate::name::Name;
use crate::window;
use crate::wire::Header;

/// The payload of a packet that arrived with so many descriptors; `None` when it is refused.
pub fn packet(packet: &[u8], descriptors: usize) -> Option<&[u8]> {
    Header::decode(packet, descriptors).ok().map(|(_, payload)| payload)
}

/// Whether a sender's request for a window is taken.
pub fn window_request(request: &[u8]) -> bool {
    window::decode_request(request).is_ok()
}

/// Lines and bytes of the window in a receiver's answer; `None` when it is refused.
pub fn window_answer(answer: &[u8]) -> Option<(u32, usize)> {
    window::decode_answer(answer).ok()
}

/// Whether a text may name a domain or an offer.
pub fn is_name(text: &str) -> bool {
    Name::new(text).is_ok()
}
