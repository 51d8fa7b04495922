//! Calls in lines. Segments have the names that a test gives them.

use std::collections::HashMap;
use std::time::Duration;

use beeline_fabric::{
    AdapterNumber, Call, InterruptNumber, LocalSegment, NodeId, Part, Refusal, RemoteSegment, SegmentId,
    SequenceStart, Value,
};
use beeline_fabric_bar::{
    BarConfig, BarDataInterrupt, BarDataTrigger, BarHeld, BarInterrupt, BarInterruptOptions, BarMap,
    BarMember, BarSequence, BarTrigger, NotMapped, NotTaken,
};

use super::messages::Messages;
use super::queues::Queues;
use super::say;
use super::words::number;

/// A member and what it has, by name.
struct Player {
    maps: HashMap<String, BarMap>,
    locals: HashMap<String, LocalSegment>,
    remotes: HashMap<String, RemoteSegment>,
    sequences: HashMap<String, (BarSequence, Option<SequenceStart>)>,
    interrupts: HashMap<String, BarInterrupt>,
    data_interrupts: HashMap<String, BarDataInterrupt>,
    triggers: HashMap<String, BarTrigger>,
    data_triggers: HashMap<String, BarDataTrigger>,
    messages: Messages,
    queues: Queues,
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
    let (interrupts, data_interrupts, triggers, data_triggers) = Default::default();
    let (messages, queues, member) = (Messages::default(), Queues::default(), Some(member));
    let mut player = Player {
        maps,
        locals,
        remotes,
        sequences,
        interrupts,
        data_interrupts,
        triggers,
        data_triggers,
        messages,
        queues,
        member,
    };
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        say(&player.play(&words));
    }
}

fn adapter() -> AdapterNumber {
    AdapterNumber::new(0).unwrap()
}

