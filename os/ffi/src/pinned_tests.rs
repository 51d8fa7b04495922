use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use super::*;

#[derive(Debug)]
struct Thing(u32, Arc<AtomicU32>);

impl Kind for Thing {
    const NAME: &'static str = "thing";
    const TAG: u8 = 0x41;
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.0 = u32::MAX;
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

fn thing(number: u32) -> Thing {
    Thing(number, Arc::default())
}

macro_rules! table {
    ($name:ident) => {
        static $name: Pinned<Thing> = Pinned::new();
    };
}

fn number(table: &'static Pinned<Thing>, handle: Handle<Thing>) -> Outcome<u32> {
    table.with(handle, |thing| thing.0)
}

#[test]
fn removed_handle_is_refused_also_when_its_slot_is_used_again() {
    table!(TABLE);
    let closed = TABLE.insert(thing(1)).unwrap();
    assert_eq!(number(&TABLE, closed).unwrap(), 1);
    let removed = TABLE.remove(closed, |thing| assert_eq!(thing.0, 1)).unwrap();
    assert_eq!(removed.0, 1);
    let open = TABLE.insert(thing(2)).unwrap();
    assert_eq!((closed.index(CAPACITY), open.index(CAPACITY)), (Some(0), Some(0)));
    assert_eq!(number(&TABLE, closed).unwrap_err().status, status::INVALID);
    let stop = |_: &Thing| panic!("nothing is stopped for a handle that is refused");
    assert_eq!(TABLE.remove(closed, stop).unwrap_err().status, status::INVALID);
    assert_eq!(number(&TABLE, open).unwrap(), 2);
}

#[test]
fn null_and_foreign_numbers_are_refused_also_by_an_empty_table() {
    table!(TABLE);
    assert_eq!(number(&TABLE, Handle::NULL).unwrap_err().why, "thing is NULL");
    // A slot that was never used holds zero; a closed one the handle without its tag.
    let closed = TABLE.insert(thing(1)).unwrap();
    TABLE.remove(closed, |_| ()).unwrap();
    for bits in [0x41, 0x43, closed.bits() & !0xff, closed.bits() + (1 << 32)] {
        assert_eq!(number(&TABLE, Handle::of_bits(bits)).unwrap_err().status, status::INVALID, "{bits:x}");
    }
}

#[test]
fn full_table_refuses_until_one_is_removed() {
    table!(TABLE);
    let handles: Vec<_> = (0..CAPACITY as u32).map(|number| TABLE.insert(thing(number)).unwrap()).collect();
    let refused = TABLE.insert(thing(0)).unwrap_err();
    assert_eq!(refused.status, status::REFUSED);
    let last = *handles.last().unwrap();
    assert_eq!(number(&TABLE, last).unwrap(), CAPACITY as u32 - 1);
    TABLE.remove(handles[3], |_| ()).unwrap();
    assert_eq!(TABLE.insert(thing(77)).unwrap().index(CAPACITY), Some(3));
}

#[test]
fn remover_waits_for_other_threads_which_stop_tells_to_leave() {
    table!(TABLE);
    let dropped = Arc::new(AtomicU32::new(0));
    let handle = TABLE.insert(Thing(1, dropped.clone())).unwrap();
    let (inside, is_inside) = channel();
    let (leave, told) = channel();
    let using = thread::spawn(move || {
        TABLE.with(handle, |thing| {
            inside.send(()).unwrap();
            told.recv().unwrap();
            // What the remover has dropped says another number.
            (thing.0, thing.1.load(Ordering::SeqCst))
        })
    });
    is_inside.recv().unwrap();
    let mut was_refused = None;
    drop(TABLE.remove(handle, |thing| {
        // New users are refused already, and the object is there.
        was_refused = Some(number(&TABLE, handle).unwrap_err().status);
        assert_eq!((thing.0, thing.1.load(Ordering::SeqCst)), (1, 0));
        leave.send(()).unwrap();
    }));
    assert_eq!(was_refused, Some(status::INVALID));
    assert_eq!(using.join().unwrap().unwrap(), (1, 0));
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

struct Look<F>(F);

impl<F: FnOnce(&Thing) -> Option<u32>> ShortLook<Thing> for Look<F> {
    type Found = u32;

    fn look(self, object: &Thing) -> Option<u32> {
        (self.0)(object)
    }
}

fn short_number(table: &'static Pinned<Thing>, handle: Handle<Thing>) -> Option<u32> {
    table.look_if_short(handle, Look(|thing: &Thing| Some(thing.0)))
}

#[test]
#[cfg(not(miri))]
fn short_look_finds_what_is_open_in_a_thread_that_has_a_record_and_uses_nothing() {
    table!(TABLE);
    let handles = [1, 2].map(|number| TABLE.insert(thing(number)).unwrap());
    let in_thread = move || {
        assert_eq!(short_number(&TABLE, handles[0]), None, "the thread has no record");
        number(&TABLE, handles[0]).unwrap();
        assert_eq!(handles.map(|handle| short_number(&TABLE, handle)), [Some(1), Some(2)]);
        let within = TABLE.with(handles[0], |_| short_number(&TABLE, handles[1])).unwrap();
        assert_eq!(within, None, "the thread uses another object");
        assert_eq!(TABLE.look_if_short(handles[0], Look(|_: &Thing| None)), None);
        assert!(!super::thread::has_pins());
    };
    thread::spawn(in_thread).join().unwrap();
    number(&TABLE, handles[1]).unwrap();
    TABLE.remove(handles[0], |_| ()).unwrap();
    let closed = handles[0].bits();
    for bits in [0, closed, closed & !0xff, closed + (1 << 32), handles[1].bits() + 2] {
        assert_eq!(short_number(&TABLE, Handle::of_bits(bits)), None, "{bits:x}");
    }
    assert_eq!(short_number(&TABLE, handles[1]), Some(2));
}

#[test]
#[cfg(not(miri))]
fn remover_waits_for_a_short_look() {
    table!(TABLE);
    let dropped = Arc::new(AtomicU32::new(0));
    let handle = TABLE.insert(Thing(1, dropped.clone())).unwrap();
    let (inside, is_inside) = channel();
    let (leave, told) = channel();
    let using = thread::spawn(move || {
        number(&TABLE, handle).unwrap();
        let look = |thing: &Thing| {
            inside.send(()).unwrap();
            told.recv().unwrap();
            Some(thing.1.load(Ordering::SeqCst))
        };
        TABLE.look_if_short(handle, Look(look))
    });
    is_inside.recv().unwrap();
    TABLE.remove(handle, |_| leave.send(()).unwrap()).unwrap();
    assert_eq!((using.join().unwrap(), dropped.load(Ordering::SeqCst)), (Some(0), 1));
}

#[test]
fn thread_that_uses_a_handle_removes_none() {
    table!(TABLE);
    let (used, other) = (TABLE.insert(thing(1)).unwrap(), TABLE.insert(thing(2)).unwrap());
    TABLE
        .with(used, |_| {
            for handle in [used, other] {
                let stop = |_: &Thing| panic!("nothing is stopped");
                assert_eq!(TABLE.remove(handle, stop).unwrap_err().status, status::BUSY);
            }
        })
        .unwrap();
    assert_eq!((number(&TABLE, used).unwrap(), number(&TABLE, other).unwrap()), (1, 2));
    TABLE.remove(used, |_| ()).unwrap();
}

/// Uses handles inside one another, as deep as there are handles, and looks at each depth whether all are busy for others.
fn nested(table: &'static Pinned<Thing>, handles: &[Handle<Thing>], depth: u32) {
    let Some((first, rest)) = handles.split_first() else { return };
    let shown = table.with(*first, |thing| {
        nested(table, rest, depth + 1);
        thing.0
    });
    assert_eq!(shown.unwrap(), depth);
}

#[test]
fn thread_uses_more_handles_at_once_than_its_record_holds() {
    table!(TABLE);
    let handles: Vec<_> = (0..8).map(|number| TABLE.insert(thing(number)).unwrap()).collect();
    // Eight, and eight again within, of a record of seven.
    for _ in 0..2 {
        TABLE.with(handles[0], |_| nested(&TABLE, &handles, 0)).unwrap();
        assert!(!super::thread::has_pins());
    }
}

/// Far more than the other tests of this process need at the same time.
const MANY: usize = if cfg!(miri) { 20 } else { 300 };

fn records() -> usize {
    super::thread::PINS.records().count()
}

#[test]
fn records_of_threads_that_have_ended_are_used_again() {
    table!(TABLE);
    let handle = TABLE.insert(thing(1)).unwrap();
    let before = records();
    for _ in 0..MANY {
        assert_eq!(thread::spawn(move || number(&TABLE, handle).unwrap()).join().unwrap(), 1);
    }
    assert!(records() - before < MANY / 2, "{before} records became {}", records());
}

#[test]
fn records_for_one_use_are_used_again() {
    table!(TABLE);
    let handles: Vec<_> = (0..8).map(|number| TABLE.insert(thing(number)).unwrap()).collect();
    let before = records();
    for _ in 0..MANY {
        // The last one finds the thread's record full.
        nested(&TABLE, &handles, 0);
    }
    assert!(records() - before < MANY / 2, "{before} records became {}", records());
}

#[test]
fn panic_in_a_closure_ends_its_pin() {
    table!(TABLE);
    let handle = TABLE.insert(thing(1)).unwrap();
    let panicked = thread::spawn(move || TABLE.with(handle, |_| panic!("in a function"))).join();
    assert!(panicked.is_err());
    TABLE.remove(handle, |_| ()).unwrap();
}

#[test]
fn destructor_of_an_ending_thread_uses_handles() {
    table!(TABLE);
    struct Last(Handle<Thing>, std::sync::mpsc::Sender<u32>);
    impl Drop for Last {
        fn drop(&mut self) {
            self.1.send(number(&TABLE, self.0).unwrap()).unwrap();
        }
    }
    thread_local! {
        static LAST: core::cell::RefCell<Option<Last>> = const { core::cell::RefCell::new(None) };
    }
    let handle = TABLE.insert(thing(9)).unwrap();
    let (tell, told) = channel();
    thread::spawn(move || {
        // Dropped after what the table keeps for the thread, or before it: either order is one that a program may have.
        let early = tell.clone();
        LAST.set(Some(Last(handle, tell)));
        number(&TABLE, handle).unwrap();
        early.send(0).unwrap();
    })
    .join()
    .unwrap();
    assert_eq!(told.iter().collect::<Vec<_>>(), [0, 9]);
    TABLE.remove(handle, |_| ()).unwrap();
}

#[test]
fn object_is_whole_while_threads_use_it_and_others_remove_it() {
    table!(TABLE);
    let rounds = if cfg!(miri) { 3 } else { 200 };
    for round in 0..rounds {
        let dropped = Arc::new(AtomicU32::new(0));
        let handle = TABLE.insert(Thing(round, dropped.clone())).unwrap();
        thread::scope(|scope| {
            let users = [(); 2].map(|()| {
                scope.spawn(move || {
                    while let Ok((number, dropped)) =
                        TABLE.with(handle, |thing| (thing.0, thing.1.load(Ordering::SeqCst)))
                    {
                        assert_eq!((number, dropped), (round, 0));
                    }
                })
            });
            let removers = [(); 2].map(|()| scope.spawn(move || TABLE.remove(handle, |_| ()).is_ok()));
            let removed = removers.map(|remover| remover.join().unwrap());
            assert!(removed[0] != removed[1], "one remover takes it: {removed:?}");
            for user in users {
                user.join().unwrap();
            }
        });
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }
}

/// Whether `body` says so in a child, which is ended if it waits.
#[cfg(not(miri))]
fn in_child(body: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child allocates what malloc gives after fork in glibc, and ends without destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: changes nothing but when the signal comes.
        unsafe { libc::alarm(20) };
        let code = i32::from(!body());
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code) };
    }
    let mut status = -1;
    // SAFETY: waits for the child that was just made; `status` is ours.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    status == 0
}

