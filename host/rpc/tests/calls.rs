//! Calls over windows, both sides in one thread, so that who does what when is the test's choice.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use beeline_domain::MayArrive;
use beeline_rpc::shm::{Client, ClientOptions, ServerOptions};
use beeline_rpc::{
    CallError, CallFailure, Deadline, Loss, Method, Replied, Reply, Request, RpcError, StartError, Started,
    WaitPolicy,
};
use support::*;

const LONGEST: usize = 1 << 20;

fn small() -> (ServerOptions, ClientOptions) {
    let server = ServerOptions { request_lines: 16, ..ServerOptions::default() };
    (server, ClientOptions { reply_lines: 16, max_outstanding: 8, ..ClientOptions::default() })
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(filling).collect()
}

#[test]
fn every_length_comes_back_whole_or_in_parts() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (server_options, client_options) = small();
    for (server_options, client_options) in
        [(server_options, client_options), (ServerOptions::default(), ClientOptions::default())]
    {
        let (_server, mut workers) = server(&domain, server_options);
        let mut client = client(&domain, client_options);
        for bytes in (0..200).chain([240, 248, 249, 1000, 4000, 16_376, 16_384, 65_536, LONGEST - 1, LONGEST])
        {
            let asked = pattern(bytes);
            assert_eq!(ask(&mut client, &mut workers, ECHO, &asked), Ok(asked.clone()), "{bytes} bytes");
            for method in [FILL, WRITE] {
                let length = (bytes as u64).to_le_bytes();
                assert_eq!(ask(&mut client, &mut workers, method, &length), Ok(asked.clone()), "{bytes}");
            }
        }
        assert_eq!(client.outstanding(), 0);
    }
}

#[test]
fn a_client_that_comes_before_its_server_waits_for_it() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let soon = ClientOptions { timeout: Duration::from_millis(20), ..ClientOptions::default() };
    let absent = Client::connect_awaiting(&domain, "echo", soon).unwrap_err();
    assert!(absent.absence().is_some(), "{absent}");
    let wrong = ClientOptions { timeout: WATCHDOG, reply_lines: 3, ..ClientOptions::default() };
    assert!(matches!(Client::connect_awaiting(&domain, "echo", wrong), Err(RpcError::Option { .. })));
    std::thread::scope(|scope| {
        let patient = ClientOptions { timeout: WATCHDOG, ..ClientOptions::default() };
        let client = scope.spawn(|| Client::connect_awaiting(&domain, "echo", patient));
        let (_server, mut workers) = server(&domain, ServerOptions::default());
        let mut client = client.join().unwrap().unwrap();
        assert_eq!(ask(&mut client, &mut workers, ECHO, b"hello"), Ok(b"hello".to_vec()));
    });
}

#[test]
fn a_payload_that_equals_the_blank_or_is_all_ones_comes_back() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, mut workers) = server(&domain, ServerOptions::default());
    let mut client = client(&domain, ClientOptions::default());
    for bytes in [8, 40, 48, 56, 300, 20_000] {
        let asked = vec![0xff; bytes];
        assert_eq!(ask(&mut client, &mut workers, ECHO, &asked), Ok(asked.clone()));
    }
}

#[test]
fn errors_are_values() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, mut workers) = server(&domain, ServerOptions::default());
    let mut client = client(&domain, ClientOptions::default());
    let mut ask = |method, request: &[u8]| ask(&mut client, &mut workers, method, request);
    let detail = pattern(100).into_boxed_slice();
    assert_eq!(ask(FAIL, &detail), Err(CallError::Failed { code: 7, detail: detail.clone() }));
    let long = pattern(100_000).into_boxed_slice();
    assert_eq!(ask(FAIL, &long), Err(CallError::Failed { code: 7, detail: long.clone() }));
    assert_eq!(ask(Method(99), &[]), Err(CallError::UnknownMethod));
    assert_eq!(ask(BUSY, &[]), Err(CallError::Overloaded));
    assert_eq!(ask(PANIC, &[]), Err(CallError::Crashed));
    assert_eq!(ask(ABANDON, &[]), Err(CallError::Crashed));
    for method in [FILL, WRITE] {
        assert_eq!(ask(method, &(LONGEST as u64 + 1).to_le_bytes()), Err(CallError::TooLong));
    }
    assert_eq!(ask(ECHO, b"still there"), Ok(b"still there".to_vec()));
    let error = client.start(ECHO, &vec![0; LONGEST + 1], None).unwrap_err();
    assert_eq!(error, StartError::TooLong { bytes: LONGEST + 1, max_bytes: LONGEST });
}

