//! Calls in lines. Segments have the names that a test gives them.

use std::collections::HashMap;

use beeline_fabric::{
    AdapterNumber, Call, LocalSegment, NodeId, Part, Refusal, RemoteSegment, SegmentId, SequenceStart, Value,
};
use beeline_fabric_bar::{BarConfig, BarMap, BarMember, BarSequence, NotMapped};

use super::say;

/// A member and what it has, by name.
struct Player {
    maps: HashMap<String, BarMap>,
    locals: HashMap<String, LocalSegment>,
    remotes: HashMap<String, RemoteSegment>,
    sequences: HashMap<String, (BarSequence, Option<SequenceStart>)>,
    /// Nothing once it has left.
    member: Option<BarMember>,
}

pub fn run(config: BarConfig) {
    let member = match BarMember::open(config) {
        Ok(member) => member,
        Err(error) => return say(&format!("not joined: {error}")),
    };
    say(&format!("joined {}", member.slot()));
    let (maps, locals, remotes, sequences) = Default::default();
    let mut player = Player { maps, locals, remotes, sequences, member: Some(member) };
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        say(&player.play(&words));
    }
}

fn adapter() -> AdapterNumber {
    AdapterNumber::new(0).unwrap()
}

fn number<T: std::str::FromStr>(word: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    word.parse().unwrap()
}

/// Milliseconds, or `forever`.
fn timeout(word: &str) -> Option<u64> {
    (word != "forever").then(|| number::<u64>(word) * 1_000_000)
}

fn said(outcome: Result<Value, Refusal>) -> String {
    match outcome {
        Ok(Value::Nothing) => "ok".to_owned(),
        Ok(Value::Local(_, id)) => format!("ok {}", id.0),
        Ok(Value::Remote(_, bytes)) => format!("ok {bytes}"),
        Ok(Value::LocalEvent(event)) => format!("{event:?}"),
        Ok(Value::RemoteEvent(event)) => format!("{event:?}"),
        Ok(other) => format!("{other:?}"),
        Err(refusal) => format!("{refusal:?}"),
    }
}

impl Player {
    fn member(&self) -> &BarMember {
        self.member.as_ref().unwrap()
    }

    fn call(&self, call: Call) -> String {
        said(self.member().call(call))
    }

    fn play(&mut self, words: &[&str]) -> String {
        match *words {
            ["create", name, id, bytes] => self.create(name, number(id), false, number(bytes)),
            ["create-auto", name, id, bytes] => self.create(name, number(id), true, number(bytes)),
            ["prepare", name] => self.call(Call::Prepare(self.locals[name], adapter())),
            ["available", name] => self.call(Call::SetAvailable(self.locals[name], adapter())),
            ["remove", name] => self.call(Call::RemoveSegment { local: self.locals[name], is_forced: false }),
            ["remove-force", name] => {
                self.call(Call::RemoveSegment { local: self.locals[name], is_forced: true })
            }
            ["connect", name, node, id, wait] => self.connect(name, number(node), number(id), timeout(wait)),
            ["disconnect", name] => self.call(Call::Disconnect(self.remotes[name])),
            ["link", state] => self.call(Call::SetLink(adapter(), state == "up")),
            ["probe", node] => said(self.member().probe(NodeId(number(node))).map(|()| Value::Nothing)),
            ["wait-local", name, wait] => {
                self.call(Call::WaitLocal { local: self.locals[name], timeout_nanos: timeout(wait) })
            }
            ["wait-remote", name, wait] => {
                self.call(Call::WaitRemote { remote: self.remotes[name], timeout_nanos: timeout(wait) })
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
                let stored = self.maps[name].copy_in(number(offset), text.as_bytes());
                stored.map_or_else(|error| format!("{error:?}"), |()| "ok".to_owned())
            }
            ["load", name, offset, bytes] => self.load(name, number(offset), number(bytes)),
            ["start", name] => {
                let sequence = match self.member().sequence(self.remotes[name]) {
                    Ok(sequence) => sequence,
                    Err(refusal) => return format!("{refusal:?}"),
                };
                let (status, start) = sequence.start();
                self.sequences.insert(name.to_owned(), (sequence, start));
                format!("{status:?}")
            }
            ["check", name] => {
                let (sequence, start) = &self.sequences[name];
                format!("{:?}", sequence.check(start.unwrap()))
            }
            ["leave"] => {
                self.member = None;
                "ok".to_owned()
            }
            _ => panic!("{words:?} is no call"),
        }
    }

    fn create(&mut self, name: &str, id: u32, is_auto: bool, bytes: u64) -> String {
        let (id, is_private, is_empty, has_callback) = (SegmentId(id), false, false, false);
        let create = Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback };
        let outcome = self.member().call(create);
        if let Ok(Value::Local(local, _)) = outcome {
            self.locals.insert(name.to_owned(), local);
        }
        said(outcome)
    }

    fn connect(&mut self, name: &str, node: u16, id: u32, timeout_nanos: Option<u64>) -> String {
        let (node, id, adapter) = (NodeId(node), SegmentId(id), adapter());
        let (is_asynchronous, has_callback) = (false, false);
        let connect = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
        let outcome = self.member().call(connect);
        if let Ok(Value::Remote(remote, _)) = outcome {
            self.remotes.insert(name.to_owned(), remote);
        }
        said(outcome)
    }

    fn mapped(&mut self, name: &str, map: Result<BarMap, NotMapped>) -> String {
        match map {
            Ok(map) => {
                let bytes = map.bytes();
                self.maps.insert(name.to_owned(), map);
                format!("ok {bytes}")
            }
            Err(NotMapped::Refused(refusal)) => format!("{refusal:?}"),
            Err(other) => format!("{other:?}"),
        }
    }

    fn load(&self, name: &str, offset: usize, bytes: usize) -> String {
        let mut loaded = vec![0; bytes];
        match self.maps[name].copy_out(offset, &mut loaded) {
            Ok(()) => loaded.into_iter().map(|byte| if byte == 0 { '.' } else { byte as char }).collect(),
            Err(error) => format!("{error:?}"),
        }
    }
}

fn part(offset: &str, bytes: &str) -> Part {
    Part { offset: number(offset), bytes: number(bytes) }
}
