//! This target is the key-value store, whose client may send any requests. A map beside it says what each answer must be; the store
//! never counts more memory than it may have, and what is no request is answered as that.
#![no_main]

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use beeline_kv::protocol::{DELETE, FULL, GET, MALFORMED, NOT_FOUND, SET, STATS, VALUE_TOO_LONG};
use beeline_kv::{KvOptions, KvService};
use beeline_rpc::Method;
use beeline_rpc::fuzzing::Attacker;
use beeline_spec::rpc::{Part, RequestWord, ResponseWord, Status};
use libfuzzer_sys::fuzz_target;

/// The least that a store takes.
const MAX_MEMORY_BYTES: u64 = 1 << 16;
const MAX_VALUE_BYTES: usize = 1 << 14;
/// Longer than any answer here.
const MAX_MESSAGE_BYTES: usize = 1 << 15;

#[derive(Arbitrary, Debug)]
struct Input {
    has_two_workers: bool,
    requests: Vec<Request>,
}

#[derive(Arbitrary, Debug)]
enum Request {
    Set {
        key: u8,
        bytes: u16,
        fill: u8,
        /// Bytes of the first message, when it is sent in two.
        first: Option<u16>,
    },
    Get(u8),
    Delete(u8),
    Stats,
    /// One of its methods or another, with a payload too short for a key, or for statistics one at all.
    Short {
        method: u8,
        payload: [u8; 15],
        bytes: u8,
    },
}

struct Client {
    attacker: Attacker,
    services: Vec<KvService>,
    calls: u32,
}

impl Client {
    /// The answer to a request: whether it is done, or with which code it failed; and its bytes.
    fn call(&mut self, method: Method, payload: &[u8], first: Option<u16>) -> (Result<(), u16>, Vec<u8>) {
        self.calls += 1;
        let word =
            |part| RequestWord::new(self.calls, method.0, false).with_part(part).encode().to_le_bytes();
        let messages = match first {
            None => vec![[&word(Part::Whole)[..], payload].concat()],
            Some(first) => {
                let (head, rest) = payload.split_at(usize::from(first).min(payload.len()));
                let bytes = (payload.len() as u64).to_le_bytes();
                vec![[&word(Part::First)[..], &bytes, head].concat(), [&word(Part::Last)[..], rest].concat()]
            }
        };
        let worker = self.calls as usize % self.services.len();
        let mut answers = Vec::new();
        for message in messages {
            let taken = self.attacker.take(&message, MAX_MESSAGE_BYTES, &mut self.services[worker]);
            answers.extend(taken.expect("a request of a well-behaved client"));
        }
        assert_eq!(answers.len(), 1, "each request is answered once");
        let (head, bytes) = answers[0].split_first_chunk().expect("a first word");
        let word = ResponseWord::decode(u64::from_le_bytes(*head)).expect("the word of an answer");
        assert_eq!(word.call(), self.calls);
        let ended = match word.status() {
            Status::Done => Ok(()),
            Status::Failed => Err(word.code()),
            // Of no method.
            Status::UnknownMethod => Err(0),
            other => panic!("{other:?}"),
        };
        (ended, bytes.to_vec())
    }
}

/// Keys of which several share their beginning.
fn key(number: u8) -> [u8; 16] {
    let mut key = [0; 16];
    key[usize::from(number % 16)] = number / 16;
    key
}

fn short(client: &mut Client, method: u8, payload: &[u8]) {
    let known = [GET, SET, DELETE, STATS];
    let is_known = method % 8 < 4;
    let method = if is_known { known[usize::from(method % 4)] } else { Method(u16::from(method)) };
    let (ended, _) = client.call(method, payload, None);
    match (is_known, method == STATS && payload.is_empty()) {
        (false, _) => assert_eq!(ended, Err(0)),
        (true, true) => assert_eq!(ended, Ok(())),
        (true, false) => assert_eq!(ended, Err(MALFORMED)),
    }
}

fuzz_target!(|input: Input| {
    let options = KvOptions {
        max_memory_bytes: MAX_MEMORY_BYTES,
        max_value_bytes: MAX_VALUE_BYTES,
        ..KvOptions::default()
    };
    let workers = 1 + usize::from(input.has_two_workers);
    let services = KvService::open(workers, options).expect("options that are in bounds");
    let mut client = Client { attacker: Attacker::default(), services, calls: 0 };
    let mut items: BTreeMap<[u8; 16], Vec<u8>> = BTreeMap::new();
    for request in input.requests {
        match request {
            Request::Set { key: number, bytes, fill, first } => {
                let value = vec![fill; usize::from(bytes) % (MAX_VALUE_BYTES + 1000)];
                let payload = [&key(number)[..], &value].concat();
                match client.call(SET, &payload, first).0 {
                    Ok(()) => drop(items.insert(key(number), value)),
                    Err(VALUE_TOO_LONG) => assert!(value.len() > MAX_VALUE_BYTES),
                    Err(code) => assert_eq!(code, FULL),
                }
            }
            Request::Get(number) => match (client.call(GET, &key(number), None), items.get(&key(number))) {
                ((Ok(()), found), Some(value)) => assert_eq!(&found, value),
                ((ended, _), None) => assert_eq!(ended, Err(NOT_FOUND)),
                ((ended, _), Some(_)) => panic!("{ended:?} for a key that is there"),
            },
            Request::Delete(number) => {
                let expected = items.remove(&key(number)).map(drop).ok_or(NOT_FOUND);
                assert_eq!(client.call(DELETE, &key(number), None).0, expected);
            }
            Request::Stats => assert_eq!(client.call(STATS, &[], None).0, Ok(())),
            Request::Short { method, payload, bytes } => {
                short(&mut client, method, &payload[..usize::from(bytes) % 16]);
            }
        }
        let stats = client.services[0].stats();
        assert_eq!(stats.items, items.len() as u64);
        assert!(stats.used_bytes <= MAX_MEMORY_BYTES, "{} bytes are used", stats.used_bytes);
    }
});
