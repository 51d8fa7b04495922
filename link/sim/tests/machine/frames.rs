//! Frames that come by the wire, to a device that refuses them for a while.

use beeline_contract_device::{Accept, Device, DmaError, DmaTag, ReadTag, SimTime, Want, Write};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{Branch, DeviceId, MachineSettings, Sim, SwitchSettings};

use super::{bare_link, ns, settings};

/// Refuses every frame until some time after the first, at which it wants to be woken.
#[derive(Default)]
struct Slow {
    now: SimTime,
    takes_at: Option<SimTime>,
    taken: Vec<(SimTime, Vec<u8>)>,
}

impl Device for Slow {
    fn write_arrived(&mut self, _write: Write<'_>) -> Accept {
        Accept::Taken
    }
    fn read_arrived(&mut self, _offset_bytes: u64, _tag: ReadTag) {}
    fn dma_completed(&mut self, _tag: DmaTag, _data: Result<&[u8], DmaError>) {}
    fn frame_arrived(&mut self, frame: &[u8]) -> Accept {
        let takes_at = *self.takes_at.get_or_insert(SimTime(self.now.0 + 1_000_000));
        if self.now < takes_at {
            return Accept::Refused;
        }
        self.taken.push((self.now, frame.to_vec()));
        Accept::Taken
    }
    fn time_passed(&mut self, now: SimTime) {
        self.now = now;
    }
    fn wire_ready(&mut self, _ready: bool) {}
    fn next(&mut self) -> Option<Want<'_>> {
        None
    }
    fn wake_at(&self) -> Option<SimTime> {
        self.takes_at.filter(|at| self.now < *at)
    }
}

#[test]
fn refused_frame_and_those_behind_it_arrive_when_the_device_wakes() {
    let sim = Sim::new(Slow::default(), settings(1), 1).expect("a machine");
    sim.with(|machine| {
        machine.frame_will_come(DeviceId(0), Picoseconds::from_ns(10), vec![1; 64]);
        machine.frame_will_come(DeviceId(0), Picoseconds::from_ns(20), vec![2; 64]);
    });
    assert!(sim.advance(Picoseconds::NEVER).is_none());
    let taken = sim.with(|machine| std::mem::take(&mut machine.device().taken));
    // When it has come from the wire to the logic, and what the logic takes.
    let at = SimTime(10_000 + settings(1).device.receive_latency.0 + 1_000_000);
    assert_eq!(taken, [(at, vec![1; 64]), (at, vec![2; 64])]);
}

/// Of several devices each has a wire of its own: the frames of one wait for nothing that another one refuses.
#[test]
fn frame_arrives_at_the_device_of_its_wire() {
    let branch = Branch { link: bare_link(), further: vec![] };
    let switch = SwitchSettings { latency: ns(110), branches: vec![branch; 2], groups: vec![] };
    let machine = MachineSettings { switch: Some(switch), ..settings(1) };
    let eager = Slow { takes_at: Some(SimTime(0)), ..Slow::default() };
    let sim = Sim::with_devices(vec![Slow::default(), eager], machine, 1).expect("a machine");
    sim.with(|machine| {
        machine.frame_will_come(DeviceId(0), Picoseconds::from_ns(10), vec![1; 64]);
        machine.frame_will_come(DeviceId(1), Picoseconds::from_ns(20), vec![2; 64]);
    });
    assert!(sim.advance(Picoseconds::NEVER).is_none());
    let taken = sim.with(|machine| [0, 1].map(|device| std::mem::take(&mut machine.devices()[device].taken)));
    let way = settings(1).device.receive_latency.0;
    assert_eq!(taken[0], [(SimTime(10_000 + way + 1_000_000), vec![1; 64])]);
    assert_eq!(taken[1], [(SimTime(20_000 + way), vec![2; 64])]);
}
