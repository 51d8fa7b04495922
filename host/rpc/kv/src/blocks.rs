//! Values that are too long to lie beside their keys: chains of blocks, all of one size.
//!
//! Any free block can be the next one of any value, so values of whatever lengths, in whatever order they come and go, leave
//! nothing that cannot be used. What else needs memory needs whole pages: a page that is used in part is then vacated, its
//! blocks move to free ones of other pages. For that a block knows who leads to it: the one before, or the line of the item.
//!
//! A page begins with what is known of its blocks, so that blocks that follow each other hold bytes that do.

use std::ops::Range;

use crate::arena::{Arena, NONE, PAGE_BYTES};

pub(crate) const BLOCK_BYTES: usize = 192;
pub(crate) const PAGE_BLOCKS: u32 = 20;
/// Where blocks begin in their page.
const BLOCKS_OFFSET: usize = 256;
const _: () = assert!(BLOCKS_OFFSET + PAGE_BLOCKS as usize * BLOCK_BYTES == PAGE_BYTES);

/// Bits of a block's number that say which one of its page it is.
const INDEX_BITS: u32 = 5;
const ALL: u32 = (1 << PAGE_BLOCKS) - 1;

/// Of a page: which blocks are in use, which of those are the first of a value, and its neighbours in its list.
const IN_USE: usize = 0;
const FIRST: usize = 4;
const NEXT_PAGE: usize = 8;
const PAGE_BEFORE: usize = 12;
/// Of each block: the next one of its value, and what leads to it.
const LINKS: usize = 16;
const LINK_BYTES: usize = 8;
const _: () = assert!(LINKS + PAGE_BLOCKS as usize * LINK_BYTES <= BLOCKS_OFFSET);

/// Where an item, whose line this is, has the number of its first block.
const FIRST_OF_ITEM: usize = 20;
/// Bytes of an item's line.
const LINE_BYTES: usize = 64;

/// Pages that are used in part, in lists by how much.
const LISTS: usize = 4;
const BLOCKS_PER_LIST: u32 = PAGE_BLOCKS / LISTS as u32;

/// Blocks that a value of so many bytes takes.
pub(crate) fn blocks_of(bytes: usize) -> u32 {
    bytes.div_ceil(BLOCK_BYTES) as u32
}

/// The blocks of all pages that have some in use.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// Pages that are used in part, by how many of their blocks are in use: up to 5, 10, 15, 19.
    partial: [u32; LISTS],
    free: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block(u32);

impl Block {
    fn new(page: u32, index: u32) -> Self {
        Block(page << INDEX_BITS | index)
    }

    fn page(self) -> u32 {
        self.0 >> INDEX_BITS
    }

    fn index(self) -> u32 {
        self.0 & ((1 << INDEX_BITS) - 1)
    }

    fn links(self) -> usize {
        self.page() as usize * PAGE_BYTES + LINKS + self.index() as usize * LINK_BYTES
    }

    fn bytes(self) -> Range<usize> {
        let start = self.page() as usize * PAGE_BYTES + BLOCKS_OFFSET + self.index() as usize * BLOCK_BYTES;
        start..start + BLOCK_BYTES
    }
}

impl Arena {
    fn of_page(&self, page: u32, at: usize) -> u32 {
        self.word(page as usize * PAGE_BYTES + at)
    }

    fn set_of_page(&mut self, page: u32, at: usize, word: u32) {
        self.set_word(page as usize * PAGE_BYTES + at, word);
    }

    fn next(&self, block: Block) -> u32 {
        self.word(block.links())
    }

    fn set_next(&mut self, block: Block, next: u32) {
        self.set_word(block.links(), next);
    }

    fn before(&self, block: Block) -> u32 {
        self.word(block.links() + 4)
    }

    fn set_before(&mut self, block: Block, before: u32) {
        self.set_word(block.links() + 4, before);
    }
}

impl Blocks {
    pub(crate) fn new() -> Self {
        Blocks { partial: [NONE; LISTS], free: 0 }
    }

