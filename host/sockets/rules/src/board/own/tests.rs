//! Boards that are made, counted on and read; what is left of others; bytes of strangers.

use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;

use super::*;
use crate::Why;
use crate::board::layout::{self, HEADER_BYTES, PARTS, ROW_BYTES};
use crate::board::look::{boards, boards_of_run};
use crate::board::name::pid_of;
use crate::{BoardView, Carrier, Counters, Direction, Life, RowView};

fn ends(local: &str, peer: &str) -> (SocketAddr, SocketAddr) {
    (local.parse().unwrap(), peer.parse().unwrap())
}

fn row(board: &Board) -> Row {
    let (local, peer) = ends("127.0.0.1:7777", "[2001:db8::7]:40000");
    board.row(9, local, peer).unwrap()
}

fn seen(folder: &Path) -> Vec<BoardView> {
    boards(folder).unwrap().map(Result::unwrap).collect()
}

#[test]
fn what_is_counted_is_seen_and_a_file_goes_with_its_board() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(seen(dir.path()), []);
    let board = Board::create(dir.path(), None).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(board.path()), mode(&dir.path().join(FOLDER))), (0o600, 0o700));
    let row = row(&board);
    row.sent(Carrier::Socket, 100);
    row.sends_by(Carrier::Window);
    row.sends_by(Carrier::Window);
    row.sent(Carrier::Window, 1000);
    row.sent(Carrier::Window, 24);
    row.sends_by(Carrier::Socket);
    row.rang();
    row.dropped();
    row.received(Carrier::Window, 7);
    row.receives_by(Carrier::Window);
    row.spin_paid();
    row.spin_paid();
    row.slept();
    row.set_why(Some(Why::PeerGone));
    row.set_peer_pid(77);
    let views = seen(dir.path());
    let [view] = &*views else { panic!("{views:?}") };
    assert_eq!((view.pid(), view.life(), view.run), (std::process::id(), Life::Running, None));
    assert_eq!(Path::new(&view.program), std::env::current_exe().unwrap());
    let (local, peer) = ends("127.0.0.1:7777", "[2001:db8::7]:40000");
    let sending = Direction {
        carrier: Carrier::Socket,
        socket: Counters { bytes: 100, messages: 1 },
        window: Counters { bytes: 1024, messages: 2 },
        ups: 1,
        downs: 1,
    };
    let receiving = Direction {
        carrier: Carrier::Window,
        socket: Counters::default(),
        window: Counters { bytes: 7, messages: 1 },
        ups: 1,
        downs: 0,
    };
    let (why, peer_pid) = (Some(Why::PeerGone), Some(77));
    let is_open = true;
    let expected = RowView {
        is_open,
        socket: 9,
        local,
        peer,
        peer_pid,
        why,
        sending,
        receiving,
        rings: 1,
        spins: 2,
        sleeps: 1,
        dropped: 1,
    };
    assert_eq!(view.rows, [expected]);
    drop(row);
    let view = &seen(dir.path())[0];
    assert_eq!((&*view.rows, &*view.ended), (&[][..], &[(Some(Why::PeerGone), 1)][..]));
    drop(board);
    assert_eq!(std::fs::read_dir(dir.path().join(FOLDER)).unwrap().count(), 0);
}

#[test]
fn row_that_is_taken_again_begins_at_zero_and_one_too_many_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let board = Board::create(dir.path(), None).unwrap();
    let all = PARTS * ROWS;
    let rows: Vec<_> = (0..all).map(|_| row(&board)).collect();
    rows.iter().for_each(|row| row.sent(Carrier::Socket, 5));
    let (local, peer) = ends("1.2.3.4:5", "1.2.3.4:6");
    assert!(board.row(1, local, peer).is_none());
    let bytes = |view: &BoardView| view.rows.iter().map(|row| row.sending.socket.bytes).sum::<u64>();
    let view = &seen(dir.path())[0];
    assert_eq!((view.rows.len(), bytes(view), view.unlisted), (all, 5 * all as u64, 1));
    drop(rows);
    assert_eq!(seen(dir.path())[0].ended, [(None, all as u64)]);
    let again: Vec<_> = (0..all).map(|_| row(&board)).collect();
    assert_eq!((bytes(&seen(dir.path())[0]), again.len()), (0, all));
}

