//! What this process has mapped, as the kernel lists it. Read in small parts, because it is asked when nothing more can be mapped.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// A line of `/proc/self/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) start: usize,
    /// Behind the last byte.
    pub(super) end: usize,
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
        for line in ["", "7f00a000 rw-p", "x-y rw-p 0 00:00 0", "1-2 rw-p 0 0000 0", "1-2 rw-p 0 0:0 x"] {
            assert_eq!(parse(line), None, "{line}");
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
