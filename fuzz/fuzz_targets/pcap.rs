//! This target reads capture files. An attacker controls every byte of the file. The file gives frames, each no longer than
//! itself, and its reading ends or fails once; nothing is allocated that the file does not hold.
#![no_main]

use std::io::{Seek, Write};
use std::sync::{LazyLock, Mutex};

use beeline_ethernet::{PcapIn, Uplink};
use libfuzzer_sys::fuzz_target;
use tempfile::NamedTempFile;

/// A folder in memory where there is one: on a disk a run takes milliseconds.
const MEMORY: &str = "/dev/shm";
/// One file for all runs: making one costs more than a run.
static CAPTURE: LazyLock<Mutex<NamedTempFile>> = LazyLock::new(|| {
    Mutex::new(
        NamedTempFile::new_in(MEMORY).or_else(|_| NamedTempFile::new()).expect("a temporary folder is there"),
    )
});

fuzz_target!(|bytes: &[u8]| {
    let mut file = CAPTURE.lock().expect("a panic ends the fuzzer");
    let file = &mut *file;
    file.as_file_mut().set_len(0).expect("the file is ours");
    file.as_file_mut().rewind().expect("the file is ours");
    file.as_file_mut().write_all(bytes).expect("there is room");
    let Ok(mut capture) = PcapIn::open(file.path()) else { return };
    let mut frame = Vec::new();
    let mut total = 0;
    loop {
        match capture.poll(&mut frame) {
            Ok(true) => total += frame.len(),
            Ok(false) => break,
            Err(error) => {
                assert!(error.to_string().contains("byte"), "an error says where: {error}");
                break;
            }
        }
        // A record's header takes 12 bytes at least, so empty frames cannot go on for ever either.
        assert!(total < bytes.len() && capture.frames() <= bytes.len() as u64 / 12);
        assert!(capture.cut_frames() <= capture.frames());
    }
    assert!(capture.is_finished() && matches!(capture.poll(&mut frame), Ok(false)), "the end is final");
});
