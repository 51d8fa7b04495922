//! The connections of an endpoint: by number for the program, by address for frames.

use std::collections::HashMap;

use crate::connection::Connection;
use crate::{Address, Config, ConnectionId};

/// Memory for one connection. Its generation goes up when one leaves, so that an old [`ConnectionId`] finds nothing.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Memory of connections that ended, for the next ones. Boxed, because a connection is some kilobytes and moves from
    /// vector to vector here.
    #[expect(clippy::vec_box, reason = "moving the box and not what is in it is the point")]
    spare: Vec<Box<Connection>>,
    by_address: HashMap<u64, u32>,
    of_stations: HashMap<u64, u32>,
    /// The address looked up last, and its slot: most frames come from where the last one came from.
    last: (u64, u32),
    most: usize,
}

/// No address has this key: it is a group's.
const NOBODY: u64 = u64::MAX;

impl Table {
    pub(crate) fn new(most: u16) -> Self {
        let most = usize::from(most);
        Table {
            slots: Vec::with_capacity(most),
            free: Vec::with_capacity(most),
            spare: Vec::new(),
            by_address: HashMap::with_capacity(most),
            of_stations: HashMap::with_capacity(most),
            last: (NOBODY, 0),
            most,
        }
    }

    /// Whether one more connection is allowed. Those that lost their address are only waiting for their end.
    pub(crate) fn has_room(&self) -> bool {
        self.by_address.len() < self.most
    }

    /// How many connections there are with the station of this address.
    pub(crate) fn of_station(&self, remote: Address) -> usize {
        self.of_stations.get(&remote.station_key()).map_or(0, |&count| count as usize)
    }

    /// Returns the slot of the connection with this endpoint.
    #[inline]
    pub(crate) fn find(&mut self, remote: Address) -> Option<u32> {
        let key = remote.key();
        if self.last.0 == key {
            return Some(self.last.1);
        }
        let index = *self.by_address.get(&key)?;
        self.last = (key, index);
        Some(index)
    }

    /// A slot and memory for a connection with `remote`, which `begin` puts into its first state.
    pub(crate) fn add(
        &mut self,
        remote: Address,
        config: &Config,
        begin: impl FnOnce(&mut Connection),
    ) -> u32 {
        let mut connection = self.spare.pop().unwrap_or_else(|| Box::new(Connection::new(config)));
        begin(&mut connection);
        (connection.is_listed_for_work, connection.is_listed_as_ready) = (false, false);
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        self.slots[index as usize].connection = Some(connection);
        self.by_address.insert(remote.key(), index);
        *self.of_stations.entry(remote.station_key()).or_default() += 1;
        index
    }

    /// Frames from its address no longer go to this connection.
    pub(crate) fn detach(&mut self, index: u32) {
        let Some(connection) = self.at(index) else { return };
        let remote = connection.remote();
        if self.by_address.get(&remote.key()) == Some(&index) {
            self.by_address.remove(&remote.key());
            self.last = (NOBODY, 0);
            let station = remote.station_key();
            if let Some(count) = self.of_stations.get_mut(&station) {
                *count -= 1;
                if *count == 0 {
                    self.of_stations.remove(&station);
                }
            }
        }
    }

    /// Whether frames from its address go to this connection.
    pub(crate) fn is_attached(&self, index: u32) -> bool {
        let key =
            self.slots.get(index as usize).and_then(|slot| Some(slot.connection.as_ref()?.remote().key()));
        key.is_some_and(|key| self.by_address.get(&key) == Some(&index))
    }

    /// Removes a connection and frees its slot.
    pub(crate) fn remove(&mut self, index: u32) {
        self.detach(index);
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        if let Some(connection) = slot.connection.take() {
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(index);
            self.spare.push(connection);
        }
    }

    /// The connection in a slot.
    #[inline]
    pub(crate) fn at(&mut self, index: u32) -> Option<&mut Connection> {
        self.slots.get_mut(index as usize)?.connection.as_deref_mut()
    }

    /// The connection that a program means.
    #[inline]
    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let slot = self.slots.get(id.index as usize)?;
        if slot.generation == id.generation { slot.connection.as_deref() } else { None }
    }

    /// The connection that a program means, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id.index as usize)?;
        if slot.generation == id.generation { slot.connection.as_deref_mut() } else { None }
    }

    /// What a program calls the connection in a slot.
    #[inline]
    pub(crate) fn id(&self, index: u32) -> ConnectionId {
        ConnectionId { index, generation: self.slots.get(index as usize).map_or(0, |slot| slot.generation) }
    }

    /// Number of slots, taken or free.
    pub(crate) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }
}
