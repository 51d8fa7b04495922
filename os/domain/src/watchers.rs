//! Who is told when a peer wakes this side or goes: flags that are slept on, and events that are listened to.
//!
//! One peer may have ten thousand windows, each with a sleeper, and all of them wait by one event: a watcher comes and goes
//! without a look at the others, and an event is signalled once however many of them share it. An event of one window is signalled
//! when that window's flag was taken.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use beeline_mmio::Flag;

use crate::Event;
use crate::event::EventKey;
use crate::protocol;
use crate::sync::{AtomicBool, Ordering};

/// The watchers of one peer, each with a number to remove it by.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    next: u64,
    flags: BTreeMap<u64, Flag>,
    /// Those that are slept on for rings.
    rung: BTreeMap<u64, Flag>,
    listeners: BTreeMap<u64, Listener>,
    events: HashMap<EventKey, Listened>,
    /// The flags that are listened on, by their addresses.
    words: HashMap<usize, Sharing>,
}

/// Who waits by descriptor for what its flag is taken after.
#[derive(Clone, Debug)]
struct Listener {
    event: EventKey,
    flag: Flag,
    /// Whether it has announced itself since it was last signalled.
    is_armed: Arc<AtomicBool>,
    /// Whether others listen with the same flag, or did: one that announces itself again hides that another's bit was taken.
    is_shared: Arc<AtomicBool>,
}

