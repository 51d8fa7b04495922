//! Platform files: the parameters of a machine in virtual time, each with its source, its unit and its bounds.
//!
//! A run in virtual time is a core, its write-combining buffers, a root complex, links and a device. What they cost
//! stands in one file, `lab/platforms/*.toml`, and in the parts that it includes. This crate reads such a file, checks
//! every value and hands over plain typed numbers; the model that gives them meaning is elsewhere, and nothing here
//! depends on it. How each parameter is got from measurements is in `docs/platforms.md`.
//!
//! ```
//! let platform = beeline_platforms::Platform::named("epyc-7543-cx6dx")?;
//! let fewer = platform.with("core.wc_buffers", "4")?;
//! assert_eq!(fewer.core.wc_buffers.value, 4);
//! assert!(platform.with("core.wc_bufers", "4").is_err_and(|error| error.to_string().contains("core.wc_buffers")));
//! # Ok::<(), beeline_platforms::PlatformError>(())
//! ```

#![forbid(unsafe_code)]

mod builtin;
mod error;
mod leaves;
mod location;
mod parameter;
mod parameters;
mod platform;
mod section;
mod sections;
mod source;
mod table;
mod text;
mod value;

pub use error::PlatformError;
pub use location::Location;
pub use parameter::Parameter;
pub use parameters::{
    Answers, CentralSwitch, Coherent, Core, DataIn, Device, Energy, FenceWait, HopHead, HopKind, Kind, Link,
    RootComplex, WcRelease,
};
pub use platform::{Hop, Platform};
pub use section::Row;
pub use source::Source;
pub use value::{Bounds, Scalar, Time, Value};
