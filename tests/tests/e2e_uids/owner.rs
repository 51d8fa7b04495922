//! The owner: it offers a window, an arena and notifications, admits clients as the test says, and checks every item.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use beeline::{
    Admissions, Answer, ArenaOptions, Domain, MemberId, Notified, NotifierEvent, NotifierOptions, OtherEnd,
    ReceiverOptions, ReceiverSet, RecvError,
};

use crate::admission::{Admission, NEVER};
use crate::client::SESSIONS;
use crate::e2e_support::items::{Items, notification};
use crate::e2e_support::users::ALLOWED;
use crate::e2e_support::{PAUSE, say, stop_flag};

/// Notifications to one subscriber in one turn of the loop.
const BURST: usize = 8;

/// Lets in who has the other end of a connection, until the connection ends.
fn let_in(admission: Admission, admissions: &Admissions, connection: &OwnedFd) {
    let mut admitted = Vec::new();
    if admission.has_token() {
        // As many as are wanted: each is good once.
        while let Ok(token) = admissions.admit_other_side(connection, NEVER) {
            admitted.push(token);
        }
        return;
    }
    // Nobody has the other end of a connection whose process was killed.
    let Ok(other_end) = OtherEnd::of_tcp(connection) else { return };
    assert_eq!(other_end.uid(), ALLOWED);
    admitted.push(admissions.admit(other_end).unwrap());
    // The other side waits for this byte, or was killed.
    let _ = rustix::io::write(connection, b"!");
    while rustix::io::read(connection, &mut [0; 16]).is_ok_and(|bytes| bytes > 0) {}
}

/// What comes by windows of an arena.
struct Sessions {
    set: ReceiverSet,
    items: HashMap<MemberId, Items>,
}

impl Sessions {
    fn offer(domain: &Domain, options: ArenaOptions) -> Self {
        let mut set = ReceiverSet::new();
        set.set_arena(Some(domain.receiver_arena_with("sessions", options).unwrap()));
        Sessions { set, items: HashMap::new() }
    }

    fn receive(&mut self) {
        let Sessions { set, items } = self;
        for _ in 0..BURST {
            let check = |member, message: beeline::MessageRef<'_>| {
                items.entry(member).or_default().check(&bytes(message))
            };
            match set.drain(64, check) {
                Ok(_) => return,
                Err(ended) if matches!(ended.error, RecvError::SenderGone | RecvError::Torn(_)) => {
                    items.remove(&ended.member);
                }
                Err(ended) => panic!("{ended}"),
            }
        }
    }
}

fn bytes(mut message: beeline::MessageRef<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.copy_to(&mut bytes);
    bytes
}

/// Plays the owner until the test hangs up.
pub fn run() {
    let (stop, admission) = (stop_flag(), Admission::of_role());
    let (root, name) = admission.domain();
    let domain = Domain::open_in(root, &name).unwrap();
    let admissions = Admissions::new();
    let listed = (admission == Admission::Listed).then_some(ALLOWED);
    let options = ReceiverOptions::new().lines(64).allowed_uids(listed).admissions(&admissions);
    let mut receiver = domain.receiver_with("window", options).unwrap();
    let options = NotifierOptions::new().allowed_uids(listed).admissions(&admissions);
    let notifier = domain.notifier_with("told", options, |_, request, _| Ok(Answer::new(request))).unwrap();
    let options = ArenaOptions::new().windows(SESSIONS as u32).bytes(1 << 20).allowed_uids(listed);
    let mut sessions = Sessions::offer(&domain, options.admissions(&admissions));
    let (port, connections) = admission.connections();
    std::thread::spawn(move || {
        connections.for_each(|connection| let_in(admission, &admissions, &connection));
    });
    say(&format!("ready {port}"));
    let (mut items, mut subscribers) = (Items::default(), BTreeMap::new());
    while !stop.load(Ordering::Relaxed) {
        items.receive(&mut receiver);
        sessions.receive();
        while let Some(event) = notifier.try_event() {
            let subscriber = event.subscriber().clone();
            let pid = subscriber.pid().unwrap();
            match event {
                NotifierEvent::Joined(_) => {
                    assert_eq!(subscriber.uid(), ALLOWED);
                    say(&format!("came {pid}"));
                    subscribers.insert(subscriber.id(), (subscriber, 0));
                }
                NotifierEvent::Left(_) => {
                    assert!(subscribers.remove(&subscriber.id()).is_some(), "a departure of nobody");
                    say(&format!("left {pid}"));
                }
                _ => {}
            }
        }
        for (subscriber, told) in subscribers.values_mut() {
            for _ in 0..BURST {
                // One that goes is taken off the list when its departure is known.
                if !matches!(subscriber.notify(&notification(*told), &[]), Ok(Notified::Accepted)) {
                    break;
                }
                *told += 1;
            }
        }
        std::thread::sleep(PAUSE);
    }
}
