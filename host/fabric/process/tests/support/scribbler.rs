//! A process of the same user that writes anything, and what is almost right, into all that members of a fabric share: the registries, banks
//! with the headers of message queues in them, claims, counts, bells, yards, a board of its own, and packets.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline_domain::{Answer, Connection, Domain, Entry, Holder, Kind, Offer, Peer, Refusal, Reply, Service};
use beeline_fabric::{BOARD_WORDS, FORMAT_WORD, USE_WORDS};
use beeline_fabric_process::FabricMember;
use beeline_mmio::{MemoryOptions, ReadOnlyMemory, ReadOnlyRegion, Region, SharedMemory};

use super::random::Random;
use super::{Fabric, config_in, say};

const BOARD: usize = BOARD_WORDS.next_power_of_two() as usize * 8;
const CLAIMS: usize = USE_WORDS.next_power_of_two() as usize * 8;
const YARD: usize = ((128 + 1) * 64) << 16;
const BELLS: usize = 64 << 16;
/// Bytes of the bank of the hostile member.
const BANK: u64 = 1 << 20;
/// Words that are written over between two looks at which are in use.
const WORDS_A_LOOK: usize = 20;
/// The number of the hostile member, whose node is 12.
pub const LIAR: u64 = 0x0bad;

const ROOT: &str = "BEELINE_TEST_HOSTILE_ROOT";
const SEED: &str = "BEELINE_TEST_HOSTILE_SEED";
const VICTIMS: &str = "BEELINE_TEST_HOSTILE_VICTIMS";

/// Attacks until its input ends, in a process that was started by [`Attack::start`]; returns at once in others. It has put back then what names
/// the members in registries: what a registry says that was ruined is ruined.
pub fn play() {
    let Some(root) = std::env::var_os(ROOT) else { return };
    let random = Random::of(std::env::var(SEED).unwrap().parse().unwrap());
    attack(Path::new(&root), &std::env::var(VICTIMS).unwrap(), random);
}

/// A word that may mean something, or nothing.
fn garbage(random: &mut Random, right: u64) -> u64 {
    match random.below(8) {
        0 => random.any(),
        1 => 0,
        2 => u64::MAX,
        3 => random.below(8),
        4 => right ^ 1 << random.below(64),
        5 => right.wrapping_add(random.below(3)).wrapping_sub(1),
        6 => random.below(4) << 32 | random.below(3) << 16 | random.below(4),
        _ => random.below(6) << 32 | random.below(16),
    }
}

/// Leaves what is wrong where it is for a while: mostly for a few loads of somebody else, sometimes for some system calls.
fn pause(random: &mut Random) {
    let longest = [300, 3000, 30_000, 100_000][random.below(4) as usize];
    (0..random.below(longest)).for_each(|_| std::hint::spin_loop());
}

/// Writes over a word of a file, and mostly puts it back.
fn scribble_file(file: &File, place: u64, random: &mut Random) {
    let mut word = [0; 8];
    let _short = file.read_at(&mut word, place);
    file.write_all_at(&garbage(random, u64::from_le_bytes(word)).to_le_bytes(), place).unwrap();
    pause(random);
    if random.below(8) != 0 {
        file.write_all_at(&word, place).unwrap();
    }
}

/// A registry of which the places that are in use are written over: its format, its holders and its entries, and sometimes others.
struct Registry {
    words: File,
    bytes: u64,
}

impl Registry {
    fn open(path: &Path) -> Self {
        let words = File::options().read(true).write(true).open(path).unwrap();
        Registry { bytes: words.metadata().unwrap().len(), words }
    }

    /// Writes over words that are not zero, or stand beside one of those, or over any.
    fn scribble(&self, random: &mut Random) {
        let mut all = vec![0; self.bytes as usize];
        self.words.read_exact_at(&mut all, 0).unwrap();
        let word = |at: usize| u64::from_le_bytes(all[at..at + 8].try_into().unwrap());
        let used: Vec<usize> = (0..all.len()).step_by(8).filter(|at| word(*at) != 0).collect();
        for _ in 0..WORDS_A_LOOK {
            let used = used[random.below(used.len() as u64) as usize];
            let at = match random.below(8) {
                0 => random.below(self.bytes / 8) as usize * 8,
                // In the bucket of somebody's entry, or beside somebody's number.
                1 => (used + 8).min(all.len() - 8),
                _ => used,
            };
            let mut before = [0; 8];
            self.words.read_exact_at(&mut before, at as u64).unwrap();
            let wrong = garbage(random, word(used));
            self.words.write_all_at(&wrong.to_le_bytes(), at as u64).unwrap();
            pause(random);
            self.words.write_all_at(&before, at as u64).unwrap();
        }
    }
}