impl Listener {
    fn is_taken(&self) -> bool {
        let is_taken = protocol::is_to_be_signalled(&self.flag, &self.is_armed);
        // Relaxed: it changes under the lock of all watchers.
        is_taken || self.is_shared.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Sharing {
    listeners: usize,
    is_shared: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Listened {
    event: Event,
    listeners: usize,
    /// The only one there has been. An event of several is signalled without a look at each of them, however many there are.
    only: Option<Listener>,
}

impl Watchers {
    /// Adds a flag that is slept on.
    pub(crate) fn add_flag(&mut self, flag: &Flag) -> u64 {
        let number = self.number();
        self.flags.insert(number, flag.clone());
        number
    }

    /// Adds a flag that is slept on for rings, too.
    pub(crate) fn add_rung(&mut self, flag: &Flag) -> u64 {
        let number = self.number();
        self.rung.insert(number, flag.clone());
        number
    }

    /// Adds a listener; several may have the same event, and several the same flag.
    pub(crate) fn add_event(&mut self, event: &Event, flag: &Flag, is_armed: &Arc<AtomicBool>) -> u64 {
        let number = self.number();
        let none = || Sharing { listeners: 0, is_shared: Arc::new(AtomicBool::new(false)) };
        let sharing = self.words.entry(flag.address()).or_insert_with(none);
        sharing.listeners += 1;
        if sharing.listeners > 1 {
            sharing.is_shared.store(true, Ordering::Relaxed);
        }
        let listener = Listener {
            event: event.key(),
            flag: flag.clone(),
            is_armed: Arc::clone(is_armed),
            is_shared: Arc::clone(&sharing.is_shared),
        };
        let new = || Listened { event: event.clone(), listeners: 0, only: Some(listener.clone()) };
        let listened = self.events.entry(event.key()).or_insert_with(new);
        listened.listeners += 1;
        if listened.listeners > 1 {
            listened.only = None;
        }
        self.listeners.insert(number, listener);
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
        self.rung.remove(&number);
        let Some(Listener { event, flag, .. }) = self.listeners.remove(&number) else { return };
        if let Some(listened) = self.events.get_mut(&event) {
            listened.listeners -= 1;
            if listened.listeners == 0 {
                self.events.remove(&event);
            }
        }
        if let Some(sharing) = self.words.get_mut(&flag.address()) {
            sharing.listeners -= 1;
            if sharing.listeners == 0 {
                self.words.remove(&flag.address());
            }
        }
    }

    /// The flags that are slept on.
    pub(crate) fn flags(&self) -> impl Iterator<Item = &Flag> {
        self.flags.values().chain(self.rung())
    }

    /// Those of them that are slept on for rings.
    pub(crate) fn rung(&self) -> impl Iterator<Item = &Flag> {
        self.rung.values()
    }

    /// The events that are listened to, each once.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.values().map(|listened| &listened.event)
    }

    /// Those events whose listener's flag was taken since it announced itself, and all that several listen to. Each is given once
    /// for an announcement.
    pub(crate) fn taken(&self) -> impl Iterator<Item = &Event> {
        let is_due = |listened: &&Listened| listened.only.as_ref().is_none_or(Listener::is_taken);
        self.events.values().filter(is_due).map(|listened| &listened.event)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::time::{Duration, Instant};

    use beeline_mmio::Region;

    use super::*;

    fn armed() -> Arc<AtomicBool> {
        Arc::new(AtomicBool::new(false))
    }

    #[test]
    fn event_is_there_once_until_its_last_listener_goes() {
        let (one, other) = (Event::new().unwrap(), Event::new().unwrap());
        let flag = Region::private(64).flag(0);
        let mut watchers = Watchers::default();
        let numbers = [&one, &one.clone(), &other].map(|event| watchers.add_event(event, &flag, &armed()));
        assert_eq!(watchers.events().count(), 2);
        watchers.remove(numbers[0]);
        watchers.remove(numbers[0]);
        watchers.remove(numbers[2]);
        assert!(watchers.events().all(|event| event.is_same(&one)) && watchers.events().count() == 1);
        watchers.remove(numbers[1]);
        assert_eq!((watchers.events().count(), watchers.words.len()), (0, 0));
    }

    #[test]
    fn listener_is_taken_once_for_each_announcement() {
        let region = Region::private(128);
        let flags = [region.flag(0), region.flag(64)];
        let (events, is_armed) = ([(); 2].map(|()| Event::new().unwrap()), [armed(), armed()]);
        let mut watchers = Watchers::default();
        for ((event, flag), is_armed) in events.iter().zip(&flags).zip(&is_armed) {
            watchers.add_event(event, flag, is_armed);
        }
        assert_eq!(watchers.taken().count(), 0, "nobody has announced anything");
        flags.iter().zip(&is_armed).for_each(|(flag, is_armed)| protocol::announce(flag, is_armed));
        assert_eq!(watchers.taken().count(), 0);
        flags[1].swap(protocol::AWAKE);
        assert!(watchers.taken().eq_by_key(&events[1]));
        assert_eq!(watchers.taken().count(), 0, "it has been told");
        protocol::announce(&flags[1], &is_armed[1]);
        flags[1].swap(protocol::AWAKE);
        assert!(watchers.taken().eq_by_key(&events[1]));
    }

    #[test]
    fn those_who_share_a_flag_and_those_who_share_an_event_are_always_told() {
        let region = Region::private(256);
        let flag = |index: usize| region.flag(64 * index);
        let [one, two, three] = [(); 3].map(|()| Event::new().unwrap());
        let mut watchers = Watchers::default();
        // Two events on one flag; the other one's announcement would hide that this one's bit was taken.
        let first = watchers.add_event(&one, &flag(0), &armed());
        watchers.add_event(&two, &flag(0), &armed());
        assert_eq!(watchers.taken().count(), 2);
        watchers.remove(first);
        assert!(watchers.taken().eq_by_key(&two), "it may still be hidden");
        // One event for two flags.
        (1..3).for_each(|index| {
            watchers.add_event(&three, &flag(index), &armed());
        });
        assert_eq!(watchers.taken().count(), 2);
    }

    trait EqByKey {
        fn eq_by_key(self, event: &Event) -> bool;
    }

    impl<'a, I: Iterator<Item = &'a Event>> EqByKey for I {
        fn eq_by_key(self, event: &Event) -> bool {
            self.map(Event::key).eq([event.key()])
        }
    }

    /// A search through the others for each that goes would be five thousand million steps.
    #[test]
    fn watchers_come_and_go_however_many_there_are() {
        let flag = Region::private(64).flag(0);
        let (event, is_armed) = (Event::new().unwrap(), armed());
        let mut watchers = Watchers::default();
        let started = Instant::now();
        let numbers: Vec<[u64; 2]> = (0..100_000)
            .map(|_| [watchers.add_flag(&flag), watchers.add_event(&event, &flag, &is_armed)])
            .collect();
        assert_eq!((watchers.flags().count(), watchers.events().count()), (100_000, 1));
        numbers.into_iter().rev().flatten().for_each(|number| watchers.remove(number));
        assert_eq!((watchers.flags().count(), watchers.events().count()), (0, 0));
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
