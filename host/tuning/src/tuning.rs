//! What is tuned, and what stands where nothing was timed.

use core::fmt;
use core::str::FromStr;

use beeline_contract_memory::{CreditSink, GROUP_LINES};
use beeline_mmio::{LoadWindow, StoreKernel, Traffic};
use beeline_window::{COALESCE_PARTS, PREFETCH_LINES, Receiver, WindowConfig};

/// Which lines a receiver prefetches while its sender is well in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prefetch {
    None,
    /// Those so many lines ahead, to read them.
    Read {
        /// Lines ahead of the next message.
        lines: u32,
    },
    /// Those so many lines ahead, to write them at once, as making them free does.
    Write {
        /// Lines ahead of the next message.
        lines: u32,
    },
}

/// How a receiver looks at its window. Whatever the values, no message is lost or changed by them: they decide speed alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReceiveTuning {
    pub prefetch: Prefetch,
    /// Whether messages that are taken in bulk are looked for eight lines at a time.
    pub in_groups: bool,
    /// Credits are pushed when one of so many parts of the window is free.
    pub credit_parts: u32,
}

/// How a window is used: by its sender and by its receiver. The default stands where nothing was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuning {
    /// Stores a message that is answered before the next is sent.
    pub latency: StoreKernel,
    /// Stores many messages in a row.
    pub stream: StoreKernel,
    /// How those that are stored with `stream` are received.
    pub receive: ReceiveTuning,
}

impl Default for Tuning {
    fn default() -> Self {
        let kernel = StoreKernel::Cached;
        Tuning { latency: kernel, stream: kernel, receive: ReceiveTuning::for_sender(Some(kernel)) }
    }
}

impl Tuning {
    /// Returns `stream` for streams and `latency` for everything else.
    pub fn kernel(&self, traffic: Traffic) -> StoreKernel {
        match traffic {
            Traffic::Stream => self.stream,
            _ => self.latency,
        }
    }
}

impl ReceiveTuning {
    /// What stands untimed, by what the sender says of how it stores (`LoadWindow::for_sender` says why).
    pub fn for_sender(kernel: Option<StoreKernel>) -> Self {
        let prefetch = match kernel {
            Some(StoreKernel::Cached) => Prefetch::Write { lines: PREFETCH_LINES },
            _ => Prefetch::Read { lines: PREFETCH_LINES },
        };
        ReceiveTuning { prefetch, in_groups: true, credit_parts: COALESCE_PARTS }
    }

    /// Lines that are looked at together: 1 or 8.
    pub fn group_lines(self) -> u32 {
        if self.in_groups { GROUP_LINES } else { 1 }
    }
}

/// A receiver that looks at its window so.
///
/// # Panics
/// As [`Receiver::new`].
pub fn receiver<S: CreditSink>(
    tuning: ReceiveTuning,
    load: LoadWindow,
    sink: S,
    config: WindowConfig,
) -> Receiver<LoadWindow, S> {
    let mut receiver = Receiver::new(load, sink, config);
    retune(&mut receiver, tuning);
    receiver
}

/// Has a receiver look at its window so from now on. What it has received, and what is on its way, stays as it is.
pub fn retune<S: CreditSink>(receiver: &mut Receiver<LoadWindow, S>, tuning: ReceiveTuning) {
    receiver.port_mut().set_prefetching_to_write(matches!(tuning.prefetch, Prefetch::Write { .. }));
    receiver.set_prefetch(tuning.prefetch.lines());
    receiver.set_groups(tuning.in_groups);
    receiver.set_coalescing(receiver.lines() / tuning.credit_parts.max(1));
}

/// As [`crate::TUNING_VARIABLE`] takes it.
impl fmt::Display for ReceiveTuning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefetch, group, credits) = (self.prefetch, self.group_lines(), self.credit_parts);
        write!(out, "prefetch={prefetch},group={group},credits={credits}")
    }
}

impl Prefetch {
    /// Lines ahead of the next message; 0 where none are prefetched.
    pub fn lines(self) -> u32 {
        match self {
            Prefetch::None => 0,
            Prefetch::Read { lines } | Prefetch::Write { lines } => lines,
        }
    }
}

impl fmt::Display for Prefetch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prefetch::None => out.write_str("none"),
            Prefetch::Read { lines } => write!(out, "read:{lines}"),
            Prefetch::Write { lines } => write!(out, "write:{lines}"),
        }
    }
}

/// A text that names no way of prefetching.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no way to prefetch; there are none, read:LINES and write:LINES, LINES from 1 to 1024")]
pub struct NotPrefetch(pub String);

/// Lines ahead of which nobody prefetches: a first-level cache is full by then.
const MAX_PREFETCH_LINES: u32 = 1024;

impl FromStr for Prefetch {
    type Err = NotPrefetch;

    fn from_str(text: &str) -> Result<Self, NotPrefetch> {
        let not_one = || NotPrefetch(text.to_owned());
        if text == "none" {
            return Ok(Prefetch::None);
        }
        let (kind, lines) = text.split_once(':').ok_or_else(not_one)?;
        let lines: u32 = lines.parse().map_err(|_| not_one())?;
        match kind {
            _ if !(1..=MAX_PREFETCH_LINES).contains(&lines) => Err(not_one()),
            "read" => Ok(Prefetch::Read { lines }),
            "write" => Ok(Prefetch::Write { lines }),
            _ => Err(not_one()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_prefetch_are_found_by_their_names() {
        for prefetch in [Prefetch::None, Prefetch::Read { lines: 1 }, Prefetch::Write { lines: 1024 }] {
            assert_eq!(prefetch.to_string().parse(), Ok(prefetch));
        }
        for text in ["", "read", "read:", "read:0", "write:1025", "write:-1", "both:8", "none:8"] {
            assert_eq!(text.parse::<Prefetch>(), Err(NotPrefetch(text.to_owned())));
        }
    }

    #[test]
    fn defaults_are_those_of_the_window() {
        let tuning = Tuning::default();
        assert_eq!(tuning.receive.to_string(), "prefetch=write:32,group=8,credits=8");
        assert_eq!(ReceiveTuning::for_sender(None).prefetch, Prefetch::Read { lines: 32 });
        assert_eq!(ReceiveTuning::for_sender(Some(StoreKernel::Nt8)).prefetch, Prefetch::Read { lines: 32 });
    }

    #[test]
    fn kernel_follows_the_traffic() {
        let tuning = Tuning { latency: StoreKernel::Cached, stream: StoreKernel::Nt8, ..Tuning::default() };
        assert_eq!(tuning.kernel(Traffic::Latency), StoreKernel::Cached);
        assert_eq!(tuning.kernel(Traffic::Stream), StoreKernel::Nt8);
    }
}
