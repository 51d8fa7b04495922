//! The sections of a platform's files, and every key that they can have.

use crate::section::Section;
use crate::{CentralSwitch, Coherent, Core, Device, Energy, HopHead, Link, Parameter, RootComplex};

/// Sections that stand once in a file, and their parameters.
pub(crate) const SECTIONS: [(&str, &[Parameter]); 7] = [
    ("core", Core::PARAMETERS),
    ("root_complex", RootComplex::PARAMETERS),
    ("link", Link::PARAMETERS),
    ("switch", CentralSwitch::PARAMETERS),
    ("device", Device::PARAMETERS),
    ("coherent", Coherent::PARAMETERS),
    ("energy", Energy::PARAMETERS),
];

/// Every `section.name` of a platform with so many hops.
pub(crate) fn known_keys(hops: usize) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for (section, parameters) in SECTIONS {
        known.extend(parameters.iter().map(|p| format!("{section}.{}", p.name)));
    }
    for hop in 0..hops {
        let parameters = HopHead::PARAMETERS.iter().chain(Link::PARAMETERS);
        known.extend(parameters.map(|p| format!("hop.{hop}.{}", p.name)));
    }
    known
}
