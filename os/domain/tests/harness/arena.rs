//! A client of an arena that says what it likes, in packets and in the memory that it shares with the owner.

use std::time::Duration;

use beeline_domain::{ArenaListener, ConnectError, Connection, Domain, Notifications, ReceiverParts};
use beeline_mmio::{Flag, MemoryOptions, Region, SharedMemory};

/// Bytes of its memory: the credits of each window, the count and the flag beside it, the ring.
pub const CLIENT_BYTES: usize = CREDIT_BYTES + 4096 + 8 * RING as usize;
pub const HELLO: &[u8] = br#"{"arena":2,"lines":64}"#;
pub const RING: u64 = 65536;
const CREDIT_BYTES: usize = 16384 * 128;
pub const OPEN: u32 = 1;
pub const END: u32 = 2;
pub const RETURN: u32 = 3;
/// Bits of the flag, as the owner sets them.
pub const ASLEEP: u32 = 0x0100_0001;

/// The memory of a client.
pub struct Memory {
    memory: SharedMemory,
    region: Region,
    told: u64,
}

impl Memory {
    pub fn new() -> Self {
        let memory = SharedMemory::create("credits", CLIENT_BYTES, MemoryOptions::default()).unwrap();
        let region = memory.map_sparse().unwrap();
        Memory { memory, region, told: 0 }
    }

    pub fn join(&self, domain: &Domain) -> Connection {
        self.try_join(domain).unwrap()
    }

    pub fn try_join(&self, domain: &Domain) -> Result<Connection, ConnectError> {
        Ok(domain.connect("arena", HELLO, &[self.memory.fd()])?.0)
    }

    /// The flag that the owner sets before it sleeps.
    pub fn waiting(&self) -> Flag {
        self.region.flag(CREDIT_BYTES + 64)
    }

    /// Stores a word into the ring, and counts it.
    pub fn tell_word(&mut self, word: u64) {
        self.region.word(CREDIT_BYTES + 4096 + (self.told % RING) as usize * 8).store(word);
        self.told += 1;
        self.count(self.told);
    }

    /// Stores another count than that of the entries.
    pub fn count(&self, told: u64) {
        self.region.word(CREDIT_BYTES).store_release(told);
    }

    pub fn told(&self) -> u64 {
        self.told
    }

    /// Stores whether the sender of a window has ended.
    pub fn set_ended(&self, name: u32, value: u64) {
        self.region.word((name as usize - 1) * 128 + 72).store_release(value);
    }
}

/// A client that has joined.
pub struct Client {
    pub connection: Connection,
    pub told: Notifications,
    pub memory: Memory,
}

impl Client {
    pub fn join(domain: &Domain) -> Self {
        let memory = Memory::new();
        let connection = memory.join(domain);
        let told = connection.notifications().unwrap();
        Client { connection, told, memory }
    }

    /// Tells something of a window. Whoever sleeps for that is woken, and if nobody does the owner's domain hears of it.
    pub fn tell(&mut self, code: u32, name: u32) {
        self.memory.tell_word(u64::from(name) << 32 | u64::from(code));
        self.ring();
    }

    /// What follows whatever was told.
    pub fn ring(&self) {
        if self.memory.waiting().swap(0) & ASLEEP == ASLEEP {
            self.memory.waiting().wake(1);
        }
        self.connection.peer().ring();
    }

    /// The names of the windows that the owner lends when it is asked for some.
    pub fn ask(&self, lines: u32) -> Vec<u32> {
        let ask = (u64::from(lines) << 32).to_le_bytes();
        let reply = self.connection.call(&ask, &[]).unwrap();
        let (leases, _) = reply.payload[8..].as_chunks::<32>();
        leases.iter().map(|lease| u32::from_le_bytes(lease[..4].try_into().unwrap())).collect()
    }

    /// Opens a window and gives what the owner's program has of it; `None` if the owner ends the connection instead.
    pub fn open(&mut self, name: u32, listener: &ArenaListener) -> Option<ReceiverParts> {
        self.tell(OPEN, name);
        loop {
            match listener.accept(Duration::from_millis(20)) {
                None if self.connection.peer().is_alive() => {}
                opened => return opened,
            }
        }
    }
}
