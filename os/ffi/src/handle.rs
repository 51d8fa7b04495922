//! Handles: numbers that name slots of a table.
//!
//! Bits 0 to 7 are the tag of the kind, bits 8 to 31 the index of the slot, bits 32 to 63 the slot's generation.

use core::ffi::c_void;
use core::marker::PhantomData;

use crate::edge::{Failure, Outcome};
use crate::status;

const _: () = assert!(size_of::<usize>() == 8, "a handle is a pointer of C with 64 bits");

const INDEX_SHIFT: u32 = 8;

/// A kind of object that C has handles of.
pub trait Kind {
    /// What texts of errors call it.
    const NAME: &'static str;
    /// A number that no other kind of the same library has. Odd, so that no aligned address has it.
    const TAG: u8;
}

/// A handle as C passes it: NULL, or a number that a table gave, or anything else, which the table refuses.
#[repr(transparent)]
#[derive(Debug)]
pub struct Handle<T>(*const c_void, PhantomData<fn() -> T>);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Handle<T> {}

// SAFETY: the pointer is never followed: `bits` takes its address, and that is all that is done with it.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: nothing is done with a shared pointer but taking its address.
unsafe impl<T> Sync for Handle<T> {}

impl<T: Kind> Handle<T> {
    /// NULL, which no table gives.
    pub const NULL: Self = Handle(core::ptr::null(), PhantomData);

    /// Whether C passed NULL.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn of(index: u32, generation: u32) -> Self {
        const { assert!(T::TAG % 2 == 1) };
        let bits = u64::from(generation) << 32 | u64::from(index) << INDEX_SHIFT | u64::from(T::TAG);
        Handle(core::ptr::without_provenance(bits as usize), PhantomData)
    }

    /// A number that no table need have given.
    #[cfg(test)]
    pub(crate) fn of_bits(bits: u64) -> Self {
        Handle(core::ptr::without_provenance(bits as usize), PhantomData)
    }

    #[inline(always)]
    pub(crate) fn bits(self) -> u64 {
        self.0.addr() as u64
    }

    #[inline(always)]
    pub(crate) fn generation(self) -> u32 {
        (self.bits() >> 32) as u32
    }

    /// The index in a table of `capacity` slots, a power of two, if this can be a handle of it.
    #[inline(always)]
    pub(crate) fn index(self, capacity: usize) -> Option<usize> {
        let indices = (capacity as u64 - 1) << INDEX_SHIFT;
        let is_one = self.bits() & 0xffff_ffff & !indices == u64::from(T::TAG);
        is_one.then_some(self.index_masked(capacity))
    }

    /// Whether it has the tag of the kind, which what a slot holds without an object has not.
    #[inline(always)]
    pub(crate) fn has_tag(self) -> bool {
        self.bits() as u8 == T::TAG
    }

    /// The index in a table of `capacity` slots, a power of two, if this is a handle of it; some slot's if it is not.
    #[inline(always)]
    pub(crate) fn index_masked(self, capacity: usize) -> usize {
        (self.bits() >> INDEX_SHIFT) as usize & (capacity - 1)
    }

    /// Why a handle names nothing.
    #[cold]
    pub(crate) fn refused(self) -> Failure {
        let name = T::NAME;
        Failure::invalid(if self.0.is_null() {
            format!("{name} is NULL")
        } else {
            format!(
                "{name} is no open {name}: it is closed already, of another kind, or none of this library's"
            )
        })
    }
}

/// A pointer to the variable of C that holds a handle to close, or NULL.
#[derive(Debug)]
#[repr(transparent)]
pub struct HandleVariable<'a, T>(*mut Handle<T>, PhantomData<&'a mut Handle<T>>);

impl<T: Kind> HandleVariable<'_, T> {
    /// The handle in the variable; `None` if the pointer or the handle is NULL.
    pub fn held(&self) -> Option<Handle<T>> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: not NULL (checked above), so a pointer variable that C has set: the contract under which C passes a
        // `HandleVariable`. Any value is a `Handle`.
        let handle = unsafe { self.0.read() };
        (!handle.0.is_null()).then_some(handle)
    }

    /// Fails where C passed NULL for the variable.
    ///
    /// # Errors
    /// It is NULL.
    pub fn check(&self, what: &str) -> Outcome<()> {
        if self.0.is_null() { Err(Failure::invalid(format!("{what} is NULL"))) } else { Ok(()) }
    }

    /// Puts a handle into C's variable, if there is one.
    pub fn put(&self, handle: Handle<T>) {
        if !self.0.is_null() {
            // SAFETY: as in `held`: a variable of C, which this call alone uses.
            unsafe { self.0.write(handle) };
        }
    }

    /// Makes C's variable NULL.
    pub fn clear(&self) {
        self.put(Handle::NULL);
    }
}

/// Why a table takes no more.
#[cold]
pub(crate) fn full(capacity: usize, name: &str) -> Failure {
    let why = format!("this process has {capacity} handles of kind {name} already; close some");
    Failure::new(status::REFUSED, why)
}

/// Indices that are free.
#[derive(Debug)]
pub(crate) struct Vacancies {
    returned: Vec<u32>,
    /// Those from here on were never used.
    unused: u32,
}

impl Vacancies {
    pub(crate) const fn new() -> Self {
        Vacancies { returned: Vec::new(), unused: 0 }
    }

    pub(crate) fn take(&mut self, capacity: usize, name: &str) -> Outcome<u32> {
        if let Some(index) = self.returned.pop() {
            return Ok(index);
        }
        if self.unused as usize == capacity {
            return Err(full(capacity, name));
        }
        self.unused += 1;
        Ok(self.unused - 1)
    }

    /// Takes an index back, unless the generations of its slot are used up.
    pub(crate) fn give_back(&mut self, index: usize, last_generation: u32) {
        if last_generation != u32::MAX {
            self.returned.push(index as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Thing;
    impl Kind for Thing {
        const NAME: &'static str = "thing";
        const TAG: u8 = 0x41;
    }

    #[test]
    fn a_handle_has_the_index_that_it_was_given_and_nothing_else_has_one() {
        let handle = Handle::<Thing>::of(5, 7);
        assert_eq!((handle.index(16), handle.generation()), (Some(5), 7));
        // Beyond the table, NULL, another tag, an aligned address.
        assert_eq!(Handle::<Thing>::of(16, 7).index(16), None);
        for bits in [0, 0x43, 0x40, 0x7fff_dead_bee0] {
            assert_eq!(Handle::<Thing>::of_bits(bits).index(16), None, "{bits:x}");
        }
    }

    #[test]
    fn indices_are_used_again_until_their_generations_are_used_up() {
        let mut vacancies = Vacancies::new();
        assert_eq!(vacancies.take(2, "thing").unwrap(), 0);
        assert_eq!(vacancies.take(2, "thing").unwrap(), 1);
        assert_eq!(vacancies.take(2, "thing").unwrap_err().status, status::REFUSED);
        vacancies.give_back(0, 2);
        assert_eq!(vacancies.take(2, "thing").unwrap(), 0);
        vacancies.give_back(0, u32::MAX);
        assert!(vacancies.take(2, "thing").is_err());
    }
}