#[test]
fn handler_that_panics_in_the_middle_of_a_poll_ends_its_call_and_no_other() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, mut workers) = server(&domain, ServerOptions::default());
    let mut clients = [(); 2].map(|()| client(&domain, ClientOptions::default()));
    for client in &mut clients {
        // Reply windows are open, and the poll below has nothing else to do.
        assert_eq!(ask(client, &mut workers, ECHO, b"first"), Ok(b"first".to_vec()));
    }
    let asked = [ECHO, PANIC, PANIC, ECHO];
    for client in &mut clients {
        for method in asked {
            start(client, method, b"asked");
        }
    }
    assert_eq!(workers[0].poll(&mut handle), 8, "one poll takes every request, those that panic too");
    for client in &mut clients {
        let ends = asked.map(|_| {
            let end = client.poll().unwrap();
            end.result.map(|mut answer| answer.to_vec())
        });
        let (echo, crash) = (Ok(b"asked".to_vec()), Err(CallError::Crashed));
        assert_eq!(ends, [echo.clone(), crash.clone(), crash, echo]);
    }
}

#[test]
fn calls_are_pipelined_and_a_full_window_is_an_answer() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (server_options, client_options) = small();
    let (_server, mut workers) = server(&domain, server_options);
    let mut client = client(&domain, ClientOptions { max_outstanding: 64, ..client_options });
    for _ in 0..20 {
        let mut begun = HashMap::new();
        // Nobody takes the requests: sixteen lines, then there is no room, as often as it is tried.
        for number in 0..100u64 {
            match client.start(ECHO, &number.to_le_bytes(), None).unwrap() {
                Started::Call(id) => assert!(begun.insert(id, number).is_none()),
                Started::Full => assert_eq!(begun.len(), 16),
            }
        }
        while !begun.is_empty() {
            let (id, result) = next_end(&mut client, &mut workers);
            assert_eq!(result, Ok(begun.remove(&id).unwrap().to_le_bytes().to_vec()));
        }
    }
}

#[test]
fn answers_that_find_no_room_wait_and_nothing_is_lost() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (server_options, client_options) = small();
    let (_server, mut workers) = server(&domain, ServerOptions { request_lines: 1024, ..server_options });
    let mut client = client(&domain, ClientOptions { max_outstanding: 64, ..client_options });
    let ids: Vec<_> = (0..40u64).map(|_| start(&mut client, FILL, &300u64.to_le_bytes())).collect();
    // The client does not poll: the reply window takes a few answers, and one waits.
    let mut taken = 0;
    for _ in 0..100 {
        taken += workers[0].poll(&mut handle);
    }
    assert!((1..10).contains(&taken), "{taken} taken although answers wait");
    assert!(workers[0].has_unsent(), "one was taken and its answer waits");
    let begun = Instant::now();
    for id in ids {
        let completion = loop {
            taken += workers[0].poll(&mut handle);
            if let Some(completion) = client.poll() {
                break completion;
            }
            assert!(begun.elapsed() < WATCHDOG);
        };
        assert_eq!((completion.id, completion.result.unwrap().to_vec()), (id, pattern(300)));
    }
    assert_eq!(taken, 40, "a worker counts requests, not answers that had to wait");
    assert!(!workers[0].has_unsent());
}

#[test]
fn a_thread_that_stops_sends_what_it_has_answered() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (server_options, client_options) = small();
    let (_server, mut workers) = server(&domain, ServerOptions { request_lines: 1024, ..server_options });
    let mut client = client(&domain, ClientOptions { max_outstanding: 64, ..client_options });
    for _ in 0..40u64 {
        let _id = start(&mut client, FILL, &300u64.to_le_bytes());
    }
    let mut taken = 0;
    while !workers[0].has_unsent() {
        taken += workers[0].poll(&mut handle);
    }
    let worker = &mut workers[0];
    let answered = std::thread::scope(|scope| {
        let stopped =
            scope.spawn(move || worker.run(&mut handle, &WaitPolicy::default(), &AtomicBool::new(true)));
        let (begun, mut answered) = (Instant::now(), 0);
        while answered < taken {
            answered += usize::from(client.poll().is_some());
            assert!(begun.elapsed() < WATCHDOG, "{answered} of {taken} answers");
        }
        stopped.join().unwrap();
        answered
    });
    assert_eq!(answered, taken);
    assert!(!workers[0].has_unsent() && client.poll().is_none(), "it took no more requests");
}

