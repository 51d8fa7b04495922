//! Bytes of a BAR, or of a plain file in its place, that a measurement overwrites.

use std::fmt;
use std::os::fd::AsFd;
use std::path::Path;

use beeline_mmio::{BarKind, MappedSegment, OnLoss, Pages, Region, SegmentError, SegmentOptions, fence};

use crate::error::ScratchError;
use crate::function::{BarRegion, Function};
use crate::obstacle::Obstacle;
use crate::place::{Place, Wanted, place};
use crate::plain_file;
use crate::target::{BarFile, Target};

/// How the bytes are mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappedAs {
    WriteCombining,
    Uncached,
    /// A plain file: memory of the host.
    File,
}

/// What became of the bytes that were there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// They are there again, and were read back.
    AsBefore,
    /// They were stored again; `words` words read back otherwise, the first at this offset of the range.
    Differs { first_offset_bytes: usize, words: usize },
    /// They could not be kept: what is stored there does not read back.
    NotKept,
}

/// Bytes that may be overwritten, mapped. They are as before when it is dropped, if they could be kept.
#[derive(Debug)]
pub struct Scratch {
    region: Region,
    title: String,
    mapped_as: MappedAs,
    function: Option<(Function, u8)>,
    place: Place,
    /// What was there; `None` once it is there again, or where it could not be kept.
    kept: Option<Vec<u8>>,
    _segment: MappedSegment,
}

impl Scratch {
    /// Maps what is wanted of a target, and keeps what is there. Where stores could do harm it refuses, before anything is mapped.
    ///
    /// # Errors
    /// [`ScratchError`].
    pub fn open(sysfs: &Path, target: &Target, wanted: &Wanted) -> Result<Self, ScratchError> {
        match target {
            Target::Function(address) => {
                let function = Function::read(sysfs, *address)?;
                let region = choose(&function, wanted)?.clone();
                let kind = match region.combining_file {
                    Some(_) => BarKind::WriteCombining,
                    None => BarKind::Uncached,
                };
                Self::bar(sysfs, function, &region, kind, wanted)
            }
            Target::Resource(BarFile { address, index, kind }) => {
                let function = Function::read(sysfs, *address)?;
                if wanted.region.is_some_and(|region| region != *index) {
                    return Err(ScratchError::TwoRegions { path: function.file(*index, *kind) });
                }
                let region = region_of(&function, *index)?.clone();
                Self::bar(sysfs, function, &region, *kind, wanted)
            }
            Target::File(path) => Self::file(path, wanted),
        }
    }

    fn bar(
        sysfs: &Path,
        function: Function,
        region: &BarRegion,
        kind: BarKind,
        wanted: &Wanted,
    ) -> Result<Self, ScratchError> {
        let (address, index) = (function.address, region.index);
        let is_waived = |it: &Obstacle| {
            it.is_harmless() || (wanted.may_overwrite && matches!(it, Obstacle::NotPrefetchable))
        };
        if let Some(obstacle) = function.obstacles(region).into_iter().find(|it| !is_waived(it)) {
            return Err(ScratchError::Obstacle { address, index, obstacle });
        }
        let place = place(wanted, &format!("BAR {index} of {address}"), region.bytes)?;
        let title = format!("{address} BAR {index}");
        let segment = MappedSegment::bar_under(sysfs, address, index, kind, &options(place));
        let mapped_as = match kind {
            BarKind::WriteCombining => MappedAs::WriteCombining,
            BarKind::Uncached => MappedAs::Uncached,
        };
        Self::mapped(segment, title, mapped_as, Some((function, index)), place)
    }

    fn file(path: &Path, wanted: &Wanted) -> Result<Self, ScratchError> {
        if wanted.region.is_some() {
            return Err(ScratchError::FileWithRegion { path: path.to_owned() });
        }
        let title = path.display().to_string();
        let (opened, place) =
            plain_file::open(path, |whole| place(wanted, &title, whole), wanted.may_overwrite)?;
        let segment = MappedSegment::file(opened.file.as_fd(), &options(place));
        let title = if opened.is_new { format!("{title} (made by this run)") } else { title };
        Self::mapped(segment, title, MappedAs::File, None, place)
    }