    /// Free blocks of pages that have some in use.
    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    /// Takes a chain of blocks for the item whose line this is; its first block. There must be as many.
    pub(crate) fn take(&mut self, arena: &mut Arena, line: u32, count: u32) -> u32 {
        let (mut first, mut last, mut left) = (NONE, None::<Block>, count);
        while left > 0 {
            let page = self.open_page(arena, left);
            let mut in_use = arena.of_page(page, IN_USE);
            while left > 0 && in_use != ALL {
                let block = Block::new(page, in_use.trailing_ones());
                in_use |= 1 << block.index();
                arena.set_next(block, NONE);
                match last {
                    None => {
                        first = block.0;
                        arena.set_before(block, line);
                        arena.set_of_page(page, FIRST, arena.of_page(page, FIRST) | 1 << block.index());
                    }
                    Some(last) => {
                        arena.set_before(block, last.0);
                        arena.set_next(last, block.0);
                    }
                }
                last = Some(block);
                left -= 1;
                self.free -= 1;
            }
            self.close_page(arena, page, in_use);
        }
        first
    }

    /// A page with a free block, which is in no list: one of its own for what fills it, the fullest one for less.
    fn open_page(&mut self, arena: &mut Arena, blocks: u32) -> u32 {
        let fullest = self.partial.iter().rev().copied().find(|page| *page != NONE);
        if let Some(page) = fullest.filter(|_| blocks < PAGE_BLOCKS || arena.free_pages() == 0) {
            self.unlist(arena, page);
            return page;
        }
        let page = arena.take_page().expect("there are as many blocks");
        arena.set_of_page(page, IN_USE, 0);
        arena.set_of_page(page, FIRST, 0);
        self.free += u64::from(PAGE_BLOCKS);
        page
    }

    /// Puts a page back, of which these blocks are in use now.
    fn close_page(&mut self, arena: &mut Arena, page: u32, in_use: u32) {
        arena.set_of_page(page, IN_USE, in_use);
        match list_of(in_use) {
            Some(list) => {
                let next = self.partial[list];
                arena.set_of_page(page, NEXT_PAGE, next);
                arena.set_of_page(page, PAGE_BEFORE, NONE);
                if next != NONE {
                    arena.set_of_page(next, PAGE_BEFORE, page);
                }
                self.partial[list] = page;
            }
            None if in_use == 0 => {
                self.free -= u64::from(PAGE_BLOCKS);
                arena.give_page(page);
            }
            None => {}
        }
    }

    fn unlist(&mut self, arena: &mut Arena, page: u32) {
        let Some(list) = list_of(arena.of_page(page, IN_USE)) else { return };
        let (next, before) = (arena.of_page(page, NEXT_PAGE), arena.of_page(page, PAGE_BEFORE));
        if before == NONE {
            self.partial[list] = next;
        } else {
            arena.set_of_page(before, NEXT_PAGE, next);
        }
        if next != NONE {
            arena.set_of_page(next, PAGE_BEFORE, before);
        }
    }

    /// Gives the blocks of a value back.
    pub(crate) fn give(&mut self, arena: &mut Arena, first: u32) {
        let mut number = first;
        while number != NONE {
            let page = Block(number).page();
            self.unlist(arena, page);
            let (mut in_use, mut firsts) = (arena.of_page(page, IN_USE), arena.of_page(page, FIRST));
            // Mostly the next ones lie in the same page.
            while number != NONE && Block(number).page() == page {
                let bit = 1 << Block(number).index();
                (in_use, firsts) = (in_use & !bit, firsts & !bit);
                self.free += 1;
                number = arena.next(Block(number));
            }
            arena.set_of_page(page, FIRST, firsts);
            self.close_page(arena, page, in_use);
        }
    }

    /// Gives the arena a page back, one that is used in part, by moving what is in use to other pages; whether there was
    /// enough room for that. Moves a page's blocks at most.
    pub(crate) fn vacate_page(&mut self, arena: &mut Arena) -> bool {
        let emptiest = self.partial.iter().copied().find(|page| *page != NONE);
        let Some(page) = emptiest.filter(|_| self.free >= u64::from(PAGE_BLOCKS)) else { return false };
        self.unlist(arena, page);
        let in_use = arena.of_page(page, IN_USE);
        self.free -= u64::from(PAGE_BLOCKS - in_use.count_ones());
        for index in (0..PAGE_BLOCKS).filter(|index| in_use >> index & 1 == 1) {
            let to = self.take_one(arena);
            move_block(arena, Block::new(page, index), to);
        }
        arena.give_page(page);
        true
    }

    /// A free block of a page that is used in part.
    fn take_one(&mut self, arena: &mut Arena) -> Block {
        let page = self.open_page(arena, 1);
        let in_use = arena.of_page(page, IN_USE);
        let block = Block::new(page, in_use.trailing_ones());
        self.free -= 1;
        self.close_page(arena, page, in_use | 1 << block.index());
        block
    }
}

