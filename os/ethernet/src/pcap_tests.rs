use std::io::{Cursor, Write};
use std::path::PathBuf;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, TsResolution};
use proptest::prelude::*;

use super::*;
use crate::PcapOut;

fn frames() -> Vec<Vec<u8>> {
    [14, 60, 61, 1514, 9000, 63].iter().zip(1u8..).map(|(&bytes, fill)| vec![fill; bytes]).collect()
}

fn classic(endianness: Endianness, ts_resolution: TsResolution, datalink: DataLink) -> Vec<u8> {
    let header = PcapHeader { endianness, ts_resolution, datalink, ..PcapHeader::default() };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for frame in frames() {
        let time = std::time::Duration::from_nanos(1_500_000_001_000);
        writer.write_packet(&PcapPacket::new(time, frame.len() as u32, &frame)).unwrap();
    }
    writer.into_writer()
}

fn next_generation(endianness: Endianness, link: DataLink) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness).unwrap();
    writer.write_pcapng_block(InterfaceDescriptionBlock::new(link, 0)).unwrap();
    for frame in frames() {
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: std::time::Duration::from_secs(1),
            original_len: frame.len() as u32,
            data: frame.into(),
            options: Vec::new(),
        };
        writer.write_pcapng_block(block).unwrap();
    }
    writer.into_inner()
}

fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>, UplinkError> {
    let mut records = Records::new(&PathBuf::from("trace.pcap"), Cursor::new(bytes))?;
    let (mut all, mut data) = (Vec::new(), Vec::new());
    while records.next(&mut data)?.is_some() {
        all.push(data.clone());
    }
    Ok(all)
}

fn everything() -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for endianness in [Endianness::Little, Endianness::Big] {
        for resolution in [TsResolution::MicroSecond, TsResolution::NanoSecond] {
            files.push(classic(endianness, resolution, DataLink::ETHERNET));
        }
        files.push(next_generation(endianness, DataLink::ETHERNET));
    }
    files
}

#[test]
fn both_formats_byte_orders_and_resolutions_give_the_same_frames() {
    for file in everything() {
        assert_eq!(read(&file).unwrap(), frames());
    }
}

#[test]
fn what_was_written_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcap");
    let mut out = PcapOut::create(&path).unwrap();
    for frame in frames() {
        assert_eq!(out.send(&frame).unwrap(), Accept::Taken);
    }
    out.flush().unwrap();
    let mut input = PcapIn::open(&path).unwrap();
    let mut frame = Vec::new();
    for expected in frames() {
        assert!(input.poll(&mut frame).unwrap());
        assert_eq!(frame, expected);
    }
    assert!(!input.poll(&mut frame).unwrap());
    assert!(input.is_finished());
    assert_eq!((out.frames(), input.frames(), input.cut_frames()), (6, 6, 0));
    assert!(matches!(input.send(&frame), Err(UplinkError::TakesNone { .. })));
}

#[test]
fn a_file_cut_anywhere_names_the_record_it_was_cut_in() {
    for file in everything() {
        let whole = read(&file).unwrap().len();
        for cut in (0..file.len()).step_by(7) {
            match read(&file[..cut]) {
                Ok(frames) => assert!(frames.len() < whole),
                Err(UplinkError::Truncated { offset_bytes, path }) => {
                    assert!(offset_bytes <= cut as u64, "{offset_bytes} > {cut}");
                    assert_eq!(path, PathBuf::from("trace.pcap"));
                }
                Err(UplinkError::NotCapture { found, .. }) => assert!(cut < 4 && found.len() == cut),
                Err(other) => panic!("cut at {cut}: {other}"),
            }
        }
    }
}

