//! A store does what a map does, says what it does not do, and keeps within its memory.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::collections::HashMap;
use std::time::Duration;

use beeline_domain::{Absence, MayArrive};
use beeline_kv::protocol::{self, DELETE, GET, MALFORMED, SET, STATS};
use beeline_kv::{Hashing, Key, KvClient, KvError, KvOptions, KvService, KvStats, MAX_VALUE_BYTES};
use beeline_rpc::shm::{Client, ClientOptions, Server, ServerOptions};
use beeline_rpc::{CallError, CallFailure, Method, Replied, Reply, Request, Started};
use proptest::prelude::*;
use support::*;

fn key(number: u64) -> Key {
    Key::from_words([number, !number])
}

fn value_of(client: &mut KvClient, key: Key) -> Option<Vec<u8>> {
    let mut value = vec![1, 2, 3];
    client.get(key, &mut value, watchdog()).unwrap().then_some(value)
}

#[test]
fn values_come_back_are_replaced_and_go() {
    for workers in [1, 3] {
        let store = Store::serve(workers, KvOptions::default());
        let mut client = store.client();
        let key = Key::from_text("k").unwrap();
        assert_eq!(value_of(&mut client, key), None);
        for bytes in [0, 1, 40, 41, 32, 5000, 5000, 100_000, 0, MAX_VALUE_BYTES, 7] {
            let value: Vec<u8> = (0..bytes).map(|place| (place * 13 % 251) as u8).collect();
            client.set(key, &value, watchdog()).unwrap();
            assert!(value_of(&mut client, key) == Some(value), "a value of {bytes} bytes");
        }
        assert_eq!(value_of(&mut client, Key::from_text("K").unwrap()), None);
        assert!(client.delete(key, watchdog()).unwrap());
        assert!(!client.delete(key, watchdog()).unwrap());
        assert_eq!(value_of(&mut client, key), None);
        let stats = client.stats(watchdog()).unwrap();
        assert_eq!((stats.hits, stats.misses, stats.sets, stats.deletes, stats.refused), (11, 3, 11, 1, 0));
        assert_eq!((stats.items, stats.workers), (0, workers as u64));
        assert_eq!(store.end(), stats);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Set(u64, usize),
    Get(u64),
    Delete(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = 0..24u64;
    let bytes = prop_oneof![0..48usize, 0..3000usize];
    let step = prop_oneof![
        3 => (number.clone(), bytes).prop_map(|(number, bytes)| Step::Set(number, bytes)),
        3 => number.clone().prop_map(Step::Get),
        1 => number.prop_map(Step::Delete),
    ];
    proptest::collection::vec(step, 1..200)
}

/// Runs the steps against a map. A SET may be refused only when the store is really near its bound.
fn check(workers: usize, steps: &[Step]) {
    let hashing = if steps.len().is_multiple_of(2) { Hashing::Quick } else { Hashing::Secret };
    let options =
        KvOptions { max_memory_bytes: 1 << 16, max_value_bytes: 2500, hashing, ..KvOptions::default() };
    let store = Store::serve(workers, options);
    let mut client = store.client();
    let (mut model, mut sets) = (HashMap::new(), 0u64);
    for (place, step) in steps.iter().enumerate() {
        match *step {
            Step::Set(number, bytes) => {
                let value = vec![place as u8; bytes];
                match client.set(key(number), &value, watchdog()) {
                    Ok(()) => {
                        sets += 1;
                        model.insert(number, value);
                    }
                    Err(KvError::ValueTooLong { bytes: found, max_bytes: 2500 }) if bytes > 2500 => {
                        assert_eq!(found, bytes as u64);
                    }
                    Err(KvError::Full { used_bytes, max_bytes: 65_536, needed_bytes }) => {
                        assert!(used_bytes <= 65_536 && used_bytes + needed_bytes > 65_536);
                        let values: usize = model.values().map(Vec::len).sum();
                        assert!(values > 40_000, "full with {values} bytes of values");
                    }
                    Err(error) => panic!("{step:?}: {error}"),
                }
            }
            Step::Get(number) => assert_eq!(value_of(&mut client, key(number)), model.get(&number).cloned()),
            Step::Delete(number) => {
                let was_there = model.remove(&number).is_some();
                assert_eq!(client.delete(key(number), watchdog()).unwrap(), was_there);
            }
        }
    }
    let stats = client.stats(watchdog()).unwrap();
    assert_eq!((stats.items, stats.sets), (model.len() as u64, sets));
    let values: usize = model.values().map(Vec::len).filter(|bytes| *bytes > 40).sum();
    assert!(stats.used_bytes >= values as u64 && stats.used_bytes <= 65_536, "{stats:?}");
    for number in 0..24 {
        client.delete(key(number), watchdog()).unwrap();
    }
    let empty = client.stats(watchdog()).unwrap();
    assert!(empty.items == 0 && empty.used_bytes < 5000, "what was taken is given back: {empty:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_store_of_one_thread_is_a_map(steps in steps()) {
        check(1, &steps);
    }

    #[test]
    fn a_store_of_several_threads_is_a_map(steps in steps()) {
        check(2, &steps);
    }
}

#[test]
fn a_full_store_says_so_and_goes_on() {
    for workers in [1, 2] {
        let options = KvOptions { max_memory_bytes: 1 << 20, ..KvOptions::default() };
        let store = Store::serve(workers, options);
        let mut client = store.client();
        let mut number = 0;
        let error = loop {
            match client.set(key(number), &[number as u8; 1000], watchdog()) {
                Ok(()) => number += 1,
                Err(error) => break error,
            }
        };
        assert!(error.to_string().starts_with("the store is full: "), "{error}");
        assert!(number > 700, "{number} values of 1000 bytes in 1 MiB");
        assert!(store_kept_everything(&mut client, number));
        // More than one: keys are spread at random, and the new one may be the one for which a table has to grow.
        for number in 3..13 {
            assert!(client.delete(key(number), watchdog()).unwrap());
        }
        client.set(key(number), &[9; 1000], watchdog()).unwrap();
        assert_eq!(value_of(&mut client, key(number)), Some(vec![9; 1000]));
        let stats = client.stats(watchdog()).unwrap();
        assert!(stats.used_bytes <= 1 << 20 && stats.refused == 1, "{stats:?}");
    }
}

#[test]
fn memory_of_a_longer_value_is_given_back_when_it_is_replaced() {
    for workers in [1, 2] {
        let store = Store::serve(workers, KvOptions::default());
        let mut client = store.client();
        let mut used_after = |bytes: usize| {
            client.set(key(1), &vec![5; bytes], watchdog()).unwrap();
            assert_eq!(value_of(&mut client, key(1)), Some(vec![5; bytes]));
            client.stats(watchdog()).unwrap().used_bytes
        };
        let (long, shorter, short) = (used_after(100_000), used_after(50_000), used_after(40));
        // Of one worker it is in blocks, of which a share of their page counts.
        let is_half = (49_000..55_000).contains(&(long - shorter));
        assert!(is_half && shorter - short > 49_000, "{long} {shorter} {short}");
    }
}

fn store_kept_everything(client: &mut KvClient, items: u64) -> bool {
    (0..items).all(|number| value_of(client, key(number)) == Some(vec![number as u8; 1000]))
}

#[test]
fn small_items_fill_the_memory_too() {
    for workers in [1, 2] {
        let options = KvOptions { max_memory_bytes: 1 << 17, ..KvOptions::default() };
        let store = Store::serve(workers, options);
        let mut client = store.client();
        let refused = (0..3000).find(|number| client.set(key(*number), b"small", watchdog()).is_err());
        let items = refused.expect("3000 items do not fit 128 KiB");
        assert!(items > 400, "{items} items of 16 and 5 bytes in 128 KiB");
        let stats = client.stats(watchdog()).unwrap();
        assert!(stats.used_bytes <= 1 << 17 && stats.items == items, "{stats:?}");
        // Replacing what is there needs no more memory, if it lies beside its key.
        assert_eq!(client.set(key(0), b"other", watchdog()).is_ok(), workers == 1);
    }
}

#[test]
fn requests_of_an_attacker_are_answered_as_what_they_are() {
    for workers in [1, 2] {
        let options = KvOptions { max_value_bytes: 100, ..KvOptions::default() };
        let store = Store::serve(workers, options);
        let mut attacker = store.rpc_client();
        let mut ask = |method: Method, request: &[u8]| {
            attacker.call(method, request, &mut Vec::new(), watchdog()).map_err(|failure| match failure {
                CallFailure::Call(CallError::Failed { code, .. }) => Some(code),
                CallFailure::Call(CallError::UnknownMethod) => None,
                other => panic!("{other}"),
            })
        };
        for (method, bytes) in
            [(GET, 0), (GET, 15), (GET, 17), (GET, 1 << 20), (SET, 0), (SET, 15), (DELETE, 15), (DELETE, 24)]
        {
            assert_eq!(ask(method, &vec![7; bytes]), Err(Some(MALFORMED)), "{method} of {bytes} bytes");
        }
        assert_eq!(ask(STATS, &[0]), Err(Some(MALFORMED)));
        assert_eq!(ask(Method(0), &[7; 16]), Err(None));
        assert_eq!(ask(SET, &[7; 117]), Err(Some(protocol::VALUE_TOO_LONG)));
        assert_eq!(ask(SET, &vec![7; 1 << 20]), Err(Some(protocol::VALUE_TOO_LONG)));
        assert_eq!(ask(GET, &[7; 16]), Err(Some(protocol::NOT_FOUND)));
        assert_eq!(ask(SET, &[7; 116]), Ok(()));
        assert_eq!(ask(GET, &[7; 16]), Ok(()));
    }
}

#[test]
fn calls_go_out_many_at_a_time_and_end_in_their_order() {
    let store = Store::serve(1, KvOptions::default());
    let mut client = store.client();
    let calls = 500u64;
    let (mut ids, mut ended) = (Vec::new(), Vec::new());
    // Each key is set, then asked for, without waiting in between; an odd one is asked for only.
    for number in 0..calls {
        if number % 2 == 0 {
            begin(&mut client, &mut ids, &mut ended, |client| {
                client.start_set(key(number), &number.to_le_bytes())
            });
        }
        begin(&mut client, &mut ids, &mut ended, |client| client.start_get(key(number)));
    }
    while ended.len() < ids.len() {
        take(&mut client, &mut ended);
    }
    let expected = (0..calls).flat_map(|number| match number % 2 {
        0 => vec![Some(Vec::new()), Some(number.to_le_bytes().to_vec())],
        _ => vec![None],
    });
    let (ended_ids, values): (Vec<_>, Vec<_>) = ended.into_iter().unzip();
    assert_eq!(values, expected.collect::<Vec<_>>());
    assert_eq!(ended_ids, ids);
}

type Ends = Vec<(beeline_rpc::CallId, Option<Vec<u8>>)>;

fn begin(
    client: &mut KvClient,
    ids: &mut Vec<beeline_rpc::CallId>,
    ended: &mut Ends,
    start: impl Fn(&mut KvClient) -> Result<Started, KvError>,
) {
    loop {
        match start(client).unwrap() {
            Started::Call(id) => return ids.push(id),
            Started::Full => take(client, ended),
        }
    }
}

fn take(client: &mut KvClient, ended: &mut Ends) {
    match client.poll() {
        Some(end) => ended.push((end.id, end.result.unwrap().map(|mut body| body.to_vec()))),
        None => std::thread::yield_now(),
    }
}

#[test]
fn a_name_that_is_no_store_is_found_out_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let domain = domain(folder.path());
    let (_server, mut workers) = Server::offer(&domain, "kv", ServerOptions::default()).unwrap();
    std::thread::spawn(move || {
        let mut echo = |_: &mut Request<'_>, reply: Reply<'_>| -> Replied { reply.send(b"hello") };
        workers[0].run(&mut echo, &POLITE, &std::sync::atomic::AtomicBool::new(false));
    });
    let error = KvClient::connect(&domain, "kv", ClientOptions::default()).unwrap_err();
    assert!(matches!(error, KvError::NotAStore { .. }), "{error}");
    let error = KvClient::connect(&domain, "nobody", ClientOptions::default()).unwrap_err();
    assert!(matches!(error, KvError::Connect(_)), "{error}");
}

#[test]
fn store_that_is_served_later_is_waited_for_within_the_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let domain = domain(folder.path());
    let connect = |timeout| {
        let options = ClientOptions { timeout, policy: POLITE, ..ClientOptions::default() };
        KvClient::connect_awaiting(&domain, "kv", options)
    };
    let error = connect(Duration::from_millis(20)).unwrap_err();
    assert_eq!(error.absence(), Some(Absence::NoSocket), "{error}");
    std::thread::scope(|scope| {
        let connected = scope.spawn(|| connect(Duration::from_secs(60)).unwrap().stats(watchdog()).unwrap());
        std::thread::sleep(Duration::from_millis(20));
        let _store = Store::serve_in(folder, 1, KvOptions::default());
        assert_eq!(connected.join().unwrap().items, 0);
    });
}

#[test]
fn a_store_out_of_bounds_is_not_opened() {
    assert!(KvService::open(1, KvOptions { max_memory_bytes: 1, ..KvOptions::default() }).is_err());
    let services = KvService::open(3, KvOptions::default()).unwrap();
    let stats = KvStats {
        max_memory_bytes: 1 << 30,
        max_value_bytes: MAX_VALUE_BYTES as u64,
        workers: 3,
        ..KvStats::default()
    };
    assert_eq!((services.len(), services[2].stats()), (3, stats));
}

#[test]
fn a_value_that_no_request_can_carry_is_refused_before_it_is_sent() {
    let store = Store::serve(1, KvOptions::default());
    let mut client: KvClient = store.client();
    let error = client.set(key(1), &vec![0; MAX_VALUE_BYTES + 1], watchdog()).unwrap_err();
    assert!(matches!(error, KvError::ValueTooLong { bytes: 1_048_561, max_bytes: 1_048_560 }), "{error}");
    let mut calls: Client = store.rpc_client();
    assert!(matches!(
        calls.start(SET, &vec![0; (1 << 20) + 1], None),
        Err(beeline_rpc::StartError::TooLong { .. })
    ));
}
