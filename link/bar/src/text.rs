//! Texts of sysfs: short, read whole or refused.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

/// The kernel shows an attribute of sysfs in one page at most.
const MOST_BYTES: u64 = 4096;

/// Why a file of sysfs says nothing.
#[derive(Debug, thiserror::Error)]
pub enum SysfsError {
    /// It is there and cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Unread { path: PathBuf, error: io::Error },
    /// Its text is not what the kernel writes there.
    #[error("{}, line {line}: {why}", path.display())]
    Text { path: PathBuf, line: usize, why: String },
}

impl SysfsError {
    pub(crate) fn text(path: &Path, line: usize, why: impl Into<String>) -> Self {
        SysfsError::Text { path: path.to_owned(), line, why: why.into() }
    }
}

/// Reads at most a page of a regular file; `None` where there is no such file.
pub(crate) fn bytes(path: &Path) -> Result<Option<Vec<u8>>, SysfsError> {
    let unread = |error| SysfsError::Unread { path: path.to_owned(), error };
    // Without NONBLOCK a pipe in its place would keep this process for ever.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from) {
        Ok(fd) => fd,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unread(error)),
    };
    let stat = rustix::fs::fstat(&file).map_err(|errno| unread(errno.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(unread(io::Error::other("it is not a regular file")));
    }
    let mut found = Vec::new();
    File::from(file).take(MOST_BYTES + 1).read_to_end(&mut found).map_err(unread)?;
    Ok(Some(found))
}

/// Reads a text of at most a page; `None` where there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, SysfsError> {
    let Some(bytes) = bytes(path)? else { return Ok(None) };
    let line_at = |bytes: &[u8]| 1 + bytes.iter().filter(|byte| **byte == b'\n').count();
    if bytes.len() as u64 > MOST_BYTES {
        let why = format!("the text goes on behind {MOST_BYTES} bytes, which no text of sysfs does");
        return Err(SysfsError::text(path, line_at(&bytes), why));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let line = line_at(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
            Err(SysfsError::text(path, line, "it is not text"))
        }
    }
}

/// The number of a file that holds one, as `0x1af4`, at most `most`.
pub(crate) fn hex_number(path: &Path, most: u64) -> Result<u64, SysfsError> {
    let text = read(path)?.ok_or_else(|| SysfsError::text(path, 1, "the file is missing"))?;
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let number = hex(first).filter(|number| *number <= most);
    match (number, lines.next()) {
        (Some(number), None) => Ok(number),
        (None, _) => {
            Err(SysfsError::text(path, 1, format!("`{}` is no number from 0x0 to {most:#x}", shown(first))))
        }
        (_, Some(_)) => Err(SysfsError::text(path, 2, "more than the one line that the kernel writes")),
    }
}

/// `0x` and 1 to 16 hexadecimal digits, and nothing else.
pub(crate) fn hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let is_one = (1..=16).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| is_one)
}

/// The beginning of a text that may be anything, for an error.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_default).collect()
}
