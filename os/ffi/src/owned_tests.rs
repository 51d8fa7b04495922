use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::*;

#[derive(Debug)]
struct Thing(u32, Arc<AtomicU32>);

impl Kind for Thing {
    const NAME: &'static str = "thing";
    const TAG: u8 = 0x41;
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

fn thing(number: u32) -> Thing {
    Thing(number, Arc::default())
}

/// A table for each test, since a test may fill its own.
macro_rules! table {
    ($name:ident) => {
        static $name: Owned<Thing> = Owned::new();
    };
}

fn status_elsewhere(table: &'static Owned<Thing>, handle: Handle<Thing>) -> core::ffi::c_int {
    let entered = std::thread::spawn(move || table.enter(handle).map(drop).map_err(|failure| failure.status));
    entered.join().unwrap().err().unwrap_or(status::OK)
}

#[test]
fn object_belongs_to_one_thread_until_released_or_the_thread_ends() {
    table!(TABLE);
    let handle = TABLE.insert(thing(3)).unwrap();
    assert_eq!(TABLE.enter_own(handle).err().unwrap().status, status::WRONG_THREAD);
    // Another thread's, which has ended: anybody's.
    assert_eq!(status_elsewhere(&TABLE, handle), status::OK);
    TABLE.enter(handle).unwrap().0 += 1;
    assert_eq!(status_elsewhere(&TABLE, handle), status::WRONG_THREAD);
    assert_eq!(TABLE.enter_own(handle).unwrap().0, 4);
    TABLE.release(handle).unwrap();
    assert_eq!(status_elsewhere(&TABLE, handle), status::OK);
    assert_eq!(TABLE.remove(handle).unwrap().0, 4);
}

#[test]
fn handle_in_use_is_busy_for_every_other_call() {
    table!(TABLE);
    let handle = TABLE.insert(thing(0)).unwrap();
    let pass = TABLE.enter(handle).unwrap();
    for refused in [TABLE.enter(handle).map(drop), TABLE.enter_own(handle).map(drop), TABLE.release(handle)] {
        assert_eq!(refused.unwrap_err().status, status::BUSY);
    }
    assert_eq!(TABLE.remove(handle).unwrap_err().status, status::BUSY);
    drop(pass);
    drop(TABLE.enter(handle).unwrap());
}

#[test]
fn a_closed_handle_is_refused_also_when_its_slot_is_used_again() {
    table!(TABLE);
    let first = thing(1);
    let drops = Arc::clone(&first.1);
    let closed = TABLE.insert(first).unwrap();
    drop(TABLE.remove(closed).unwrap());
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    let open = TABLE.insert(thing(2)).unwrap();
    assert_eq!((closed.index(CAPACITY), open.index(CAPACITY)), (Some(0), Some(0)));
    drop(TABLE.enter(open).unwrap());
    for stale in [TABLE.enter(closed).map(drop), TABLE.enter_own(closed).map(drop), TABLE.release(closed)] {
        let failure = stale.unwrap_err();
        assert_eq!(failure.status, status::INVALID);
        assert!(failure.why.contains("closed already"), "{}", failure.why);
    }
    assert_eq!(TABLE.remove(closed).unwrap_err().status, status::INVALID);
    assert_eq!(TABLE.enter(open).unwrap().0, 2);
}

#[test]
fn null_and_handles_that_were_never_given_are_refused() {
    table!(TABLE);
    assert_eq!(TABLE.enter(Handle::NULL).err().unwrap().why, "thing is NULL");
    for never_given in [Handle::of(0, 0), Handle::of(0, 1), Handle::of(CAPACITY as u32 - 1, u32::MAX)] {
        assert_eq!(TABLE.enter(never_given).err().unwrap().status, status::INVALID);
        assert_eq!(TABLE.remove(never_given).unwrap_err().status, status::INVALID);
    }
}

#[test]
fn a_number_that_differs_from_the_handle_in_one_bit_is_refused() {
    table!(TABLE);
    let handle = TABLE.insert(thing(0)).unwrap();
    drop(TABLE.enter(handle).unwrap());
    for bit in 0..u64::BITS {
        let other = Handle::of_bits(handle.bits() ^ 1 << bit);
        for refused in [TABLE.enter(other).map(drop), TABLE.enter_own(other).map(drop), TABLE.release(other)]
        {
            assert_eq!(refused.unwrap_err().status, status::INVALID, "bit {bit}");
        }
    }
    drop(TABLE.enter(handle).unwrap());
}

#[test]
fn an_object_whose_thread_ended_inside_stays_closed_to_others() {
    table!(TABLE);
    let handle = TABLE.insert(thing(0)).unwrap();
    // Keeps the pass that the thread leaves behind.
    static LEFT: AtomicPtr<Pass<Thing>> = AtomicPtr::new(core::ptr::null_mut());
    let leave = move || {
        LEFT.store(Box::into_raw(Box::new(TABLE.enter(handle).unwrap())), Ordering::Relaxed);
    };
    std::thread::spawn(leave).join().unwrap();
    assert_eq!(TABLE.enter(handle).err().unwrap().status, status::WRONG_THREAD);
}

#[test]
fn a_thread_that_is_ending_owns_nothing() {
    table!(TABLE);
    struct UsedAtTheEnd(Handle<Thing>, Arc<AtomicU32>);
    impl Drop for UsedAtTheEnd {
        fn drop(&mut self) {
            let refused = TABLE.enter(self.0).err().map_or(0, |failure| failure.status.unsigned_abs());
            self.1.store(refused, Ordering::SeqCst);
        }
    }
    thread_local! {
        static USED: core::cell::OnceCell<UsedAtTheEnd> = const { core::cell::OnceCell::new() };
    }
    let handle = TABLE.insert(thing(0)).unwrap();
    let refused = Arc::new(AtomicU32::new(0));
    let at_the_end = UsedAtTheEnd(handle, Arc::clone(&refused));
    std::thread::spawn(move || {
        // The first to be registered, so the last to be destroyed: after the thread's mark.
        USED.with(|used| assert!(used.set(at_the_end).is_ok()));
        drop(TABLE.enter(handle).unwrap());
    })
    .join()
    .unwrap();
    assert_eq!(refused.load(Ordering::SeqCst), status::WRONG_THREAD.unsigned_abs());
}

#[test]
fn a_full_table_refuses_until_one_is_closed() {
    table!(TABLE);
    let handles: Vec<_> = (0..CAPACITY as u32).map(|number| TABLE.insert(thing(number)).unwrap()).collect();
    assert_eq!(TABLE.insert(thing(0)).unwrap_err().status, status::REFUSED);
    TABLE.remove(handles[CAPACITY / 2]).unwrap();
    TABLE.insert(thing(0)).unwrap();
    assert_eq!(TABLE.enter(handles[1]).unwrap().0, 1);
}

#[test]
fn threads_that_race_for_an_object_are_never_in_it_together() {
    table!(TABLE);
    let handle = TABLE.insert(thing(0)).unwrap();
    let entered: u32 = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| {
            scope.spawn(|| {
                let mut entered = 0;
                for _ in 0..if cfg!(miri) { 20 } else { 5_000 } {
                    let Ok(mut pass) = TABLE.enter(handle) else { continue };
                    // Not atomic: a second thread inside would lose counts, and Miri would see the race.
                    pass.0 += 1;
                    entered += 1;
                    drop(pass);
                    TABLE.release(handle).unwrap();
                }
                entered
            })
        });
        threads.map(|thread| thread.join().unwrap()).into_iter().sum()
    });
    assert!(entered > 0);
    assert_eq!(TABLE.enter(handle).unwrap().0, entered);
}
