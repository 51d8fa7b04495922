//! The file in which what was found is kept from program to program.
//!
//! It is believed only if it and its folder belong to this user alone, and speak of this machine. A file that is not believed,
//! or cannot be written, costs another timing and nothing else; whatever stands in it, only speed follows from it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use beeline_mmio::{StoreKernel, Traffic};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::line::same_placement;
use crate::machine::machine;
use crate::measure::Timing;
use crate::tuning::{ReceiveTuning, Tuning};

const FILE: &str = "tuning.json";
/// A file longer than this is not ours.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// Placements that are kept; those in use longest ago are forgotten.
const MAX_ENTRIES: usize = 8;
/// What was found longer ago is found anew: hypervisors, microcode and neighbours change.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// The clock may have been set back by so much since.
const MAX_CLOCK_STEP: Duration = Duration::from_secs(24 * 3600);
/// Texts and timings of an entry: no more are written.
const MAX_TEXT_BYTES: usize = 32;
const MAX_TIMINGS: usize = 64;

/// What was found for one placement of the cores. A program that only stores has timed only a kernel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Round trip of a bare line: the placement.
    pub line_ns: f64,
    pub found: SystemTime,
    pub latency: Option<StoreKernel>,
    pub stream: Option<StoreKernel>,
    pub receive: Option<ReceiveTuning>,
    pub timings: Vec<Timing>,
}

impl Entry {
    pub(crate) fn kernel(&self, traffic: Traffic) -> Option<StoreKernel> {
        match traffic {
            Traffic::Stream => self.stream,
            _ => self.latency,
        }
    }

    /// All of it, where all of it was timed.
    pub(crate) fn tuning(&self) -> Option<Tuning> {
        Some(Tuning { latency: self.latency?, stream: self.stream?, receive: self.receive? })
    }
}

/// The folder of the file, and what the file must be about.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    folder: PathBuf,
    machine: String,
    now: SystemTime,
}

impl Kept {
    /// In the user's cache folder; `None` where there is none, or nothing is known of the machine.
    pub(crate) fn of_this_user() -> Option<Self> {
        let absolute =
            |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache =
            absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
        Some(Kept { folder: cache.join("beeline"), machine: machine()?, now: SystemTime::now() })
    }

    /// Where the tunings are kept.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// What is kept, the one in use last first; nothing where the file is not believed.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.read().unwrap_or_default()
    }

    /// Keeps `entry` as the one in use last, in place of those of the same placement. Without the file the next program times
    /// again, so what hinders it is told to nobody but the log.
    pub(crate) fn keep(&self, entry: Entry) {
        let mut entries = self.entries();
        entries.retain(|kept| !same_placement(kept.line_ns, entry.line_ns));
        entries.insert(0, entry);
        entries.truncate(MAX_ENTRIES);
        if let Err(error) = self.write(&entries) {
            tracing::debug!(%error, folder = %self.folder.display(), "a tuning is not kept");
        }
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.now
    }

    fn read(&self) -> Option<Vec<Entry>> {
        let folder = self.open_folder().ok()?;
        // A pipe in the place of the file must not be waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&folder, FILE, flags, Mode::empty()).ok()?);
        if !is_private_file(&file) {
            return None;
        }
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut text).ok()?;
        let entries = parsed(&text, &self.machine)?.into_iter();
        Some(entries.filter(|entry| self.is_of_age(entry.found)).collect())
    }

    fn is_of_age(&self, found: SystemTime) -> bool {
        match self.now.duration_since(found) {
            Ok(age) => age <= MAX_AGE,
            Err(ahead) => ahead.duration() <= MAX_CLOCK_STEP,
        }
    }

    fn write(&self, entries: &[Entry]) -> io::Result<()> {
        self.make_folder()?;
        let folder = self.open_folder()?;
        let stored = Stored { machine: self.machine.clone(), entries: entries.iter().map(stored).collect() };
        // No pid: processes of two containers that share the folder may have the same, and one that was killed here leaves its file.
        let random = getrandom::u64().map_err(io::Error::other)?;
        let unfinished = format!("{FILE}.{random:016x}");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let private = Mode::from_raw_mode(0o600);
        let mut file = File::from(rustix::fs::openat(&folder, &unfinished, flags, private)?);
        let written = serde_json::to_vec(&stored).map_err(io::Error::other);
        let written = written.and_then(|text| file.write_all(&text));
        // A umask may have taken rights of the owner's.
        let written = written.and_then(|()| Ok(rustix::fs::fchmod(&file, private)?));
        let kept = written.and_then(|()| Ok(rustix::fs::renameat(&folder, &unfinished, &folder, FILE)?));
        if kept.is_err() {
            rustix::fs::unlinkat(&folder, &unfinished, AtFlags::empty())?;
        }
        kept
    }

    /// Makes the folder, in one of this user's own: root who kept something in a user's home would shut the user out.
    fn make_folder(&self) -> io::Result<()> {
        let missing: Vec<&Path> = self.folder.ancestors().take_while(|path| !path.exists()).collect();
        let above = missing.last().map_or(Some(self.folder.as_path()), |path| path.parent());
        let above = above.unwrap_or(Path::new("/"));
        if above.metadata()?.uid() != own_uid() {
            return Err(io::Error::other(format!("{} belongs to another user", above.display())));
        }
        missing.into_iter().rev().try_for_each(make_private)
    }

    /// The folder, if nobody but this user may put a file into it.
    fn open_folder(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, &self.folder, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&folder)?;
        if stat.st_uid != own_uid() || stat.st_mode & 0o022 != 0 {
            return Err(io::Error::other("others may write to the folder, or own it"));
        }
        Ok(folder)
    }
}

