//! What one process of a pair says to the other, and its bytes.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use beeline_tcp::{Progress, Tuple};

use super::agreements::Message;
use crate::connection_table::end_bytes;

const CLAIM_BYTES: usize = 64;
const END_BYTES: usize = 18;

/// What one process says to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Message(Message),
    Claim(Claim),
}

/// That the process which says so has a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) cookie: u64,
    /// As its process has them.
    pub(super) tuple: Tuple,
    /// Of which only what was acknowledged and taken is said.
    pub(super) progress: Progress,
}

impl Said {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        match self {
            Said::Message(message) => message.to_bytes().to_vec(),
            Said::Claim(claim) => claim.to_bytes().to_vec(),
        }
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match Message::from_bytes(bytes) {
            Some(message) => Some(Said::Message(message)),
            None => Claim::from_bytes(bytes).map(Said::Claim),
        }
    }
}

impl Claim {
    /// Cookie, what was acknowledged and taken (8 bytes each), local and remote address (16 bytes, and the port in network order), and
    /// zeros to the end.
    fn to_bytes(self) -> [u8; CLAIM_BYTES] {
        let mut bytes = [0; CLAIM_BYTES];
        let numbers = [self.cookie, self.progress.acknowledged, self.progress.taken];
        for (number, at) in numbers.into_iter().zip(bytes.chunks_exact_mut(8)) {
            at.copy_from_slice(&number.to_le_bytes());
        }
        for (end, at) in
            [self.tuple.local, self.tuple.remote].into_iter().zip(bytes[24..].chunks_exact_mut(END_BYTES))
        {
            at.copy_from_slice(&end_bytes(end.ip(), end.port()));
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; CLAIM_BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| bytes[at..].first_chunk().map(|number| u64::from_le_bytes(*number));
        let end = |at: usize| -> Option<SocketAddr> {
            let (address, port) = bytes[at..].split_first_chunk::<16>()?;
            let port = u16::from_be_bytes(*port.first_chunk()?);
            Some(SocketAddr::new(IpAddr::V6(Ipv6Addr::from(*address)), port))
        };
        if bytes[24 + 2 * END_BYTES..].iter().any(|byte| *byte != 0) {
            return None;
        }
        let progress = Progress { acknowledged: number(8)?, taken: number(16)?, ..Progress::default() };
        let tuple = Tuple::new(end(24)?, end(24 + END_BYTES)?);
        Some(Claim { cookie: number(0)?, tuple, progress })
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pairs::agreements::{Cookies, Saying};

    fn claim(cookie: u64, local: &str, remote: &str) -> Claim {
        let progress = Progress { acknowledged: 7, taken: 1 << 40, ..Progress::default() };
        let tuple = Tuple::new(local.parse().unwrap(), remote.parse().unwrap());
        Claim { cookie, tuple, progress }
    }

    #[test]
    fn what_is_said_is_the_same_behind_its_bytes() {
        let cookies = Cookies { own: 5, other: 6 };
        let all = [
            Said::Claim(claim(9, "10.0.0.1:7", "10.0.0.2:65535")),
            Said::Claim(claim(u64::MAX, "[fd00::1]:7", "[fd00::2]:1")),
            Said::Message(Message { saying: Saying::Release, cookies }),
        ];
        for said in all {
            assert_eq!(Said::from_bytes(&said.to_bytes()), Some(said));
        }
        let mut longer = all[0].to_bytes();
        *longer.last_mut().unwrap() = 1;
        assert_eq!(Said::from_bytes(&longer), None);
    }

    proptest! {
        #[test]
        fn bytes_of_a_stranger_are_what_they_say_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(said) = Said::from_bytes(&bytes) {
                // IPv4 has two guises.
                prop_assert_eq!(Said::from_bytes(&said.to_bytes()), Some(said));
            }
        }
    }
}
