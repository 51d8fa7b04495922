//! What the processes in the containers do: each is a small program of the library, as a user would write it.
//!
//! A role talks to the test in lines on its standard output that begin with `@`, and hears of it by lines on its standard
//! input; when that ends, the role does. Beside these pipes and the mounted folder two roles share nothing.

use std::error::Error;
use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline::rpc::{CallError, Method, Replied, Reply, Request, Started};
use beeline::{
    Armed, Domain, OpenError, Polled, Receiver, ReceiverOptions, RecvError, SendError, Sender, Sent, Source,
    WaitPolicy,
};
use beeline_domain::NETWORK_NAMESPACE;
use rustix::event::{PollFd, PollFlags, Timespec, epoll};

use crate::enter::NAMESPACES;
use crate::{notifications, payload};

/// Ends what hangs; nothing is ever waited for this long.
pub const WATCHDOG: Duration = Duration::from_secs(30);
/// Name of the domain in the shared folder.
pub const DOMAIN: &str = "shared";
/// Messages that each side of [`talk`] sends.
const MESSAGES: u64 = 250;
/// Calls of [`client`].
const CALLS: u64 = 300;
/// Answers with the request, each byte inverted.
const INVERT: Method = Method(1);
/// Sleeps at once, and does not look again by itself sooner than the library makes everybody look.
const SLEEP: WaitPolicy = WaitPolicy::new().spins(0).yields(0).sleep(Some(WATCHDOG));

/// Says something to the test.
pub fn say(what: &str) {
    println!("@{what}");
    std::io::stdout().flush().unwrap();
}

/// The next line of the test; `None` when it wants the role to end.
pub fn listen() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line).unwrap() {
        0 => None,
        _ => Some(line.trim_end().to_owned()),
    }
}

fn wait_for_end() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Says which namespaces this process is in, its process id there, and what it finds where programs usually meet.
pub fn introduce(private: &[&str]) {
    for name in NAMESPACES {
        let namespace = std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
        say(&format!("namespace {}", namespace.display()));
    }
    let found = private.iter().flat_map(|folder| std::fs::read_dir(Path::new("/").join(folder)).unwrap());
    say(&format!("process {}, others' files: {}", std::process::id(), found.count()));
}

/// An error and its causes in one line.
fn text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// Plays the role in the domain of the folder `root`.
pub fn play(root: &Path, role: &[String]) -> ExitCode {
    let words: Vec<&str> = role.iter().map(String::as_str).collect();
    if let ["opens", ref rest @ ..] = words[..] {
        open_and_tell(root, rest);
        return ExitCode::SUCCESS;
    }
    if let ["offers-in-namespace", domain, name] = words[..] {
        offer_in_namespace(domain, name);
        return ExitCode::SUCCESS;
    }
    let domain = Domain::open_in(root, DOMAIN).unwrap();
    match words[..] {
        ["notifies", name] => notifications::notify(root, name),
        ["is-notified", name] => notifications::be_notified(root, name),
        ["talks", own, other] => talk(&domain, own, other),
        ["receives", name, how] => receive(&domain, name, how),
        ["sends", name] => send_when_told(domain.sender(name).unwrap()),
        ["fills", name] => fill(domain.sender(name).unwrap()),
        ["serves", name] => serve(&domain, name),
        ["hangs", name] => hang(&domain, name),
        ["calls", name] => call(&domain, name),
        ["waits-for-an-answer", name] => wait_for_an_answer(&domain, name),
        ["offers", name, ref allowed @ ..] => offer(&domain, name, allowed),
        _ => panic!("no role {words:?}"),
    }
    ExitCode::SUCCESS
}

/// Offers a window in the network namespace and in no folder.
fn offer_in_namespace(domain: &str, name: &str) {
    match Domain::open_in(NETWORK_NAMESPACE, domain) {
        Ok(domain) => offer(&domain, name, &[]),
        Err(error) => say(&format!("not opened: {}", text(&error))),
    }
}

/// Opens the domain, as its own or as that of the user of a uid, and becomes the sender of a window; says how that went.
fn open_and_tell(root: &Path, rest: &[&str]) {
    let opened =
        |domain: Result<Domain, OpenError>| domain.map_err(|error| format!("not opened: {}", text(&error)));
    let sent = match *rest {
        ["own"] => opened(Domain::open_in(root, DOMAIN)).map(|_| "opened".to_owned()),
        ["of", owner_uid, name] => opened(Domain::open_foreign(root, DOMAIN, owner_uid.parse().unwrap()))
            .and_then(|domain| {
                domain
                    .sender(name)
                    .map(|_| "let in".to_owned())
                    .map_err(|error| format!("not let in: {}", text(&error)))
            }),
        _ => panic!("nothing is opened with {rest:?}"),
    };
    say(&sent.unwrap_or_else(|refused| refused));
}

/// Sends messages to the window `other` and receives those in the window `own`, both at once, every byte checked.
fn talk(domain: &Domain, own: &str, other: &str) {
    let mut receiver = domain.receiver(own).unwrap();
    let mut sender = domain.sender_timeout(other, WATCHDOG).unwrap();
    let most = sender.max_message_bytes();
    let (mut sent, mut received, mut bytes) = (0, 0, 0);
    let mut next = payload::of(other, sent, most);
    while sent < MESSAGES || received < MESSAGES {
        if sent < MESSAGES && sender.try_send(&next).unwrap() != Sent::Full {
            sent += 1;
            next = payload::of(other, sent, most);
        }
        if received < MESSAGES
            && let Some(message) = receiver.try_recv().unwrap()
        {
            let message = message.to_vec();
            assert!(
                message == payload::of(own, received, most),
                "message {received} in {own} is not what was sent"
            );
            received += 1;
            bytes += message.len();
        }
        std::thread::yield_now();
    }
    say(&format!("received {received} messages, {bytes} bytes"));
    wait_for_end();
}

