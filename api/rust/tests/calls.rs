//! Calls through the facade.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline::rpc::{CallError, CallFailure, Method, Replied, Reply, Request};
use beeline::{ConnectError, Domain, Error, WaitPolicy};

fn double(request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
    match request.method() {
        Method(1) => reply.send(&(request.word(0) * 2).to_le_bytes()),
        _ => reply.unknown_method(),
    }
}

#[test]
fn a_client_asks_and_a_server_answers() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "facade").unwrap();
    let absent = domain.client("doubles").unwrap_err();
    assert!(
        absent.to_string().contains("doubles") && absent.remedy().contains("start the server"),
        "{absent}"
    );
    let (_server, mut worker) = domain.server("doubles").unwrap();
    let mut client = domain.client("doubles").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| worker.run(&mut double, &WaitPolicy::default(), &stop));
        let mut answer = Vec::new();
        let good = client.call(Method(1), &21u64.to_le_bytes(), &mut answer, None);
        let bad = client.call(Method(2), &[], &mut Vec::new(), None);
        stop.store(true, Ordering::Relaxed);
        assert_eq!((good, answer), (Ok(()), 42u64.to_le_bytes().to_vec()));
        assert_eq!(bad, Err(CallFailure::Call(CallError::UnknownMethod)));
        assert!(Error::from(bad.unwrap_err()).to_string().contains("no such method"));
    });
}

#[test]
fn client_waits_for_a_server_that_comes_later() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "facade").unwrap();
    let short = Duration::from_millis(20);
    let error = domain.client_timeout("late", short).unwrap_err();
    assert!(matches!(&error, ConnectError::TimedOut { waited, .. } if *waited == short), "{error}");
    let other = domain.clone();
    let waiting = std::thread::spawn(move || other.client_timeout("late", Duration::from_secs(60)).map(drop));
    let (_server, mut worker) = domain.server("late").unwrap();
    while !waiting.is_finished() {
        worker.poll(&mut double);
        std::thread::yield_now();
    }
    waiting.join().unwrap().unwrap();
}
