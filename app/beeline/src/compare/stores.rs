//! Raw stores into a window, with and without a receiver: HotOS'25 figure 2 on this CPU's memory.
//!
//! The windows and floors are those of `lab/floor`; here they are swept over message sizes and fence policies.

use std::time::Instant;

use beeline_floor::{Cores, FloorError, Sides, Unreceived, WindowMemory};
use beeline_mmio::StoreKernel;
use beeline_spec::WORD_BYTES;
use beeline_window::{FencePolicy, Sent, Writer};
use indicatif::ProgressBar;

use super::rows::StoreSample;
use crate::failure::Failure;

/// Bytes of a message in the window, header included: 64 B to 8 KB, as the paper's figure.
const SIZES: [u32; 8] = [64, 128, 256, 512, 1024, 2048, 4096, 8192];
/// Lines of the window: 256 KiB, the paper's range, so that address translation stays in the first-level TLB.
const WINDOW_LINES: u32 = 4096;
/// Bytes stored for a figure in all rounds.
const BYTES: u64 = 1 << 30;

/// What a round of raw stores measures.
pub struct Stores<'a> {
    pub quick: bool,
    /// The kernel that streams best here, and the best of the non-temporal ones, whose stores leave as a NIC's would.
    pub kernels: Vec<StoreKernel>,
    pub cores: Cores,
    /// Rounds among which the bytes of a figure are divided.
    pub rounds: u32,
    pub bar: &'a ProgressBar,
}

/// The kernels that raw stores are measured with: the one that was named, or the best, and the widest non-temporal one.
pub fn kernels(named: Option<StoreKernel>, stream: StoreKernel) -> Vec<StoreKernel> {
    if let Some(kernel) = named {
        return vec![kernel];
    }
    let widest = StoreKernel::available()
        .into_iter()
        .rfind(|kernel| kernel.is_for_memory() && *kernel != StoreKernel::Cached);
    let mut kernels = vec![stream];
    kernels.extend(widest.filter(|kernel| *kernel != stream));
    kernels
}

impl Stores<'_> {
    /// Measurements of one round.
    pub fn steps(&self) -> u64 {
        (self.sizes().len() * FencePolicy::ALL.len() * 2 * self.kernels.len()) as u64
    }

    fn sizes(&self) -> &'static [u32] {
        if self.quick { &SIZES[..3] } else { &SIZES }
    }

    /// Measures every size, policy and kernel once.
    pub fn round(&self) -> Result<Vec<StoreSample>, Failure> {
        let mut samples = Vec::new();
        for message_bytes in self.sizes() {
            for receiver in [false, true] {
                for policy in FencePolicy::ALL {
                    for kernel in &self.kernels {
                        samples.push(self.sample(*kernel, receiver, policy, *message_bytes)?);
                        self.bar.inc(1);
                    }
                }
            }
        }
        Ok(samples)
    }

    fn sample(
        &self,
        kernel: StoreKernel,
        receiver: bool,
        policy: FencePolicy,
        message_bytes: u32,
    ) -> Result<StoreSample, Failure> {
        self.bar.set_message(format!("stores {kernel}, fences {policy}, {message_bytes} B"));
        let messages = messages(policy, message_bytes, if self.quick { 20 } else { self.rounds });
        let payload = vec![0x5a; message_bytes as usize - WORD_BYTES];
        let rate = if receiver {
            with_receiver(self.cores, kernel, policy, &payload, messages)
        } else {
            without_receiver(kernel, policy, &payload, messages)
        };
        let failed = |e| Failure::new("raw stores cannot be measured").because(e);
        Ok(StoreSample {
            policy: policy.name(),
            receiver,
            kernel: kernel.name(),
            message_bytes,
            messages_per_s: rate.map_err(failed)?,
        })
    }
}

/// Enough messages for a time long enough to measure; fences cost so much that a fiftieth will do.
fn messages(policy: FencePolicy, message_bytes: u32, rounds: u32) -> u64 {
    let bytes = match policy {
        FencePolicy::None | FencePolicy::PerWrap => BYTES,
        FencePolicy::PerMessage => BYTES / 50 * (u64::from(message_bytes) / 64).min(50),
        // Per line, the dearest.
        _ => BYTES / 50,
    };
    (bytes / u64::from(message_bytes) / u64::from(rounds)).max(1000)
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