/// Sleeps for each message, by a futex or by a descriptor, until the sender is gone.
fn receive(domain: &Domain, name: &str, how: &str) {
    let mut receiver = domain.receiver_with(name, ReceiverOptions::new().wait(SLEEP)).unwrap();
    let end = match how {
        "in-futex" => receive_in_futex(&mut receiver),
        "in-poll" => receive_by_descriptor(Polled::new(receiver).unwrap(), wait_in_poll),
        "in-epoll" => receive_by_descriptor(Polled::new(receiver).unwrap(), wait_in_epoll),
        _ => panic!("nobody receives {how}"),
    };
    say(&format!("end: {}", text(&end)));
}

fn receive_in_futex(receiver: &mut Receiver) -> RecvError {
    loop {
        say("waiting");
        match receiver.recv() {
            Ok(message) => say(&format!("got {}", message.word(0))),
            Err(error) => return error,
        }
    }
}

fn receive_by_descriptor(mut receiver: Polled<Receiver>, wait: fn(&Polled<Receiver>)) -> RecvError {
    let mut has_said = false;
    loop {
        match receiver.try_recv() {
            Ok(Some(message)) => {
                say(&format!("got {}", message.word(0)));
                has_said = false;
                continue;
            }
            Ok(None) => {}
            Err(error) => return error,
        }
        if receiver.arm() == Armed::Wait {
            if !std::mem::replace(&mut has_said, true) {
                say("waiting");
            }
            wait(&receiver);
        }
    }
}

fn limit() -> Timespec {
    Timespec::try_from(WATCHDOG).unwrap()
}

fn wait_in_poll<S: Source>(source: &Polled<S>) {
    let ready = rustix::event::poll(&mut [PollFd::new(source, PollFlags::IN)], Some(&limit())).unwrap();
    assert_eq!(ready, 1, "nobody wakes a receiver in poll");
}

fn wait_in_epoll<S: Source>(source: &Polled<S>) {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    epoll::add(&set, source, epoll::EventData::new_u64(0), epoll::EventFlags::IN).unwrap();
    let mut events = Vec::with_capacity(1);
    epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), Some(&limit())).unwrap();
    assert_eq!(events.len(), 1, "nobody wakes a receiver in epoll");
}

/// Sends the number that the test says.
fn send_when_told(mut sender: Sender) {
    say("ready");
    while let Some(number) = listen() {
        sender.send(&number.parse::<u64>().unwrap().to_le_bytes()).unwrap();
    }
}

/// Sends into a window whose receiver takes nothing, and so sleeps for room until that receiver is gone.
fn fill(mut sender: Sender) {
    while sender.try_send(&[1; 56]).unwrap() != Sent::Full {}
    say("waiting");
    let end = loop {
        if let Err(error) = sender.send(&[1; 56]) {
            break error;
        }
    };
    assert!(matches!(end, SendError::ReceiverGone), "{end}");
    say(&format!("end: {}", text(&end)));
}

fn serve(domain: &Domain, name: &str) {
    let (_server, mut worker) = domain.server(name).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for_end();
            // Relaxed: the worker only has to see it some time.
            stop.store(true, Ordering::Relaxed);
        });
        let mut invert = |request: &mut Request<'_>, reply: Reply<'_>| -> Replied {
            let mut bytes = vec![0; request.len()];
            request.copy_out(&mut bytes);
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
            if request.method() == INVERT { reply.send(&bytes) } else { reply.unknown_method() }
        };
        say("ready");
        worker.run(&mut invert, &WaitPolicy::default(), &stop);
    });
}

/// A server that never looks at its calls.
fn hang(domain: &Domain, name: &str) {
    let _server = domain.server(name).unwrap();
    say("ready");
    wait_for_end();
}

/// Makes calls one after the other, every byte of each answer checked.
fn call(domain: &Domain, name: &str) {
    let mut client = domain.client(name).unwrap();
    let (mut answer, mut bytes) = (Vec::new(), 0);
    for number in 0..CALLS {
        let request = payload::of(name, number, payload::LONGEST_CALL);
        client.call(INVERT, &request, &mut answer, None).unwrap();
        answer.iter_mut().for_each(|byte| *byte = !*byte);
        assert!(answer == request, "the answer to call {number} is wrong");
        bytes += answer.len();
    }
    say(&format!("{CALLS} calls, {bytes} bytes"));
}

/// Waits by descriptor for the answer to a call, which ends with the server.
fn wait_for_an_answer(domain: &Domain, name: &str) {
    let mut client = Polled::new(domain.client(name).unwrap()).unwrap();
    assert!(matches!(client.start(INVERT, b"outstanding", None).unwrap(), Started::Call(_)));
    let mut has_said = false;
    let error = loop {
        if let Some(completion) = client.poll() {
            break completion.result.err().unwrap();
        }
        if client.arm() == Armed::Wait {
            if !std::mem::replace(&mut has_said, true) {
                say("waiting");
            }
            wait_in_epoll(&client);
        }
    };
    assert!(matches!(error, CallError::ServerGone { was_sent: true, .. }), "{error}");
    say(&format!("end: {}", text(&error)));
}

/// Offers a window, also to the users that are listed, and says how that went.
fn offer(domain: &Domain, name: &str, allowed: &[&str]) {
    let allowed = allowed.iter().map(|uid| uid.parse().unwrap());
    let offered = domain.receiver_with(name, ReceiverOptions::new().allowed_uids(allowed));
    match &offered {
        Ok(_) => say("offered"),
        Err(error) => say(&format!("not offered: {}", text(error))),
    }
    wait_for_end();
}
