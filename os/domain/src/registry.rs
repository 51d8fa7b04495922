//! A registry: who has what under which number, for the processes of a domain.
//!
//! It is a file of words in the domain's folder ([`words`]) that is read and written with `pread` and `pwrite` and never mapped, so no
//! process can be harmed by who cuts it. A *holder* is a process that has joined; it puts entries in and takes them out, each in
//! one word, under a record lock of the entry's bucket. A reader takes no lock and waits for nobody.
//!
//! The kernel's word alone says that a holder lives: a record lock that it has as long as it does, and that its children do not
//! inherit. So a process may be killed between any two system calls: a word is there or not, and the entries of the dead are no
//! entries. Who meets one in the way of its own clears it, and who joins sweeps what the dead have left, before a place is given away.
//!
//! What it does not do: say anything about what an entry stands for, which its holder does elsewhere (record 0040).

mod error;
mod file;
mod members;
mod room;
pub(crate) mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

pub use error::{PutError, RegistryError};
pub(crate) use file::open_file;
pub(crate) use members::Member;
pub(crate) use room::{make_room, write_whole};
pub use words::{Entry, Found, Kind};

use crate::Domain;
use crate::folder::own_uid;
use crate::name::Name;
use crate::registry::file::{Files, PATIENCE, TIDY_PATIENCE};
use crate::registry::words::{
    BUCKET_BYTES, BUCKETS, Bucket, HOLDERS, Placed, Plan, WORD_BYTES, bucket_of, holder_offset, word_offset,
};

/// Buckets that a look at all of them reads at a time: 64 KiB.
const BUCKETS_A_READ: usize = 128;

/// A registry of a domain, open in this process. Clones are the same one.
///
/// Cost, in system calls: [`Registry::find`] two, and three more for each entry that it finds; [`Holder::put`] and
/// [`Holder::remove`] about ten. A registry is a file of 1.1 MB, and two descriptors of each process.
#[derive(Clone)]
pub struct Registry(Arc<Files>);

/// A holder, as somebody sees it who looks at the whole registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// With which it joined.
    pub number: NonZeroU64,
    pub life: Life,
    /// Entries that it has, or has left.
    pub entries: usize,
}

/// Whether a holder lives, by the kernel's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Alive {
        /// Its process; 0 outside this pid namespace.
        pid: u32,
    },
    Dead,
}

/// A process that has joined a registry, and may put entries in. Dropping it takes all of them out.
///
/// It is the joining process's alone: a child of fork that drops its copy does the parent no harm.
#[derive(Debug)]
pub struct Holder {
    files: Arc<Files>,
    place: u16,
    number: NonZeroU64,
}

impl Domain {
    /// The names of the registries that there are, sorted; what has such a name may be no registry.
    ///
    /// # Errors
    /// The domain has no folder, or one that this user may not list.
    pub fn registries(&self) -> Result<Vec<String>, RegistryError> {
        let folder = self.place().folder().ok_or(RegistryError::NoFolder)?;
        let files = folder.files()?;
        let mut names: Vec<_> = files.iter().filter_map(|file| file::name_of(file)).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Opens the registry of this name, and makes it if it is not there. Another user's domain has those that its owner has made; they
    /// are for reading.
    ///
    /// # Errors
    /// The name is none; the domain has no folder, or one of a network file system; another user keeps the registry for himself; the
    /// file was cut, or another version of this library made it.
    pub fn registry(&self, name: &str) -> Result<Registry, RegistryError> {
        let (name, place) = (Name::new(name)?, self.place());
        place.check()?;
        let folder = place.folder().ok_or(RegistryError::NoFolder)?;
        let is_own = place.owner_uid() == own_uid();
        let files = if is_own { Files::open_own(folder, &name) } else { Files::open_foreign(folder, &name) };
        files.map(Registry)
    }
}

impl Registry {
    /// Joins as a holder under a number by which others find this process. Choose it at random: nobody checks that no other has it.
    /// What holders have left that were killed is swept.
    ///
    /// # Errors
    /// 8,192 holders live; the registry is another user's; the file was removed or cut.
    pub fn join(&self, number: NonZeroU64) -> Result<Holder, RegistryError> {
        let files = &self.0;
        files.check_to_write()?;
        let _alone = files.move_alone();
        sweep(files)?;
        for (place, _) in holders(files)?.into_iter().filter(|(_, number)| number.is_none()) {
            if files.own().contains_key(&place) || !files.try_lock_place(place)? {
                continue;
            }
            if let Some(holder) = settle(files, place, number).inspect_err(|_| files.leave_place(place))? {
                return Ok(holder);
            }
            // Somebody has died there since, and is swept by the next who joins.
            files.leave_place(place);
        }
        Err(RegistryError::NoHolderFree { path: files.path() })
    }