#[test]
fn board_whose_file_is_another_by_now_does_not_grow() {
    let dir = tempfile::tempdir().unwrap();
    let board = Board::create(dir.path(), None).unwrap();
    let rows: Vec<_> = (0..ROWS).map(|_| row(&board)).collect();
    std::fs::remove_file(board.path()).unwrap();
    std::fs::write(board.path(), "of the program").unwrap();
    let (local, peer) = ends("1.2.3.4:5", "1.2.3.4:6");
    assert!(board.row(1, local, peer).is_none() && rows.len() == ROWS);
    assert_eq!(std::fs::read(board.path()).unwrap(), b"of the program");
    drop(rows);
    assert!(board.row(1, local, peer).is_some());
}

#[test]
fn rows_are_taken_once_each_by_threads_at_the_same_time() {
    let dir = tempfile::tempdir().unwrap();
    let board = Board::create(dir.path(), None).unwrap();
    let together = std::sync::Barrier::new(4);
    for _ in 0..30 {
        let taken: Vec<Row> = std::thread::scope(|scope| {
            let take = || {
                together.wait();
                (0..ROWS / 4).map(|_| row(&board)).collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        taken.iter().for_each(|row| row.sent(Carrier::Socket, 1));
        let rows = &seen(dir.path())[0].rows;
        assert!(rows.len() == ROWS && rows.iter().all(|row| row.sending.socket.bytes == 1));
    }
}

#[test]
fn connection_of_a_run_stays_listed_until_its_row_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    let board = Board::create(dir.path(), Some(Run::of_this_process().unwrap())).unwrap();
    let first = row(&board);
    first.set_why(Some(Why::NotYet));
    drop(first);
    let view = &seen(dir.path())[0];
    assert_eq!((view.rows.len(), view.rows[0].is_open, view.rows[0].why), (1, false, Some(Why::NotYet)));
    assert_eq!(view.ended, []);
    let _others: Vec<_> = (0..PARTS * ROWS).map(|_| row(&board)).collect();
    let view = &seen(dir.path())[0];
    assert!(view.rows.len() == PARTS * ROWS && view.rows.iter().all(|row| row.is_open && row.why.is_none()));
    assert_eq!((&*view.ended, view.unlisted), (&[(Some(Why::NotYet), 1)][..], 0));
}

#[test]
fn names_of_boards_are_told_from_others() {
    let of = |name: &str| pid_of(std::ffi::OsStr::new(name));
    assert_eq!(of("77-0123456789abcdef"), Some(77));
    for name in [
        "77",
        "77-",
        "77-0123456789abcde",
        "77-0123456789abcdefg",
        "77-0123456789abcdex",
        "x-0123456789abcdef",
    ] {
        assert_eq!(of(name), None, "{name}");
    }
}

/// Stores a word of the header of a board, as its process would have.
fn forge(board: &Board, at: usize, word: u64) {
    board.parts.header().store(at, word);
}

#[test]
fn what_a_process_left_that_has_ended_is_removed_unless_its_run_is_to_read_it() {
    let dir = tempfile::tempdir().unwrap();
    let run = Run::of_this_process().unwrap();
    let [left, read, killed, lives] =
        [None, Some(run), Some(run), None].map(|run| Board::create(dir.path(), run).unwrap());
    let _row = row(&read);
    forge(&left, header::START, 1);
    forge(&read, header::START, 1);
    forge(&killed, header::START, 1);
    forge(&killed, header::RUN_START, 1);
    let lives_of = |views: Vec<BoardView>| views.iter().map(|view| view.life()).collect::<Vec<_>>();
    let mut lived = lives_of(seen(dir.path()));
    lived.sort_by_key(|life| *life == Life::Running);
    assert_eq!(lived, [Life::Ended, Life::Running]);
    assert!(
        !left.path().exists() && read.path().exists() && !killed.path().exists() && lives.path().exists()
    );
    let views = boards_of_run(dir.path(), run).unwrap();
    assert_eq!((views.len(), views[0].rows.len()), (1, 1));
    assert!(!read.path().exists() && boards_of_run(dir.path(), run).unwrap().is_empty());
}

#[test]
fn board_of_a_run_stays_when_its_process_ends() {
    let dir = tempfile::tempdir().unwrap();
    let run = Run::of_this_process().unwrap();
    drop(Board::create(dir.path(), Some(run)).unwrap());
    assert_eq!(seen(dir.path())[0].life(), Life::Ended);
    assert_eq!(boards_of_run(dir.path(), run).unwrap().len(), 1);
    assert_eq!(seen(dir.path()), []);
}

#[test]
fn whoever_makes_a_board_removes_what_is_left_of_processes_that_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let left = Board::create(dir.path(), None).unwrap();
    let gone = dir.path().join(FOLDER).join(format!("{}-0123456789abcdef", u32::MAX));
    forge(&left, header::PID, u32::MAX.into());
    std::fs::copy(left.path(), &gone).unwrap();
    let stranger = dir.path().join(FOLDER).join("notes");
    std::fs::write(&stranger, "mine").unwrap();
    let _board = Board::create(dir.path(), None).unwrap();
    // The number in its name is that of a process that lives.
    assert!(!gone.exists() && left.path().exists() && stranger.exists());
}

#[test]
fn child_of_fork_has_no_row_removes_nothing_and_tallies_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let board = Board::create(dir.path(), None).unwrap();
    let row_of_parent = row(&board);
    let path = board.path().to_owned();
    match fork::fork().unwrap() {
        fork::Fork::Child => {
            let (local, peer) = ends("1.2.3.4:5", "1.2.3.4:6");
            let has_none = board.row(1, local, peer).is_none() && !board.is_of_this_process();
            drop(row_of_parent);
            drop(board);
            beeline_mmio::end_child(if has_none { 0 } else { 1 });
        }
        fork::Fork::Parent(pid) => {
            assert_eq!(fork::waitpid(pid).unwrap(), 0);
            assert!(path.exists());
            let view = &seen(dir.path())[0];
            assert_eq!((view.rows.len(), view.ended.len(), view.life()), (1, 0, Life::Running));
        }
    }
}