/// The list that a page is in, of which these blocks are in use: none if all are, or none is.
fn list_of(in_use: u32) -> Option<usize> {
    match in_use.count_ones() {
        0 | PAGE_BLOCKS => None,
        count => Some(((count - 1) / BLOCKS_PER_LIST) as usize),
    }
}

/// Where the first block of a value begins.
#[inline(always)]
pub(crate) fn start_of(first: u32) -> usize {
    Block(first).bytes().start
}

/// Whether a value lies in one piece, which none does that is longer than a page's blocks.
pub(crate) fn is_one_piece(arena: &Arena, first: u32, bytes: usize) -> bool {
    let (mut next, mut left_bytes) = (first, bytes);
    next_piece(arena, &mut next, &mut left_bytes).is_some() && left_bytes == 0
}

/// The line of the item whose value a block belongs to, if the value may lie in one piece: then it begins in this page.
fn line_of_whole(arena: &Arena, block: Block) -> Option<u32> {
    let mut block = block;
    let firsts = arena.of_page(block.page(), FIRST);
    for _ in 0..PAGE_BLOCKS {
        let before = arena.before(block);
        if firsts >> block.index() & 1 == 1 {
            return Some(before);
        }
        if Block(before).page() != block.page() {
            return None;
        }
        block = Block(before);
    }
    None
}

/// Moves a block, and has what leads to it and what it leads to know the new one.
fn move_block(arena: &mut Arena, from: Block, to: Block) {
    if let Some(line) = line_of_whole(arena, from) {
        arena.is_divided(line);
    }
    arena.bytes_mut().copy_within(from.bytes(), to.bytes().start);
    let (next, before) = (arena.next(from), arena.before(from));
    arena.set_next(to, next);
    arena.set_before(to, before);
    if next != NONE {
        arena.set_before(Block(next), to.0);
    }
    if arena.of_page(from.page(), FIRST) >> from.index() & 1 == 1 {
        let firsts = arena.of_page(to.page(), FIRST);
        arena.set_of_page(to.page(), FIRST, firsts | 1 << to.index());
        arena.set_word(before as usize * LINE_BYTES + FIRST_OF_ITEM, to.0);
    } else {
        arena.set_next(Block(before), to.0);
    }
}

/// Has the first block of a value know the line that its item has now.
pub(crate) fn set_line(arena: &mut Arena, first: u32, line: u32) {
    arena.set_before(Block(first), line);
}

/// Where the bytes of a value lie: pieces one after the other, each as long as blocks follow each other.
#[derive(Clone, Debug)]
pub(crate) struct Pieces<'a> {
    arena: &'a Arena,
    next: u32,
    left_bytes: usize,
}

impl<'a> Pieces<'a> {
    /// Of a value of so many bytes, which is not empty.
    #[inline]
    pub(crate) fn new(arena: &'a Arena, first: u32, bytes: usize) -> Self {
        Pieces { arena, next: first, left_bytes: bytes }
    }

    /// Bytes that are left.
    pub(crate) fn bytes(&self) -> usize {
        self.left_bytes
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let range = next_piece(self.arena, &mut self.next, &mut self.left_bytes)?;
        Some(&self.arena.bytes()[range])
    }
}

/// Lets `write` fill the pieces of a value of so many bytes, of which it is told the offset of each.
pub(crate) fn fill(arena: &mut Arena, first: u32, bytes: usize, mut write: impl FnMut(usize, &mut [u8])) {
    let (mut next, mut left_bytes) = (first, bytes);
    loop {
        let offset = bytes - left_bytes;
        let Some(range) = next_piece(arena, &mut next, &mut left_bytes) else { return };
        write(offset, &mut arena.bytes_mut()[range]);
    }
}

/// Where the next piece lies.
#[inline]
fn next_piece(arena: &Arena, next: &mut u32, left_bytes: &mut usize) -> Option<Range<usize>> {
    if *left_bytes == 0 {
        return None;
    }
    let start = Block(*next).bytes().start;
    let mut end = start;
    while *left_bytes > 0 && Block(*next).bytes().start == end {
        let bytes = BLOCK_BYTES.min(*left_bytes);
        (end, *left_bytes) = (end + bytes, *left_bytes - bytes);
        if bytes < BLOCK_BYTES || *left_bytes == 0 {
            break;
        }
        *next = arena.next(Block(*next));
    }
    Some(start..end)
}

#[cfg(test)]
mod tests;