#[test]
fn a_deadline_ends_the_call_and_the_request_is_not_executed_late() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, mut workers) = server(&domain, ServerOptions::default());
    let mut client = client(&domain, ClientOptions { max_outstanding: 1, ..ClientOptions::default() });
    let mut executed = 0;
    for bytes in [10, 100_000] {
        let deadline = Deadline::after(Duration::from_millis(2));
        let begun = client.start(ECHO, &pattern(bytes), Some(deadline)).unwrap();
        let Started::Call(id) = begun else { panic!("room") };
        assert_eq!(next_end(&mut client, &mut []), (id, Err(CallError::TimedOut)));
        // The one slot is taken until the server has spoken; then the next call has it.
        assert_eq!(client.start(ECHO, &[], None), Ok(Started::Full));
        let mut count = |_: &mut Request<'_>, reply: Reply<'_>| -> Replied {
            executed += 1;
            reply.send(&[])
        };
        let mut next = None;
        let begun = Instant::now();
        loop {
            workers[0].poll(&mut count);
            if let Some(completion) = client.poll() {
                assert_eq!(Some(completion.id), next);
                break;
            }
            if next.is_none()
                && let Ok(Started::Call(id)) = client.start(ECHO, &[], None)
            {
                next = Some(id);
            }
            assert!(begun.elapsed() < WATCHDOG);
        }
    }
    assert_eq!(executed, 2, "the two calls without a deadline, and no other");
}

#[test]
fn a_handler_sees_the_deadline() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, mut workers) = server(&domain, ServerOptions::default());
    let mut client = client(&domain, ClientOptions::default());
    let deadline = Deadline::after(WATCHDOG);
    let mut seen = Vec::new();
    for given in [Some(deadline), None] {
        assert!(matches!(client.start(ECHO, &pattern(45), given), Ok(Started::Call(_))));
        let mut look = |request: &mut Request<'_>, reply: Reply<'_>| -> Replied {
            seen.push(request.deadline());
            let mut bytes = Vec::new();
            request.copy_to(&mut bytes);
            assert_eq!(bytes, pattern(45));
            reply.send(&[])
        };
        while workers[0].poll(&mut look) == 0 {}
    }
    assert_eq!(seen, [Some(deadline), None]);
}

#[test]
fn a_cancelled_call_is_not_executed_and_its_slot_comes_back() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, mut workers) = server(&domain, ServerOptions::default());
    let mut client = client(&domain, ClientOptions { max_outstanding: 2, ..ClientOptions::default() });
    let mut executed = 0;
    for round in 1..=50 {
        let (first, second) = (start(&mut client, ECHO, b"first"), start(&mut client, FAIL, b""));
        assert!(client.cancel(second) && !client.cancel(second));
        let mut count = |request: &mut Request<'_>, reply: Reply<'_>| -> Replied {
            assert_eq!(request.method(), ECHO, "round {round}: a cancelled call is executed");
            executed += 1;
            handle(request, reply)
        };
        let begun = Instant::now();
        let mut ends = HashMap::new();
        while ends.len() < 2 || client.start(ECHO, b"third", None) == Ok(Started::Full) {
            workers[0].poll(&mut count);
            if let Some(completion) = client.poll() {
                ends.insert(completion.id, completion.result.map(|mut body| body.to_vec()));
            }
            assert!(begun.elapsed() < WATCHDOG);
        }
        assert_eq!(ends.remove(&first), Some(Ok(b"first".to_vec())));
        assert_eq!(ends.remove(&second), Some(Err(CallError::Cancelled)));
        assert_eq!(next_end(&mut client, &mut workers).1, Ok(b"third".to_vec()));
        assert_eq!(executed, round);
    }
}

#[test]
fn a_server_that_goes_ends_every_call_and_is_found_again() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (server_end, mut workers) =
        server(&domain, ServerOptions { request_lines: 16, ..ServerOptions::default() });
    let mut client = client(&domain, ClientOptions::default());
    let sent = start(&mut client, ECHO, b"sent");
    // Of this one a part is sent; what is not whole is certainly not executed.
    let unsent = start(&mut client, ECHO, &pattern(50_000));
    workers.clear();
    drop(server_end);
    let mut ends = HashMap::from([next_end(&mut client, &mut []), next_end(&mut client, &mut [])]);
    for (id, expected) in [(sent, true), (unsent, false)] {
        match ends.remove(&id).unwrap().unwrap_err() {
            CallError::ServerGone { loss: Loss::Closed { pid }, was_sent } => {
                assert_eq!((pid, was_sent), (Some(std::process::id()), expected));
            }
            other => panic!("{other}"),
        }
    }
    let error = client.start(ECHO, &[], None).unwrap_err();
    assert!(error.to_string().contains("closed the connection"), "{error}");
    let (_server, mut workers) = server(&domain, ServerOptions::default());
    let begun = Instant::now();
    while client.loss().is_some() {
        assert!(client.poll().is_none());
        assert!(begun.elapsed() < WATCHDOG, "the new server is not found");
    }
    assert_eq!(ask(&mut client, &mut workers, ECHO, b"again"), Ok(b"again".to_vec()));
}

