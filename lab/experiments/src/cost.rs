//! What frames cost: bytes on the link, memory traffic, time of cores.

use beeline_contract_device::Device;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{CoreId, Machine};
use beeline_link_sim::pcie::{Carried, Side};

/// What a machine has spent, since it was made or between two looks at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// What the link at the root complex carried towards the device.
    pub to_device: Carried,
    /// Bytes carried towards the host.
    pub to_host: Carried,
    /// Bytes of memory that the device read and wrote. What cores do in their caches is not in it.
    pub memory_bytes: u64,
    /// Time in which cores did something or stood still because of it, all cores together.
    pub worked: Picoseconds,
}

impl Cost {
    /// What a machine has spent up to now by its first `cores` cores.
    pub fn of<D: Device>(machine: &Machine<D>, cores: u16) -> Cost {
        let totals = machine.totals();
        let link = &machine.links()[0];
        let worked = (0..cores).map(|core| machine.core_worked(CoreId(core)).0).sum();
        Cost {
            to_device: *link.carried(Side::Upstream),
            to_host: *link.carried(Side::Downstream),
            memory_bytes: totals.memory_read_bytes + totals.memory_written_bytes,
            worked: Picoseconds(worked),
        }
    }

    /// What was spent since an earlier look at the same machine.
    #[must_use]
    pub fn since(&self, earlier: &Cost) -> Cost {
        Cost {
            to_device: difference(&self.to_device, &earlier.to_device),
            to_host: difference(&self.to_host, &earlier.to_host),
            memory_bytes: self.memory_bytes - earlier.memory_bytes,
            worked: self.worked.since(earlier.worked),
        }
    }

    /// Bytes on the link in both directions: packets of both layers with their headers.
    pub fn link_bytes(&self) -> u64 {
        self.to_device.wire_bytes() + self.to_host.wire_bytes()
    }
}

fn difference(later: &Carried, earlier: &Carried) -> Carried {
    let mut carried = *later;
    for (kind, before) in carried.tlps.iter_mut().zip(&earlier.tlps) {
        kind.packets -= before.packets;
        kind.useful_bytes -= before.useful_bytes;
        kind.wire_bytes -= before.wire_bytes;
    }
    carried.dllps -= earlier.dllps;
    carried.dllp_bytes -= earlier.dllp_bytes;
    carried.ordered_sets -= earlier.ordered_sets;
    carried
}
