//! What this process has mapped, as the kernel lists it. Read in small parts, because it is asked when nothing more can be mapped.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Seek};
use std::sync::{Mutex, PoisonError};

use crate::PerProcess;

/// The list, open since it was needed first: it is read, too, when no file more can be opened.
static KEPT: PerProcess<Mutex<File>> = PerProcess::new();

/// A line of `/proc/self/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) start: usize,
    /// Behind the last byte.
    pub(super) end: usize,
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
    pub(super) is_shared: bool,
    /// Where in its file the mapping begins.
    pub(super) offset_bytes: u64,
    pub(super) device: (u32, u32),
    /// 0 where there is no file.
    pub(super) inode: u64,
    /// Path or other name; empty for memory without.
    name: String,
}

impl Entry {
    /// The path or other name, in words where there is none.
    pub(super) fn name(&self) -> &str {
        if self.name.is_empty() { "memory without a name" } else { &self.name }
    }
}

/// `55d0c000-55d0d000 r--p 00001000 fe:00 1234   /path`
fn parse(line: &str) -> Option<Entry> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let offset_bytes = u64::from_str_radix(fields.next()?, 16).ok()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    Some(Entry {
        start: usize::from_str_radix(start, 16).ok()?,
        end: usize::from_str_radix(end, 16).ok()?,
        is_readable: rights.starts_with('r'),
        is_writable: rights.get(1..2) == Some("w"),
        is_shared: rights.ends_with('s'),
        offset_bytes,
        device: (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?),
        inode: fields.next()?.parse().ok()?,
        name: fields.next().unwrap_or_default().trim().to_owned(),
    })
}

/// The addresses of a line, behind the last one too.
fn addresses(line: &[u8]) -> Option<(usize, usize)> {
    let (start, end) = std::str::from_utf8(line.split(|byte| *byte == b' ').next()?).ok()?.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}

/// Mappings that have bytes of a range, ascending.
///
/// # Errors
/// The kernel's list cannot be opened or not be read to the end of the range: what is mapped is not known.
pub(super) fn inside(start: usize, bytes: usize) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    with_list(|file| {
        entries = inside_of(BufReader::new(file), (start, start.saturating_add(bytes)))?;
        Ok(())
    })?;
    Ok(entries)
}

/// Opens the list so that [`inside`] can read it later, whatever happens to the limit of open files.
pub(super) fn keep_open() -> io::Result<()> {
    KEPT.get_or_try_init(|| File::open("/proc/self/maps").map(Mutex::new)).map(|_| ())
}

/// A new file where there can be one: under an emulator the list is as it was when it was opened.
fn with_list(read: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    match (File::open("/proc/self/maps"), KEPT.get()) {
        (Ok(file), _) => read(&file),
        (Err(error), None) => Err(error),
        (Err(_), Some(kept)) => {
            let mut file = kept.lock().unwrap_or_else(PoisonError::into_inner);
            file.rewind()?;
            read(&file)
        }
    }
}

fn inside_of(mut lines: impl BufRead, (start, end): (usize, usize)) -> io::Result<Vec<Entry>> {
    let (mut entries, mut line) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok(entries);
        }
        let (first, behind) = addresses(&line).ok_or(ErrorKind::InvalidData)?;
        if first >= end {
            return Ok(entries);
        }
        if behind > start {
            entries.push(parse(&String::from_utf8_lossy(&line)).ok_or(ErrorKind::InvalidData)?);
        }
    }
}

/// Whether this process has locked any memory into RAM. It has where that is not known.
pub(super) fn has_locked() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    locked.is_none_or(|locked| locked.trim() != "0 kB")
}

/// The parts of a range that are locked into RAM, each by its first address and the one behind its last. Takes the kernel as long as
/// this process has pages up to there.
///
/// # Errors
/// As for [`inside`].
pub(super) fn locked_inside(start: usize, bytes: usize) -> io::Result<Vec<(usize, usize)>> {
    let file = BufReader::new(File::open("/proc/self/smaps")?);
    locked_inside_of(file, (start, start.saturating_add(bytes)))
}

/// A mapping's line, and then lines of what is known of it.
fn locked_inside_of(
    mut lines: impl BufRead,
    (start, end): (usize, usize),
) -> io::Result<Vec<(usize, usize)>> {
    let (mut parts, mut inside, mut line) = (Vec::new(), None, Vec::new());
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok(parts);
        }
        if let Some(flags) = line.strip_prefix(b"VmFlags:") {
            let is_locked = flags.split(u8::is_ascii_whitespace).any(|flag| flag == b"lo");
            parts.extend(inside.take().filter(|_| is_locked));
        } else if let Some((first, behind)) = addresses(&line) {
            if first >= end {
                return Ok(parts);
            }
            inside = (behind > start).then_some((first.max(start), behind.min(end)));
        }
    }
}

/// How many mappings the process has, and how many it may have.
pub(super) fn count() -> Option<(usize, usize)> {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()?;
    let mut lines = BufReader::new(File::open("/proc/self/maps").ok()?);
    let mut count = 0;
    loop {
        let part = lines.fill_buf().ok()?;
        if part.is_empty() {
            return Some((count, limit));
        }
        count += part.iter().filter(|byte| **byte == b'\n').count();
        let read = part.len();
        lines.consume(read);
    }
}

