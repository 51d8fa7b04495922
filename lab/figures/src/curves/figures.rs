//! Which figures there are.

use super::figure::{Curve, Figure};
use crate::quantity::{Direction, Engine, FRAMES_A_CALL, Fence, Interface, Quantity as Q, Stamp, Target};
use crate::shape::powers_of_two;

const GBPS: f64 = 1.0;
const GB_PER_S: f64 = 8.0;
const NS: f64 = 1.0;
const US: f64 = 1000.0;

/// Every eighth byte of a few lines: a staircase shows.
fn fine() -> Vec<u64> {
    (16..=640).step_by(8).collect()
}

fn frames() -> Vec<u64> {
    let mut sizes: Vec<u64> = (56..=512).step_by(8).collect();
    sizes.extend((576..=1496).step_by(64));
    sizes
}

/// Frames of one core without end.
fn rate(interface: Interface, bytes: u64) -> Q {
    Q::FrameRate { interface, bytes, cores: 1, burst: FRAMES_A_CALL }
}

/// Work requests as a verbs library posts them: one a call, pushed and flushed.
fn work_requests(bytes: u64, cores: u32) -> Q {
    Q::FrameRate { interface: Interface::Inline, bytes, cores, burst: 1 }
}

/// Packets of a trace, numbered.
fn packets() -> Vec<u64> {
    vec![1, 2, 3, 4]
}

fn kpio_stamp(packet: u64) -> Q {
    Q::TraceStamp(match packet {
        1 => Stamp::FirstLineAck,
        2 => Stamp::SecondLineAck,
        3 => Stamp::FirstLoopBackWrite,
        _ => Stamp::SecondLoopBackWrite,
    })
}

fn dma_stamps() -> Vec<u64> {
    vec![1, 2, 3]
}

fn dma_stamp(packet: u64) -> Q {
    Q::TraceStamp(match packet {
        1 => Stamp::DoorbellAck,
        2 => Stamp::DescriptorAck,
        _ => Stamp::PayloadAck,
    })
}

/// Stores into a window, unfenced.
fn stores(bytes: u64) -> Q {
    Q::StoreRate { bytes, fence: Fence::None, target: Target::Window }
}

/// Copies into a window, each of which ends with a flush, as those of the SISCI API.
fn copies(bytes: u64) -> Q {
    Q::StoreRate { bytes, fence: Fence::PerMessage, target: Target::Window }
}

fn copy_time(bytes: u64) -> Q {
    Q::StoreTime { bytes, fence: Fence::PerMessage }
}

const KPIO: &str = "i5-2400s-virtex5";
const KPIO_RIVAL: &str = "i5-2400s-82575eb";
const EPYC: &str = "epyc-7543-cx6dx";
const NFP: &str = "snb-nfp6000";

/// A curve without published points.
const fn bare(name: &'static str, machine: &'static str, quantity: fn(u64) -> Q) -> Curve {
    Curve { name, machine, quantity, set: &[], published: &[] }
}

