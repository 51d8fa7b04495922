//! Raw stores into a window, with and without a receiver: HotOS'25 figure 2 on this CPU's memory.
//!
//! The windows and floors are those of `lab/floor`; here they are swept over message sizes and fence policies.

use std::time::Instant;

use beeline_floor::{Cores, FloorError, Sides, Unreceived, WindowMemory};
use beeline_mmio::{StoreKernel, Traffic};
use beeline_spec::WORD_BYTES;
use beeline_window::{FencePolicy, Sent, Writer};
use indicatif::ProgressBar;

use super::results::StoreRow;
use crate::failure::Failure;

/// Bytes of a message in the window, header included: 64 B to 8 KB, as the paper's figure.
const SIZES: [u32; 8] = [64, 128, 256, 512, 1024, 2048, 4096, 8192];
/// Lines of the window: 256 KiB, the paper's range, so that address translation stays in the first-level TLB.
const WINDOW_LINES: u32 = 4096;
/// Round trips of the bare copy.
const TRIPS: u64 = 50_000;
/// Bytes stored for a figure.
const BYTES: u64 = 1 << 30;

/// Measurements that [`run`] makes.
pub fn steps(quick: bool, named: Option<StoreKernel>) -> u64 {
    let kernels = kernels(named).len();
    (sizes(quick).len() * FencePolicy::ALL.len() * 2 * kernels) as u64
}

fn sizes(quick: bool) -> &'static [u32] {
    if quick { &SIZES[..3] } else { &SIZES }
}

/// The kernel that was named; or the one that streams best here, and the best of the non-temporal ones, whose stores
/// leave as a NIC's would.
fn kernels(named: Option<StoreKernel>) -> Vec<StoreKernel> {
    if let Some(kernel) = named {
        return vec![kernel];
    }
    let stream = StoreKernel::choose(Traffic::Stream);
    let widest = StoreKernel::available()
        .into_iter()
        .rfind(|kernel| kernel.is_for_memory() && *kernel != StoreKernel::Cached);
    let mut kernels = vec![stream];
    kernels.extend(widest.filter(|kernel| *kernel != stream));
    kernels
}

/// Measures every size, policy and kernel.
pub fn run(
    quick: bool,
    named: Option<StoreKernel>,
    cores: Cores,
    bar: &ProgressBar,
) -> Result<Vec<StoreRow>, Failure> {
    let failed = |e| Failure::new("raw stores cannot be measured").because(e);
    let mut rows = Vec::new();
    for kernel in kernels(named) {
        for receiver in [false, true] {
            for policy in FencePolicy::ALL {
                for message_bytes in sizes(quick) {
                    bar.set_message(format!("stores {kernel}, fences {policy}, {message_bytes} B"));
                    let messages = messages(policy, *message_bytes, quick);
                    let payload = vec![0x5a; *message_bytes as usize - WORD_BYTES];
                    let rate = if receiver {
                        with_receiver(cores, kernel, policy, &payload, messages)
                    } else {
                        without_receiver(kernel, policy, &payload, messages)
                    };
                    let messages_per_s = rate.map_err(failed)?;
                    rows.push(StoreRow {
                        policy: policy.name(),
                        receiver,
                        kernel: kernel.name(),
                        message_bytes: *message_bytes,
                        messages_per_s,
                        goodput_gbps: messages_per_s * f64::from(*message_bytes) * 8.0 / 1e9,
                    });
                    bar.inc(1);
                }
            }
        }
    }
    Ok(rows)
}

/// Enough messages for a time long enough to measure; fences cost so much that a fiftieth will do.
fn messages(policy: FencePolicy, message_bytes: u32, quick: bool) -> u64 {
    let bytes = match policy {
        FencePolicy::None | FencePolicy::PerWrap => BYTES,
        FencePolicy::PerMessage => BYTES / 50 * (u64::from(message_bytes) / 64).min(50),
        FencePolicy::PerLine => BYTES / 50,
    };
    (bytes / u64::from(message_bytes) / if quick { 20 } else { 1 }).max(1000)
}

fn without_receiver(
    kernel: StoreKernel,
    policy: FencePolicy,
    payload: &[u8],
    messages: u64,
) -> Result<f64, FloorError> {
    let memory = WindowMemory::new(WINDOW_LINES)?;
    let config = memory.config().with_fences(policy);
    let mut writer = Writer::new(memory.store_window(kernel), Unreceived::new(WINDOW_LINES), config);
    let start = Instant::now();
    for _ in 0..messages {
        while writer.try_send(payload)? == Sent::Full {}
    }
    writer.fence();
    Ok(messages as f64 / start.elapsed().as_secs_f64())
}

fn with_receiver(
    cores: Cores,
    kernel: StoreKernel,
    policy: FencePolicy,
    payload: &[u8],
    messages: u64,
) -> Result<f64, FloorError> {
    let memory = WindowMemory::new(WINDOW_LINES)?;
    let mut writer =
        Writer::new(memory.store_window(kernel), memory.credits(), memory.config().with_fences(policy));
    let mut receiver = memory.receiver(kernel);
    let both = Sides::run::<FloorError>(
        cores,
        |start| {
            let began = start.wait();
            for _ in 0..messages {
                while writer.try_send(payload)? == Sent::Full && !start.is_over() {
                    std::hint::spin_loop();
                }
            }
            Ok(began)
        },
        |start| {
            start.wait();
            let mut found = vec![0; payload.len()];
            let mut received = 0;
            while received < messages && !start.is_over() {
                if let Some(mut message) = receiver.poll()? {
                    message.copy_out(&mut found);
                    received += 1;
                }
            }
            Ok((Instant::now(), found))
        },
    )?;
    let (end, found) = both.second;
    if found != payload {
        return Err(FloorError::Panicked("the receiver, whose last message is not what was sent"));
    }
    Ok(messages as f64 / end.duration_since(both.first).as_secs_f64())
}

/// The floor of every round trip on these cores.
pub fn bare_copy_p50_ns(first: usize, second: usize) -> Result<u64, Failure> {
    let failed = |e| Failure::new("the bare copy cannot be measured").because(e);
    let cores = Cores { first, second };
    let mut trips = beeline_floor::bare_trips(cores, WINDOW_LINES, TRIPS, 1).map_err(failed)?;
    trips.sort_by(f64::total_cmp);
    Ok(trips[trips.len() / 2] as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_spec::LINE_BYTES;

    #[test]
    fn every_size_and_policy_gets_round_the_window_many_times() {
        for policy in FencePolicy::ALL {
            for message_bytes in SIZES {
                let payload = vec![0x5a; message_bytes as usize - WORD_BYTES];
                let messages = 5 * u64::from(WINDOW_LINES) * LINE_BYTES as u64 / u64::from(message_bytes);
                let rate = without_receiver(StoreKernel::Cached, policy, &payload, messages).unwrap();
                assert!(rate > 0.0, "{policy}, {message_bytes} B");
            }
        }
    }
}