/// An honest member, as one has it that has come to use it.
struct Victim {
    connection: Connection,
    board: ReadOnlyRegion,
    bank: File,
    bells: Region,
    uses: Region,
    yard: Region,
}

impl Victim {
    fn new(domain: &Domain, name: &str) -> Self {
        let (uses, uses_memory) = ReadOnlyMemory::create_sparse("beeline-test", CLAIMS).unwrap();
        let yard_memory = SharedMemory::create("beeline-test", YARD, MemoryOptions::default()).unwrap();
        let hello = [b"BEEF\x02\0\x0c\0".as_slice(), &[7; 8], &(YARD as u64).to_le_bytes()].concat();
        let fds = [uses_memory.fd(), yard_memory.fd()];
        let (connection, reply) = domain.connect(name, &hello, &fds).unwrap();
        let [board, bank, bells] = <[OwnedFd; 3]>::try_from(reply.fds).unwrap();
        let bells = SharedMemory::from_fd(bells, BELLS).unwrap().map_sparse().unwrap();
        let board = ReadOnlyMemory::from_fd(board, BOARD).unwrap().map_sparse().unwrap();
        Victim { connection, board, bank: bank.into(), bells, uses, yard: yard_memory.map_sparse().unwrap() }
    }

    /// Writes over what belongs to entries of the board that are in use.
    fn scribble(&self, random: &mut Random) {
        let board = self.board.read_words(0, BOARD / 8);
        let is_in_use = |slot: &usize| board.load(32 + 8 * slot) >> 16 & 3 != 0;
        let slots: Vec<_> = (0..1 << 16).filter(is_in_use).collect();
        if slots.is_empty() {
            return;
        }
        for _ in 0..WORDS_A_LOOK {
            let slot = slots[random.below(slots.len() as u64) as usize];
            self.scribble_entry(slot, board.load(32 + 8 * slot), random);
        }
    }

    fn scribble_entry(&self, slot: usize, state: u64, random: &mut Random) {
        match random.below(5) {
            0 => self.scribble_segment(slot, random),
            1 => self.bells.flag(slot * 64).store(garbage(random, 1) as u32),
            2 => self.uses.word(slot * 8).store(garbage(random, state & !0xffff_ffff | 1)),
            3 => self.uses.word(((1 << 16) + slot * 8) * 8).store(garbage(random, 1)),
            _ => {
                let lines = (128 + 1) * 8;
                let word = slot * lines + random.below(lines as u64) as usize;
                self.yard.word(word * 8).store(garbage(random, 0));
            }
        }
    }

    /// Writes into a segment, mostly where one of a message queue has its header.
    fn scribble_segment(&self, slot: usize, random: &mut Random) {
        let word = |word| self.board.read_words(0, BOARD / 8).load(32 + 8 * slot + word);
        let (bytes, is_in_bank, offset) = (word(2), word(3) == 1, word(4));
        if is_in_bank && bytes >= 64 {
            let bytes = if random.below(4) == 0 { bytes } else { bytes.min(128) };
            scribble_file(&self.bank, offset + random.below(bytes / 8) * 8, random);
        }
    }

    /// Says what is no packet, or asks for what this process is not connected to.
    fn say_anything(&self, random: &mut Random) {
        let mut packet = match random.below(3) {
            0 => b"BEEQ\x01\0".to_vec(),
            _ => b"BEEF\x02\0".to_vec(),
        };
        packet.extend_from_slice(&(random.below(16) as u16).to_le_bytes());
        let length = [8, 12, 16, 24, random.below(200) as usize][random.below(5) as usize];
        packet.resize_with(length, || random.below(256) as u8);
        let memory = self.bank.as_fd();
        let passed = if random.below(4) == 0 { vec![memory] } else { vec![] };
        let said = self.connection.call_within(&packet, &passed, Duration::from_secs(1));
        assert!(said.is_err(), "{packet:?} has an answer");
    }
}

/// A member that has put names in the registries of its node and of the groups, and publishes a board of anything.
struct Liar {
    board: Region,
    _offer: Offer,
    _holders: Vec<Holder>,
}

/// What its board comes with: nothing that is wrong, so that it is looked at.
struct Lying(OwnedFd);

impl Service for Lying {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let memory =
            |bytes| SharedMemory::create("beeline-test", bytes, MemoryOptions::default()).unwrap().into_fd();
        let payload = [b"BEEF\x02\0\0\0".as_slice(), &BANK.to_le_bytes()].concat();
        let board = self.0.try_clone().unwrap();
        Ok(Answer::Now(Reply { payload, fds: vec![board, memory(BANK as usize), memory(BELLS)] }))
    }

    /// Memory for every segment, which is too small for some.
    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let memory = SharedMemory::create("beeline-test", 4096, MemoryOptions::default()).unwrap();
        let payload = [b"BEEF\x02\0\0\0".as_slice(), &4096_u64.to_le_bytes(), &[0; 8]].concat();
        Ok(Answer::Now(Reply { payload, fds: vec![memory.into_fd()] }))
    }

    fn departed(&mut self, _: &Peer) {}
}

