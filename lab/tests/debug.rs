#![allow(missing_docs, clippy::unwrap_used)]
use beeline_lab::measure::{Bench, Direction};
use beeline_platforms::Platform;
#[test]
fn debug() {
    let platform = Platform::named("snb-nfp6000").unwrap();
    let bench = Bench::new(&platform, 1);
    for bytes in [64, 128, 256, 512, 1024, 2048] {
        println!(
            "{bytes}: {:.2} {:.2} {:.2}",
            bench.dma_rate_gbps(Direction::Read, bytes).unwrap(),
            bench.dma_rate_gbps(Direction::Write, bytes).unwrap(),
            bench.dma_rate_gbps(Direction::ReadWrite, bytes).unwrap()
        );
    }
}
