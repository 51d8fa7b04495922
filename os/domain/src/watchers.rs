//! Who is told when a peer wakes this side or goes: flags that are slept on, and events that are listened to.
//!
//! One peer may have ten thousand windows, each with a sleeper, and all of them wait by one event: a watcher comes and goes
//! without a look at the others, and an event is signalled once however many of them share it.

use std::collections::{BTreeMap, HashMap};

use beeline_mmio::Flag;

use crate::Event;
use crate::event::EventKey;

/// The watchers of one peer, each with a number to remove it by.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    next: u64,
    flags: BTreeMap<u64, Flag>,
    listeners: BTreeMap<u64, EventKey>,
    events: HashMap<EventKey, Listened>,
}

#[derive(Debug)]
struct Listened {
    event: Event,
    listeners: usize,
}

impl Watchers {
    /// Adds a flag that is slept on.
    pub(crate) fn add_flag(&mut self, flag: &Flag) -> u64 {
        let number = self.number();
        self.flags.insert(number, flag.clone());
        number
    }

    /// Adds a listener; several may have the same event.
    pub(crate) fn add_event(&mut self, event: &Event) -> u64 {
        let (number, key) = (self.number(), event.key());
        self.listeners.insert(number, key);
        let new = || Listened { event: event.clone(), listeners: 0 };
        self.events.entry(key).or_insert_with(new).listeners += 1;
        number
    }

    fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Forgets a watcher; one that was removed before is none.
    pub(crate) fn remove(&mut self, number: u64) {
        self.flags.remove(&number);
        let Some(key) = self.listeners.remove(&number) else { return };
        if let Some(listened) = self.events.get_mut(&key) {
            listened.listeners -= 1;
            if listened.listeners == 0 {
                self.events.remove(&key);
            }
        }
    }

    /// The flags that are slept on.
    pub(crate) fn flags(&self) -> impl Iterator<Item = &Flag> {
        self.flags.values()
    }

    /// The events that are listened to, each once.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.values().map(|listened| &listened.event)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::time::{Duration, Instant};

    use beeline_mmio::Region;

    use super::*;

    #[test]
    fn event_is_there_once_until_its_last_listener_goes() {
        let (one, other) = (Event::new().unwrap(), Event::new().unwrap());
        let mut watchers = Watchers::default();
        let numbers = [&one, &one.clone(), &other].map(|event| watchers.add_event(event));
        assert_eq!(watchers.events().count(), 2);
        watchers.remove(numbers[0]);
        watchers.remove(numbers[0]);
        watchers.remove(numbers[2]);
        assert!(watchers.events().all(|event| event.is_same(&one)) && watchers.events().count() == 1);
        watchers.remove(numbers[1]);
        assert_eq!(watchers.events().count(), 0);
    }

    /// A search through the others for each that goes would be five thousand million steps.
    #[test]
    fn watchers_come_and_go_however_many_there_are() {
        let flag = Region::private(64).flag(0);
        let event = Event::new().unwrap();
        let mut watchers = Watchers::default();
        let started = Instant::now();
        let numbers: Vec<[u64; 2]> =
            (0..100_000).map(|_| [watchers.add_flag(&flag), watchers.add_event(&event)]).collect();
        assert_eq!((watchers.flags().count(), watchers.events().count()), (100_000, 1));
        numbers.into_iter().rev().flatten().for_each(|number| watchers.remove(number));
        assert_eq!((watchers.flags().count(), watchers.events().count()), (0, 0));
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
