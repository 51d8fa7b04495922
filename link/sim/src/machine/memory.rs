//! Memory of the host that the device reads and writes, and which of its lines the device wrote last.

const LINE_BYTES: usize = 64;
/// Regions begin at multiples of this, with at least as much between them, so that an access past an end is found.
const REGION_ALIGN: u64 = 1 << 20;

/// All regions.
#[derive(Debug)]
pub(super) struct Memory {
    base: u64,
    regions: Vec<Region>,
    /// Whether the device sees what the host stores only when it is told so.
    has_views: bool,
    /// Bytes that the device has read and written.
    pub read_bytes: u64,
    pub written_bytes: u64,
}

#[derive(Debug)]
struct Region {
    address: u64,
    bytes: Vec<u8>,
    /// What the device sees, if that is something else.
    seen: Vec<u8>,
    /// A bit for each line that the device wrote and no core has loaded since.
    foreign: Vec<u64>,
}

impl Memory {
    /// No memory; the first region begins at `base`.
    pub(super) fn new(base: u64, has_views: bool) -> Self {
        Memory { base, regions: Vec::new(), has_views, read_bytes: 0, written_bytes: 0 }
    }

    /// A new zeroed region: its index and address.
    pub(super) fn add(&mut self, bytes: usize) -> (usize, u64) {
        let end = self.regions.last().map_or(self.base, |last| last.address + last.bytes.len() as u64);
        let address = (end + 1).next_multiple_of(REGION_ALIGN);
        let lines = bytes.div_ceil(LINE_BYTES);
        let seen = if self.has_views { vec![0; bytes] } else { Vec::new() };
        let foreign = vec![0; lines.div_ceil(64)];
        self.regions.push(Region { address, bytes: vec![0; bytes], seen, foreign });
        (self.regions.len() - 1, address)
    }

    /// The device reads; `false`, and nothing, if that is not memory of it.
    pub(super) fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let Some((region, at)) = self.find(address, into.len()) else { return false };
        into.copy_from_slice(&self.seen(region)[at..at + into.len()]);
        self.read_bytes += into.len() as u64;
        true
    }

    /// As [`Memory::read`], without counting: the device looks at what is in its own cache.
    pub(super) fn peek(&self, address: u64, into: &mut [u8]) -> bool {
        let Some((region, at)) = self.find(address, into.len()) else { return false };
        into.copy_from_slice(&self.seen(region)[at..at + into.len()]);
        true
    }

    /// The device writes; `false`, and nothing, if that is not memory of it.
    pub(super) fn write(&mut self, address: u64, from: &[u8]) -> bool {
        let Some((region, at)) = self.find(address, from.len()) else { return false };
        let region = &mut self.regions[region];
        region.bytes[at..at + from.len()].copy_from_slice(from);
        if let Some(seen) = region.seen.get_mut(at..at + from.len()) {
            seen.copy_from_slice(from);
        }
        for line in at / LINE_BYTES..(at + from.len()).div_ceil(LINE_BYTES) {
            region.foreign[line / 64] |= 1 << (line % 64);
        }
        self.written_bytes += from.len() as u64;
        true
    }

    /// Bytes of a region, for a core.
    pub(super) fn bytes(&mut self, region: usize) -> &mut [u8] {
        &mut self.regions[region].bytes
    }

    /// How many lines of a range the device wrote since a core last loaded them; they are loaded now.
    pub(super) fn load_foreign(&mut self, region: usize, offset: usize, bytes: usize) -> u64 {
        let foreign = &mut self.regions[region].foreign;
        let mut count = 0;
        for line in offset / LINE_BYTES..(offset + bytes).div_ceil(LINE_BYTES) {
            let bit = 1 << (line % 64);
            count += u64::from(foreign[line / 64] & bit != 0);
            foreign[line / 64] &= !bit;
        }
        count
    }

    /// The device sees from now on what the host stored there.
    pub(super) fn show(&mut self, region: usize, offset: usize, from: &[u8]) {
        if let Some(seen) = self.regions[region].seen.get_mut(offset..offset + from.len()) {
            seen.copy_from_slice(from);
        }
    }

    fn seen(&self, region: usize) -> &[u8] {
        let region = &self.regions[region];
        if self.has_views { &region.seen } else { &region.bytes }
    }

    fn find(&self, address: u64, bytes: usize) -> Option<(usize, usize)> {
        let after = self.regions.partition_point(|region| region.address <= address);
        let index = after.checked_sub(1)?;
        let region = &self.regions[index];
        let at = usize::try_from(address - region.address).ok()?;
        (at.checked_add(bytes)? <= region.bytes.len()).then_some((index, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_outside_a_region_is_refused() {
        let mut memory = Memory::new(1 << 33, false);
        let (_, first) = memory.add(100);
        let (second, address) = memory.add(64);
        assert!(address > first + 100 && first >= 1 << 33);
        assert!(!memory.read(first + 96, &mut [0; 8]) && !memory.read(0, &mut [0; 8]));
        assert!(memory.write(address + 56, &[7; 8]) && !memory.write(address + 57, &[7; 8]));
        assert_eq!(memory.bytes(second)[56..], [7; 8]);
        assert_eq!((memory.read_bytes, memory.written_bytes), (0, 8));
    }

    #[test]
    fn a_line_that_the_device_wrote_is_foreign_once() {
        let mut memory = Memory::new(0, false);
        let (region, address) = memory.add(256);
        assert!(memory.write(address + 60, &[1; 8]));
        assert_eq!(memory.load_foreign(region, 0, 256), 2);
        assert_eq!(memory.load_foreign(region, 0, 256), 0);
    }
}
