//! This target is the client of a PCI function: any messages of vfio-user, with descriptors of any kind, to a function with a NIC
//! behind it. A client that comes after it is served as if nothing had been.
#![no_main]

use arbitrary::Arbitrary;
use beeline_link_vfio_user::{MOST_RECORDS, Record, play};
use beeline_nic_model::{Nic, NicConfig};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Said {
    Write { region: u8, offset: u32, value: u64 },
    Read { region: u8, offset: u64, bytes: u16 },
    Map { flags: u8, offset: u64, address: u64, pages: u16, descriptors: u8 },
    Unmap { flags: u8, address: u64, bytes: u64 },
    Irqs { flags: u8, kind: u8, first: u32, count: u32, descriptors: u8 },
    Any { command: u16, flags: u32, descriptors: u8, excess: i8, body: Vec<u8> },
}

const PAGE: u64 = 4096;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_le_bytes()).collect()
}

fn record(said: Said) -> Record {
    let plain = |command, descriptors, body: Vec<Vec<u8>>| Record {
        command,
        flags: 0,
        descriptors,
        excess_bytes: 0,
        body: body.concat(),
    };
    match said {
        Said::Write { region, offset, value } => {
            let head = words(&[u32::from(region % 9), 8]);
            plain(10, 0, vec![longs(&[u64::from(offset)]), head, longs(&[value])])
        }
        Said::Read { region, offset, bytes } => {
            plain(9, 0, vec![longs(&[offset]), words(&[u32::from(region % 10), u32::from(bytes)])])
        }
        Said::Map { flags, offset, address, pages, descriptors } => {
            let body =
                vec![words(&[40, u32::from(flags)]), longs(&[offset, address, u64::from(pages) * PAGE])];
            plain(2, descriptors, body)
        }
        Said::Unmap { flags, address, bytes } => {
            plain(3, 0, vec![words(&[24, u32::from(flags)]), longs(&[address, bytes])])
        }
        Said::Irqs { flags, kind, first, count, descriptors } => {
            plain(8, descriptors, vec![words(&[20, u32::from(flags), u32::from(kind), first, count])])
        }
        Said::Any { command, flags, descriptors, excess, body } => {
            Record { command, flags, descriptors, excess_bytes: excess, body }
        }
    }
}

fuzz_target!(|said: Vec<Said>| {
    let sizes = NicConfig { queues: 2, window_lines: 16, span_lines: 4, contexts: 2, ..NicConfig::default() };
    let nic = Nic::new(NicConfig { pool_lines: 64, blank: true, ..sizes }).expect("sizes that make sense");
    // Memory decoding and bus master, so that what is programmed is done.
    let master = Said::Any {
        command: 10,
        flags: 0,
        descriptors: 0,
        excess: 0,
        body: [longs(&[4]), words(&[7, 2]), vec![6, 0]].concat(),
    };
    let records: Vec<_> = std::iter::once(master).chain(said).take(MOST_RECORDS).map(record).collect();
    play(nic, &records);
});
