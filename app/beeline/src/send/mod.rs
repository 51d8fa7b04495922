//! `beeline send`: a capture through a NIC, and the proof that what the wire saw is what was in it.
//!
//! This process hands the frames over; a NIC process of its own transmits them to an up-link that writes a capture;
//! then both captures are read and compared, frame by frame, byte by byte.

pub mod args;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use beeline_driver::Transmit;
use beeline_ethernet::{PcapIn, Uplink};
use beeline_mmio::Traffic;
use beeline_session::{
    Frames, Job, NicOptions, PrivateNic, Queue, Rx, Session, finish, kernel_name, send_one,
};
use beeline_spec::formats::{MAX_FRAME_BYTES, MIN_FRAME_BYTES};
use beeline_spec::{Interface, Stores};
use indicatif::ProgressBar;
use serde::Serialize;

use args::SendArgs;

use crate::choices::check_fences;
use crate::failure::{Failure, own_program};
use crate::options::DeviceName;
use crate::{out, progress, rtl};

/// Results of `send`, for `--json`.
#[derive(Serialize)]
struct Received {
    interface: &'static str,
    device: String,
    /// How the lines of a window left the core; `-` where there is none.
    kernel: &'static str,
    fences: &'static str,
    adversary: Option<u64>,
    frames: u64,
    bytes: u64,
    /// Frames that were padded by the interface (kPIO+WC sends multiples of 8 bytes).
    padded_frames: u64,
    result: &'static str,
}

/// Runs `beeline send`.
pub fn run(args: &SendArgs) -> Result<(), Failure> {
    if same_file(&args.input, &args.out) {
        return Err(
            Failure::new("IN.pcap and --out are the same file").remedy("name another file with --out")
        );
    }
    check_fences(args.fences.policy, &[args.interface])?;
    if args.cut_through_lines != 0 && (args.device, args.interface) != (DeviceName::Rtl, Interface::Mmio) {
        return Err(Failure::new("only mmio through the RTL cuts through")
            .remedy("--interface mmio --device rtl, or no --cut-through-lines"));
    }
    if args.waves.is_some() && args.device != DeviceName::Rtl {
        return Err(
            Failure::new("only the RTL has waves").remedy("--device rtl beside --waves, or no --waves")
        );
    }
    if let Some(waves) = &args.waves
        && [&args.input, &args.out].into_iter().any(|capture| same_file(capture, waves) || capture == waves)
    {
        return Err(
            Failure::new("--waves names one of the captures").remedy("name another file with --waves")
        );
    }
    let total = check_input(&args.input)?;
    if args.device == DeviceName::Rtl {
        return run_on_rtl(args, total);
    }
    let (pcap_out, root) = (Some(args.out.clone()), args.root.root.clone());
    let options = NicOptions { pcap_out, root, ..NicOptions::default() };
    let nic = PrivateNic::start(&own_program()?, &options)?;
    let kernel = args.kernel.choose(Traffic::Stream);
    let mut session = Session::open(&nic.session_options(kernel))?;
    let bar = progress::bar(total, "frames", args.json);
    let queue = Queue { adversary: args.adversary, fences: args.fences.policy, ..Queue::of(args.interface) };
    let multiple = session.with_queue(queue, Replay { input: &args.input, bar: &bar })?;
    drop(session);
    nic.stop()?;
    bar.finish_and_clear();
    let received = compare(args, kernel_name(args.interface, kernel), multiple)?;
    check_total(args, &received, total)?;
    report(args, &received)
}

/// The same through the NIC's RTL: no process but this one, and every store a write at the RTL's port.
fn run_on_rtl(args: &SendArgs, total: u64) -> Result<(), Failure> {
    let bar = progress::bar(total, "frames", args.json);
    let replayed = rtl::send(args, open(&args.input)?.without_warnings(), &bar)?;
    bar.finish_and_clear();
    let received = compare(args, "writes at the port", replayed.frame_multiple_bytes)?;
    check_total(args, &received, total)?;
    report(args, &received)?;
    if !args.json {
        out::line(format_args!("{} cycles of the RTL", replayed.cycles))?;
    }
    Ok(())
}

fn check_total(args: &SendArgs, received: &Received, total: u64) -> Result<(), Failure> {
    if received.frames != total {
        // Both captures were read to their ends, so the input is another one than at the start.
        return Err(Failure::new(format!(
            "{} held {total} frames at the start and holds {} now: it changed while it was sent",
            args.input.display(),
            received.frames
        )));
    }
    Ok(())
}

/// Whether both names are one file, by whatever links: writing the one would destroy the other.
fn same_file(a: &Path, b: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|data| (data.dev(), data.ino()));
    matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b)
}

