//! Calls in lines. Segments have the names that a test gives them.

use std::collections::HashMap;
use std::time::Duration;

use beeline_fabric::{
    AdapterNumber, Call, LocalSegment, NodeId, Part, Refusal, RemoteSegment, SegmentId, SequenceStart,
    SequenceStatus, Told, Value,
};
use beeline_fabric_process::{FabricConfig, FabricMember, Held, Map, NotMapped, Sequence};

use super::interrupts::Interrupts;
use super::joining::join;
use super::queues::Queues;
use super::say;
use super::segments::create_own;
use super::stream::write;
use super::words::{number, timeout};

/// A member and what it has, by name.
struct Player {
    // Before the member, which they are of.
    maps: HashMap<String, Map>,
    interrupts: Interrupts,
    queues: Queues,
    locals: HashMap<String, LocalSegment>,
    remotes: HashMap<String, RemoteSegment>,
    sequences: HashMap<String, (Sequence, Option<SequenceStart>)>,
    /// Nothing in a child that has dropped it.
    member: Option<FabricMember>,
    config: FabricConfig,
    /// By which calls are made.
    adapter: AdapterNumber,
}

pub fn run(config: FabricConfig) {
    let member = FabricMember::open(config.clone()).unwrap();
    let (maps, locals) = (HashMap::new(), HashMap::new());
    let (remotes, sequences) = (HashMap::new(), HashMap::new());
    let (interrupts, queues) = (Interrupts::default(), Queues::default());
    let mut player = Player {
        maps,
        interrupts,
        queues,
        locals,
        remotes,
        sequences,
        member: Some(member),
        config,
        adapter: first_adapter(),
    };
    say("joined");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        say(&player.play(&words));
    }
}

fn timeout_nanos(word: &str) -> Option<u64> {
    timeout(word).map(|timeout| u64::try_from(timeout.as_nanos()).unwrap())
}

fn first_adapter() -> AdapterNumber {
    AdapterNumber::new(0).unwrap()
}

/// What a call gives, in a word or two.
fn said(outcome: Result<Value, Refusal>) -> String {
    match outcome {
        Ok(Value::Nothing) => "ok".to_owned(),
        Ok(Value::Local(_, id)) => format!("ok {}", id.0),
        Ok(Value::Remote(_, bytes)) => format!("ok {bytes}"),
        Ok(Value::LocalEvent(event)) => format!("{event:?}"),
        Ok(Value::RemoteEvent(event)) => format!("{event:?}"),
        Ok(Value::Checked(status)) | Ok(Value::Started(status, _)) => format!("{status:?}"),
        Ok(other) => format!("{other:?}"),
        Err(refusal) => format!("{refusal:?}"),
    }
}

impl Player {
    fn play(&mut self, words: &[&str]) -> String {
        match *words {
            ["create", name, id, bytes] => self.create(name, number(id), false, number(bytes)),
            ["create-auto", name, id, bytes] => self.create(name, number(id), true, number(bytes)),
            ["create-private", name, bytes] => self.create_as(name, 7, (false, true), number(bytes)),
            ["create-own", name, id, bytes] => self.create_own(name, number(id), number(bytes)),
            ["join", name, id, bytes] => {
                let held = self.member().join_group(SegmentId(number(id)), number(bytes));
                self.held(name, held)
            }
            ["attach", name, id] => {
                let held = self.member().attach(SegmentId(number(id)));
                self.held(name, held)
            }
            ["share", name] => said(self.member().share(self.locals[name]).map(|()| Value::Nothing)),
            ["holders", name] => self.member().holders_of(self.remotes[name]).to_string(),
            ["connect", name, node, id, wait] => self.connect(name, [node, id], self.adapter, wait),
            ["connect-any", name, node, id] => self.connect(name, [node, id], AdapterNumber::ANY, "0"),
            ["stream", name, retried] => self.stream(name, number(retried)),
            ["prepare", name] => self.call(Call::Prepare(self.locals[name], self.adapter)),
            ["available", name] => self.call(Call::SetAvailable(self.locals[name], self.adapter)),
            ["unavailable", name] => self.set_unavailable(name, false),
            ["unavailable-force", name] => self.set_unavailable(name, true),
            ["notify", name] => self.call(Call::Notify(self.locals[name])),
            ["remove", name] => self.remove(name, false),
            ["remove-force", name] => self.remove(name, true),
            ["disconnect", name] => self.call(Call::Disconnect(self.remotes[name])),
            ["link", "up"] => self.call(Call::SetLink(self.adapter, true)),
            ["link", "down"] => self.call(Call::SetLink(self.adapter, false)),
            ["start", name] => self.start(name),
            ["check", name] => self.check(name),
            // Where a holder may just have died, two checks need not find the same.
            ["check-once", name] => {
                let (sequence, start) = &self.sequences[name];
                format!("{:?}", sequence.check(start.unwrap()))
            }
            ["sequence", name] => self.sequence(name),
            ["wait-local", name, wait] => {
                self.call(Call::WaitLocal { local: self.locals[name], timeout_nanos: timeout_nanos(wait) })
            }
            ["wait-remote", name, wait] => {
                self.call(Call::WaitRemote { remote: self.remotes[name], timeout_nanos: timeout_nanos(wait) })
            }
            ["map-local", name, offset, bytes] => {
                let map = self.member().map_local(self.locals[name], part(offset, bytes));
                self.mapped(name, map)
            }
            ["map-remote", name, offset, bytes] => {
                let map = self.member().map_remote(self.remotes[name], part(offset, bytes));
                self.mapped(name, map)
            }
            ["unmap", name] => self.maps.remove(name).map_or("nothing", |_| "ok").to_owned(),
            ["store", name, offset, text] => {
                self.maps[name].copy_in(number(offset), text.as_bytes()).unwrap();
                "ok".to_owned()
            }
            ["load", name, offset, bytes] => self.load(name, number(offset), number(bytes)),
            ["event"] => self.event(),
            ["fork", name] => self.fork(self.locals[name]),
            ["fork-checks", name] => self.fork_checks(name),
            ["joins", rounds] => join(&self.config, number(rounds)),
            ["churn", id] => self.churn(number(id)),
            ["adapter" | "again" | "look", ..] => self.around(words),
            _ => {
                let member = self.member.as_ref().unwrap();
                let said = self.interrupts.play(member, words).or_else(|| self.queues.play(member, words));
                said.unwrap_or_else(|| panic!("{words:?} is no call"))
            }
        }
    }

