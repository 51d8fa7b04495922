//! What is asked of a segment's mapping.

use crate::FaultGuard;

/// What a segment's pointers may be used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// Loads and stores.
    #[default]
    ReadWrite,
    /// Loads. A store ends the process, and the mapping cannot be made writable later (`mprotect`); only that of a
    /// [`DmaBuf`](super::DmaBuf) whose descriptor is open for writing can.
    ReadOnly,
}

/// When the pages of a segment are brought in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pages {
    /// Each at its first access, so that a segment of many gigabytes costs what is used of it. A first access takes a page
    /// fault; where no memory is left for it, or the machine promises no more than it has (`vm.overcommit_memory=2`), it ends
    /// the process.
    #[default]
    Lazy,
    /// All before the segment is handed out, holes of the memory filled. Pages of devices are there anyway.
    Present,
}

/// Whether the mapping is made of huge pages. Their size is the memory's: descriptors of huge pages (`MFD_HUGETLB`, hugetlbfs)
/// have no others, and all other memory has none but those that the kernel makes of ordinary ones by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HugePages {
    /// Ordinary pages; memory of huge pages is refused.
    #[default]
    No,
    /// Huge pages where they are to be had, else ordinary ones: memory of huge pages is taken as it is, and for other memory the
    /// kernel is asked to make huge ones (`MADV_HUGEPAGE`), which may come to nothing.
    Wished,
    /// Memory of huge pages; other memory is refused.
    Required,
}

/// What happens when memory goes away under the mapping: a file shrinks, a device is removed, a huge page is taken back. An
/// access then is a bus error, which ends the process unless somebody handles it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// Memory that can go away is not mapped.
    #[default]
    Refused,
    /// It is mapped, and an access to what is gone ends the process.
    Fatal,
    /// It is mapped; what is gone reads as zero, keeps what is stored into it for this process alone, and the segment is no
    /// longer intact.
    Guarded(FaultGuard),
}

/// How a segment is mapped. The default is all of the memory, for loads and stores, anywhere, lazily, ordinary pages, and only
/// memory that cannot go away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentOptions {
    /// Where in the memory the segment begins: a multiple of its page, 4096 bytes or what a huge page has.
    pub offset_bytes: u64,
    /// Bytes of the segment, at least 1; `None` for all from the offset on. The kernel maps whole pages, so that an access behind
    /// the segment and inside its last page is none that it stops; nothing of this crate makes one.
    pub bytes: Option<usize>,
    pub access: Access,
    /// The address that the segment is to have, a multiple of the page; never in the place of another mapping.
    pub address: Option<usize>,
    pub pages: Pages,
    pub huge_pages: HugePages,
    pub on_loss: OnLoss,
}