/// Reads the whole capture once, so that a bad file is refused before a frame of it is sent.
pub fn check_input(path: &Path) -> Result<u64, Failure> {
    // It is read three times: checked, sent, and compared with what came out. Opening a pipe would wait for whoever writes it.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let what = format!(
            "cannot read {}: not a regular file, and a capture is read more than once",
            path.display()
        );
        return Err(Failure::new(what).remedy("write it to a file first, as in `zcat x.pcap.gz > x.pcap`"));
    }
    let mut capture = open(path)?;
    let mut frame = Vec::new();
    let mut number = 0;
    while capture.poll(&mut frame).map_err(|e| Failure::new("cannot use the capture").because(e))? {
        number += 1;
        if !(MIN_FRAME_BYTES..=MAX_FRAME_BYTES).contains(&frame.len()) {
            let bytes = frame.len();
            return Err(Failure::new(format!(
                "{}: frame {number} has {bytes} bytes; a NIC carries {MIN_FRAME_BYTES} to {MAX_FRAME_BYTES}",
                path.display()
            ))
            .remedy("capture with segmentation offload off (ethtool -K DEV tso off gso off gro off)"));
        }
    }
    if number == 0 {
        return Err(Failure::new(format!("{} holds no frames", path.display())));
    }
    Ok(number)
}

pub fn open(path: &Path) -> Result<PcapIn, Failure> {
    PcapIn::open(path).map_err(|e| {
        Failure::new(format!("cannot read {}", path.display()))
            .because(e)
            .remedy("give a pcap or pcapng file with Ethernet frames (tcpdump -w)")
    })
}

/// Hands a capture's frames over and waits until the NIC has transmitted them.
struct Replay<'a> {
    input: &'a Path,
    bar: &'a ProgressBar,
}

impl Job for Replay<'_> {
    /// Length to which frames are padded.
    type Output = usize;
    type Error = Failure;

    fn run<T: Transmit>(self, session: &mut Session, tx: &mut T, _rx: &mut Rx) -> Result<usize, Failure> {
        // The check of the options has warned of it.
        let mut capture = open(self.input)?.without_warnings();
        let mut frame = Vec::new();
        while capture.poll(&mut frame).map_err(|e| Failure::new("cannot use the capture").because(e))? {
            send_one(session, tx, &frame)?;
            self.bar.inc(1);
        }
        finish(session, tx)?;
        Ok(tx.declared().frame_multiple_bytes())
    }
}

/// Compares what was to be sent with what the wire saw.
fn compare(args: &SendArgs, kernel: &'static str, multiple: usize) -> Result<Received, Failure> {
    let (mut sent, mut seen) = (open(&args.input)?.without_warnings(), open(&args.out)?.without_warnings());
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    let (mut frames, mut bytes, mut padded_frames) = (0, 0, 0);
    let failed = |e| Failure::new("cannot read a capture back").because(e);
    loop {
        let is_expected = sent.poll(&mut expected).map_err(failed)?;
        let is_found = seen.poll(&mut found).map_err(failed)?;
        match (is_expected, is_found) {
            (false, false) => break,
            (true, false) => return Err(wrong(frames, "the wire saw no more frames")),
            (false, true) => return Err(wrong(frames, "the wire saw a frame that was not sent")),
            (true, true) => {}
        }
        bytes += expected.len() as u64;
        let padding = expected.len().next_multiple_of(multiple) - expected.len();
        padded_frames += u64::from(padding > 0);
        expected.extend(std::iter::repeat_n(0, padding));
        if let Some(difference) = Frames::difference(&expected, &found) {
            return Err(wrong(frames, &difference));
        }
        frames += 1;
    }
    Ok(Received {
        interface: args.interface.name(),
        device: args.device.to_string(),
        kernel,
        fences: args.fences.policy.name(),
        adversary: args.adversary,
        frames,
        bytes,
        padded_frames,
        result: "complete, in order, unchanged",
    })
}

fn wrong(frames: u64, what: &str) -> Failure {
    Failure::new(format!("after {frames} frames: {what}"))
}

fn report(args: &SendArgs, received: &Received) -> Result<(), Failure> {
    if args.json {
        return out::json(received);
    }
    let Received { frames, bytes, padded_frames, kernel, fences, .. } = received;
    out::line(format_args!("{frames} frames, {bytes} bytes by {}: {}", received.interface, received.result))?;
    let stores = args.interface.stores();
    match stores {
        Stores::None => {}
        Stores::InOrder => out::line(format_args!("lines stored with {kernel}, which keeps them in order"))?,
        Stores::AnyOrder => out::line(format_args!("lines stored with {kernel}, fences: {fences}"))?,
    }
    if let Some(seed) = args.adversary {
        let interface = args.interface;
        match stores {
            Stores::None => {
                out::line(format_args!(
                    "adversary {seed} had nothing to do: {interface} stores no frame across the link"
                ))?;
            }
            Stores::InOrder => out::line(format_args!(
                "adversary {seed} kept to what {interface} bears: whole lines, in order"
            ))?,
            Stores::AnyOrder => out::line(format_args!("adversary {seed} split and permuted the stores"))?,
        }
    }
    if *padded_frames > 0 {
        out::line(format_args!(
            "{padded_frames} frames were padded with zeros to a multiple of 8 bytes, as kPIO+WC does"
        ))?;
    }
    out::line(format_args!("what the wire saw: {}", args.out.display()))
}