/// The entries of a file of this text, if every part of it can be believed.
pub(crate) fn parsed(text: &[u8], machine: &str) -> Option<Vec<Entry>> {
    let stored: Stored = serde_json::from_slice(text).ok()?;
    if stored.machine != machine || stored.entries.len() > MAX_ENTRIES {
        return None;
    }
    stored.entries.into_iter().map(StoredEntry::checked).collect()
}

/// Makes a folder of mode 0700, whatever the umask. One that another process makes at the same time is left to that process.
fn make_private(folder: &Path) -> io::Result<()> {
    match rustix::fs::mkdir(folder, Mode::RWXU) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    // Through a descriptor that is a mere path, which a folder without rights of its owner's can be opened as, and which does
    // not follow what somebody may have put in its place.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(CWD, folder, flags, Mode::empty())?;
    if rustix::fs::fstat(&made)?.st_mode & 0o700 == 0o700 {
        return Ok(());
    }
    let name = format!("/proc/self/fd/{}", made.as_raw_fd());
    Ok(rustix::fs::chmodat(CWD, name, Mode::RWXU, AtFlags::empty())?)
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether the open file is a plain one that this user owns and nobody else can read or change.
fn is_private_file(file: &File) -> bool {
    file.metadata().is_ok_and(|meta| {
        meta.is_file() && meta.uid() == own_uid() && meta.mode() & 0o077 == 0 && meta.len() <= MAX_FILE_BYTES
    })
}

/// What the file holds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    machine: String,
    entries: Vec<StoredEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredEntry {
    line_ns: f64,
    found_unix_s: u64,
    latency: Option<String>,
    stream: Option<String>,
    receive: Option<String>,
    timings: Vec<Timing>,
}

fn stored(entry: &Entry) -> StoredEntry {
    let name = |kernel: Option<StoreKernel>| kernel.map(|kernel| kernel.name().to_owned());
    StoredEntry {
        line_ns: entry.line_ns,
        found_unix_s: entry.found.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        latency: name(entry.latency),
        stream: name(entry.stream),
        receive: entry.receive.map(|receive| receive.to_string()),
        timings: entry.timings.clone(),
    }
}

impl StoredEntry {
    /// The entry, if every part of it can be one and be used here.
    fn checked(self) -> Option<Entry> {
        let is_timing = |timing: &Timing| {
            is_word(&timing.of) && is_word(&timing.candidate) && timing.ns.is_finite() && timing.ns > 0.0
        };
        let is_good = self.line_ns.is_finite()
            && self.line_ns > 0.0
            && self.timings.len() <= MAX_TIMINGS
            && self.timings.iter().all(is_timing);
        if !is_good {
            return None;
        }
        Some(Entry {
            line_ns: self.line_ns,
            found: UNIX_EPOCH.checked_add(Duration::from_secs(self.found_unix_s))?,
            latency: all_or_none(self.latency.as_deref(), kernel)?,
            stream: all_or_none(self.stream.as_deref(), kernel)?,
            receive: all_or_none(self.receive.as_deref(), |text| text.parse().ok())?,
            timings: self.timings,
        })
    }
}

/// What is there, read; `None` where it is there and cannot be read.
fn all_or_none<T>(text: Option<&str>, read: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
    match text {
        Some(text) => read(text).map(Some),
        None => Some(None),
    }
}

fn kernel(name: &str) -> Option<StoreKernel> {
    let kernel: StoreKernel = name.parse().ok()?;
    (kernel.is_available() && kernel.is_for_memory()).then_some(kernel)
}

/// A short word that a terminal prints as it is.
fn is_word(text: &str) -> bool {
    text.len() <= MAX_TEXT_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::once::tests::in_child;
    use crate::tuning::Prefetch;

    pub(crate) fn kept(folder: &Path) -> Kept {
        Kept {
            folder: folder.join("cache/beeline"),
            machine: "cpu: one\nrelease: two".to_owned(),
            now: UNIX_EPOCH + Duration::from_secs(2_000_000_000),
        }
    }

    pub(crate) fn entry(kept: &Kept, line_ns: f64) -> Entry {
        let receive =
            ReceiveTuning { prefetch: Prefetch::Read { lines: 16 }, in_groups: false, credit_parts: 4 };
        let timing = Timing { of: "stream".to_owned(), candidate: "cached".to_owned(), ns: 3.25 };
        Entry {
            line_ns,
            found: kept.now(),
            latency: Some(StoreKernel::Cached),
            stream: Some(StoreKernel::Cached),
            receive: Some(receive),
            timings: vec![timing],
        }
    }

    #[test]
    fn what_is_kept_is_read_again_from_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path());
        assert_eq!(kept.entries(), []);
        let whole = entry(&kept, 117.5);
        let part = Entry { stream: None, receive: None, timings: Vec::new(), ..entry(&kept, 560.0) };
        kept.keep(whole.clone());
        kept.keep(part.clone());
        assert_eq!(kept.entries(), [part.clone(), whole.clone()]);
        assert!(whole.tuning().is_some() && part.tuning().is_none());
        assert_eq!(part.kernel(Traffic::Latency), Some(StoreKernel::Cached));
        assert_eq!(part.kernel(Traffic::Stream), None);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&kept.path()), mode(&kept.folder)), (0o600, 0o700));
        assert_eq!(std::fs::read_dir(&kept.folder).unwrap().count(), 1, "no unfinished file is left");
    }

    #[test]
    fn what_is_kept_has_its_modes_whatever_the_umask() {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path());
        let entry = entry(&kept, 100.0);
        let keep = || {
            rustix::process::umask(Mode::from_raw_mode(0o777));
            kept.keep(entry.clone());
            1
        };
        assert_eq!(in_child(keep), Some(1));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let above = kept.folder.parent().unwrap();
        assert_eq!((mode(above), mode(&kept.folder), mode(&kept.path())), (0o700, 0o700, 0o600));
        assert_eq!(kept.entries().len(), 1);
    }

    #[test]
    fn entry_takes_the_place_of_those_within_half_of_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path());
        for line_ns in [100.0, 560.0, 140.0, 900.0] {
            kept.keep(entry(&kept, line_ns));
        }
        let lines: Vec<f64> = kept.entries().iter().map(|entry| entry.line_ns).collect();
        assert_eq!(lines, [900.0, 140.0, 560.0]);
        for line_ns in (0..20).map(|power| f64::from(power).exp2()) {
            kept.keep(entry(&kept, line_ns));
        }
        assert_eq!(kept.entries().len(), MAX_ENTRIES);
    }

    #[test]
    fn file_of_another_machine_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path());
        kept.keep(entry(&kept, 100.0));
        let other = Kept { machine: "cpu: three".to_owned(), ..kept.clone() };
        assert_eq!(other.entries(), []);
        assert_eq!(kept.entries().len(), 1);
    }

    #[test]
    fn old_entries_and_those_of_the_future_are_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path());
        kept.keep(entry(&kept, 100.0));
        let at = |now: SystemTime| Kept { now, ..kept.clone() }.entries().len();
        assert_eq!((at(kept.now + MAX_AGE), at(kept.now + MAX_AGE + Duration::from_secs(1))), (1, 0));
        let (step, second) = (MAX_CLOCK_STEP, Duration::from_secs(1));
        assert_eq!((at(kept.now - step), at(kept.now - step - second)), (1, 0));
    }

    #[test]
    fn garbage_is_not_believed_and_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path());
        kept.keep(entry(&kept, 100.0));
        let good = std::fs::read_to_string(kept.path()).unwrap();
        for bad in [
            String::new(),
            "\0".repeat(100),
            "x".repeat(70_000),
            good[..good.len() / 2].to_owned(),
            format!("{good} ").repeat(2),
            good.replace("\"latency\":\"cached\"", "\"latency\":\"fastest\""),
            good.replace("\"latency\":\"cached\"", "\"latency\":\"st64b\""),
            good.replace("\"line_ns\":100.0", "\"line_ns\":-1.0"),
            good.replace("\"line_ns\":100.0", "\"line_ns\":1e999"),
            good.replace("group=1", "group=3"),
            good.replace("credits=4", "credits=0"),
            good.replace("prefetch=read:16", "prefetch=read:99999"),
            good.replace("prefetch=", "default,prefetch="),
            good.replace("group=1,", ""),
            good.replace("\"of\":\"stream\"", "\"of\":\"\\u001b[2J\""),
            good.replace("\"ns\":3.25", "\"ns\":0.0"),
            good.replace("\"found_unix_s\":2000000000", "\"found_unix_s\":18446744073709551615"),
            good.replace("\"timings\"", "\"more\":1,\"timings\""),
        ] {
            assert_ne!(bad, good);
            std::fs::write(kept.path(), &bad).unwrap();
            assert_eq!(kept.entries(), [], "{bad}");
        }
        kept.keep(entry(&kept, 100.0));
        assert_eq!(std::fs::read_to_string(kept.path()).unwrap(), good);
    }

    #[test]
    fn file_or_folder_that_others_may_change_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path());
        kept.keep(entry(&kept, 100.0));
        let set = |path: &Path, mode: u32| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for (place, bad, good) in [(kept.path(), 0o622, 0o600), (kept.folder.clone(), 0o777, 0o700)] {
            set(&place, bad);
            assert_eq!(kept.entries(), [], "{}", place.display());
            set(&place, good);
            assert_eq!(kept.entries().len(), 1, "{}", place.display());
        }
        set(&kept.folder, 0o770);
        let before = std::fs::read(kept.path()).unwrap();
        kept.keep(entry(&kept, 600.0));
        assert_eq!(std::fs::read(kept.path()).unwrap(), before, "nothing is kept where others may write");
    }

    #[test]
    fn file_and_folder_of_another_user_are_not_believed() {
        // Only root may give files away; what others see is the owner's uid, and the mode is right.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path());
        kept.keep(entry(&kept, 100.0));
        for place in [kept.path(), kept.folder.clone()] {
            std::os::unix::fs::chown(&place, Some(1234), None).unwrap();
            assert_eq!(kept.entries(), [], "{}", place.display());
            std::os::unix::fs::chown(&place, Some(0), None).unwrap();
            assert_eq!(kept.entries().len(), 1);
        }
        let home = folder.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::os::unix::fs::chown(&home, Some(1234), None).unwrap();
        let foreign = Kept { folder: home.join(".cache/beeline"), ..kept };
        foreign.keep(entry(&foreign, 100.0));
        assert_eq!(std::fs::read_dir(&home).unwrap().count(), 0, "nothing is made in the home of another");
    }

    #[test]
    fn links_pipes_and_folders_in_its_place_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path());
        kept.keep(entry(&kept, 100.0));
        let elsewhere = folder.path().join("elsewhere");
        std::fs::rename(kept.path(), &elsewhere).unwrap();
        let good = std::fs::read(&elsewhere).unwrap();
        symlink(&elsewhere, kept.path()).unwrap();
        assert_eq!(kept.entries(), []);
        kept.keep(entry(&kept, 600.0));
        assert_eq!(std::fs::read(&elsewhere).unwrap(), good, "the link is replaced, not followed");
        assert_eq!(kept.entries().len(), 1);
        std::fs::remove_file(kept.path()).unwrap();
        rustix::fs::mknodat(CWD, kept.path(), rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .unwrap();
        assert_eq!(kept.entries(), [], "nobody waits for a pipe");
        std::fs::remove_file(kept.path()).unwrap();
        std::fs::create_dir(kept.path()).unwrap();
        kept.keep(entry(&kept, 600.0));
        assert_eq!((kept.entries(), std::fs::read_dir(&kept.folder).unwrap().count()), (Vec::new(), 1));
        std::fs::remove_dir(kept.path()).unwrap();
        kept.keep(entry(&kept, 600.0));
        assert_eq!(kept.entries().len(), 1);
        let moved = folder.path().join("moved");
        std::fs::rename(&kept.folder, &moved).unwrap();
        symlink(&moved, &kept.folder).unwrap();
        assert_eq!(kept.entries(), [], "the folder is a link");
    }

    /// As processes of two containers that are both pid 1 and share the folder, beside what a killed one has left there.
    #[test]
    fn tunings_are_kept_by_several_processes_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(folder.path());
        kept.keep(entry(&kept, 100.0));
        std::fs::write(kept.folder.join("tuning.json.left"), "unfinished").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        kept.keep(entry(&kept, 100.0));
                        assert_eq!(kept.entries().len(), 1);
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(&kept.folder).unwrap().count(), 2, "no file of these is left");
    }
}
