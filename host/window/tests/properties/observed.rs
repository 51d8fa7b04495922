//! Observed windows: writes of any bytes, in any order, with any byte enables.

use std::collections::BTreeMap;

use beeline_window::{DataBuffer, Observed, Receiver, WindowConfig, Writer};
use proptest::prelude::*;

use crate::plan::{Random, Sender, run, steps};
use crate::test_memory::{ObservedCredits, TestWindow};
use crate::{BLANK, check};

/// Bytes on their way, by offset in the window.
#[derive(Default)]
struct Fabric(BTreeMap<u64, u8>);

type ObservedReceiver = Receiver<DataBuffer, ObservedCredits, Observed>;

impl Fabric {
    fn take_stores(&mut self, window: &TestWindow) {
        while let Some(store) = window.take(0) {
            let offset = u64::from(store.line) * 64 + u64::from(store.word) * 8;
            self.0.extend((offset..).zip(store.value.to_le_bytes()));
        }
    }

    /// Delivers one write: a run of bytes that are all there, or what is there of 64 bytes with byte enables, some of
    /// them held back.
    fn deliver(&mut self, receiver: &mut ObservedReceiver, random: &mut Random) {
        let Some(&start) = self.0.keys().nth(random.below(self.0.len())) else { return };
        if random.below(2) == 0 {
            let most = 1 + random.below(200) as u64;
            let there = (start..start + most).take_while(|offset| self.0.contains_key(offset));
            let bytes: Vec<u8> =
                there.collect::<Vec<_>>().iter().filter_map(|at| self.0.remove(at)).collect();
            receiver.write_arrived(start, &bytes, None).expect("an honest sender");
            return;
        }
        let start = start - random.below(40).min(start as usize) as u64;
        let end = (start + 64).min(u64::from(receiver.lines()) * 64);
        let mut mask = 0;
        let mut bytes = vec![0x55; (end - start) as usize];
        for (i, slot) in bytes.iter_mut().enumerate() {
            if random.below(4) != 0
                && let Some(byte) = self.0.remove(&(start + i as u64))
            {
                *slot = byte;
                mask |= 1 << i;
            }
        }
        receiver.write_arrived(start, &bytes, Some(mask)).expect("an honest sender");
    }
}

#[test]
fn bytes_in_any_order_and_pieces_come_out_as_the_messages_sent() {
    let lines = prop_oneof![Just(2u32), Just(8), Just(32)];
    let strategy = lines.prop_flat_map(|lines| (Just(lines), steps(lines), any::<u64>()));
    let messages = std::cell::Cell::new(0);
    check(300, strategy, |(lines, plan, seed)| {
        // No word is ever the blank on the sender's side here: what it checks for is not a value that is sent.
        let window = TestWindow::new(lines, !BLANK);
        window.hold();
        let config = WindowConfig::observed(seed as u8);
        let mut sender = Sender::new(Writer::new(window.clone(), window.clone(), config), seed);
        let mut receiver = Receiver::observed(lines, ObservedCredits(window.clone()), config);
        let mut fabric = Fabric::default();
        run(&plan, &mut sender, &mut receiver, |receiver, random, pieces| {
            fabric.take_stores(&window);
            for _ in 0..pieces {
                fabric.deliver(receiver, random);
            }
            fabric.0.len()
        });
        messages.set(messages.get() + sender.tally.messages);
        Ok(())
    });
    assert!(cfg!(miri) || messages.get() > 3000, "{} messages", messages.get());
}
