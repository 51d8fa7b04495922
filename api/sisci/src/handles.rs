//! Handles of C, and the objects that they name.

use std::sync::Arc;

use beeline_ffi::{Failure, Handle, Kind, Outcome, Pinned, ShortLook};

use crate::session::{self, Belongs, Session, not_initialized};

/// An object that C has a handle of.
pub(crate) trait Object: Kind + Send + Sync {
    fn belongs(&self) -> &Belongs;

    fn session(&self) -> &Arc<Session> {
        self.belongs().session()
    }
}

/// Why a handle names nothing: perhaps because the library is not initialized.
#[cold]
#[inline(never)]
fn why_refused(refused: Failure) -> Failure {
    if session::is_initialized() { refused } else { not_initialized() }
}

/// Looks at objects whose session goes on.
struct InSession<L>(L);

impl<T: Object, L: ShortLook<T>> ShortLook<T> for InSession<L> {
    type Found = L::Found;

    #[inline(always)]
    fn look(self, object: &T) -> Option<L::Found> {
        if object.session().goes_on() { self.0.look(object) } else { None }
    }
}

/// The objects of a kind. Put it into a `static`.
pub(crate) struct Table<T: 'static>(Pinned<T>);

impl<T: Object> Table<T> {
    pub(crate) const fn new() -> Self {
        Table(Pinned::new())
    }

    /// Shows the object of a handle to `look`. It is not removed meanwhile.
    ///
    /// # Errors
    /// The handle names no object of this process; what `look` fails with.
    #[inline(always)]
    pub(crate) fn with<R>(
        &'static self,
        handle: Handle<T>,
        look: impl FnOnce(&T) -> Outcome<R>,
    ) -> Outcome<R> {
        self.show(handle, Session::check, look)
    }

    /// Shows the object of a handle to `look`, if that takes a few instructions and nothing is wrong. `None` does not say why not, which
    /// [`Table::with`] does.
    #[inline(always)]
    pub(crate) fn look_if_short<L: ShortLook<T>>(
        &'static self,
        handle: Handle<T>,
        look: L,
    ) -> Option<L::Found> {
        self.0.look_if_short(handle, InSession(look))
    }

    /// Shows the object of a handle to whoever removes it, as [`Table::with`] does; also once its session is over.
    ///
    /// # Errors
    /// As for [`Table::with`].
    pub(crate) fn with_last<R>(
        &'static self,
        handle: Handle<T>,
        look: impl FnOnce(&T) -> Outcome<R>,
    ) -> Outcome<R> {
        self.show(handle, Session::check_process, look)
    }

    #[inline(always)]
    fn show<R>(
        &'static self,
        handle: Handle<T>,
        check: impl FnOnce(&Session) -> Outcome<()>,
        look: impl FnOnce(&T) -> Outcome<R>,
    ) -> Outcome<R> {
        let shown = self.0.with(handle, |object| {
            check(object.session())?;
            look(object)
        });
        match shown {
            Ok(result) => result,
            Err(refused) => Err(why_refused(refused)),
        }
    }

    /// Makes an object, and gives its handle. `remove` removes it when the program ends its use of the library.
    ///
    /// # Errors
    /// There are as many as there can be, or the program has ended its use of the library meanwhile.
    pub(crate) fn make(
        &'static self,
        session: &Arc<Session>,
        make: impl FnOnce(Belongs) -> T,
        remove: fn(Handle<T>) -> Outcome<()>,
    ) -> Outcome<Handle<T>> {
        let belongs = session.place();
        let number = belongs.number();
        let handle = self.0.insert(make(belongs))?;
        if !session.put(number, Box::new(move || remove(handle))) {
            remove(handle)?;
            return Err(not_initialized());
        }
        Ok(handle)
    }

    /// Takes the object of a handle out, as soon as no other thread uses it.
    ///
    /// # Errors
    /// The handle names no object.
    pub(crate) fn remove(&'static self, handle: Handle<T>) -> Outcome<T> {
        self.0.remove(handle, |_| ())
    }
}
