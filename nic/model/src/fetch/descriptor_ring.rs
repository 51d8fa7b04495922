//! A ring of 16-byte descriptors in host memory, and the descriptors of it that the device has fetched ahead.
//!
//! The host posts descriptors and rings a doorbell with their absolute count; the device fetches them in bursts,
//! several bursts at a time, while it still works on earlier ones, so that a descriptor is usually there when it is
//! wanted. Transmit and receive descriptors have the same shape (address, length, one more word), so both engines use
//! this ring. A doorbell value is hostile until checked: it may neither run backwards nor name more than the ring
//! holds.
//!
//! From: the doorbell and the answers to descriptor reads. To: [`crate::descriptor`] and [`crate::rx`]. Not here:
//! asking for the reads and completing descriptors. Larsen & Lee, NAS'15, §I and figure 1 (steps 2 and 3).

use beeline_spec::formats::tx_descriptor as f;

pub(crate) const DESCRIPTOR_BYTES: u32 = f::BYTES as u32;
/// Descriptors a queue holds that were fetched and not used yet, or are being fetched.
const AHEAD: u64 = 128;
/// Descriptors of one read: 512 bytes, a common read request size.
const BURST: u64 = 32;
/// Descriptor reads of one queue under way; more would only cut bursts short when descriptors trickle in.
const MAX_FETCHES: u32 = 4;
/// A read must not cross an address that is a multiple of this (PCIe).
pub(crate) const READ_BOUNDARY_BYTES: u64 = 4096;
/// Longest ring.
const MAX_ENTRIES: u32 = 1 << 16;

/// A descriptor as the host wrote it; nothing in it is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// Bus address of the frame or buffer.
    pub address: u64,
    /// Bytes of the frame or buffer.
    pub bytes: u32,
    /// Flags of a transmit descriptor; zero for a receive descriptor.
    pub flags: u32,
}

impl Descriptor {
    fn decode(bytes: &[u8; f::BYTES]) -> Self {
        let (address, rest) = bytes.split_first_chunk::<8>().expect("a descriptor has 16 bytes");
        let (length, flags) = rest.as_chunks::<4>().0.split_first().expect("a descriptor has 16 bytes");
        Descriptor {
            address: u64::from_le_bytes(*address),
            bytes: u32::from_le_bytes(*length),
            flags: u32::from_le_bytes(flags[0]),
        }
    }
}

/// A read of descriptors that should be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fetch {
    /// Absolute index of the first descriptor.
    pub first: u64,
    /// Descriptors.
    pub count: u32,
    /// Bus address of the first.
    pub address: u64,
}

/// The ring. All counts are absolute since the queue was enabled, and `taken <= requested <= posted`.
#[derive(Debug)]
pub(crate) struct DescriptorRing {
    address: u64,
    entries: u32,
    posted: u64,
    requested: u64,
    taken: u64,
    fetches: u32,
    /// The descriptor of absolute index i at i modulo [`AHEAD`], once it has arrived.
    ahead: Box<[Option<Descriptor>; AHEAD as usize]>,
}

impl DescriptorRing {
    /// A ring of `entries` descriptors at `address`. `None` when the size is not a power of two up to 65536 or the
    /// address is not that of an aligned descriptor.
    pub(crate) fn new(address: u64, entries: u32) -> Option<Self> {
        let is_sound = entries.is_power_of_two()
            && entries <= MAX_ENTRIES
            && address.is_multiple_of(u64::from(DESCRIPTOR_BYTES))
            && address.checked_add(u64::from(entries) * u64::from(DESCRIPTOR_BYTES)).is_some();
        is_sound.then(|| DescriptorRing {
            address,
            entries,
            posted: 0,
            requested: 0,
            taken: 0,
            fetches: 0,
            ahead: Box::new([None; AHEAD as usize]),
        })
    }

    /// Entries of the ring, a power of two.
    pub(crate) fn entries(&self) -> u32 {
        self.entries
    }

    /// Descriptors posted since the queue was enabled.
    #[inline]
    pub(crate) fn posted(&self) -> u64 {
        self.posted
    }

    /// Descriptors taken since the queue was enabled: the absolute index of the next one.
    #[inline]
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// The doorbell rang with the absolute count `posted`; `completed` descriptors are the host's again. `false`: the
    /// value runs backwards or past the ring, and is ignored.
    #[inline]
    #[must_use]
    pub(crate) fn post(&mut self, posted: u64, completed: u64) -> bool {
        if posted < self.posted || posted - completed > u64::from(self.entries) {
            return false;
        }
        self.posted = posted;
        true
    }

