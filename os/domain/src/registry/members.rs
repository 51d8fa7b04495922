//! The holders of a registry as a list of processes, for a table that names them by their places ([`crate::ConnectionTable`]).

use std::num::NonZeroU64;
use std::sync::Arc;

use super::file::PATIENCE;
use super::{Holder, Registry, RegistryError, holder_offset};
use crate::folder::Folder;

/// Who lives at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) number: NonZeroU64,
    /// `None` for this process.
    pub(crate) other_pid: Option<u32>,
}

impl Holder {
    pub(crate) fn place(&self) -> u16 {
        self.place
    }
}

impl Registry {
    pub(crate) fn folder(&self) -> &Arc<Folder> {
        self.0.folder()
    }

    /// Whether both files have their names, and this process may use them.
    pub(crate) fn check_names(&self) -> Result<(), RegistryError> {
        self.0.check_to_write()
    }

    /// Who lives at this place, by the kernel's word; of another user's registry, who is known. Whoever dies just now, or comes to live there, may be told or not.
    pub(crate) fn member_at(&self, place: u16) -> Result<Option<Member>, RegistryError> {
        let files = &*self.0;
        if let Some(number) = files.own().get(&place) {
            return Ok(Some(Member { number: *number, other_pid: None }));
        }
        // Of another user's registry nobody knows who lives.
        let life = if files.is_foreign() { Some(0) } else { files.life(place)? };
        let Some(pid) = life else { return Ok(None) };
        let number = NonZeroU64::new(files.read_word(holder_offset(place))?);
        Ok(number.map(|number| Member { number, other_pid: Some(pid) }))
    }

    /// Makes something beside the registry while no other thread or process does.
    pub(crate) fn make_alone<T>(
        &self,
        make: impl FnOnce() -> Result<T, RegistryError>,
    ) -> Result<T, RegistryError> {
        self.0.check_to_write()?;
        let _locked = self.0.lock_bucket(0, PATIENCE)?;
        make()
    }
}
