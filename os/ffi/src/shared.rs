//! Objects that any thread may use at any time.

use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};

use crate::edge::Outcome;
use crate::handle::{Handle, HandleVariable, Kind, Vacancies};

/// Objects in a table at the same time.
const CAPACITY: usize = if cfg!(miri) { 8 } else { 4096 };

/// A table of objects of any thread. Put it into a `static`.
pub struct Shared<T: 'static> {
    slots: [RwLock<Slot<T>>; CAPACITY],
    vacancies: Mutex<Vacancies>,
}

struct Slot<T> {
    generation: u32,
    value: Option<Arc<T>>,
}

impl<T> Slot<T> {
    fn of(&self, generation: u32) -> Option<&Arc<T>> {
        self.value.as_ref().filter(|_| self.generation == generation)
    }
}

impl<T: Kind + Send + Sync> Default for Shared<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Kind + Send + Sync> Shared<T> {
    /// A table without objects.
    pub const fn new() -> Self {
        let slots = [const { RwLock::new(Slot { generation: 0, value: None }) }; CAPACITY];
        Shared { slots, vacancies: Mutex::new(Vacancies::new()) }
    }

    /// Takes an object in.
    ///
    /// # Errors
    /// The table is full.
    pub fn insert(&'static self, value: T) -> Outcome<Handle<T>> {
        let index = self.vacancies.lock().unwrap_or_else(PoisonError::into_inner).take(CAPACITY, T::NAME)?;
        let mut slot = self.slots[index as usize].write().unwrap_or_else(PoisonError::into_inner);
        slot.generation += 1;
        slot.value = Some(Arc::new(value));
        Ok(Handle::of(index, slot.generation))
    }

    /// The object of a handle. It lives on while the result does, also when the handle is closed meanwhile.
    ///
    /// # Errors
    /// The handle names no object.
    pub fn get(&'static self, handle: Handle<T>) -> Outcome<Arc<T>> {
        let index = handle.index(CAPACITY).ok_or_else(|| handle.refused())?;
        let slot = self.slots[index].read().unwrap_or_else(PoisonError::into_inner);
        slot.of(handle.generation()).cloned().ok_or_else(|| handle.refused())
    }

    /// Shows the object to `look` without waiting, for signal handlers; `None` if the handle names none, or is being
    /// closed.
    ///
    /// Nothing here allocates or sleeps: a failed attempt to lock returns, and unlocking at most wakes a thread.
    pub fn look<R>(&'static self, handle: Handle<T>, look: impl FnOnce(&T) -> R) -> Option<R> {
        let slot = match self.slots[handle.index(CAPACITY)?].try_read() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        slot.of(handle.generation()).map(|value| look(value))
    }

    /// Removes the object of the handle that C keeps in `variable`, and makes that NULL; `None` if there is none.
    ///
    /// # Errors
    /// The handle names no object.
    pub fn close(&'static self, variable: &HandleVariable<'_, T>) -> Outcome<Option<Arc<T>>> {
        let Some(handle) = variable.held() else { return Ok(None) };
        let value = self.remove(handle)?;
        variable.clear();
        Ok(Some(value))
    }

    fn remove(&'static self, handle: Handle<T>) -> Outcome<Arc<T>> {
        let index = handle.index(CAPACITY).ok_or_else(|| handle.refused())?;
        let mut slot = self.slots[index].write().unwrap_or_else(PoisonError::into_inner);
        if slot.generation != handle.generation() {
            return Err(handle.refused());
        }
        let value = slot.value.take().ok_or_else(|| handle.refused())?;
        drop(slot);
        let mut vacancies = self.vacancies.lock().unwrap_or_else(PoisonError::into_inner);
        vacancies.give_back(index, handle.generation());
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status;

    struct Thing(u32);

    impl Kind for Thing {
        const NAME: &'static str = "thing";
        const TAG: u8 = 0x41;
    }

    #[test]
    fn a_closed_handle_is_refused_also_when_its_slot_is_used_again() {
        static TABLE: Shared<Thing> = Shared::new();
        let closed = TABLE.insert(Thing(1)).unwrap();
        let used = TABLE.get(closed).unwrap();
        assert_eq!(TABLE.look(closed, |thing| thing.0), Some(1));
        TABLE.remove(closed).unwrap();
        // In use while it was closed: it lives on.
        assert_eq!(used.0, 1);
        let open = TABLE.insert(Thing(2)).unwrap();
        assert_eq!((closed.index(CAPACITY), open.index(CAPACITY)), (Some(0), Some(0)));
        assert_eq!(TABLE.get(closed).err().unwrap().status, status::INVALID);
        assert_eq!(TABLE.remove(closed).err().unwrap().status, status::INVALID);
        assert_eq!(TABLE.look(closed, |thing| thing.0), None);
        assert_eq!(TABLE.get(open).unwrap().0, 2);
        assert_eq!(TABLE.get(Handle::NULL).err().unwrap().why, "thing is NULL");
    }

    #[test]
    fn a_look_at_a_handle_that_is_being_closed_does_not_wait() {
        static TABLE: Shared<Thing> = Shared::new();
        let handle = TABLE.insert(Thing(1)).unwrap();
        let closing = TABLE.slots[0].write().unwrap();
        assert_eq!(TABLE.look(handle, |thing| thing.0), None);
        drop(closing);
        assert_eq!(TABLE.look(handle, |thing| thing.0), Some(1));
    }
}