    /// What is no call of the fabric.
    fn around(&mut self, words: &[&str]) -> String {
        match *words {
            ["adapter", "any"] => self.adapter = AdapterNumber::ANY,
            ["adapter", by] => self.adapter = AdapterNumber::new(number(by)).unwrap(),
            ["again"] => return self.again(),
            _ => assert_eq!(self.member().next_event(), None),
        }
        "ok".to_owned()
    }

    /// Leaves, and joins as another member.
    fn again(&mut self) -> String {
        self.maps.clear();
        (self.sequences, self.locals, self.remotes) = Default::default();
        self.member = None;
        self.member = Some(FabricMember::open(self.config.clone()).unwrap());
        "ok".to_owned()
    }

    fn member(&self) -> &FabricMember {
        self.member.as_ref().unwrap()
    }

    fn call(&self, call: Call) -> String {
        said(self.member().call(call))
    }

    fn create(&mut self, name: &str, id: u32, is_auto: bool, bytes: u64) -> String {
        self.create_as(name, id, (is_auto, false), bytes)
    }

    fn create_as(&mut self, name: &str, id: u32, (is_auto, is_private): (bool, bool), bytes: u64) -> String {
        let (is_empty, has_callback) = (false, false);
        let id = SegmentId(id);
        let outcome = self.member().call(Call::CreateSegment {
            id,
            is_auto,
            bytes,
            is_private,
            is_empty,
            has_callback,
        });
        if let Ok(Value::Local(local, _)) = outcome {
            self.locals.insert(name.to_owned(), local);
        }
        said(outcome)
    }