/// Addresses of what a list of mappings says of a range, and of what one of their locks does; nothing of a list that is none.
#[cfg(fuzzing)]
pub fn fuzzed(list: &[u8], range: (usize, usize)) -> Option<Vec<(usize, usize)>> {
    let locked = locked_inside_of(list, range).ok()?;
    assert!(locked.iter().all(|(start, end)| *start >= range.0 && *end <= range.1));
    let entries = inside_of(list, range).ok()?;
    assert!(entries.iter().all(|entry| entry.start < range.1 && entry.end > range.0));
    assert!(entries.iter().all(|entry| !entry.name().is_empty()));
    Some(entries.iter().map(|entry| (entry.start, entry.end)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let shared = parse("7f00a000-7f00c000 rw-s 00001000 00:01 2051        /memfd:x (deleted)").unwrap();
        assert_eq!((shared.start, shared.end, shared.is_shared), (0x7f00_a000, 0x7f00_c000, true));
        assert_eq!((shared.offset_bytes, shared.device, shared.inode), (4096, (0, 1), 2051));
        assert_eq!(shared.name, "/memfd:x (deleted)");
        let private = parse("7f00a000-7f00c000 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!((private.is_shared, private.inode, &*private.name), (false, 0, ""));
        assert!(private.is_readable && private.is_writable);
        let none = parse("7f00a000-7f00c000 ---p 00000000 00:00 0 ").unwrap();
        assert!(!none.is_readable && !none.is_writable);
        for line in ["", "7f00a000 rw-p", "x-y rw-p 0 00:00 0", "1-2 rw-p 0 0000 0", "1-2 rw-p 0 0:0 x"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    const SMAPS: &str = "1000-3000 rw-p 00000000 00:00 0 \nSize: 8 kB\nVmFlags: rd wr lo ac\n\
                         3000-5000 rw-p 00000000 00:00 0 \nRss: 0 kB\nVmFlags: rd wr mr\n\
                         5000-6000 rw-p 00000000 00:00 0 \nRss: 0 kB\nVmFlags: rd wr lo\n";

    #[test]
    fn parts_that_are_locked_are_found_by_the_flags_of_their_mappings() {
        let locked = |start, end| locked_inside_of(SMAPS.as_bytes(), (start, end)).unwrap();
        assert_eq!(locked(0x2000, 0x5800), [(0x2000, 0x3000), (0x5000, 0x5800)]);
        assert_eq!(locked(0, 0x1001), [(0x1000, 0x1001)]);
        assert!(locked(0x3000, 0x5000).is_empty() && locked(0, 0x1000).is_empty());
    }

    /// What is read, and then an error.
    struct Broken<'a>(&'a [u8]);

    impl io::Read for Broken<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            match self.0.read(to)? {
                0 => Err(ErrorKind::OutOfMemory.into()),
                read => Ok(read),
            }
        }
    }

    #[test]
    fn list_that_cannot_be_read_is_an_error_unless_the_range_has_been_passed() {
        let text = b"1000-3000 rw-p 00000000 00:00 0 /caf\xe9\n3000-5000 rw-p 00000000 00:00 0 \n".as_slice();
        let found = |text, range| inside_of(BufReader::new(Broken(text)), range).map(|found| found.len());
        assert_eq!(found(text, (0x1000, 0x2000)).unwrap(), 1);
        assert_eq!(found(text, (0x1000, 0x5001)).unwrap_err().kind(), ErrorKind::OutOfMemory);
        let odd = found(b"1000-3000 rw-p 0\n", (0x1000, 0x2000));
        assert_eq!(odd.unwrap_err().kind(), ErrorKind::InvalidData);
        let locked = locked_inside_of(BufReader::new(Broken(SMAPS.as_bytes())), (0x1000, 0x7000));
        assert_eq!(locked.unwrap_err().kind(), ErrorKind::OutOfMemory);
    }

    #[cfg(not(miri))]
    proptest::proptest! {
        /// Whatever a line is, it is read as what it says or as nothing.
        #[test]
        fn lines_come_back_as_they_were_written(
            start in 0usize..1 << 47, pages in 1usize..1 << 20, rights in "[r-][w-][x-][ps]", offset in 0u64..1 << 50,
            device in (0u32..4096, 0u32..1 << 20), inode: u64, name in "[ -~]{0,40}",
        ) {
            let end = start + pages * 4096;
            let line = format!(
                "{start:08x}-{end:08x} {rights} {offset:08x} {:02x}:{:02x} {inode} {name}", device.0, device.1
            );
            let entry = parse(&line).unwrap();
            proptest::prop_assert_eq!((entry.start, entry.end, entry.offset_bytes), (start, end, offset));
            proptest::prop_assert_eq!((entry.device, entry.inode, &*entry.name), (device, inode, name.trim()));
            let found = (entry.is_readable, entry.is_writable, entry.is_shared);
            proptest::prop_assert_eq!(found, (&rights[..1] == "r", &rights[1..2] == "w", &rights[3..] == "s"));
        }

        #[test]
        fn other_lines_are_none_and_no_panic(line in "\\PC{0,80}") {
            let _ = parse(&line);
        }
    }

    #[test]
    #[cfg(not(miri))]
    fn own_stack_is_among_the_mappings() {
        let here = 0u8;
        let found = inside((&raw const here).addr(), 1).unwrap();
        assert!(found.len() == 1 && !found[0].is_shared, "{found:?}");
        let (count, limit) = count().unwrap();
        assert!(count > 5 && count < limit, "{count} of {limit}");
    }
}
