//! The whole register map of a device, as the generated table names it: what stands in it when the device is new stands
//! there again after a reset by its control register, whatever was written and done in between.
//!
//! A register that is added to `spec/nic.rdl` is walked too. Enter from: a test with a device that is new.

use beeline_contract_device::{Accept, Device, Enables, ReadTag, Want, Write};
use beeline_spec::caps::Capabilities;
use beeline_spec::formats::interface;
use beeline_spec::regs::field::{control, irq_mask, queue_control, queue_status};
use beeline_spec::regs::{self, REGISTERS, Register, counter, queue};
use beeline_spec::{Header, Kind, LINE_BYTES};

/// Times that a write is offered: the device's own work behind a register write ends long before.
const MAX_OFFERS: usize = 1000;
const EPOCH: u8 = 5;

/// One element of a register of the map.
struct RegisterElement {
    register: &'static Register,
    offset: u32,
}

/// Every register element of the map, blocks of queues that the device does not have left out.
fn elements(queues: u32) -> Vec<RegisterElement> {
    let mut elements = Vec::new();
    for register in REGISTERS {
        let blocks = if register.blocks.stride_bytes == 0 { 1 } else { register.blocks.count.min(queues) };
        for block in 0..blocks {
            for element in 0..register.elements.count {
                let offset = register.offset
                    + block * register.blocks.stride_bytes
                    + element * register.elements.stride_bytes;
                elements.push(RegisterElement { register, offset });
            }
        }
    }
    elements
}

fn write<D: Device>(device: &mut D, offset_bytes: u64, data: &[u8]) {
    for _ in 0..MAX_OFFERS {
        if device.write_arrived(Write { offset_bytes, data, enables: Enables::All }) == Accept::Taken {
            return;
        }
        while device.next().is_some() {}
    }
    panic!("a write at {offset_bytes:#x} is refused for ever");
}

fn set<D: Device>(device: &mut D, offset: u32, value: u64) {
    write(device, offset.into(), &value.to_le_bytes());
    while device.next().is_some() {}
}

/// The values at these offsets, all of them asked for at once.
fn values<D: Device>(device: &mut D, offsets: impl Iterator<Item = u32>) -> Vec<u64> {
    let mut asked = 0;
    for (tag, offset) in (0..).zip(offsets) {
        device.read_arrived(offset.into(), ReadTag(tag));
        asked += 1;
    }
    let mut values = vec![None; asked];
    while let Some(want) = device.next() {
        if let Want::ReadCompletion { tag, value } = want {
            values[usize::from(tag.0)] = Some(value);
        }
    }
    values.into_iter().map(|value| value.expect("a register read is answered")).collect()
}

fn get<D: Device>(device: &mut D, offset: u32) -> u64 {
    values(device, std::iter::once(offset))[0]
}

/// Resets the device, and compares the whole map with what it was.
fn reset_and_compare<D: Device>(device: &mut D, elements: &[RegisterElement], fresh: &[u64], after: &str) {
    // The other bits of that write are not what stands there afterwards.
    let all = control::MUX_MASK << control::MUX_LSB | control::ENABLE_MASK << control::ENABLE_LSB;
    set(device, regs::CONTROL, control::RESET_MASK << control::RESET_LSB | all);
    let now = values(device, elements.iter().map(|element| element.offset));
    let mut survivors = String::new();
    for ((element, now), fresh) in
        elements.iter().zip(now).zip(fresh).filter(|((_, now), fresh)| now != *fresh)
    {
        let RegisterElement { register: Register { name, .. }, offset } = element;
        survivors += &format!("\n  {name} ({offset:#x}): {now:#x}, was {fresh:#x}");
    }
    assert!(survivors.is_empty(), "registers that survive a reset after {after}:{survivors}");
}

/// Writes all ones wherever software may write, and sees that they are there.
fn write_all_ones<D: Device>(device: &mut D, elements: &[RegisterElement]) {
    let of_reset = control::RESET_MASK << control::RESET_LSB;
    for element in elements.iter().filter(|element| element.register.writable != 0) {
        let others = if element.offset == regs::CONTROL { !of_reset } else { u64::MAX };
        set(device, element.offset, element.register.writable & others);
    }
    let now = values(device, elements.iter().map(|element| element.offset));
    for (RegisterElement { register, offset }, now) in elements.iter().zip(now) {
        let kept = register.writable & !register.volatile;
        assert_eq!(now & kept, kept, "{} ({offset:#x}) does not keep what is written", register.name);
    }
}

/// A queue sends a frame and then breaks a rule: counters count, a cause stands, the queue has failed.
fn work_and_fail<D: Device>(device: &mut D, window: u64) {
    let causes = irq_mask::TX_COMPLETION_MASK << irq_mask::TX_COMPLETION_LSB
        | irq_mask::QUEUE_FAILED_MASK << irq_mask::QUEUE_FAILED_LSB;
    set(device, regs::IRQ_MASK, causes);
    set(device, regs::CONTROL, control::ENABLE_MASK << control::ENABLE_LSB);
    let enable = queue_control::ENABLE_MASK << queue_control::ENABLE_LSB
        | u64::from(interface::MMIO) << queue_control::IFACE_LSB
        | u64::from(EPOCH) << queue_control::EPOCH_LSB;
    set(device, regs::QUEUE + queue::CONTROL, enable);
    let mut line = [0x5a; LINE_BYTES];
    let (header, frame) = line.split_at_mut(beeline_spec::WORD_BYTES);
    header.copy_from_slice(&Header::new(Kind::Data, frame.len() as u32, EPOCH).encode().to_le_bytes());
    write(device, window, &line);
    while device.next().is_some() {}
    for _ in 0..2 {
        write(device, window + 2 * LINE_BYTES as u64, &line[..8]);
    }
    while device.next().is_some() {}
    let status = get(device, regs::QUEUE + queue::STATUS);
    assert_eq!(status >> queue_status::QUARANTINED_LSB & queue_status::QUARANTINED_MASK, 1);
    for offset in [regs::STATUS, regs::IRQ_CAUSE, regs::COUNTERS + counter::TX_FRAMES] {
        assert_ne!(get(device, offset), 0, "nothing has happened at {offset:#x}");
    }
}

/// A reset by the control register gives every register of the map back the value that it had in the new device, which
/// is the one that the map documents.
///
/// # Panics
/// When a register has another value, in the new device or after a reset.
pub fn are_as_new_after_a_reset<D: Device>(device: &mut D) {
    let list = get(device, regs::CAPS);
    let (first, bytes) = (list as u32, (list >> 32) as u32);
    let words = values(device, (first..first + bytes).step_by(8));
    let capabilities = Capabilities::parse(&words).expect("a device says what it is");
    let queues = capabilities.queues.expect("a device says how many queues it has");
    let (window, _) = capabilities.aperture.expect("a device says where its windows are");

    let elements = elements(queues);
    assert!(elements.len() > REGISTERS.len());
    let fresh = values(device, elements.iter().map(|element| element.offset));
    for (RegisterElement { register, offset }, fresh) in elements.iter().zip(&fresh) {
        let known = register.documented & !register.volatile;
        assert_eq!(fresh & known, register.reset & known, "{} ({offset:#x}) of a new device", register.name);
    }
    // What follows the list is not there, and that it was asked for is counted in both walks.
    reset_and_compare(device, &elements, &fresh, "nothing");
    write_all_ones(device, &elements);
    reset_and_compare(device, &elements, &fresh, "all ones");
    work_and_fail(device, window);
    reset_and_compare(device, &elements, &fresh, "a queue that worked and failed");
}
