//! A plain file in the place of a BAR: it tries the program, and has no device's figures.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::ScratchError;
use crate::place::Place;

/// What a file of ours consists of, line by line, so that another run knows that nothing is lost with it.
const MARK: &[u8; 64] = b"beeline: a file to be scratched by a measurement; it may go. \n\n\n";
/// File systems whose files are the kernel's own, some of which are BARs by another name (`/proc/bus/pci`): their magic numbers in
/// Linux's `magic.h`, and what they are called.
const OF_THE_KERNEL: [(u64, &str); 5] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x6265_6570, "configfs"),
];

/// A file that may be scratched, and whether it was made for that now.
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) is_new: bool,
}

/// Opens a file whose bytes in `place` may be overwritten, and makes it where there is none or an empty one.
pub(crate) fn open(
    path: &Path,
    place: impl Fn(u64) -> Result<Place, ScratchError>,
    may_overwrite: bool,
) -> Result<(Opened, Place), ScratchError> {
    let failed = |error: io::Error| ScratchError::File { path: path.to_owned(), error };
    let mut options = OpenOptions::new();
    // Without NONBLOCK a pipe that has come in its place would keep this process for ever.
    options.read(true).write(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
    // Of nothing but what is asked for: a file is made of the size that fits.
    let asked = place(u64::MAX)?;
    let (file, is_made) = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            (options.create_new(true).mode(0o600).open(path).map_err(failed)?, true)
        }
        opened => (opened.map_err(failed)?, false),
    };
    let found = rustix::fs::fstatfs(&file).map_err(|errno| failed(errno.into()))?.f_type as u64;
    if let Some((_, name)) = OF_THE_KERNEL.iter().find(|(magic, _)| *magic == found) {
        return Err(ScratchError::OfTheKernel { path: path.to_owned(), name });
    }
    let data = file.metadata().map_err(failed)?;
    if !data.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    if data.len() == 0 {
        if let Err(error) = make(&file, asked) {
            // Nothing is left of a file that does not become as large as that.
            if is_made {
                let _ = std::fs::remove_file(path);
            }
            return Err(failed(error));
        }
        return Ok((Opened { file, is_new: true }, asked));
    }
    let place = place(data.len())?;
    if !may_overwrite && !is_made_by_us(&file, place).map_err(failed)? {
        return Err(ScratchError::NotOurs { path: path.to_owned(), bytes: data.len() });
    }
    Ok((Opened { file, is_new: false }, place))
}

fn make(mut file: &File, place: Place) -> io::Result<()> {
    file.set_len(place.offset_bytes.saturating_add(place.bytes as u64))?;
    file.seek(SeekFrom::Start(place.offset_bytes))?;
    let page: Vec<u8> = MARK.iter().copied().cycle().take(4096).collect();
    (0..place.bytes / page.len()).try_for_each(|_| file.write_all(&page))
}

/// Whether the bytes that would be overwritten are those that [`make`] has written.
fn is_made_by_us(mut file: &File, place: Place) -> io::Result<bool> {
    let mut line = [0; MARK.len()];
    file.read_exact_at(&mut line, place.offset_bytes)?;
    if line != *MARK {
        return Ok(false);
    }
    file.seek(SeekFrom::Start(place.offset_bytes))?;
    let mut bytes = vec![0; place.bytes];
    file.read_exact(&mut bytes)?;
    Ok(bytes.chunks(MARK.len()).all(|line| line == MARK))
}
