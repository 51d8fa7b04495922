//! Prints how messages cross a bridge that is not transparent, by windows and as `ntb_transport` sends them. Every figure is simulated.
//!
//! `cargo run --release -p beeline-hosts --example ntb_compared [PLATFORM...]`

use std::error::Error;

use beeline_hosts::{NtbMethod, ntb_costs, ntb_latencies, ntb_of};
use beeline_platforms::Platform;

/// From an interrupt at the root complex to the first instruction of a driver's handler: assumed, no platform file has it.
const INTERRUPT_NS: u64 = 1_000;
/// Writes that a relaxed write may pass in the bridge.
const PASSES: usize = 8;
const MESSAGES: u64 = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = ["vpx3-1259-gen3x8", "dolphin-ntb"].map(String::from).to_vec();
    }
    println!("simulated; {INTERRUPT_NS} ns from an interrupt to its handler (assumed)\n");
    println!("| platform | register read ns | memory read through a window ns | doorbell to handler ns |");
    println!("|---|---|---|---|");
    for name in &names {
        let costs = ntb_costs(&Platform::named(name)?, &ntb_of(INTERRUPT_NS, 0), 1)?;
        let (register, memory) = (costs.register_read_ns, costs.memory_read_ns);
        println!("| {name} | {register:.0} | {memory:.0} | {:.0} |", costs.doorbell_ns);
    }
    println!();
    println!("| platform | order | bytes | how | p50 ns | p99 ns | ns each, back to back |");
    println!("|---|---|---|---|---|---|---|");
    for name in &names {
        let platform = Platform::named(name)?;
        for (order, passes) in [("kept", 0), ("relaxed", PASSES)] {
            for (bytes, method) in
                [40, 1000].into_iter().flat_map(|bytes| NtbMethod::ALL.map(|how| (bytes, how)))
            {
                let ntb = ntb_of(INTERRUPT_NS, passes);
                let row = ntb_latencies(&platform, &ntb, method, bytes, MESSAGES, 1)?;
                if row.whole < row.taken {
                    // A flag was seen before its frame.
                    let lost = row.taken - row.whole;
                    println!(
                        "| {name} | {order} | {bytes} | {} | n/a: {lost} of {} were not what was sent | | |",
                        method.name(),
                        row.taken
                    );
                    continue;
                }
                println!(
                    "| {name} | {order} | {bytes} | {} | {:.0} | {:.0} | {:.0} |",
                    method.name(),
                    row.alone.p50_ns,
                    row.alone.p99_ns,
                    row.each_ns
                );
            }
        }
    }
    Ok(())
}
