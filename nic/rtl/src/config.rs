//! Sizes of a Verilated NIC, and why it cannot be had.

use std::fmt;

use beeline_contract_device::SimTime;
use beeline_spec::LINE_BYTES;
use beeline_spec::formats;
use beeline_spec::header::lines_of;

/// Queues of the NIC that is built; not a strap.
pub const QUEUES: u32 = 16;

/// Period of the RTL's clock in a virtual-time machine, in picoseconds; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPeriod(SimTime);

impl ClockPeriod {
    /// 4 ns, 250 MHz: the user clock of AMD's PCIe block that `pcie/nic_usplus.sv` runs at (`ClockNs`).
    pub const USPLUS: ClockPeriod = ClockPeriod(SimTime::from_ns(4));

    /// A clock of so many MHz, to the picosecond.
    ///
    /// # Errors
    /// [`RtlError::OutOfRange`] below 1 and above 10000.
    pub fn from_mhz(mhz: u32) -> Result<ClockPeriod, RtlError> {
        let (least, most) = (1, 10_000);
        if !(least..=most).contains(&mhz) {
            return Err(RtlError::OutOfRange { what: "clock_mhz", found: mhz, least, most });
        }
        Ok(ClockPeriod(SimTime(1_000_000 / u64::from(mhz))))
    }

    /// Returns the time from one edge to the next.
    pub fn time(self) -> SimTime {
        self.0
    }

    /// When an edge is, counted from the device's making.
    pub fn edge(self, number: u64) -> SimTime {
        SimTime(number.saturating_mul(self.0.0))
    }

    /// The number of the last edge at or before a time.
    pub fn edges_until(self, now: SimTime) -> u64 {
        now.0 / self.0.0
    }
}

/// Sizes in use: straps of `nic_top`. They may be smaller than what was built, never larger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtlConfig {
    /// Lines of each window, a power of two.
    pub window_lines: u32,
    /// Lines of the reorder span, a power of two, at least 2.
    pub span_lines: u32,
    /// Reorder contexts shared by the queues.
    pub contexts: u32,
    /// Lines of the buffer pool.
    pub pool_lines: u32,
    /// Longest frame in bytes, FCS excluded.
    pub max_frame_bytes: u32,
    /// What becomes of a frame from the wire while the host lends no room for it: refused (`true`), or dropped and
    /// counted.
    pub rx_lossless: bool,
    /// Station address.
    pub mac: [u8; 6],
}

impl Default for RtlConfig {
    /// Returns the defaults of `nic/model`.
    fn default() -> Self {
        RtlConfig {
            window_lines: 1024,
            span_lines: 64,
            contexts: 16,
            pool_lines: 16 * 1024,
            max_frame_bytes: formats::MAX_FRAME_BYTES as u32,
            rx_lossless: true,
            mac: [0x02, 0xbe, 0xe1, 0x1e, 0, 0],
        }
    }
}

impl RtlConfig {
    /// Offset in the BAR of the first window, and bytes from one to the next: a window, or a page where it is smaller;
    /// the first one stands behind 2 MiB of registers.
    pub fn aperture(&self) -> (u64, u64) {
        const PAGE_BYTES: u64 = 4096;
        const REGISTER_BYTES: u64 = 2 << 20;
        let stride = (u64::from(self.window_lines) * LINE_BYTES as u64).max(PAGE_BYTES);
        (REGISTER_BYTES.next_multiple_of(stride), stride)
    }

    /// Checks the sizes against what was built (`most`, in the order window, span, contexts, pool).
    ///
    /// # Errors
    /// The first size that cannot be.
    #[cfg_attr(
        not(any(feature = "rtl", test)),
        expect(dead_code, reason = "nothing was built to check against")
    )]
    pub(crate) fn validate(&self, most: [u32; 4]) -> Result<(), RtlError> {
        let [window, span, contexts, pool] = most;
        let within = |what, found: u32, least: u32, most: u32| {
            if (least..=most).contains(&found) {
                Ok(())
            } else {
                Err(RtlError::OutOfRange { what, found, least, most })
            }
        };
        within("window_lines", self.window_lines, 2, window)?;
        within("span_lines", self.span_lines, 1, span.min(self.window_lines))?;
        for (what, found) in [("window_lines", self.window_lines), ("span_lines", self.span_lines)] {
            if !found.is_power_of_two() {
                return Err(RtlError::NotPowerOfTwo { what, found });
            }
        }
        within("contexts", self.contexts, 1, contexts)?;
        let (least, most) = (formats::MIN_FRAME_BYTES as u32, formats::MAX_FRAME_BYTES as u32);
        within("max_frame_bytes", self.max_frame_bytes, least, most)?;
        within("pool_lines", self.pool_lines, lines_of(self.max_frame_bytes).min(self.window_lines), pool)
    }
}

