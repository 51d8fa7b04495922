//! This target reads lists as the kernel writes of what a process has mapped. Names of files are in them, which anybody may choose, and
//! under emulators whole lines. What is found lies in the range that was asked for.
#![no_main]

use arbitrary::Arbitrary;
use beeline_mmio::fuzzing::process_maps;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Line {
    Mapping { start: u32, bytes: u32, rights: [bool; 4], name: Vec<u8> },
    Flags { is_locked: bool },
    Any(Vec<u8>),
}

#[derive(Arbitrary, Debug)]
struct Input {
    lines: Vec<Line>,
    start: u32,
    bytes: u32,
}

fuzz_target!(|input: Input| {
    let mut list = Vec::new();
    for line in &input.lines {
        match line {
            Line::Mapping { start, bytes, rights, name } => {
                let (start, end) = (u64::from(*start), u64::from(*start) + u64::from(*bytes));
                let right = |at: usize| if rights[at] { char::from(b"rwxs"[at]) } else { '-' };
                let rights: String = (0..4).map(right).collect();
                list.extend_from_slice(
                    format!("{start:08x}-{end:08x} {rights} 00000000 fe:00 12   ").as_bytes(),
                );
                list.extend_from_slice(name);
            }
            Line::Flags { is_locked } => {
                list.extend_from_slice(if *is_locked { b"VmFlags: rd lo sd " } else { b"VmFlags: rd wr " });
            }
            Line::Any(bytes) => list.extend_from_slice(bytes),
        }
        list.push(b'\n');
    }
    let start = input.start as usize;
    process_maps(&list, (start, start.saturating_add(input.bytes as usize)));
});