    fn held(&mut self, name: &str, held: Result<Held, Refusal>) -> String {
        match held {
            Ok(held) => {
                self.locals.insert(name.to_owned(), held.local);
                format!("{} {}", if held.is_first { "first" } else { "ok" }, held.bytes)
            }
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    /// Makes a segment that has its memory alone.
    fn create_own(&mut self, name: &str, id: u32, bytes: usize) -> String {
        match create_own(self.member(), id, bytes) {
            Ok(local) => {
                self.locals.insert(name.to_owned(), local);
                format!("ok {id}")
            }
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    fn connect(&mut self, name: &str, at: [&str; 2], adapter: AdapterNumber, wait: &str) -> String {
        let (is_asynchronous, has_callback) = (false, false);
        let (node, id) = (NodeId(number(at[0])), SegmentId(number(at[1])));
        let timeout_nanos = timeout_nanos(wait);
        let outcome = self.member().call(Call::Connect {
            node,
            id,
            adapter,
            timeout_nanos,
            is_asynchronous,
            has_callback,
        });
        if let Ok(Value::Remote(remote, _)) = outcome {
            self.remotes.insert(name.to_owned(), remote);
        }
        said(outcome)
    }

    fn stream(&self, name: &str, retried: u64) -> String {
        let sequence = self.member().sequence(self.remotes[name]).unwrap();
        write(&self.maps[name], &sequence, retried)
    }

    fn set_unavailable(&self, name: &str, is_forced: bool) -> String {
        self.call(Call::SetUnavailable { local: self.locals[name], adapter: self.adapter, is_forced })
    }

    fn remove(&self, name: &str, is_forced: bool) -> String {
        self.call(Call::RemoveSegment { local: self.locals[name], is_forced })
    }

    /// Makes the means to check a connection, which is not started.
    fn sequence(&mut self, name: &str) -> String {
        match self.member().sequence(self.remotes[name]) {
            Ok(sequence) => {
                self.sequences.insert(name.to_owned(), (sequence, None));
                "ok".to_owned()
            }
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    fn start(&mut self, name: &str) -> String {
        if !self.sequences.contains_key(name) {
            let made = self.sequence(name);
            assert_eq!(made, "ok");
        }
        said_by_both(|| {
            let by_call = self.call(Call::StartSequence(self.remotes[name]));
            let (sequence, started) = self.sequences.get_mut(name).unwrap();
            let (status, start) = sequence.start();
            *started = start.or(*started);
            (by_call, format!("{status:?}"))
        })
    }

    /// What the words of a connection say. The member's answer to the same question is the same once it has looked.
    fn check(&self, name: &str) -> String {
        let (sequence, start) = &self.sequences[name];
        let start = start.expect("a sequence is started");
        said_by_both(|| {
            let status = sequence.check(start);
            let unflushed = sequence.check_unflushed(start);
            let by_call = self.call(Call::CheckSequence(self.remotes[name], start));
            (
                by_call,
                if unflushed == status {
                    format!("{status:?}")
                } else {
                    format!("{status:?}, {unflushed:?}")
                },
            )
        })
    }

    fn mapped(&mut self, name: &str, map: Result<Map, NotMapped>) -> String {
        match map {
            Ok(map) => {
                let bytes = map.bytes();
                self.maps.insert(name.to_owned(), map);
                format!("ok {bytes}")
            }
            Err(NotMapped::Refused(refusal)) => format!("{refusal:?}"),
            Err(error) => error.to_string(),
        }
    }

    fn load(&self, name: &str, offset: usize, bytes: usize) -> String {
        let mut into = vec![0; bytes];
        self.maps[name].copy_out(offset, &mut into).unwrap();
        into.iter().map(|byte| if *byte == 0 { '.' } else { char::from(*byte) }).collect()
    }

    /// Has a child make calls, and drop what it has of its parent's.
    fn fork(&mut self, local: LocalSegment) -> String {
        match fork::fork().unwrap() {
            fork::Fork::Child => {
                let refused = [
                    self.member().call(Call::RemoveSegment { local, is_forced: true }),
                    self.member().call(Call::SetLink(self.adapter, false)),
                ];
                self.maps.clear();
                let is_mapped = self.member().map_local(local, part("0", "8")).is_ok();
                let is_right = refused == [Err(Refusal::System); 2] && !is_mapped;
                self.member = None;
                std::process::exit(if is_right { 0 } else { 1 })
            }
            fork::Fork::Parent(child) => format!("ended {}", fork::waitpid(child).unwrap()),
        }
    }

    /// Has a child check a sequence of its parent's, of whose words it has none.
    fn fork_checks(&self, name: &str) -> String {
        let (sequence, start) = &self.sequences[name];
        match fork::fork().unwrap() {
            fork::Fork::Child => {
                let lost = SequenceStatus::NotRetriable;
                let is_right = sequence.check(start.unwrap()) == lost && sequence.start() == (lost, None);
                std::process::exit(if is_right { 0 } else { 1 })
            }
            fork::Fork::Parent(child) => format!("ended {}", fork::waitpid(child).unwrap()),
        }
    }

    /// Makes, uses and removes segments, its own and that of number `id` of node 4, until it is killed.
    fn churn(&mut self, id: u32) -> String {
        loop {
            let own = self.create("own", 100, true, 50_000);
            assert!(own.starts_with("ok"), "{own}");
            for line in
                ["prepare own", "available own", "map-local own 0 50000", "unmap own", "unavailable own"]
            {
                let outcome = self.play(&line.split(' ').collect::<Vec<_>>());
                assert!(outcome.starts_with("ok"), "{line}: {outcome}");
            }
            let connected = self.connect("s", ["4", &id.to_string()], self.adapter, "0");
            assert!(connected.starts_with("ok"), "{connected}");
            for line in ["map-remote s 0 8", "store s 0 stored", "unmap s", "disconnect s", "remove own"] {
                let outcome = self.play(&line.split(' ').collect::<Vec<_>>());
                assert!(outcome.starts_with("ok"), "{line}: {outcome}");
            }
        }
    }

    /// The next event of something with a callback, which the test's watchdog waits for.
    fn event(&self) -> String {
        loop {
            match self.member().next_event() {
                Some(Told::OfLocal(_, event)) => return format!("{event:?}"),
                Some(Told::OfRemote(_, event)) => return format!("{event:?}"),
                Some(Told::Outcome(..)) => panic!("calls take their outcomes"),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

fn part(offset: &str, bytes: &str) -> Part {
    Part { offset: number(offset), bytes: number(bytes) }
}

/// What two ways to ask for the same words say. The other members may change those between the two looks, and do not each time.
fn said_by_both(mut ask: impl FnMut() -> (String, String)) -> String {
    const LOOKS: usize = 10;
    let mut last = ask();
    for _ in 1..LOOKS {
        if last.0 == last.1 {
            break;
        }
        last = ask();
    }
    assert_eq!(last.0, last.1, "both know the same words");
    last.0
}