#[test]
fn folder_that_others_may_use_or_that_is_a_link_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(FOLDER);
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(Board::create(dir.path(), None), Err(BoardError::Folder { mode: 0o777, .. })));
    std::fs::remove_dir(&folder).unwrap();
    symlink("/tmp", &folder).unwrap();
    assert!(matches!(
        Board::create(dir.path(), None),
        Err(BoardError::System { what: "open the folder", .. })
    ));
    let absent = Board::create(Path::new("@beeline/0/default"), None);
    assert!(matches!(absent, Err(BoardError::System { what: "make the folder", .. })));
}

#[test]
fn file_that_is_cut_or_is_none_gives_what_is_there_or_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let board = Board::create(dir.path(), None).unwrap();
    let whole = std::fs::read(board.path()).unwrap();
    let place = dir.path().join(FOLDER);
    let named = |number: u32| place.join(format!("{}-{number:016x}", std::process::id()));
    std::fs::write(named(1), &whole[..HEADER_BYTES - 1]).unwrap();
    std::fs::write(named(2), &whole[..HEADER_BYTES + ROW_BYTES / 2]).unwrap();
    std::fs::write(named(3), vec![0; whole.len()]).unwrap();
    std::fs::create_dir(named(4)).unwrap();
    symlink(board.path(), named(5)).unwrap();
    drop(board);
    let found: Vec<_> = boards(dir.path()).unwrap().map(|view| view.map(|view| view.rows.len())).collect();
    let texts: Vec<_> = found.iter().map(|it| it.as_ref().map_err(|error| error.to_string())).collect();
    assert_eq!(texts.len(), 5, "{texts:?}");
    let error = |at: usize| texts[at].as_ref().unwrap_err();
    assert!(error(0).contains("it has 4095 bytes") && matches!(texts[1], Ok(0)), "{texts:?}");
    assert!(error(2).contains("not complete yet") && error(3).contains("is no file"), "{texts:?}");
    assert!(error(4).starts_with("cannot open"), "{texts:?}");
}

#[test]
fn row_that_changes_hands_between_two_looks_is_not_listed() {
    let mut before = [0; ROW_BYTES];
    before[0] = OPEN as u8;
    let mut after = before;
    assert_eq!(layout::rows_of(&before, &after).len(), 1);
    after[1] = 1;
    assert_eq!(layout::rows_of(&before, &after).len(), 0);
}

proptest! {
    #[test]
    fn any_bytes_give_a_view_or_an_error(
        mut header in prop::collection::vec(any::<u8>(), 0..HEADER_BYTES + 9),
        rows in prop::collection::vec(any::<u8>(), 0..3 * ROW_BYTES),
        is_board in any::<bool>(),
    ) {
        if is_board {
            header.resize(HEADER_BYTES, 7);
            header[..8].copy_from_slice(&FORMAT.to_le_bytes());
        }
        let view = layout::header_of(&header);
        prop_assert_eq!(view.is_ok(), is_board);
        let _ = view.map(|view| view.life());
        let mut open = rows.clone();
        for row in open.chunks_mut(ROW_BYTES) {
            row[0] = OPEN as u8;
        }
        prop_assert!(layout::rows_bytes(&header) <= (1 << 16) * ROW_BYTES);
        prop_assert_eq!(layout::rows_of(&open, &open).len(), rows.len() / ROW_BYTES);
        let _ = layout::rows_of(&rows, &open);
    }
}
