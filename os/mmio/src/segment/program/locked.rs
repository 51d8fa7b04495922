//! Memory of the program that is locked into RAM, by the program or by registrations.
//!
//! The kernel does not count locks: one `munlock` undoes them all. So pages that several registrations have locked, or that the program
//! had locked before, are known here. What the program locks or unlocks itself while memory is registered is not.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::process_maps;
use super::checks::not_known;
use super::error::RegisterError;
use crate::{MapError, PerProcess};

/// Addresses of pages: the first one, and the one behind the last.
pub(super) type Pages = (usize, usize);

/// A registration's pages that it has locked, and those of them that the program had locked before.
#[derive(Clone, Debug)]
struct Held {
    pages: Pages,
    of_program: Vec<Pages>,
}

/// The pages that registrations of this process have locked.
static HELD: PerProcess<Mutex<Vec<Held>>> = PerProcess::new();

fn held() -> MutexGuard<'static, Vec<Held>> {
    HELD.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pages that have bytes of a range.
pub(super) fn pages_of(address: usize, bytes: usize) -> Pages {
    let page_bytes = rustix::param::page_size();
    (address & !(page_bytes - 1), (address + bytes).next_multiple_of(page_bytes))
}

fn common(parts: &[Pages], (start, end): Pages) -> impl Iterator<Item = Pages> {
    let common = move |part: &Pages| (part.0.max(start), part.1.min(end));
    parts.iter().map(common).filter(|part| part.0 < part.1)
}

fn without(parts: Vec<Pages>, (start, end): Pages) -> Vec<Pages> {
    let rests = |part: Pages| [(part.0, part.1.min(start)), (part.0.max(end), part.1)];
    parts.into_iter().flat_map(rests).filter(|part| part.0 < part.1).collect()
}

/// The parts of a range that the program has locked itself.
pub(super) fn of_program(address: usize, bytes: usize) -> Result<Vec<Pages>, RegisterError> {
    let pages = pages_of(address, bytes);
    // What is known of each mapping takes the kernel as long as there are pages. Mostly nothing is locked.
    if !process_maps::has_locked() {
        return Ok(Vec::new());
    }
    let locked =
        process_maps::locked_inside(pages.0, pages.1 - pages.0).map_err(not_known(address, bytes))?;
    Ok(of_program_among(locked, pages, &held()))
}

fn of_program_among(locked: Vec<Pages>, pages: Pages, held: &[Held]) -> Vec<Pages> {
    let mut parts = held.iter().fold(locked, |parts, other| without(parts, other.pages));
    for other in held {
        parts.extend(common(&other.of_program, pages));
    }
    parts
}

/// Locks pages for a registration, which [`unlock`]s them.
pub(super) fn lock(pages: Pages, of_program: Vec<Pages>) -> Result<(), RegisterError> {
    let mut held = held();
    lock_pages(pages)?;
    held.push(Held { pages, of_program });
    Ok(())
}

/// Notes that pages are locked, until they are [forgotten](forget).
pub(super) fn hold(pages: Pages, of_program: Vec<Pages>) {
    held().push(Held { pages, of_program });
}

/// Ends what [`hold`] has begun, of pages that are replaced by others.
pub(super) fn forget(pages: Pages) {
    let_go(&mut held(), pages);
}

/// Ends what [`lock`] has begun: unlocks what neither the program nor another registration has locked.
pub(super) fn unlock(pages: Pages) {
    let mut held = held();
    for (start, end) in let_go(&mut held, pages) {
        // SAFETY: changes no byte, and fails where nothing is mapped.
        let _ = unsafe { rustix::mm::munlock(core::ptr::without_provenance_mut(start), end - start) };
    }
}

/// Takes a registration of these pages out, and returns what is to be unlocked.
fn let_go(held: &mut Vec<Held>, pages: Pages) -> Vec<Pages> {
    let Some(at) = held.iter().position(|held| held.pages == pages) else { return Vec::new() };
    let gone = held.swap_remove(at);
    let parts = gone.of_program.iter().fold(vec![pages], |parts, kept| without(parts, *kept));
    held.iter().fold(parts, |parts, other| without(parts, other.pages))
}

/// The parts of pages that are to be locked: those that the program had locked, and those that registrations have.
pub(super) fn wanted(pages: Pages, of_program: &[Pages]) -> Vec<Pages> {
    let all: Vec<Pages> = held().iter().map(|held| held.pages).chain(of_program.iter().copied()).collect();
    common(&all, pages).collect()
}

/// Locks memory into RAM.
pub(super) fn lock_pages((start, end): Pages) -> Result<(), RegisterError> {
    let bytes = end - start;
    // SAFETY: to lock memory changes no byte of it, and fails where nothing is mapped.
    unsafe { rustix::mm::mlock(core::ptr::without_provenance_mut(start), bytes) }.map_err(|errno| {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
        RegisterError::NoMemory(MapError::Lock { bytes, limit_bytes: limit.unwrap_or(u64::MAX), errno })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(pages: Pages, of_program: &[Pages]) -> Held {
        Held { pages, of_program: of_program.to_vec() }
    }

    #[test]
    fn pages_of_another_registration_and_of_the_program_stay_locked() {
        let mut all = vec![held((10, 20), &[(12, 13)]), held((15, 30), &[])];
        assert_eq!(let_go(&mut all, (10, 20)), [(10, 12), (13, 15)]);
        assert_eq!(let_go(&mut all, (15, 30)), [(15, 30)]);
        assert!(all.is_empty() && let_go(&mut all, (15, 30)).is_empty());
        let mut twice = vec![held((10, 20), &[]), held((10, 20), &[])];
        assert!(let_go(&mut twice, (10, 20)).is_empty());
        assert_eq!(let_go(&mut twice, (10, 20)), [(10, 20)]);
    }

    #[test]
    fn what_registrations_have_locked_is_not_the_programs() {
        let all = [held((10, 20), &[(12, 13)])];
        assert_eq!(of_program_among(vec![(10, 25)], (10, 25), &all), [(20, 25), (12, 13)]);
        assert_eq!(of_program_among(vec![(10, 20)], (10, 20), &all), [(12, 13)]);
    }
}
