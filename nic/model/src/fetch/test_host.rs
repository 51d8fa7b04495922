//! Host memory for tests of the engines: does the writes that a device wants in order, answers its reads in any order.

use beeline_contract_device::DmaError;

use crate::dma_port::DmaWant;
use crate::engine::{DmaOwner, Shared};

/// Bus address of the first byte.
pub(crate) const BASE: u64 = 0x10_0000;

/// A seeded source of small random numbers.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}

/// A read that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub owner: DmaOwner,
    pub tag: u16,
    pub address: u64,
    pub bytes: u32,
}

/// The memory, the reads that wait, and the writes that were done.
#[derive(Debug)]
pub(crate) struct TestHost {
    pub memory: Vec<u8>,
    pub waiting: Vec<Waiting>,
    /// Address and length of every write, in order.
    pub writes: Vec<(u64, u32)>,
}

impl TestHost {
    /// Zeroed memory at [`BASE`].
    pub(crate) fn new(bytes: usize) -> Self {
        TestHost { memory: vec![0; bytes], waiting: Vec::new(), writes: Vec::new() }
    }

    /// Takes everything that the device wants.
    pub(crate) fn take_wants(&mut self, shared: &mut Shared) {
        while let Some(want) = shared.dma.take() {
            match want {
                DmaWant::Read { address, bytes, tag } => {
                    assert!(
                        address / 4096 == (address + u64::from(bytes) - 1) / 4096,
                        "{address:#x} + {bytes}"
                    );
                    let (owner, tag) = shared.dma.answered(tag).unwrap();
                    self.waiting.push(Waiting { owner, tag, address, bytes });
                }
                DmaWant::Write { address, start, bytes } => {
                    let at = (address - BASE) as usize;
                    self.memory[at..at + bytes as usize].copy_from_slice(shared.dma.data(start, bytes));
                    self.writes.push((address, bytes));
                }
            }
        }
    }

    /// Takes the read at `index` of those that wait, and its answer.
    pub(crate) fn answer(&mut self, index: usize) -> (Waiting, Result<Vec<u8>, DmaError>) {
        let read = self.waiting.remove(index);
        let data = read
            .address
            .checked_sub(BASE)
            .and_then(|at| self.memory.get(at as usize..at as usize + read.bytes as usize))
            .map(<[u8]>::to_vec)
            .ok_or(DmaError::BadAddress);
        (read, data)
    }

    /// The word at a bus address.
    pub(crate) fn word(&self, address: u64) -> u64 {
        let at = (address - BASE) as usize;
        u64::from_le_bytes(self.memory[at..at + 8].try_into().unwrap())
    }

    /// Puts bytes at a bus address.
    pub(crate) fn put(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - BASE) as usize;
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// The bytes at a bus address.
    pub(crate) fn get(&self, address: u64, bytes: usize) -> Vec<u8> {
        let at = (address - BASE) as usize;
        self.memory[at..at + bytes].to_vec()
    }
}

pub(crate) fn descriptor(address: u64, bytes: u32, flags: u32) -> [u8; 16] {
    let mut descriptor = [0; 16];
    descriptor[..8].copy_from_slice(&address.to_le_bytes());
    descriptor[8..12].copy_from_slice(&bytes.to_le_bytes());
    descriptor[12..].copy_from_slice(&flags.to_le_bytes());
    descriptor
}
