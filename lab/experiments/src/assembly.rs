//! A machine from a platform file.

use beeline_link_sim::cpu::{CoreSettings, FenceAck, Release};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::{DeviceSettings, Rate};
use beeline_link_sim::machine::{Aperture, Further, Interconnect, MachineSettings};
use beeline_link_sim::pcie::{
    AckRule, Advertised, Answers, Class, Generation, Header, Lanes, Limit, LinkSettings, Side, UpdateRule,
    latency_limit,
};
use beeline_link_sim::root::RootSettings;
use beeline_platforms::{self as platforms, FenceWait, Platform, Time, WcRelease};
use beeline_spec::Interface;

use crate::LabError;

/// Where the data are that a device reads, and what stands before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Whether the data lie in memory and in no cache.
    pub is_cold: bool,
    /// On the other socket.
    pub is_remote: bool,
    /// Behind a translation that is not cached.
    pub is_translated: bool,
}

impl Data {
    /// Refuses what a platform does not say the time of: it would be silently none.
    ///
    /// # Errors
    /// [`LabError::NotSaid`].
    pub fn check(self, platform: &Platform) -> Result<(), LabError> {
        let root = &platform.root_complex;
        for (applies, data, key, value) in [
            (self.is_cold, "cold", "cache_miss_ns", &root.cache_miss_ns),
            (self.is_remote, "remote", "numa_ns", &root.numa_ns),
            (self.is_translated, "translated", "iommu_ns", &root.iommu_ns),
        ] {
            if applies && value.source.is_none() {
                return Err(LabError::NotSaid { platform: platform.name.clone(), data, key });
            }
        }
        Ok(())
    }
}

/// Posted packets that a root complex holds whose memory has a limit, and their data in units of 16 bytes, beside the longest
/// packet: assumed. What waits for memory waits there, and then in the device.
const WAITING_FOR_MEMORY: Advertised = Advertised::finite(64, 1024);

/// As [`machine`], as an interface needs it: `coherent` is made of lines that change owner, and every other one of packets.
///
/// # Errors
/// As [`machine`]; the platform has nothing that moves lines.
pub fn machine_for(
    interface: Interface,
    platform: &Platform,
    cores: u16,
    aperture: Aperture,
    data: Data,
) -> Result<MachineSettings, LabError> {
    let mut settings = machine(platform, cores, aperture, data)?;
    if interface == Interface::Coherent {
        let between = platform.coherent.as_ref();
        let between = between.ok_or_else(|| LabError::NotCoherent { platform: platform.name.clone() })?;
        let (line, interval) = (ps(between.line_ns.value), ps(between.interval_ns.value));
        settings.interconnect = Some(Interconnect { line, interval });
    }
    Ok(settings)
}

pub(crate) fn ps(time: Time) -> Picoseconds {
    Picoseconds(time.picoseconds())
}

/// The machine of a platform with so many cores, for a device whose windows lie as `aperture` says.
///
/// # Errors
/// A value that a platform may have and a machine not: a width that no generation has. The platform does not say what it
/// takes to read data that lie as `data` says.
pub fn machine(
    platform: &Platform,
    cores: u16,
    aperture: Aperture,
    data: Data,
) -> Result<MachineSettings, LabError> {
    data.check(platform)?;
    let mut first = link(&platform.link)?;
    if platform.root_complex.memory_gbps.value > 0.0 {
        first.advertised[Side::Upstream as usize][Class::Posted as usize] = WAITING_FOR_MEMORY;
    }
    let further = platform
        .hops
        .iter()
        .map(|hop| Ok(Further { latency: ps(hop.latency_ns.value), link: link(&hop.link)? }));
    let is_long = platform.link.header_dw.value == 4;
    Ok(MachineSettings {
        core: core(&platform.core, ps(platform.root_complex.write_latency_ns.value)),
        cores,
        root: root(platform, data),
        link: first,
        further: further.collect::<Result<_, LabError>>()?,
        switch: None,
        device: device(&platform.device),
        interconnect: None,
        header: if is_long { Header::FourDw } else { Header::ThreeDw },
        aperture,
    })
}

/// A core. Of what a load costs the host, the way out is the root complex's, and the rest is the core's.
fn core(core: &platforms::Core, way_out: Picoseconds) -> CoreSettings {
    CoreSettings {
        store_bytes: core.store_bytes.value,
        store: ps(core.store_ns.value),
        buffers: core.wc_buffers.value as usize,
        release: match core.wc_release.value {
            WcRelease::Fifo => Release::Fifo,
            WcRelease::OldestRandom => Release::OldestRandom,
            WcRelease::Random => Release::Random,
        },
        drain_interval: ps(core.wc_interval_ns.value),
        busy: ps(core.wc_busy_ns.value),
        timeout: ps(core.wc_timeout_ns.value),
        split_per_mille: (core.wc_split_percent.value * 10.0).round() as u32,
        uncached_store: ps(core.uncached_store_ns.value),
        // A load of four bytes is a packet of the size of one of eight, and takes as long.
        uncached_load_bytes: core.uncached_load_bytes.value.max(8),
        uncached_load: ps(core.uncached_load_ns.value).since(way_out),
        cached_line: ps(core.cached_line_ns.value),
        poll: ps(core.poll_ns.value),
        line_wake: ps(core.line_wake_ns.value),
        fence: ps(core.fence_ns.value),
        fence_ack: match core.fence_waits_for.value {
            FenceWait::None => FenceAck::None,
            FenceWait::Uncore => FenceAck::Uncore,
            FenceWait::RootComplex => FenceAck::RootComplex,
            FenceWait::Device => FenceAck::Device,
        },
        interrupt_interval: ps(core.interrupt_interval_ns.value),
        interrupt: ps(core.interrupt_ns.value),
    }
}

