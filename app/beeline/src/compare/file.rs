//! Files of a run, and why one cannot be written.

use std::path::Path;

use crate::failure::Failure;

/// Writes a file.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e| Failure::new(format!("cannot write {}", path.display())).because(e);
    std::fs::write(path, text).map_err(failed)
}

/// Writes files into a folder, which is made if it is not there.
///
/// # Errors
/// The folder cannot be made, or a file cannot be written.
pub fn write_all<'n>(
    folder: &Path,
    files: impl IntoIterator<Item = (&'n str, String)>,
) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::new(format!("cannot make {}", folder.display())).because(e))?;
    files.into_iter().try_for_each(|(name, text)| write(&folder.join(name), &text))
}