#[test]
fn a_record_in_the_middle_is_named_by_its_offset() {
    let mut file = classic(Endianness::Little, TsResolution::MicroSecond, DataLink::ETHERNET);
    // The third record begins after the header and the records of 14 and 60 bytes; its captured length is at +8.
    let third = 24 + (16 + 14) + (16 + 60);
    file[third + 8..third + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = read(&file).unwrap_err().to_string();
    assert!(error.contains(&format!("byte {third}")) && error.contains("trace.pcap"), "{error}");
    file[third + 8..third + 12].copy_from_slice(&62u32.to_le_bytes());
    let error = read(&file).unwrap_err().to_string();
    assert!(error.contains("62 captured bytes of a frame of 61"), "{error}");
}

#[test]
fn alien_files_and_alien_links_are_refused_with_a_remedy() {
    let error = read(b"\x7fELF\x02\x01\x01").unwrap_err().to_string();
    assert!(error.contains("not a capture") && error.contains("tcpdump"), "{error}");
    for file in [
        classic(Endianness::Big, TsResolution::MicroSecond, DataLink::RAW),
        next_generation(Endianness::Little, DataLink::RAW),
    ] {
        let error = read(&file).unwrap_err();
        assert!(matches!(error, UplinkError::LinkType { found: 101, .. }), "{error}");
        assert!(error.to_string().contains("Ethernet"));
    }
    let error =
        PcapIn::open(&PathBuf::from("/nonexistent/x.pcap")).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("/nonexistent/x.pcap"), "{error}");
}

#[test]
fn a_frame_cut_by_the_capture_is_given_and_counted() {
    let mut bytes = classic(Endianness::Little, TsResolution::MicroSecond, DataLink::ETHERNET);
    // The first record: original length at 24 + 12.
    bytes[36..40].copy_from_slice(&1500u32.to_le_bytes());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes).unwrap();
    let mut input = PcapIn::open(file.path()).unwrap();
    let mut frame = Vec::new();
    while input.poll(&mut frame).unwrap() {}
    assert_eq!((input.frames(), input.cut_frames()), (6, 1));
}

proptest! {
    #[test]
    fn damaged_files_give_frames_or_one_error(
        which in 0usize..6,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut file = everything().swap_remove(which);
        for (place, value) in damage {
            let at = place.index(file.len().min(400));
            file[at] = value;
        }
        if let Err(error) = read(&file) {
            prop_assert!(error.to_string().contains("trace.pcap"));
        }
    }

    #[test]
    fn any_bytes_after_a_section_header_are_borne(tail in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut file = next_generation(Endianness::Little, DataLink::ETHERNET);
        file.truncate(28);
        file.extend_from_slice(&tail);
        let _ = read(&file);
    }
}

/// When the frames of a capture were captured, in nanoseconds.
fn times(bytes: &[u8]) -> Vec<Option<u64>> {
    let mut records = Records::new(&PathBuf::from("trace.pcap"), Cursor::new(bytes)).unwrap();
    let (mut all, mut data) = (Vec::new(), Vec::new());
    while let Some(record) = records.next(&mut data).unwrap() {
        all.push(record.captured_at_ns);
    }
    all
}

#[test]
fn times_are_in_the_unit_that_the_capture_names() {
    for endianness in [Endianness::Little, Endianness::Big] {
        for resolution in [TsResolution::MicroSecond, TsResolution::NanoSecond] {
            let found = times(&classic(endianness, resolution, DataLink::ETHERNET));
            assert_eq!(found, vec![Some(1_500_000_001_000); frames().len()]);
        }
        // A thousand million ticks: of microseconds where nothing is said, else as the option says.
        let ticks = 1_000_000_000;
        let cases = [
            (None, 1000 * ticks),
            (Some(9), ticks),
            (Some(3), 1_000_000 * ticks),
            (Some(0x80 | 30), 931_322_574),
        ];
        for (option, ns) in cases {
            let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness).unwrap();
            let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0);
            interface.options.push(InterfaceDescriptionOption::IfName("a name that is padded".into()));
            interface.options.extend(option.map(InterfaceDescriptionOption::IfTsResol));
            writer.write_pcapng_block(interface).unwrap();
            let block = EnhancedPacketBlock {
                interface_id: 0,
                timestamp: std::time::Duration::from_nanos(ticks),
                original_len: 14,
                data: vec![1; 14].into(),
                options: Vec::new(),
            };
            writer.write_pcapng_block(block).unwrap();
            assert_eq!(times(&writer.into_inner()), [Some(ns)], "{option:?}");
        }
    }
}
