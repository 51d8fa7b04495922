//! Who sees the function, as the loop of its port does.

use std::mem;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender};

use beeline_contract_device::HostMemory;
use beeline_domain::Disposer;
use beeline_link_shm::{Access, BusMemory, Closing, HostSide, PortError, Queues};
use beeline_mmio::{DmaRegion, LoadWindow};

use crate::guest_memory::GuestMemory;
use crate::orders::{Former, Order};

/// The host side of a function's port: register accesses that were trapped, a guest's memory, vectors by eventfd.
///
/// A guest's stores to its windows wake nobody: whoever runs the port has to look now and then.
#[derive(Debug)]
pub struct FunctionHost {
    orders: Receiver<Order>,
    /// The access that the loop is about to deliver.
    access: Option<Order>,
    /// The tag of the next read.
    tag: u16,
    /// Who waits for the answer to the read with a tag. One thread does; a read that it has given up is answered to nobody.
    reader: Option<(u16, SyncSender<u64>)>,
    memory: GuestMemory,
    vectors: Vec<Option<OwnedFd>>,
    is_master: bool,
    /// Windows for the queues, until they are taken over.
    windows: Vec<(LoadWindow, u64)>,
}

impl FunctionHost {
    pub(crate) fn new(orders: Receiver<Order>, vectors: u32) -> Self {
        FunctionHost {
            orders,
            access: None,
            tag: 0,
            reader: None,
            memory: GuestMemory::default(),
            vectors: (0..vectors).map(|_| None).collect(),
            is_master: false,
            windows: Vec::new(),
        }
    }

    /// Does what is no access of a register; gives one that is.
    fn carry_out(&mut self, order: Order) -> Option<Order> {
        match order {
            access @ (Order::Read { .. } | Order::Write { .. }) => return Some(access),
            Order::Map { address, memory } => self.memory.insert(address, memory),
            Order::Unmap { address, bytes, done } => {
                let memory = self.memory.remove(address, bytes);
                // Who does not wait any more drops it too.
                let _ = done.try_send(Former { memory, events: Vec::new() });
            }
            Order::Vectors { first, events, done } => {
                let slots = self.vectors.iter_mut().skip(first as usize);
                let former = slots.zip(events).filter_map(|(slot, event)| mem::replace(slot, event));
                let _ = done.try_send(Former { memory: Vec::new(), events: former.collect() });
            }
            Order::Master { is_master, done } => {
                self.is_master = is_master;
                let _ = done.try_send(Former::default());
            }
            Order::Windows { windows, done } => {
                self.windows = windows;
                let _ = done.try_send(Former::default());
            }
        }
        None
    }
}

impl BusMemory for FunctionHost {
    #[inline]
    fn find(&mut self, address: u64, bytes: usize) -> Option<(&mut DmaRegion, usize)> {
        if self.is_master { self.memory.find(address, bytes) } else { None }
    }
}

impl HostMemory for FunctionHost {
    #[inline]
    fn word(&mut self, address: u64) -> Option<u64> {
        self.dma_word(address)
    }

    #[inline]
    fn read(&mut self, address: u64, data: &mut [u8]) -> bool {
        self.dma_read(address, data)
    }
}

impl HostSide for FunctionHost {
    #[inline]
    fn has_request(&mut self) -> bool {
        if self.access.is_none() {
            self.access = self.orders.try_recv().ok();
        }
        self.access.is_some()
    }