    /// The next read of descriptors to ask for, if one is possible now.
    #[inline]
    pub(crate) fn next_fetch(&self) -> Option<Fetch> {
        let room = AHEAD - (self.requested - self.taken);
        let wanted = (self.posted - self.requested).min(BURST);
        // A burst waits until there is room for all of it: one read of 32 costs less than 32 reads of one.
        if wanted == 0 || wanted > room || self.fetches == MAX_FETCHES {
            return None;
        }
        let index = self.requested & u64::from(self.entries - 1);
        let address = self.address + index * u64::from(DESCRIPTOR_BYTES);
        let before_boundary =
            (READ_BOUNDARY_BYTES - address % READ_BOUNDARY_BYTES) / u64::from(DESCRIPTOR_BYTES);
        let count = wanted.min(u64::from(self.entries) - index).min(before_boundary);
        Some(Fetch { first: self.requested, count: count as u32, address })
    }

    /// The read that [`DescriptorRing::next_fetch`] gave has been asked for.
    #[inline]
    pub(crate) fn fetch_started(&mut self, fetch: Fetch) {
        self.requested += u64::from(fetch.count);
        self.fetches += 1;
    }

    /// The descriptors from absolute index `first` on have arrived; `bytes` is as long as was asked for.
    #[inline]
    pub(crate) fn fetched(&mut self, first: u64, bytes: &[u8]) {
        self.fetches -= 1;
        for (index, descriptor) in (first..).zip(bytes.as_chunks::<{ f::BYTES }>().0) {
            self.ahead[(index % AHEAD) as usize] = Some(Descriptor::decode(descriptor));
        }
    }

    /// The next descriptor, once it is there.
    #[inline]
    pub(crate) fn front(&self) -> Option<Descriptor> {
        self.ahead[(self.taken % AHEAD) as usize]
    }

    /// Uses up the descriptor that [`DescriptorRing::front`] gives.
    #[inline]
    pub(crate) fn take(&mut self) {
        debug_assert!(self.front().is_some());
        self.ahead[(self.taken % AHEAD) as usize] = None;
        self.taken += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(index: u64) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&(index * 64).to_le_bytes());
        bytes[8..12].copy_from_slice(&(index as u32 + 1).to_le_bytes());
        bytes[12..].copy_from_slice(&7u32.to_le_bytes());
        bytes
    }

    fn start_all(ring: &mut DescriptorRing) -> Vec<Fetch> {
        let mut fetches = Vec::new();
        while let Some(fetch) = ring.next_fetch() {
            ring.fetch_started(fetch);
            fetches.push(fetch);
        }
        fetches
    }

    #[test]
    fn bursts_are_fetched_ahead_and_used_in_order_whatever_order_they_come_in() {
        let mut ring = DescriptorRing::new(0x1_0000, 256).unwrap();
        let mut next = 0;
        for round in 1..40 {
            assert!(ring.post(round * 200, next));
            while next < round * 200 {
                let fetches = start_all(&mut ring);
                for fetch in fetches.iter().rev() {
                    let bytes: Vec<u8> =
                        (fetch.first..).take(fetch.count as usize).flat_map(descriptor).collect();
                    assert_eq!(fetch.address, 0x1_0000 + fetch.first % 256 * 16);
                    ring.fetched(fetch.first, &bytes);
                }
                while let Some(got) = ring.front() {
                    assert_eq!(got, Descriptor { address: next * 64, bytes: next as u32 + 1, flags: 7 });
                    ring.take();
                    next += 1;
                }
            }
        }
    }

    #[test]
    fn a_fetch_crosses_neither_a_boundary_nor_the_end_nor_what_is_held() {
        let mut ring = DescriptorRing::new(4096 - 3 * 16, 256).unwrap();
        assert!(ring.post(256, 0));
        let counts: Vec<u32> = start_all(&mut ring).iter().map(|f| f.count).collect();
        assert_eq!(counts, [3, 32, 32, 32], "four reads at a time");
        let mut short = DescriptorRing::new(0, 8).unwrap();
        assert!(short.post(6, 0));
        for first in 0..6 {
            for fetch in start_all(&mut short) {
                let bytes: Vec<u8> =
                    (fetch.first..).take(fetch.count as usize).flat_map(descriptor).collect();
                short.fetched(fetch.first, &bytes);
            }
            assert_eq!(short.taken(), first);
            short.take();
        }
        assert!(short.post(12, 6));
        let counts: Vec<u32> = start_all(&mut short).iter().map(|f| f.count).collect();
        assert_eq!(counts, [2, 4]);
    }

    #[test]
    fn hostile_doorbells_and_rings_are_refused() {
        let mut ring = DescriptorRing::new(0, 16).unwrap();
        assert!(ring.post(16, 0));
        assert!(!ring.post(15, 0), "backwards");
        assert!(!ring.post(17, 0), "past the ring");
        assert!(!ring.post(u64::MAX, 3));
        assert!(ring.post(19, 3));
        assert_eq!(ring.posted(), 19);
        for (address, entries) in
            [(0, 0), (0, 3), (8, 16), (0, 1 << 17), (u64::MAX - 15, 1), (u64::MAX - 31, 16)]
        {
            assert!(DescriptorRing::new(address, entries).is_none(), "{entries} at {address:#x}");
        }
    }
}