fn root(platform: &Platform, data: Data) -> RootSettings {
    let root = &platform.root_complex;
    let mut read_latency = ps(root.read_latency_ns.value);
    for (applies, added) in [
        (data.is_cold, root.cache_miss_ns.value),
        (data.is_remote, root.numa_ns.value),
        (data.is_translated, root.iommu_ns.value),
    ] {
        if applies {
            read_latency += ps(added);
        }
    }
    RootSettings {
        write_latency: ps(root.write_latency_ns.value),
        write_jitter: ps(root.write_jitter_ns.value),
        write_interval: ps(root.write_interval_ns.value),
        write_places: root.write_queue_lines.value as usize,
        merges: root.write_merge_bytes.value >= 128,
        read_latency,
        read_interval: ps(root.read_interval_ns.value),
        answers: match platform.link.answers.value {
            platforms::Answers::Longest => Answers::Longest,
            platforms::Answers::EachBoundary => Answers::EachBoundary,
        },
        write_visible: ps(root.write_visible_ns.value),
        write_ingest: ps(root.write_ingest_ns.value),
        memory_rate: Rate::from_gbps(root.memory_gbps.value),
    }
}

/// A link. What a packet may carry must be the same on all links of a way: a switch does not cut packets.
pub(crate) fn link(link: &platforms::Link) -> Result<LinkSettings, LabError> {
    let generation = match link.generation.value {
        1 => Generation::Gen1,
        2 => Generation::Gen2,
        3 => Generation::Gen3,
        4 => Generation::Gen4,
        5 => Generation::Gen5,
        _ => Generation::Gen6,
    };
    let count = link.lanes.value;
    let lanes = u8::try_from(count).ok().and_then(Lanes::new).ok_or(LabError::Lanes { count })?;
    let limit = |count: u32| if count == 0 { Limit::Infinite } else { Limit::Finite(count) };
    let given =
        |headers: u32, data_units: u32| Advertised { headers: limit(headers), data_units: limit(data_units) };
    // The limits of the specification depend on the size of packets.
    let limit_time = latency_limit(generation, lanes, link.max_payload_bytes.value);
    let defaults = LinkSettings::new(generation, lanes);
    let mut settings = LinkSettings {
        max_payload_bytes: link.max_payload_bytes.value,
        max_read_request_bytes: link.max_read_request_bytes.value,
        completion_boundary_bytes: link.completion_boundary_bytes.value,
        flight: ps(link.flight_ns.value),
        acknowledge: AckRule { after: limit_time, packets: u32::MAX },
        update: UpdateRule { after: limit_time, ..defaults.update },
        ..defaults
    };
    if let Some(after) = link.ack_ns.value {
        settings.acknowledge = AckRule { after: ps(after), packets: u32::MAX };
    }
    let of_device = &mut settings.advertised[Side::Downstream as usize];
    of_device[Class::Posted as usize] = given(link.posted_headers.value, link.posted_data_units.value);
    of_device[Class::NonPosted as usize] = given(link.nonposted_headers.value, 0);
    of_device[Class::Completion as usize] =
        given(link.completion_headers.value, link.completion_data_units.value);
    Ok(settings)
}

fn device(device: &platforms::Device) -> DeviceSettings {
    DeviceSettings {
        ingress_interval: ps(device.ingress_interval_ns.value),
        ingress_rate: Rate::from_gbps(device.ingress_gbps.value),
        ingress_latency: ps(device.ingress_latency_ns.value),
        read_start: ps(device.read_start_ns.value),
        read_finish: ps(device.read_finish_ns.value),
        read_interval: ps(device.read_interval_ns.value),
        read_tags: device.read_tags.value as u16,
        write_start: ps(device.write_start_ns.value),
        write_interval: ps(device.write_interval_ns.value),
        data_rate: Rate::from_gbps(device.dma_gbps.value),
        shared_rate: Rate::from_gbps(device.dma_both_gbps.value),
        read_transfer: ps(device.read_transfer_ns.value),
        register_read: ps(device.register_read_ns.value),
        transmit_latency: ps(device.transmit_latency_ns.value),
        receive_latency: ps(device.receive_latency_ns.value),
        wire_rate: Rate::from_gbps(device.wire_gbps.value),
    }
}