/// Options by words: a number or `auto`, then perhaps `group`.
pub fn interrupt_options(words: &[&str]) -> BarInterruptOptions {
    BarInterruptOptions {
        number: words.first().filter(|word| **word != "auto").map(|word| InterruptNumber(number(word))),
        is_group: words.contains(&"group"),
        ..BarInterruptOptions::default()
    }
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
            ["create-private", name, bytes] => self.create_private(name, 7, number(bytes)),
            ["create-private", name, id, bytes] => self.create_private(name, number(id), number(bytes)),
            ["reuse-of-silent"] => {
                self.member().reuse_memory_of_silent();
                "ok".to_owned()
            }
            ["prepare", name] => self.call(Call::Prepare(self.locals[name], adapter())),
            ["available", name] => self.call(Call::SetAvailable(self.locals[name], adapter())),
            ["remove", name] => self.call(Call::RemoveSegment { local: self.locals[name], is_forced: false }),
            ["remove-force", name] => {
                self.call(Call::RemoveSegment { local: self.locals[name], is_forced: true })
            }
            ["connect", name, node, id, wait] => self.connect(name, number(node), number(id), timeout(wait)),
            ["disconnect", name] => self.call(Call::Disconnect(self.remotes[name])),
            ["link", state] => self.call(Call::SetLink(adapter(), state == "up")),
            ["probe", node] => {
                said(self.member().probe(NodeId(number(node)), adapter()).map(|()| Value::Nothing))
            }
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
            ["check-once", name] => self.check_once(name),
            ["holders", name] => self.member().holders_of(self.remotes[name]).to_string(),
            ["leave"] => {
                self.member = None;
                "ok".to_owned()
            }
            ["work", rounds] => self.work(number(rounds)),
            _ => {
                let said = self.play_held(words).or_else(|| self.play_interrupt(words)).or_else(|| {
                    let Player { messages, queues, member, .. } = self;
                    let member = member.as_ref().unwrap();
                    messages.play(member, words).or_else(|| queues.play(member, words))
                });
                said.unwrap_or_else(|| panic!("{words:?} is no call"))
            }
        }
    }

    fn play_held(&mut self, words: &[&str]) -> Option<String> {
        Some(match *words {
            ["join", name, id, bytes] => self.join(name, number(id), number(bytes)),
            ["share", name] => said(self.member().share(self.locals[name]).map(|()| Value::Nothing)),
            ["attach", name, id] => {
                let held = self.member().attach(SegmentId(number(id)));
                self.held(name, held)
            }
            _ => return None,
        })
    }

    fn play_interrupt(&mut self, words: &[&str]) -> Option<String> {
        let time = |word: &str| timeout(word).map(Duration::from_nanos);
        let no = |word: &str| InterruptNumber(number(word));
        Some(match *words {
            ["interrupt", name, kind, id] => {
                let (is_counting, is_shared) = (kind.ends_with("counting"), kind.starts_with("shared"));
                let number = Some(no(id));
                let options = BarInterruptOptions { number, is_counting, is_shared, ..Default::default() };
                if kind == "data" {
                    let made = self.member().create_data_interrupt(options);
                    made.map(|it| self.data_interrupts.insert(name.to_owned(), it)).map(drop)
                } else {
                    let made = self.member().create_interrupt(options);
                    made.map(|it| self.interrupts.insert(name.to_owned(), it)).map(drop)
                }
                .map_or_else(|refusal| format!("{refusal:?}"), |()| "ok".to_owned())
            }
            ["hook", name, "data", node, id, wait] => {
                let node = NodeId(number(node));
                let made = self.member().connect_data_interrupt(node, no(id), adapter(), time(wait));
                let made = made.map(|it| self.data_triggers.insert(name.to_owned(), it)).map(drop);
                made.map_or_else(|refusal| format!("{refusal:?}"), |()| "ok".to_owned())
            }
            ["hook", name, _, node, id, wait] => {
                let node = NodeId(number(node));
                let made = self.member().connect_interrupt(node, no(id), adapter(), time(wait));
                let made = made.map(|it| self.triggers.insert(name.to_owned(), it)).map(drop);
                made.map_or_else(|refusal| format!("{refusal:?}"), |()| "ok".to_owned())
            }
            ["trigger", name] => said(self.triggers[name].trigger().map(|()| Value::Nothing)),
            ["send", name, text] => {
                let sent = self.data_triggers[name].trigger(text.as_bytes());
                said(sent.map(|()| Value::Nothing))
            }
            ["send-long", name, bytes] => {
                let sent = self.data_triggers[name].trigger(&vec![b'x'; number(bytes)]);
                said(sent.map(|()| Value::Nothing))
            }
            ["take", name, wait] => said(self.interrupts[name].wait(time(wait)).map(|()| Value::Nothing)),
            ["receive", name, bytes, wait] => {
                let mut buffer = vec![0; number(bytes)];
                match self.data_interrupts[name].wait(&mut buffer, time(wait)) {
                    Ok(bytes) if bytes > 100 => format!("{bytes} bytes"),
                    Ok(bytes) => String::from_utf8_lossy(&buffer[..bytes]).into_owned(),
                    Err(NotTaken::Refused(refusal)) => format!("{refusal:?}"),
                    Err(other) => format!("{other:?}"),
                }
            }
            ["unhook", name] => {
                self.triggers.remove(name);
                self.data_triggers.remove(name);
                "ok".to_owned()
            }
            ["end", name] => {
                self.interrupts.remove(name);
                self.data_interrupts.remove(name);
                "ok".to_owned()
            }
            _ => return None,
        })
    }

    /// Makes every call over and over, whatever is answered: nothing that is in the memory may be true. Says how many were not refused.
    fn work(&mut self, rounds: u32) -> String {
        let mut done = 0;
        for round in 0..rounds {
            let id = round % 3;
            for line in [
                format!("create s {id} 3000"),
                "prepare s".to_owned(),
                "available s".to_owned(),
                "share s".to_owned(),
                format!("attach a {id}"),
                "map-local a 0 3000".to_owned(),
                "store a 0 something".to_owned(),
                "unmap a".to_owned(),
                "remove-force a".to_owned(),
                format!("interrupt i plain {id}"),
                format!("interrupt d data {id}"),
                format!("interrupt m shared {}", id + 3),
                format!("data-interrupt n {id} group"),
                format!("connect r 4 {id} 2"),
                format!("connect r 8 {id} 2"),
                format!("join g {id} 3000"),
                "prepare g".to_owned(),
                "available g".to_owned(),
                format!("connect w 252 {id} 2"),
                "map-local g 0 3000".to_owned(),
                "map-remote w 0 3000".to_owned(),
                "store g 0 something".to_owned(),
                "store w 2000 something".to_owned(),
                "check-once w".to_owned(),
                "map-local s 0 3000".to_owned(),
                "map-remote r 0 3000".to_owned(),
                "start r".to_owned(),
                format!("hook t plain 4 {id} 2"),
                format!("hook t data 8 {id} 2"),
                format!("hook u shared 4 {} 2", id + 3),
                format!("data-trigger-of v 252 {id} 2000"),
                "store s 0 something".to_owned(),
                "check r".to_owned(),
                "load r 2000 1000".to_owned(),
                "trigger t".to_owned(),
                "trigger u".to_owned(),
                "send t message".to_owned(),
                "trigger-data v message 2000".to_owned(),
                "take i 1".to_owned(),
                "receive d 2048 1".to_owned(),
                "wait-data n 2048 1000".to_owned(),
                "wait-local s 1".to_owned(),
                "wait-remote r 1".to_owned(),
                "unhook t".to_owned(),
                "unhook u".to_owned(),
                "untrigger v".to_owned(),
                "unmap w".to_owned(),
                "unmap g".to_owned(),
                "disconnect w".to_owned(),
                "remove-force g".to_owned(),
                "unmap r".to_owned(),
                "unmap s".to_owned(),
                "disconnect r".to_owned(),
                "remove-force s".to_owned(),
                "end i".to_owned(),
                "end d".to_owned(),
            ] {
                let words: Vec<&str> = line.split_whitespace().collect();
                if self.has(&words) {
                    done += u32::from(self.play(&words).starts_with("ok"));
                }
            }
        }
        format!("worked {done}")
    }

    /// Whether what a call is about was made.
    fn has(&self, words: &[&str]) -> bool {
        match *words {
            ["prepare" | "available" | "share" | "map-local" | "wait-local" | "remove-force", name, ..] => {
                self.locals.contains_key(name)
            }
            ["map-remote" | "start" | "check-once" | "wait-remote" | "disconnect", name, ..] => {
                self.remotes.contains_key(name)
            }
            ["store" | "load", name, ..] => self.maps.contains_key(name),
            ["check", name] => self.sequences.get(name).is_some_and(|(_, start)| start.is_some()),
            ["trigger", name] => self.triggers.contains_key(name),
            ["send", name, _] => self.data_triggers.contains_key(name),
            ["trigger-data", name, ..] => self.messages.has_trigger(name),
            ["wait-data", name, ..] => self.messages.has_own(name),
            ["take", name, _] => self.interrupts.contains_key(name),
            ["receive", name, ..] => self.data_interrupts.contains_key(name),
            _ => true,
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

    fn join(&mut self, name: &str, id: u32, bytes: u64) -> String {
        let held = self.member().join_group(SegmentId(id), bytes);
        self.held(name, held)
    }

    fn held(&mut self, name: &str, held: Result<BarHeld, Refusal>) -> String {
        match held {
            Ok(BarHeld { local, bytes, is_first }) => {
                self.locals.insert(name.to_owned(), local);
                format!("{} {bytes}", if is_first { "first" } else { "ok" })
            }
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    /// What a sequence finds that begins and ends at this moment.
    fn check_once(&self, name: &str) -> String {
        let sequence = match self.member().sequence(self.remotes[name]) {
            Ok(sequence) => sequence,
            Err(refusal) => return format!("{refusal:?}"),
        };
        match sequence.start() {
            (_, Some(start)) => format!("{:?}", sequence.check(start)),
            (status, None) => format!("{status:?}"),
        }
    }

    fn create_private(&mut self, name: &str, id: u32, bytes: u64) -> String {
        let (id, is_auto, is_private, is_empty, has_callback) = (SegmentId(id), false, true, false, false);
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
