//! What DMA queues take between hosts beside stores.

use beeline_hosts::{Mover, dma_rate_gbps, move_latency_ns};
use beeline_platforms::Platform;

/// DMA has a start to pay for, and then packets of the longest payload where stores are packets of a line. A program prints the sizes between.
#[test]
fn dma_arrives_later_than_stores_below_4_kib_and_sooner_from_32_kib_on() {
    let platform = Platform::named("vpx3-133-gen2x4").unwrap();
    let mut last = 0.0;
    for bytes in (6..19).map(|power| 1 << power) {
        let time = |mover| move_latency_ns(&platform, mover, bytes, 1).unwrap();
        let (stores, dma) = (time(Mover::Stores), time(Mover::Dma));
        let rate = dma_rate_gbps(&platform, bytes, 1).unwrap() / 8.0;
        println!("{bytes:>7} B: stores {stores:>9.1} ns, DMA {dma:>9.1} ns, queued {rate:.3} GB/s");
        if bytes < 4096 {
            assert!(dma > stores, "{bytes} B: {dma} ns by DMA, {stores} by stores");
        } else if bytes >= 32_768 {
            assert!(dma < stores, "{bytes} B: {dma} ns by DMA, {stores} by stores");
        }
        assert!(rate > last * 0.999, "{bytes} B: {rate} GB/s after {last}");
        last = rate;
    }
}

#[test]
fn platform_without_an_engine_has_no_such_times() {
    let platform = Platform::named("vpx3-1259-gen2x4-linux").unwrap();
    assert!(move_latency_ns(&platform, Mover::Dma, 256, 1).is_err());
    assert!(dma_rate_gbps(&platform, 256, 1).is_err());
}