/// Reasons for which there is no Verilated NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtlError {
    /// This build has none.
    NotBuilt,
    /// A size is not one that the NIC that was built can have.
    OutOfRange {
        /// Field of [`RtlConfig`].
        what: &'static str,
        found: u32,
        /// Least value it may have.
        least: u32,
        /// Greatest value it may have.
        most: u32,
    },
    /// An assertion of the RTL failed while it ran; it was printed.
    Assertion,
    /// This build has no wave dumps.
    NoWaves,
    /// The file of a wave dump cannot be made.
    Waves,
    /// A size that addresses are masked with is not a power of two.
    NotPowerOfTwo {
        /// Field of [`RtlConfig`].
        what: &'static str,
        found: u32,
    },
}

impl fmt::Display for RtlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RtlError::NotBuilt => write!(
                out,
                "this program was built without the NIC's RTL: run `make rtl-tools`, then build it with \
                 `cargo build --release --package beeline-cli --features rtl`"
            ),
            RtlError::Assertion => {
                write!(
                    out,
                    "an assertion of the RTL failed; it is printed above, and what came after means nothing"
                )
            }
            RtlError::NoWaves => write!(
                out,
                "this program was built without wave dumps: build it with \
                 `cargo build --release --package beeline-cli --features waves`, which takes several times as long"
            ),
            RtlError::Waves => write!(out, "the file of the wave dump cannot be made"),
            RtlError::OutOfRange { what, found, least, most } => {
                write!(out, "the NIC's RTL cannot have {what} = {found}: choose {least} to {most}")
            }
            RtlError::NotPowerOfTwo { what, found } => {
                write!(out, "the NIC's RTL cannot have {what} = {found}: choose a power of two")
            }
        }
    }
}

impl std::error::Error for RtlError {}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_nic_model::NicConfig;

    const MOST: [u32; 4] = [1024, 64, 16, 16384];

    #[test]
    fn the_default_fits_what_is_built() {
        assert_eq!(RtlConfig::default().validate(MOST), Ok(()));
    }

    #[test]
    fn windows_lie_where_the_model_has_them() {
        for window_lines in [8, 64, 1024] {
            let config = RtlConfig { window_lines, span_lines: 4, ..RtlConfig::default() };
            let model = NicConfig { window_lines, span_lines: 4, ..NicConfig::default() };
            assert_eq!(config.aperture(), (model.aperture_bytes(), model.window_stride_bytes()));
        }
    }

    #[test]
    fn edges_are_where_the_clock_has_them() {
        let clock = ClockPeriod::from_mhz(250).unwrap();
        assert_eq!(clock, ClockPeriod::USPLUS);
        for number in [0, 1, 7, 1 << 40] {
            let at = clock.edge(number);
            assert_eq!(clock.edges_until(at), number);
            assert_eq!(clock.edges_until(SimTime(at.0 + clock.time().0 - 1)), number);
        }
        let error = ClockPeriod::from_mhz(0).unwrap_err();
        assert_eq!(error.to_string(), "the NIC's RTL cannot have clock_mhz = 0: choose 1 to 10000");
        assert!(ClockPeriod::from_mhz(10_001).is_err());
    }

    #[test]
    fn sizes_that_were_not_built_are_refused_with_the_numbers() {
        let error = RtlConfig { span_lines: 128, ..RtlConfig::default() }.validate(MOST).unwrap_err();
        assert_eq!(error.to_string(), "the NIC's RTL cannot have span_lines = 128: choose 1 to 64");
        for bad in [
            RtlConfig { window_lines: 2048, ..RtlConfig::default() },
            RtlConfig { window_lines: 96, ..RtlConfig::default() },
            RtlConfig { contexts: 0, ..RtlConfig::default() },
            RtlConfig { pool_lines: 1 << 20, ..RtlConfig::default() },
            RtlConfig { max_frame_bytes: 13, ..RtlConfig::default() },
        ] {
            assert!(bad.validate(MOST).is_err(), "{bad:?}");
        }
    }
}