    fn mapped(
        segment: Result<MappedSegment, SegmentError>,
        title: String,
        mapped_as: MappedAs,
        function: Option<(Function, u8)>,
        place: Place,
    ) -> Result<Self, ScratchError> {
        let segment = segment.map_err(|error| ScratchError::Map { what: title.clone(), error })?;
        let region = segment.region().expect("it was mapped for loads and stores");
        let kept = keep(&region);
        Ok(Scratch { region, title, mapped_as, function, place, kept, _segment: segment })
    }

    /// The bytes: of the range alone, from offset 0 on.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// What it is called in reports.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// How the CPU treats the bytes, as was asked of the kernel.
    pub fn mapped_as(&self) -> MappedAs {
        self.mapped_as
    }

    /// The function and the index of its BAR; `None` for a plain file.
    pub fn function(&self) -> Option<(&Function, u8)> {
        self.function.as_ref().map(|(function, index)| (function, *index))
    }

    /// Where in the BAR or the file the bytes begin.
    pub fn offset_bytes(&self) -> u64 {
        self.place.offset_bytes
    }

    /// Whether what was there is kept, because what is stored there reads back.
    pub fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Stores what was there before, and looks whether it is.
    pub fn restore(mut self) -> Restored {
        self.put_back()
    }

    fn put_back(&mut self) -> Restored {
        let Some(kept) = self.kept.take() else { return Restored::NotKept };
        self.region.copy_in(0, &kept);
        fence::order_all();
        let mut found = vec![0; kept.len()];
        self.region.copy_out(0, &mut found);
        let words = |bytes: &[u8]| bytes.as_chunks::<8>().0.to_vec();
        let pairs: Vec<_> = words(&kept).into_iter().zip(words(&found)).collect();
        match pairs.iter().position(|(kept, found)| kept != found) {
            None => Restored::AsBefore,
            Some(first) => Restored::Differs {
                first_offset_bytes: first * 8,
                words: pairs.iter().filter(|(kept, found)| kept != found).count(),
            },
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Of a run that failed. Nobody is left to be told what came of it.
        self.put_back();
    }
}

/// Copies what is there, if what is stored into its first and its last line reads back: otherwise the copy would be of something else.
fn keep(region: &Region) -> Option<Vec<u8>> {
    const PATTERN: u64 = 0x5aa5_0ff0_1234_8765;
    let mut kept = vec![0; region.bytes()];
    region.copy_out(0, &mut kept);
    let reads_back = |offset: usize| {
        let word = region.word(offset);
        let before = word.load();
        let is_kept = [PATTERN, !PATTERN].into_iter().all(|value| {
            word.store(value);
            fence::order_all();
            word.load() == value
        });
        word.store(before);
        is_kept
    };
    [0, region.bytes() - 8].into_iter().all(reads_back).then_some(kept)
}

fn options(place: Place) -> SegmentOptions {
    SegmentOptions {
        offset_bytes: place.offset_bytes,
        bytes: Some(place.bytes),
        // Page faults are no part of what a store costs.
        pages: Pages::Present,
        // A device that is removed, or a file that is cut short, ends this process: neither happens unasked.
        on_loss: OnLoss::Fatal,
        ..SegmentOptions::default()
    }
}

fn region_of(function: &Function, index: u8) -> Result<&BarRegion, ScratchError> {
    let refused =
        || ScratchError::NoRegion { address: function.address, index, has: Listed(function).to_string() };
    function.region(index).ok_or_else(refused)
}

fn choose<'f>(function: &'f Function, wanted: &Wanted) -> Result<&'f BarRegion, ScratchError> {
    if let Some(index) = wanted.region {
        return region_of(function, index);
    }
    let refused =
        || ScratchError::NoPrefetchable { address: function.address, has: Listed(function).to_string() };
    function.regions.iter().find(|region| region.is_prefetchable).ok_or_else(refused)
}

/// The memory BARs of a function, for errors.
struct Listed<'f>(&'f Function);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let regions = &self.0.regions;
        if regions.is_empty() {
            return out.write_str("none");
        }
        for (at, region) in regions.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let kind = if region.is_prefetchable { "prefetchable" } else { "not prefetchable" };
            write!(out, "{comma}BAR {} ({} bytes, {kind})", region.index, region.bytes)?;
        }
        Ok(())
    }
}
