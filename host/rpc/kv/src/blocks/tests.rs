use super::*;

/// Some blocks of an arena, and lines of a page that play items: the line of an item holds the number of its first block.
struct Rig {
    arena: Arena,
    blocks: Blocks,
    items: u32,
}

impl Rig {
    fn new(pages: u64) -> Self {
        let mut arena = Arena::new((pages + 1) * PAGE_BYTES as u64).unwrap();
        let items = arena.take_page().unwrap();
        Rig { arena, blocks: Blocks::new(), items }
    }

    fn line(&self, item: u32) -> u32 {
        self.items * (PAGE_BYTES / LINE_BYTES) as u32 + item
    }

    fn first(&self, item: u32) -> u32 {
        self.arena.word(self.line(item) as usize * LINE_BYTES + FIRST_OF_ITEM)
    }

    fn put(&mut self, item: u32, bytes: usize) {
        let line = self.line(item);
        let first = self.blocks.take(&mut self.arena, line, blocks_of(bytes));
        self.arena.set_word(line as usize * LINE_BYTES + FIRST_OF_ITEM, first);
        fill(&mut self.arena, first, bytes, |offset, piece| {
            for (at, byte) in piece.iter_mut().enumerate() {
                *byte = ((offset + at) * 7 + item as usize) as u8;
            }
        });
    }

    fn give(&mut self, item: u32) {
        let first = self.first(item);
        self.blocks.give(&mut self.arena, first);
    }

    fn check(&self, item: u32, bytes: usize) {
        let found: Vec<u8> = Pieces::new(&self.arena, self.first(item), bytes).flatten().copied().collect();
        let expected: Vec<u8> = (0..bytes).map(|at| (at * 7 + item as usize) as u8).collect();
        assert!(found == expected, "item {item} of {bytes} bytes");
    }
}

#[test]
fn blocks_that_follow_each_other_are_one_piece() {
    let mut rig = Rig::new(4);
    rig.put(1, 2000);
    rig.put(2, 10_000);
    let pieces =
        |item, bytes| Pieces::new(&rig.arena, rig.first(item), bytes).map(<[u8]>::len).collect::<Vec<_>>();
    assert_eq!(pieces(1, 2000), [2000]);
    assert_eq!(pieces(2, 10_000), [3840, 3840, 9 * 192, 10_000 - 2 * 3840 - 9 * 192]);
    rig.check(1, 2000);
    rig.check(2, 10_000);
}

#[test]
fn page_is_vacated_with_every_value_whole_and_given_back() {
    let mut rig = Rig::new(3);
    // Values of four blocks, five of which fill a page.
    for item in 0..15 {
        rig.put(item, 700);
    }
    assert_eq!((rig.arena.free_pages(), rig.blocks.free()), (0, 0));
    assert!(!rig.blocks.vacate_page(&mut rig.arena), "there is no room for what would be moved");
    // Of each page two values go.
    let gone = [0, 3, 5, 9, 10, 12];
    gone.iter().for_each(|item| rig.give(*item));
    assert_eq!((rig.arena.free_pages(), rig.blocks.free()), (0, 24));
    assert!(rig.blocks.vacate_page(&mut rig.arena));
    assert_eq!((rig.arena.free_pages(), rig.blocks.free()), (1, 4));
    (0..15).filter(|item| !gone.contains(item)).for_each(|item| rig.check(item, 700));
    assert!(!rig.blocks.vacate_page(&mut rig.arena), "four blocks are no page");
    (0..15).filter(|item| !gone.contains(item)).for_each(|item| rig.give(item));
    assert_eq!((rig.arena.free_pages(), rig.blocks.free()), (3, 0));
}
