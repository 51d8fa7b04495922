//! This target opens a message queue of the fabric, sends and receives. The other end, or any process that is connected to either segment, has
//! written any words into headers and windows before, and writes more meanwhile.
#![no_main]

use arbitrary::Arbitrary;
use beeline_fabric_transfer::fuzzing::queue;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Value {
    Any(u64),
    Small(u8),
    Ones,
    Blank(u8),
}

#[derive(Arbitrary, Debug)]
struct Input {
    /// Of the first sixteen words of the other segment, mostly.
    header: Vec<(u8, Value)>,
    before: Vec<(u16, Value)>,
    later: Vec<(u16, Value)>,
}

impl Value {
    fn word(&self) -> u64 {
        match *self {
            Value::Any(word) => word,
            Value::Small(number) => number.into(),
            Value::Ones => u64::MAX,
            Value::Blank(number) => 1 << 63 | u64::from(number),
        }
    }
}

fuzz_target!(|input: Input| {
    let header = input.header.iter().take(8).map(|(at, value)| (256 + u16::from(at % 16), value.word()));
    let words = |some: &[(u16, Value)]| -> Vec<(u16, u64)> {
        some.iter().map(|(at, value)| (*at, value.word())).collect()
    };
    let before: Vec<_> = words(&input.before).into_iter().chain(header).collect();
    queue(&before, &words(&input.later));
});