#[test]
fn server_that_comes_back_is_found_by_calls_alone() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (server_end, mut workers) = server(&domain, ServerOptions::default());
    let mut client = client(&domain, ClientOptions::default());
    workers.clear();
    drop(server_end);
    let mut answer = Vec::new();
    let mut call = |bytes: &[u8]| client.call(ECHO, bytes, &mut answer, None).map(|()| answer.clone());
    let lost = call(b"lost");
    assert!(matches!(lost, Err(CallFailure::Call(CallError::ServerGone { .. }))), "{lost:?}");
    assert!(matches!(call(b"nobody is there"), Err(CallFailure::Start(StartError::NotConnected { .. }))));
    let (_server, mut workers) = server(&domain, ServerOptions::default());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| workers[0].run(&mut handle, &beeline_rpc::WaitPolicy::default(), &stop));
        let begun = Instant::now();
        let found = std::iter::repeat_with(|| call(b"again"))
            .find(|called| called.is_ok() || begun.elapsed() > WATCHDOG);
        // Relaxed: the thread only has to see it some time.
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(found, Some(Ok(b"again".to_vec())));
    });
}

#[test]
fn call_waits_for_its_own_end() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, mut workers) = server(&domain, ServerOptions::default());
    let mut client = client(&domain, ClientOptions::default());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| workers[0].run(&mut handle, &beeline_rpc::WaitPolicy::default(), &stop));
        let mut answer = b"something else".to_vec();
        for bytes in [0, 10, 100, 70_000] {
            client.call(ECHO, &pattern(bytes), &mut answer, None).unwrap();
            assert_eq!(answer, pattern(bytes));
        }
        let failed = client.call(FAIL, b"why", &mut answer, Some(Deadline::after(WATCHDOG)));
        let detail = Box::from(*b"why");
        assert_eq!(failed, Err(CallFailure::Call(CallError::Failed { code: 7, detail })));
        // Relaxed: the thread only has to see it some time.
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let _outstanding = start(&mut client, ECHO, &[]);
    let refused = client.call(ECHO, &[], &mut Vec::new(), None);
    assert_eq!(refused, Err(CallFailure::Outstanding { outstanding: 1 }));
}

#[test]
fn call_waits_for_room() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, mut workers) = server(&domain, ServerOptions::default());
    let policy = beeline_rpc::WaitPolicy::new().spins(10).yields(10).sleep(Some(Duration::from_millis(1)));
    let options = ClientOptions { max_outstanding: 1, policy, ..ClientOptions::default() };
    let mut client = client(&domain, options);
    let begun = client.start(ECHO, b"late", Some(Deadline::after(Duration::ZERO))).unwrap();
    let Started::Call(id) = begun else { panic!("room") };
    assert_eq!(next_end(&mut client, &mut []), (id, Err(CallError::TimedOut)));
    // The only slot is taken until the server answers the call that was given up.
    let mut answer = Vec::new();
    let refused = client.call(ECHO, b"now", &mut answer, Some(Deadline::after(Duration::from_millis(5))));
    assert!(matches!(refused, Err(CallFailure::NoRoom { .. })), "{refused:?}");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| workers[0].run(&mut handle, &policy, &stop));
        client.call(ECHO, b"now", &mut answer, Some(Deadline::after(WATCHDOG))).unwrap();
        // Relaxed: the thread only has to see it some time.
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(answer, b"now");
}

#[test]
fn options_out_of_bounds_are_said() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    for (options, word) in [
        (ServerOptions { workers: 0, ..ServerOptions::default() }, "workers = 0"),
        (ServerOptions { workers: 65, ..ServerOptions::default() }, "from 1 to 64"),
        (ServerOptions { request_lines: 48, ..ServerOptions::default() }, "request_lines = 48"),
    ] {
        let error = beeline_rpc::shm::Server::offer(&domain, "echo", options).err().unwrap().to_string();
        assert!(error.contains(word), "{error}");
    }
    let (_server, _workers) =
        server(&domain, ServerOptions { max_reply_lines: 16, ..ServerOptions::default() });
    let refused = beeline_rpc::shm::Client::connect(&domain, "echo", ClientOptions::default());
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("512 lines") && error.contains("16 at most"), "{error}");
    let absent = beeline_rpc::shm::Client::connect(&domain, "nobody", ClientOptions::default());
    let error = absent.err().unwrap().to_string();
    assert!(error.contains("nobody"), "{error}");
}