/// All figures, in the order of the page.
pub const FIGURES: &[Figure] = &[
    Figure {
        title: "kPIO+WC, figure 5: the trace of a ping looped back",
        rows: &[],
        expected: "Acknowledgements of the first and the second line come first, then both looped-back writes, in the \
                   order of their packets.",
        caption: "When an analyzer sees packets 1 to 4: the acknowledgements of both lines, and both looped-back writes. \
                  Three of the four are inputs. The modelled device acknowledges both lines with one packet, so packet 2 has \
                  no simulated time.",
        unit: "ns after the first line",
        unit_size: NS,
        axis: "packet",
        is_numbered: true,
        is_logarithmic: false,
        sizes: packets,
        curves: &[Curve {
            name: "kPIO+WC",
            machine: KPIO,
            quantity: kpio_stamp,
            set: &[],
            published: &[("r0017", Some(1)), ("r0018", Some(2)), ("r0019", Some(3)), ("r0020", Some(4))],
        }],
    },
    Figure {
        title: "kPIO+WC, figure 6: the trace of a ping by descriptor DMA",
        rows: &[],
        expected: "Three packets in a row: the doorbell's acknowledgement, some 900 ns later the descriptor's, some \
                   1000 ns later the payload's.",
        caption: "Acknowledgements of the doorbell, of the descriptor, of the payload. Two of the three are inputs.",
        unit: "ns after the doorbell",
        unit_size: NS,
        axis: "packet",
        is_numbered: true,
        is_logarithmic: false,
        sizes: dma_stamps,
        curves: &[Curve {
            name: "descriptor",
            machine: KPIO_RIVAL,
            quantity: dma_stamp,
            set: &[],
            published: &[("r0026", Some(1)), ("r0027", Some(2)), ("r0028", Some(3))],
        }],
    },
    Figure {
        title: "kPIO+WC, figure 7 and table 1: transmit latency by size",
        rows: &["r0035"],
        expected: "kPIO+WC is a staircase with a step every 64 bytes; descriptor DMA is smooth (row r0035).",
        caption: "The points of the picture are lost. The crosses are the three numbers of the text: one line, and the ping \
                  by either way (a frame of 104 or 100 bytes). They start and end elsewhere than the lines, as rows r0029, r0030 and \
                  r0033 say, so they are not compared with them.",
        unit: "ns",
        unit_size: NS,
        axis: "frame, bytes",
        is_numbered: false,
        is_logarithmic: false,
        sizes: fine,
        curves: &[
            Curve {
                name: "kPIO+WC",
                machine: KPIO,
                quantity: |bytes| Q::TransmitLatency { interface: Interface::Kpio, bytes },
                set: &[],
                published: &[("r0029", Some(104)), ("r0033", Some(56))],
            },
            Curve {
                name: "descriptor",
                machine: KPIO_RIVAL,
                quantity: |bytes| Q::TransmitLatency { interface: Interface::Descriptor, bytes },
                set: &[],
                published: &[("r0030", Some(100))],
            },
        ],
    },
    Figure {
        title: "kPIO+WC, figure 8: throughput by size",
        rows: &["r0036"],
        expected: "kPIO+WC is ahead for small frames and drops behind each 64-byte boundary; both come together for \
                   large ones (row r0036).",
        caption: "The points of the picture are lost. The rival is the NIC of the traces with a doorbell a frame and without \
                  its wire of 1 Gbit/s, as row r0036 has it.",
        unit: "Gbit/s",
        unit_size: GBPS,
        axis: "frame, bytes",
        is_numbered: false,
        is_logarithmic: false,
        sizes: frames,
        curves: &[
            bare("kPIO+WC", KPIO, |bytes| rate(Interface::Kpio, bytes)),
            Curve {
                name: "descriptor",
                machine: KPIO_RIVAL,
                quantity: |bytes| Q::FrameRate {
                    interface: Interface::Descriptor,
                    bytes,
                    cores: 1,
                    burst: 1,
                },
                set: &[("device.wire_gbps", 0.0)],
                published: &[],
            },
        ],
    },
    Figure {
        title: "HotOS'25, figure 2: stores of one core",
        rows: &[],
        expected: "Unfenced stores to the NIC stay at about 120 Gbit/s whatever the size of a message; a fence behind \
                   each small one leaves 1; stores to memory reach nearly 200.",
        caption: "The points of the picture are lost. 120 and 200 Gbit/s are inputs.",
        unit: "Gbit/s",
        unit_size: GBPS,
        axis: "message, bytes",
        is_numbered: false,
        is_logarithmic: true,
        sizes: || powers_of_two(64, 8192),
        curves: &[
            Curve {
                name: "to the NIC",
                machine: EPYC,
                quantity: stores,
                set: &[],
                published: &[("r0049", None)],
            },
            Curve {
                name: "to the NIC, fenced",
                machine: EPYC,
                quantity: |bytes| Q::StoreRate { bytes, fence: Fence::PerMessage, target: Target::Window },
                set: &[],
                published: &[("r0055", None)],
            },
            Curve {
                name: "to memory",
                machine: EPYC,
                quantity: |bytes| Q::StoreRate { bytes, fence: Fence::None, target: Target::Memory },
                set: &[],
                published: &[("r0051", Some(8192))],
            },
        ],
    },
    Figure {
        title: "HotOS'25, figure 3: round trip with and without DMA",
        rows: &["r0065"],
        expected: "Messages that are pushed need one read by DMA less: a small one's round trip is about 800 ns \
                   shorter.",
        caption: "The points of the picture are lost; the text has the difference for small messages, 800 ns. Without BlueFlame \
                  is one read of the device, as of a pipe: the same stand-in as in row r0065.",
        unit: "us",
        unit_size: US,
        axis: "message, bytes",
        is_numbered: false,
        is_logarithmic: false,
        sizes: || powers_of_two(16, 4096),
        curves: &[
            bare("one read by DMA (enso)", EPYC, |bytes| Q::PingPong { interface: Interface::Enso, bytes }),
            bare("inline", EPYC, |bytes| Q::PingPong { interface: Interface::Inline, bytes }),
            bare("mmio (ours)", EPYC, |bytes| Q::PingPong { interface: Interface::Mmio, bytes }),
        ],
    },
    Figure {
        title: "HotOS'25, figure 4: pipelined writes, one request a call",
        rows: &["r0066", "r0067"],
        expected: "At 64 bytes one core reaches about 1 Gbit/s and 64 cores about 30: a fence for each request is what \
                   limits them.",
        caption: "The points of the picture are lost but for 64 bytes. Larger messages are many frames there; a NIC of ours \
                  has no messages above a frame. One request a call, pushed with a fence; at 256 bytes an entry that holds \
                  its frame is too long to be pushed, and its doorbell needs none.",
        unit: "Gbit/s",
        unit_size: GBPS,
        axis: "message, bytes",
        is_numbered: false,
        is_logarithmic: true,
        sizes: || powers_of_two(64, 8192),
        curves: &[
            Curve {
                name: "1 core",
                machine: EPYC,
                quantity: |bytes| work_requests(bytes, 1),
                set: &[],
                published: &[("r0066", None)],
            },
            Curve {
                name: "64 cores",
                machine: EPYC,
                quantity: |bytes| work_requests(bytes, 64),
                set: &[],
                published: &[("r0067", None)],
            },
        ],
    },
    Figure {
        title: "pcie-bench: latency of DMA by size",
        rows: &[],
        expected: "Both lines rise with size; a write with a read behind it takes longer than a read alone.",
        caption: "Medians, Sandy Bridge server. 8 and 64 bytes are inputs.",
        unit: "ns",
        unit_size: NS,
        axis: "transfer, bytes",
        is_numbered: false,
        is_logarithmic: false,
        sizes: || powers_of_two(8, 2048),
        curves: &[
            Curve {
                name: "read",
                machine: NFP,
                quantity: |bytes| Q::DmaReadLatency { engine: Engine::Bulk, bytes },
                set: &[],
                published: &[
                    ("r0202", None),
                    ("r0203", None),
                    ("r0204", None),
                    ("r0205", None),
                    ("r0206", None),
                    ("r0207", None),
                    ("r0208", None),
                ],
            },
            Curve {
                name: "write, then read",
                machine: NFP,
                quantity: |bytes| Q::DmaWriteReadLatency { engine: Engine::Bulk, bytes },
                set: &[],
                published: &[
                    ("r0209", None),
                    ("r0210", None),
                    ("r0211", None),
                    ("r0212", None),
                    ("r0213", None),
                    ("r0214", None),
                    ("r0215", None),
                ],
            },
        ],
    },
    Figure {
        title: "pcie-bench: bandwidth of DMA by size",
        rows: &[],
        expected: "From 64 to 512 bytes all three rise with the size of a transfer.",
        caption: "Sandy Bridge server.",
        unit: "Gbit/s",
        unit_size: GBPS,
        axis: "transfer, bytes",
        is_numbered: false,
        is_logarithmic: false,
        sizes: || powers_of_two(64, 2048),
        curves: &[
            Curve {
                name: "read",
                machine: NFP,
                quantity: |bytes| Q::DmaRate { direction: Direction::Read, bytes },
                set: &[],
                published: &[
                    ("r0216", None),
                    ("r0217", None),
                    ("r0218", None),
                    ("r0219", None),
                    ("r0220", None),
                    ("r0221", None),
                ],
            },
            Curve {
                name: "read and write",
                machine: NFP,
                quantity: |bytes| Q::DmaRate { direction: Direction::ReadWrite, bytes },
                set: &[],
                published: &[
                    ("r0222", None),
                    ("r0223", None),
                    ("r0224", None),
                    ("r0225", None),
                    ("r0226", None),
                    ("r0227", None),
                ],
            },
            Curve {
                name: "write",
                machine: NFP,
                quantity: |bytes| Q::DmaRate { direction: Direction::Write, bytes },
                set: &[],
                published: &[
                    ("r0228", None),
                    ("r0229", None),
                    ("r0230", None),
                    ("r0231", None),
                    ("r0232", None),
                    ("r0233", None),
                ],
            },
        ],
    },
    Figure {
        title: "gdrcopy: time of a fenced copy into a window by size",
        rows: &[],
        expected: "Flat while the fence is most of the time, then in proportion to the bytes copied.",
        caption: "copylat, a Xeon and a V100, Gen3 x16.",
        unit: "us",
        unit_size: US,
        axis: "copy, bytes",
        is_numbered: false,
        is_logarithmic: true,
        sizes: || powers_of_two(1, 65536),
        curves: &[Curve {
            name: "fenced copy",
            machine: "xeon-v100",
            quantity: |bytes| Q::StoreTime { bytes, fence: Fence::PerMessage },
            set: &[],
            published: &[
                ("r0623", None),
                ("r0624", None),
                ("r0625", None),
                ("r0626", None),
                ("r0627", None),
                ("r0628", None),
                ("r0629", None),
                ("r0630", None),
                ("r0631", None),
                ("r0632", None),
                ("r0633", None),
            ],
        }],
    },
    Figure {
        title: "Dolphin, figures 2 to 6: throughput by size",
        rows: &[],
        expected: "Stores are flat from 256 bytes on, every link is alike below 128 bytes, and Gen3 x4 is nearly Gen2 \
                   x8 (rows r0112, r0124, r0125).",
        caption: "The points of the pictures are lost; the crosses are the peaks of the text, at 65536 bytes where it gives \
                  no size. They are from the Linux, VxWorks, Gen3 x8 and DMA runs.",
        unit: "GB/s",
        unit_size: GB_PER_S,
        axis: "segment, bytes",
        is_numbered: false,
        is_logarithmic: false,
        sizes: || powers_of_two(8, 65536),
        curves: &[
            Curve {
                name: "Gen2 x4, Linux",
                machine: "vpx3-1259-gen2x4-linux",
                quantity: copies,
                set: &[],
                published: &[("r0110", None)],
            },
            Curve {
                name: "Gen2 x4",
                machine: "vpx3-1259-gen2x4-vxworks",
                quantity: copies,
                set: &[],
                published: &[("r0118", Some(65536))],
            },
            bare("Gen2 x8", "vpx3-1259-gen2x8", copies),
            bare("Gen3 x4", "vpx3-1259-gen3x4", copies),
            Curve {
                name: "Gen3 x8",
                machine: "vpx3-1259-gen3x8",
                quantity: copies,
                set: &[],
                published: &[("r0121", Some(65536))],
            },
            bare("Gen3 x4, Xeon D", "champ-xd1-gen3x4", copies),
            Curve {
                name: "Gen2 x4, DMA",
                machine: "vpx3-133-gen2x4",
                quantity: |bytes| Q::DmaPushRate { bytes },
                set: &[],
                published: &[("r0126", Some(65536))],
            },
        ],
    },
    Figure {
        title: "Dolphin, figures 2 to 6: time of a transfer by size",
        rows: &[],
        expected: "Stores of 1024 bytes take less time (0.72 us) than 256 bytes by DMA (1.75 us): a DMA transfer has a \
                   start to pay for.",
        caption: "The points of the pictures are lost. What the text calls latency of stores is the time that the sender \
                  streams; by DMA it is the time to arrive.",
        unit: "us",
        unit_size: US,
        axis: "segment, bytes",
        is_numbered: false,
        is_logarithmic: true,
        sizes: || powers_of_two(8, 4096),
        curves: &[
            Curve {
                name: "Gen2 x4, Linux",
                machine: "vpx3-1259-gen2x4-linux",
                quantity: copy_time,
                set: &[],
                published: &[("r0114", None)],
            },
            Curve {
                name: "Gen2 x4",
                machine: "vpx3-1259-gen2x4-vxworks",
                quantity: copy_time,
                set: &[],
                published: &[("r0120", None)],
            },
            bare("Gen2 x8", "vpx3-1259-gen2x8", copy_time),
            bare("Gen3 x4", "vpx3-1259-gen3x4", copy_time),
            bare("Gen3 x8", "vpx3-1259-gen3x8", copy_time),
            Curve {
                name: "Gen2 x4, DMA",
                machine: "vpx3-133-gen2x4",
                quantity: |bytes| Q::DmaPushLatency { bytes },
                set: &[],
                published: &[("r0127", None)],
            },
        ],
    },
    Figure {
        title: "Interrupts between two hosts, by the size of the message",
        rows: &[],
        expected: "A message costs more than a plain interrupt: the lines that it is made of, and their loads.",
        caption: "From the call until the program of the other host, which polls, has taken it. No vendor's figure has these boards, and \
                  nothing sleeps.",
        unit: "us",
        unit_size: US,
        axis: "message, bytes",
        is_numbered: false,
        is_logarithmic: true,
        sizes: || powers_of_two(8, 2048),
        curves: &[
            bare("plain, Gen2 x4", "vpx3-1259-gen2x4-linux", |_| Q::InterruptLatency),
            bare("data, Gen2 x4", "vpx3-1259-gen2x4-linux", |bytes| Q::MessageLatency { bytes }),
            bare("plain, Gen3 x8", "vpx3-1259-gen3x8", |_| Q::InterruptLatency),
            bare("data, Gen3 x8", "vpx3-1259-gen3x8", |bytes| Q::MessageLatency { bytes }),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published;
    use crate::registry::Registry;
    use crate::shape::Shape;
    use crate::simulator::Replacement;

    type Side = (String, Q, Vec<Replacement>);

    /// What a row compares: platform, quantity at a size of it, replaced parameters.
    fn sides(registry: &Registry, id: &str) -> (u64, Vec<Side>) {
        let entry = &registry.entries[&id.into()];
        let Some(shape) = &entry.shape else {
            let measures = entry.measures();
            let bytes = measures[0].2.bytes().unwrap();
            let side = |(_, machine, quantity): &(_, Option<&str>, &Q)| {
                (machine.unwrap().to_owned(), (*quantity).clone(), Vec::new())
            };
            return (bytes, measures.iter().map(side).collect());
        };
        let bytes = 64;
        let sides = match shape {
            Shape::Staircase { machine, interface, smooth_machine, smooth_interface } => {
                [(machine, *interface), (smooth_machine, *smooth_interface)]
                    .map(|(machine, interface)| {
                        (machine.clone(), Q::TransmitLatency { interface, bytes }, Vec::new())
                    })
                    .to_vec()
            }
            Shape::Converges { machine, interface, .. } => {
                let (rival, quantity, set) = shape.rival(bytes).unwrap();
                vec![
                    (machine.clone(), rate(*interface, bytes), Vec::new()),
                    (rival.to_owned(), quantity, set),
                ]
            }
            other => panic!("{id} is no comparison: {other:?}"),
        };
        (bytes, sides)
    }

    #[test]
    fn rows_and_figures_compare_with_the_same_rival() {
        let registry = Registry::of(&published::rows().unwrap()).unwrap();
        let mut compared = 0;
        for figure in FIGURES {
            for id in figure.rows {
                let (bytes, sides) = sides(&registry, id);
                for side in sides {
                    compared += 1;
                    let is_drawn = figure.curves.iter().any(|curve| {
                        let drawn = (curve.machine.to_owned(), (curve.quantity)(bytes), curve.replacements());
                        drawn == side
                    });
                    assert!(is_drawn, "{id} is run with {side:?}, which `{}` does not draw", figure.title);
                }
            }
        }
        assert_eq!(compared, 8, "r0035, r0036 and r0065 have two sides, r0066 and r0067 one");
    }
}
