//! The Verilated NIC behind one safe type: pins in, pins out, one clock cycle a call.
//!
//! FFI and nothing else. The C++ side (`shim.cpp`) holds the simulation; the structures that go over the border are plain
//! and fixed in size (`pins.h`). What the pins mean, and how a TLP becomes cycles, is in `nic/rtl`, the only user.
#![cfg_attr(feature = "verilated", expect(unsafe_code, reason = "calls into the verilated model"))]

mod pins;

pub use pins::{Inputs, Outputs, Straps};

#[cfg(feature = "verilated")]
pub use verilated::{PARAMETERS, Parameters, Simulation};

#[cfg(feature = "verilated")]
mod verilated {
    use std::ffi::c_int;
    #[cfg(feature = "waves")]
    use std::{
        ffi::{CString, c_char},
        path::Path,
    };

    use super::{Inputs, Outputs, Straps};

    include!(concat!(env!("OUT_DIR"), "/parameters.rs"));

    /// Sizes that were built: no strap may be larger.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Parameters {
        /// Queues; not a strap.
        pub queues: u32,
        pub window_lines: u32,
        /// Lines of the reorder span.
        pub span_lines: u32,
        /// Reorder contexts.
        pub contexts: u32,
        pub pool_lines: u32,
    }

    /// Those of this build.
    pub const PARAMETERS: Parameters = Parameters {
        queues: NUM_QUEUES,
        window_lines: WINDOW_LINES,
        span_lines: SPAN_LINES,
        contexts: NUM_CONTEXTS,
        pool_lines: POOL_LINES,
    };

    /// The C++ side's object.
    #[repr(C)]
    struct Nic {
        _opaque: [u8; 0],
    }

    unsafe extern "C" {
        fn beeline_rtl_new(straps: *const Straps) -> *mut Nic;
        fn beeline_rtl_free(nic: *mut Nic);
        fn beeline_rtl_cycle(nic: *mut Nic, inputs: *const Inputs, outputs: *mut Outputs) -> c_int;
        #[cfg(feature = "waves")]
        fn beeline_rtl_trace(nic: *mut Nic, path: *const c_char) -> c_int;
    }

    /// A simulation of `nic_top`. Every call makes one cycle; there is no other clock.
    #[derive(Debug)]
    pub struct Simulation {
        nic: *mut Nic,
    }

    // SAFETY: the C++ object is used by one thread at a time (every method takes `&mut self`) and holds no thread's own
    // state: its context belongs to it.
    unsafe impl Send for Simulation {}

    impl Simulation {
        /// A simulation before its reset. Sizes must not exceed [`PARAMETERS`].
        pub fn new(straps: &Straps) -> Self {
            // SAFETY: the pointer is to a live structure of the layout that pins.h has; the callee copies from it.
            let nic = unsafe { beeline_rtl_new(straps) };
            assert!(!nic.is_null(), "operator new gives memory or ends the process");
            Simulation { nic }
        }

        /// One clock cycle: drives the inputs and gives the outputs as they stood before the edge; `false` when an
        /// assertion of the RTL failed (it has been printed).
        #[must_use]
        pub fn cycle(&mut self, inputs: &Inputs, outputs: &mut Outputs) -> bool {
            // SAFETY: `nic` came from `beeline_rtl_new` and is freed in `drop` alone; both structures are live and have
            // the layout of pins.h.
            let failed = unsafe { beeline_rtl_cycle(self.nic, inputs, outputs) };
            failed == 0
        }

        #[cfg(feature = "waves")]
        /// Writes a wave dump (VCD) to `path` from here on; `false` when the file cannot be made.
        pub fn trace(&mut self, path: &Path) -> bool {
            let Ok(path) = CString::new(path.as_os_str().as_encoded_bytes()) else { return false };
            // SAFETY: `nic` is live, and the string ends with a zero and outlives the call.
            let opened = unsafe { beeline_rtl_trace(self.nic, path.as_ptr()) };
            opened != 0
        }
    }

    impl Drop for Simulation {
        fn drop(&mut self) {
            // SAFETY: `nic` came from `beeline_rtl_new`, and nothing uses it after this.
            unsafe { beeline_rtl_free(self.nic) }
        }
    }
}