#[test]
#[cfg(not(miri))]
fn child_does_not_wait_for_threads_that_it_does_not_have() {
    table!(TABLE);
    let handle = TABLE.insert(thing(1)).unwrap();
    let (inside, is_inside) = channel();
    let (leave, told) = channel::<()>();
    let using = thread::spawn(move || {
        TABLE.with(handle, |_| {
            inside.send(()).unwrap();
            told.recv().unwrap();
        })
    });
    is_inside.recv().unwrap();
    assert!(in_child(|| TABLE.remove(handle, |_| ()).is_ok()), "the child waits for a thread of its parent");
    leave.send(()).unwrap();
    using.join().unwrap().unwrap();
    TABLE.remove(handle, |_| ()).unwrap();
}

#[test]
#[cfg(not(miri))]
fn child_takes_handles_whatever_other_threads_were_doing_with_the_table() {
    table!(TABLE);
    let is_over = AtomicU32::new(0);
    thread::scope(|scope| {
        let others = [(); 3].map(|()| {
            scope.spawn(|| {
                while is_over.load(Ordering::SeqCst) == 0 {
                    let handles = [(); 50].map(|()| TABLE.insert(thing(1)).unwrap());
                    for handle in handles {
                        TABLE.remove(handle, |_| ()).unwrap();
                    }
                }
            })
        });
        let are_good = (0..500).all(|_| {
            in_child(|| {
                let [first, second] = [1, 2].map(|number| TABLE.insert(thing(number)).unwrap());
                let is_own = number(&TABLE, first).is_ok_and(|found| found == 1);
                is_own
                    && TABLE.remove(first, |_| ()).is_ok()
                    && number(&TABLE, second).is_ok_and(|found| found == 2)
            })
        });
        is_over.store(1, Ordering::SeqCst);
        for other in others {
            other.join().unwrap();
        }
        assert!(are_good, "a child waits for a thread of its parent, or has lost its handles");
    });
}