    fn next(&mut self) -> Result<Option<Access>, PortError> {
        while let Some(order) = self.access.take().or_else(|| self.orders.try_recv().ok()) {
            self.access = self.carry_out(order);
            match &self.access {
                Some(Order::Read { offset_bytes, .. }) => {
                    return Ok(Some(Access::Read { offset_bytes: *offset_bytes, tag: self.tag }));
                }
                Some(Order::Write { offset_bytes, value }) => {
                    return Ok(Some(Access::Write { offset_bytes: *offset_bytes, value: *value }));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn taken(&mut self) {
        if let Some(Order::Read { answer, .. }) = self.access.take() {
            self.reader = Some((self.tag, answer));
            self.tag = self.tag.wrapping_add(1);
        }
    }

    fn answer(&mut self, tag: u16, value: u64) {
        if let Some((_, reader)) = self.reader.take_if(|(waited, _)| *waited == tag) {
            let _ = reader.try_send(value);
        }
    }

    fn interrupt(&mut self, vector: u16, _count: u64) {
        if self.is_master
            && let Some(Some(event)) = self.vectors.get(usize::from(vector))
        {
            // An eventfd that was made not to wait: the write fails only when the count is full, and then it is readable. A client
            // that has made its own wait and filled it stops the loop; it might as well send this process a signal.
            let _ = rustix::io::write(event, &1u64.to_ne_bytes());
        }
    }

    fn wake(&mut self) -> bool {
        false
    }

    fn announce_sleep(&self, _is_asleep: bool) {}

    fn event(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn clear_event(&mut self) {}

    fn close(&mut self, _why: Closing) {
        // The socket ends with the thread that serves it; the guest's bus then answers with ones.
    }

    fn apply_updates(&mut self, queues: &mut Queues) {
        // Before each access. All other orders are taken one by one, in order with the accesses: `next`.
        for (queue, (window, blank)) in (0..).zip(self.windows.drain(..)) {
            queues.replace_window(queue, window, blank);
        }
    }

    fn dispose_with(&mut self, _disposer: Disposer) {
        // What is given up goes back to the thread that serves the client.
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use beeline_mmio::{MemoryOptions, SharedMemory};
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    #[test]
    fn orders_are_carried_out_in_their_order_and_only_a_bus_master_reaches_memory() {
        let (orders, taken) = sync_channel(16);
        let mut host = FunctionHost::new(taken, 2);
        let memory = SharedMemory::create("guest", 4096, MemoryOptions::default()).unwrap();
        let memory = memory.map().unwrap().dma_memory(0, 4096, 8192);
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let (done, is_done) = sync_channel(4);
        let events = vec![Some(event.try_clone().unwrap())];
        orders.send(Order::Map { address: 8192, memory }).unwrap();
        orders.send(Order::Vectors { first: 1, events, done: done.clone() }).unwrap();
        orders.send(Order::Write { offset_bytes: 8, value: 7 }).unwrap();
        orders.send(Order::Master { is_master: true, done: done.clone() }).unwrap();
        assert!(host.has_request());
        let write = Some(Access::Write { offset_bytes: 8, value: 7 });
        assert_eq!((host.next(), host.next()), (Ok(write), Ok(write)), "the same until it is taken");
        assert!(!host.dma_write(8192, &[1], false), "no bus master yet");
        host.interrupt(1, 1);
        let mut count = [0; 8];
        assert!(rustix::io::read(&event, &mut count).is_err(), "nor does it interrupt");
        host.taken();
        assert_eq!(host.next(), Ok(None));
        assert!(host.dma_write(8192, &[1], false) && !host.dma_write(8192 + 4096, &[1], false));
        for vector in [0, 1, 2, u16::MAX] {
            host.interrupt(vector, 1);
        }
        assert_eq!(rustix::io::read(&event, &mut count), Ok(8));
        assert_eq!(u64::from_ne_bytes(count), 1, "one vector leads there");
        orders.send(Order::Unmap { address: 0, bytes: u64::MAX, done }).unwrap();
        assert_eq!(host.next(), Ok(None));
        assert_eq!(is_done.try_iter().map(|former| former.memory.len()).sum::<usize>(), 1);
        assert!(!host.dma_write(8192, &[1], false));
    }

    #[test]
    fn read_that_was_given_up_is_answered_to_nobody() {
        let (orders, taken) = sync_channel(16);
        let mut host = FunctionHost::new(taken, 1);
        let read = |host: &mut FunctionHost| {
            let (answer, answered) = sync_channel(1);
            orders.send(Order::Read { offset_bytes: 0, answer }).unwrap();
            let Ok(Some(Access::Read { tag, .. })) = host.next() else { panic!("a read") };
            host.taken();
            (tag, answered)
        };
        let (held, given_up) = read(&mut host);
        drop(given_up);
        let (tag, answered) = read(&mut host);
        host.answer(held, 1);
        assert!(answered.try_recv().is_err(), "that was the other's");
        host.answer(tag, 2);
        assert_eq!(answered.try_recv(), Ok(2));
        host.answer(tag, 3);
        assert!(answered.try_recv().is_err(), "once");
    }
}