impl Liar {
    /// Its entries 0 to 4 are a segment, interrupts of each kind and a group, all of number 7.
    fn new(domain: &Domain) -> Self {
        let (region, memory) = ReadOnlyMemory::create_sparse("beeline-test", BOARD).unwrap();
        let number = std::num::NonZeroU64::new(LIAR).unwrap();
        let join = |name: &str| domain.registry(name).unwrap().join(number).unwrap();
        let (own, groups) = (join("fabric.12"), join("fabric.252"));
        for slot in 0..5_u16 {
            let entry = Entry { kind: Kind::new(slot as u8 + 1).unwrap(), id: 7, slot };
            if slot == 3 { &groups } else { &own }.put(entry, |_| true).unwrap();
        }
        let service = Lying(memory.fd().try_clone_to_owned().unwrap());
        let offer = domain.offer(&format!("fabric.12.{LIAR:016x}"), Box::new(service)).unwrap();
        let liar = Liar { board: region, _offer: offer, _holders: vec![own, groups] };
        (0..32 + 8 * 5).for_each(|word| liar.put(word, liar.right(word)));
        liar
    }

    fn put(&self, word: usize, value: u64) {
        self.board.word(word * 8).store_release(value);
    }

    /// What a word says in the board of a member that does not lie.
    fn right(&self, word: usize) -> u64 {
        match word {
            0 => FORMAT_WORD,
            1 => 12,
            2 => 1,
            8 => 3,
            3..8 | 9..32 => 0,
            _ => {
                let entry = (word - 32) as u64 / 8;
                [1 << 32 | 1 << 16 | 1, (entry + 1) << 32 | 7, 4096, 1 + entry % 2, 0, entry % 4, 0, 0]
                    [word % 8]
            }
        }
    }

    fn scribble(&self, random: &mut Random) {
        let word = random.below(32 + 8 * 5) as usize;
        // What it is not believed without is wrong more rarely.
        if word < 3 && random.below(4) != 0 {
            return;
        }
        let right = self.right(word);
        self.put(word, garbage(random, right));
        pause(random);
        self.put(word, right);
    }
}

fn attack(root: &Path, victims: &str, mut random: Random) {
    let domain = Domain::open(&config_in(root, 12).domain).unwrap();
    let liar = Liar::new(&domain);
    let victims: Vec<Victim> = victims.split(' ').map(|name| Victim::new(&domain, name)).collect();
    let registries = ["4", "8", "12", "252"]
        .map(|node| Registry::open(&root.join(format!("fabric/fabric.{node}.registry"))));
    say("attacks");
    let is_over = &AtomicBool::new(false);
    let goes_on = || !is_over.load(Ordering::Relaxed);
    let victims = &victims;
    std::thread::scope(|scope| {
        let mut of_registries = random.split();
        scope.spawn(move || {
            while goes_on() {
                registries[of_registries.below(4) as usize].scribble(&mut of_registries);
            }
        });
        let mut of_packets = random.split();
        scope.spawn(move || {
            while goes_on() {
                victims[of_packets.below(2) as usize].say_anything(&mut of_packets);
            }
        });
        scope.spawn(move || {
            while goes_on() {
                match random.below(2) {
                    0 => liar.scribble(&mut random),
                    _ => victims[random.below(2) as usize].scribble(&mut random),
                }
            }
        });
        let _ended = std::io::stdin().read(&mut [0]);
        is_over.store(true, Ordering::Relaxed);
    });
}

/// The process that attacks. It ends when this is dropped.
pub struct Attack {
    child: Child,
    /// Which it may write into until it ends.
    _output: ChildStdout,
}

impl Drop for Attack {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ended = self.child.wait();
    }
}

impl Attack {
    pub fn start(fabric: &Fabric, victims: [&FabricMember; 2], seed: u64) -> Attack {
        let names = victims.map(|it| format!("fabric.{}.{:016x}", it.node().0, it.number().0)).join(" ");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "role", "--nocapture", "--test-threads=1"])
            .env(ROOT, fabric.root())
            .env(SEED, seed.to_string())
            .env(VICTIMS, names)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = Vec::new();
        let mut stdout = child.stdout.take().unwrap();
        while !output.ends_with(b"@attacks\n") {
            let mut byte = [0];
            assert_eq!(stdout.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&output));
            output.push(byte[0]);
        }
        Attack { child, _output: stdout }
    }
}