    /// Finds the entries of an id whose holders live, at most 64. Takes no lock, and waits for nobody: an entry that is put in or taken
    /// out meanwhile is found or not. In another user's registry entries of the dead are found, too: connecting tells who lives.
    ///
    /// # Errors
    /// The file was cut; this process was forked from the one that opened the registry.
    pub fn find(&self, kind: Kind, id: u32) -> Result<Vec<Found>, RegistryError> {
        let files = &*self.0;
        files.check()?;
        let (number, mut bytes) = (bucket_of(kind, id), [0; BUCKET_BYTES]);
        files.read(word_offset(number, 0), &mut bytes)?;
        let mut found = Vec::new();
        for (place, placed) in Bucket::new(number, &bytes).entries_of(kind, id) {
            found.extend(examine(files, number, place, placed)?);
        }
        Ok(found)
    }

    /// Every entry whose holder lives, as [`Registry::find`] finds them. Reads the whole file, 1 MiB.
    ///
    /// # Errors
    /// The file was cut; this process was forked from the one that opened the registry.
    pub fn entries(&self) -> Result<Vec<Found>, RegistryError> {
        let files = &*self.0;
        files.check()?;
        let mut found = Vec::new();
        for_each_bucket(files, |bucket| {
            for (place, placed) in bucket.entries() {
                found.extend(examine(files, bucket.number(), place, placed)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The numbers of the holders that live; in another user's registry, of all that are known.
    ///
    /// # Errors
    /// The file was cut; this process was forked from the one that opened the registry.
    pub fn holders(&self) -> Result<Vec<NonZeroU64>, RegistryError> {
        let files = &*self.0;
        files.check()?;
        let mut living = Vec::new();
        for (place, number) in holders(files)? {
            if let Some(number) = number
                && is_alive(files, place)?
            {
                living.push(number);
            }
        }
        Ok(living)
    }

    /// Everybody who has a place here, and how many entries each has: those that live, and those that have died and were not swept yet.
    /// Reads the whole file, 1 MiB.
    ///
    /// # Errors
    /// The registry is another user's, whose locks alone say who lives; the file was cut; this process was forked from the one that
    /// opened the registry.
    pub fn residents(&self) -> Result<Vec<Resident>, RegistryError> {
        let files = &*self.0;
        files.check()?;
        let mut residents = BTreeMap::new();
        for (place, number) in holders(files)? {
            let Some(number) = number else { continue };
            let life = match files.own().contains_key(&place) {
                true => Life::Alive { pid: std::process::id() },
                false => files.life(place)?.map_or(Life::Dead, |pid| Life::Alive { pid }),
            };
            residents.insert(place, Resident { number, life, entries: 0 });
        }
        for_each_bucket(files, |bucket| {
            for (_, placed) in bucket.entries() {
                if let Some(resident) = residents.get_mut(&placed.holder) {
                    resident.entries += 1;
                }
            }
            Ok(())
        })?;
        Ok(residents.into_values().collect())
    }

    /// Takes out what holders have left that were killed, as [`Registry::join`] does; says how many words that were.
    ///
    /// # Errors
    /// The registry is another user's; the file was removed or cut.
    pub fn sweep(&self) -> Result<usize, RegistryError> {
        self.0.check_to_write()?;
        let _alone = self.0.move_alone();
        sweep(&self.0)
    }

    /// Lets every user of the machine read the registry who knows the folder; nobody but its owner writes it or locks parts of it.
    ///
    /// # Errors
    /// The registry is another user's.
    pub fn let_others_read(&self) -> Result<(), RegistryError> {
        self.0.check_to_write()?;
        self.0.let_others_read()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Registry").field(&self.0.path()).finish()
    }
}

impl Holder {
    /// The number with which it joined.
    pub fn number(&self) -> NonZeroU64 {
        self.number
    }

    /// Puts an entry in. `may` is asked of each entry of the same id that somebody has who lives, this process included: whether the
    /// new one may be beside it. It decides alone: nobody puts in or takes out another entry of the id meanwhile. It must
    /// not use the registry.
    ///
    /// # Errors
    /// There is such an entry, or this very one; there is no room for the id; a process is stopped while it puts something in near
    /// this one; the file was removed or cut.
    pub fn put(&self, entry: Entry, may: impl FnMut(Found) -> bool) -> Result<(), PutError> {
        self.put_if(entry, may, |_| true)
    }

    /// Puts an entry in beside those of the same id that somebody has who lives, this process included. `may` is asked once, with all of
    /// them, and decides alone, as that of [`Holder::put`] does: nobody puts in or takes out another entry of the id meanwhile. It must
    /// not use the registry.
    ///
    /// # Errors
    /// As [`Holder::put`].
    pub fn put_beside(&self, entry: Entry, may: impl FnOnce(&[Found]) -> bool) -> Result<(), PutError> {
        self.put_if(entry, |_| true, may)
    }

    fn put_if(
        &self,
        entry: Entry,
        mut may: impl FnMut(Found) -> bool,
        may_all: impl FnOnce(&[Found]) -> bool,
    ) -> Result<(), PutError> {
        let files = &*self.files;
        files.check_to_write()?;
        let new = Placed { entry, holder: self.place };
        let number = bucket_of(entry.kind, entry.id);
        let _locked = files.lock_bucket(number, PATIENCE)?;
        let mut bytes = [0; BUCKET_BYTES];
        files.read(word_offset(number, 0), &mut bytes)?;
        let mut refused = Found { entry, number: self.number };
        let mut living = Vec::new();
        let may = |placed: Placed| {
            // A holder without a number is about to leave.
            let Some(number) = number_at(files, placed.holder)? else { return Ok(true) };
            refused = Found { entry: placed.entry, number };
            living.push(refused);
            Ok::<_, RegistryError>(may(refused))
        };
        match Bucket::new(number, &bytes).plan(new, |holder| is_alive(files, holder), may)? {
            Plan::Put { .. } if !may_all(&living) => Err(PutError::Taken { found: refused }),
            Plan::Put { place, cleared } => {
                for cleared in cleared {
                    files.write_word(word_offset(number, cleared), 0)?;
                }
                Ok(files.write_word(word_offset(number, place), new.to_word())?)
            }
            Plan::Taken => Err(PutError::Taken { found: refused }),
            Plan::Full => Err(PutError::Full),
        }
    }

    /// Takes this very entry of this holder out; `false` when it is not there.
    ///
    /// # Errors
    /// A process is stopped while it puts something in near this one; the file was removed or cut.
    pub fn remove(&self, entry: Entry) -> Result<bool, RegistryError> {
        let files = &*self.files;
        files.check_to_write()?;
        let number = bucket_of(entry.kind, entry.id);
        let _locked = files.lock_bucket(number, PATIENCE)?;
        let mut bytes = [0; BUCKET_BYTES];
        files.read(word_offset(number, 0), &mut bytes)?;
        let own = Placed { entry, holder: self.place };
        let Some(place) = Bucket::new(number, &bytes).place_of(own) else { return Ok(false) };
        files.write_word(word_offset(number, place), 0)?;
        Ok(true)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let files = &*self.files;
        if !files.is_of_this_process() {
            return;
        }
        let _alone = files.move_alone();
        let taken_out = files.check_to_write().and_then(|()| clear(files, |holder| holder == self.place));
        // Where words are left it is as if this process had been killed: the next who joins sweeps them.
        let given_up = taken_out.and_then(|cleared| match cleared.left.is_empty() {
            true => files.write_word(holder_offset(self.place), 0),
            false => Ok(()),
        });
        if let Err(error) = given_up {
            tracing::debug!(%error, "a holder leaves entries in a registry");
        }
        files.own().remove(&self.place);
        files.leave_place(self.place);
    }
}

/// Has this process live at a place that it has locked; `None` if somebody has left something there.
fn settle(files: &Arc<Files>, place: u16, number: NonZeroU64) -> Result<Option<Holder>, RegistryError> {
    if number_at(files, place)?.is_some() || !files.settle(place)? {
        return Ok(None);
    }
    files.write_word(holder_offset(place), number.get())?;
    files.own().insert(place, number);
    Ok(Some(Holder { files: Arc::clone(files), place, number }))
}

/// Every place and the number there.
fn holders(files: &Files) -> Result<Vec<(u16, Option<NonZeroU64>)>, RegistryError> {
    let mut bytes = vec![0; HOLDERS * WORD_BYTES];
    files.read(holder_offset(0), &mut bytes)?;
    Ok((0..).zip(words::words(&bytes).map(NonZeroU64::new)).collect())
}

fn number_at(files: &Files, place: u16) -> Result<Option<NonZeroU64>, RegistryError> {
    Ok(NonZeroU64::new(files.read_word(holder_offset(place))?))
}

/// Whether somebody lives at a place. Of another user's registry nobody knows.
fn is_alive(files: &Files, place: u16) -> Result<bool, RegistryError> {
    Ok(files.is_foreign() || files.own().contains_key(&place) || files.is_lived_in(place)?)
}

/// What a word says that was read without a lock, if it holds. It is read once more when all is known of its holder, so a word that was
/// written meanwhile, or read in two halves, is not believed.
fn examine(
    files: &Files,
    bucket: usize,
    place: usize,
    placed: Placed,
) -> Result<Option<Found>, RegistryError> {
    if !is_alive(files, placed.holder)? {
        return Ok(None);
    }
    let number = number_at(files, placed.holder)?;
    let is_still_there = files.read_word(word_offset(bucket, place))? == placed.to_word();
    Ok(number.filter(|_| is_still_there).map(|number| Found { entry: placed.entry, number }))
}

/// Calls `look` with every bucket, as it was a moment ago.
fn for_each_bucket(
    files: &Files,
    mut look: impl FnMut(Bucket<'_>) -> Result<(), RegistryError>,
) -> Result<(), RegistryError> {
    let mut bytes = vec![0; BUCKETS_A_READ * BUCKET_BYTES];
    for first in (0..BUCKETS).step_by(BUCKETS_A_READ) {
        files.read(word_offset(first, 0), &mut bytes)?;
        for (number, bytes) in (first..).zip(bytes.chunks_exact(BUCKET_BYTES)) {
            look(Bucket::new(number, bytes))?;
        }
    }
    Ok(())
}

/// What was taken out.
#[derive(Debug, Default)]
struct Cleared {
    words: usize,
    /// Holders of words that are still there, because somebody is stopped in their bucket.
    left: BTreeSet<u16>,
}

/// Takes out every word of these holders, none of whom puts anything in.
fn clear(files: &Files, is_meant: impl Fn(u16) -> bool) -> Result<Cleared, RegistryError> {
    let mut cleared = Cleared::default();
    for_each_bucket(files, |bucket| {
        let meant: BTreeSet<u16> =
            bucket.entries().map(|(_, placed)| placed.holder).filter(|holder| is_meant(*holder)).collect();
        if meant.is_empty() {
            return Ok(());
        }
        let _locked = match files.lock_bucket(bucket.number(), TIDY_PATIENCE) {
            Ok(locked) => locked,
            Err(RegistryError::Busy { .. }) => {
                cleared.left.extend(meant);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        // Who had the lock before may have put another's word in one's place.
        let mut bytes = [0; BUCKET_BYTES];
        files.read(word_offset(bucket.number(), 0), &mut bytes)?;
        for (place, placed) in Bucket::new(bucket.number(), &bytes).entries() {
            if is_meant(placed.holder) {
                files.write_word(word_offset(bucket.number(), place), 0)?;
                cleared.words += 1;
            }
        }
        Ok(())
    })?;
    Ok(cleared)
}

/// Places of the dead, locked so that nobody joins there.
struct Dead<'a> {
    files: &'a Files,
    places: BTreeSet<u16>,
}

impl Drop for Dead<'_> {
    fn drop(&mut self) {
        self.places.iter().for_each(|place| self.files.leave_place(*place));
    }
}

/// Takes out what the dead have left, and gives their places free; for who keeps other threads from joining meanwhile.
fn sweep(files: &Files) -> Result<usize, RegistryError> {
    let mut dead = Dead { files, places: BTreeSet::new() };
    for (place, number) in holders(files)? {
        if number.is_some() && !files.own().contains_key(&place) && files.try_lock_place(place)? {
            dead.places.insert(place);
        }
    }
    if dead.places.is_empty() {
        return Ok(0);
    }
    let cleared = clear(files, |holder| dead.places.contains(&holder))?;
    for place in dead.places.difference(&cleared.left) {
        files.write_word(holder_offset(*place), 0)?;
    }
    Ok(cleared.words)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::DomainConfig;

    fn registry(dir: &tempfile::TempDir) -> Registry {
        let config = DomainConfig { root: Some(dir.path().to_owned()), name: "d".to_owned() };
        Domain::open(&config).unwrap().registry("names").unwrap()
    }

    #[test]
    fn word_that_is_no_longer_there_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let registry = registry(&dir);
        let holder = registry.join(NonZeroU64::MIN).unwrap();
        let entry = Entry { kind: Kind::new(1).unwrap(), id: 7, slot: 0 };
        holder.put(entry, |_| false).unwrap();
        let bucket = bucket_of(entry.kind, entry.id);
        let look = |entry| examine(&registry.0, bucket, 0, Placed { entry, holder: holder.place }).unwrap();
        assert_eq!(look(entry), Some(Found { entry, number: NonZeroU64::MIN }));
        assert_eq!(look(Entry { slot: 1, ..entry }), None, "half of another word");
        holder.remove(entry).unwrap();
        assert_eq!(look(entry), None);
    }

    #[test]
    fn who_decides_whether_an_entry_is_put_beside_others_has_all_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let registry = registry(&dir);
        let numbers = [1, 2, 3].map(|number| NonZeroU64::new(number).unwrap());
        let holders = numbers.map(|number| registry.join(number).unwrap());
        let entry = Entry { kind: Kind::new(1).unwrap(), id: 7, slot: 0 };
        let found = |number| Found { entry, number };
        holders[0].put_beside(entry, |all| all.is_empty()).unwrap();
        let refused = holders[1].put_beside(entry, |all| all.is_empty());
        assert!(
            matches!(refused, Err(PutError::Taken { found: it }) if it == found(numbers[0])),
            "{refused:?}"
        );
        assert_eq!(registry.find(entry.kind, 7).unwrap(), [found(numbers[0])]);
        holders[1].put_beside(entry, |all| *all == [found(numbers[0])]).unwrap();
        let both = [found(numbers[0]), found(numbers[1])];
        holders[2].put_beside(entry, |all| *all == both).unwrap();
        assert!(holders[2].put_beside(entry, |_| true).is_err(), "it is there");
    }

    #[test]
    fn names_of_registries_are_those_of_files_of_words() {
        let dir = tempfile::tempdir().unwrap();
        let registry = registry(&dir);
        std::fs::write(dir.path().join("d/b.2.registry"), "").unwrap();
        for other in ["Registry.registry", ".registry", "c.sock", "c.registry.old"] {
            std::fs::write(dir.path().join("d").join(other), "").unwrap();
        }
        let config = DomainConfig { root: Some(dir.path().to_owned()), name: "d".to_owned() };
        let domain = Domain::open(&config).unwrap();
        assert_eq!(domain.registries().unwrap(), ["b.2", "names"]);
        drop(registry);
        let config = DomainConfig::in_network_namespace("beeline-test-registries");
        let nowhere = Domain::open(&config).unwrap().registries();
        assert!(matches!(nowhere, Err(RegistryError::NoFolder)), "{nowhere:?}");
    }

    #[test]
    fn who_joins_leaves_or_sweeps_waits_for_a_thread_that_does() {
        let dir = tempfile::tempdir().unwrap();
        let registry = registry(&dir);
        let leaving = registry.join(NonZeroU64::MIN).unwrap();
        let alone = registry.0.move_alone();
        std::thread::scope(|scope| {
            let moves = [
                scope.spawn(|| drop(registry.join(NonZeroU64::MAX).unwrap())),
                scope.spawn(|| drop(leaving)),
                scope.spawn(|| assert_eq!(registry.sweep().unwrap(), 0)),
            ];
            // Many times what each takes where nobody is waited for.
            std::thread::sleep(std::time::Duration::from_millis(100));
            let has_waited = moves.each_ref().map(|it| !it.is_finished());
            drop(alone);
            moves.into_iter().for_each(|it| it.join().unwrap());
            assert_eq!(has_waited, [true; 3], "joins, leaves, sweeps");
        });
        assert_eq!(registry.holders().unwrap(), []);
    }

    #[test]
    fn threads_that_join_leave_and_sweep_at_once_take_nothing_from_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let registry = registry(&dir);
        let (kind, barrier) = (Kind::new(1).unwrap(), std::sync::Barrier::new(3));
        let round = |id: u32, number| {
            let holder = registry.join(number).ok()?;
            let entry = Entry { kind, id, slot: 0 };
            holder.put(entry, |_| false).ok()?;
            registry.sweep().ok()?;
            Some(registry.find(kind, id).ok()? == [Found { entry, number }])
        };
        let rounds = &|thread: u32| {
            let number = NonZeroU64::from(NonZeroU32::new(thread).unwrap());
            let is_wrong = |id: &u32| {
                barrier.wait();
                round(*id, number) != Some(true)
            };
            (thread * 1000..).take(500).filter(is_wrong).count()
        };
        let wrong: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=3).map(|thread| scope.spawn(move || rounds(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(wrong, 0);
        assert_eq!((registry.entries().unwrap(), registry.holders().unwrap()), (vec![], vec![]));
    }
}
