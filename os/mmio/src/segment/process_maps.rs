//! What this process has mapped, as the kernel lists it. Read in small parts, because it is asked when nothing more can be mapped.

use std::fs::File;
use std::io::{BufRead, BufReader};

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

/// Mappings that have bytes of a range, ascending. Empty where `/proc` is not mounted.
pub(super) fn inside(start: usize, bytes: usize) -> Vec<Entry> {
    let Ok(file) = File::open("/proc/self/maps") else { return Vec::new() };
    let end = start.saturating_add(bytes);
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    lines.filter_map(|line| parse(&line)).filter(|entry| entry.start < end && entry.end > start).collect()
}

/// Whether this process has locked any memory into RAM. It has where that is not known.
pub(super) fn has_locked() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    locked.is_none_or(|locked| locked.trim() != "0 kB")
}

/// Whether a mapping that has bytes of a range is locked into RAM. Takes the kernel as long as this process has pages.
pub(super) fn is_any_locked(start: usize, bytes: usize) -> bool {
    let Ok(file) = File::open("/proc/self/smaps") else { return false };
    is_any_locked_of(BufReader::new(file).lines().map_while(Result::ok), (start, start.saturating_add(bytes)))
}

/// A mapping's line, and then lines of what is known of it.
fn is_any_locked_of(lines: impl Iterator<Item = String>, (start, end): (usize, usize)) -> bool {
    let mut is_inside = false;
    for line in lines {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            if is_inside && flags.split_whitespace().any(|flag| flag == "lo") {
                return true;
            }
        } else if let Some(entry) = parse(&line) {
            is_inside = entry.start < end && entry.end > start;
        }
    }
    false
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

    #[test]
    fn locked_memory_is_found_by_the_flags_of_its_mapping() {
        let smaps = "1000-3000 rw-p 00000000 00:00 0 \nSize: 8 kB\nVmFlags: rd wr lo ac\n\
                     3000-5000 rw-p 00000000 00:00 0 \nRss: 0 kB\nVmFlags: rd wr mr\n";
        let is_any = |start, end| is_any_locked_of(smaps.lines().map(str::to_owned), (start, end));
        assert!(is_any(0x2fff, 0x3001) && is_any(0, 0x1001));
        assert!(!is_any(0x3000, 0x5000) && !is_any(0, 0x1000));
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
        let found = inside((&raw const here).addr(), 1);
        assert!(found.len() == 1 && !found[0].is_shared, "{found:?}");
        let (count, limit) = count().unwrap();
        assert!(count > 5 && count < limit, "{count} of {limit}");
    }
}
