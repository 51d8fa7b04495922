//! Who may connect to segments, as the configuration says it: programs of two users, and of nodes that are on no list.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod c;

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use c::C11;
use c::ground::Ground;
use c::installed::installed;
use c::player::{self, Player};

/// A user who owns nothing.
const OTHER: u32 = 65_532;

fn program() -> &'static Path {
    static PROGRAM: OnceLock<std::path::PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = player::build(installed(), &C11, "player");
        // The other user runs it, and loads the library.
        std::fs::set_permissions(installed().prefix(), PermissionsExt::from_mode(0o755)).unwrap();
        program
    })
}

/// A folder for each of two users, and one file that both have for their configuration.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new(access: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        for (name, user) in [("own", rustix::process::geteuid().as_raw()), ("theirs", OTHER)] {
            let root = folder.path().join(name);
            std::fs::create_dir(&root).unwrap();
            std::fs::set_permissions(&root, PermissionsExt::from_mode(0o755)).unwrap();
            let _refused_unless_root = chown(&root, Some(user), Some(user));
        }
        let own = rustix::process::geteuid().as_raw();
        let node = |id: u32, user: u32, root: &str| {
            format!("[[nodes]]\nid = {id}\nuser = {user}\nroot = {:?}\n", folder.path().join(root))
        };
        let nodes = [node(4, own, "own"), node(8, OTHER, "theirs"), node(12, own, "own")].concat();
        let nodes = nodes.replacen("id = 8\n", "id = 8\nname = \"theirs\"\n", 1);
        std::fs::write(folder.path().join("beeline.toml"), nodes + access).unwrap();
        Place { folder }
    }

    fn command(&self, node: &str, root: &str) -> Command {
        let mut command = Command::new(program());
        command.current_dir("/").env("BEELINE_NODE", node).env("BEELINE_ROOT", self.folder.path().join(root));
        command.env("BEELINE_CONFIG", self.folder.path().join("beeline.toml"));
        command
    }

    /// A program of this user.
    fn own(&self, node: &str) -> Player {
        opened(Player::of(self.command(node, "own"), Ground::Kernel))
    }

    /// A program of the other user.
    fn theirs(&self, node: &str) -> Player {
        let mut command = self.command(node, "theirs");
        command.uid(OTHER).gid(OTHER);
        opened(Player::of(command, Ground::Kernel))
    }
}

fn opened(mut player: Player) -> Player {
    run(&mut player, "SCIInitialize 0 -> OK\nSCIOpen sd 0 -> OK");
    player
}

fn run(player: &mut Player, steps: &str) {
    for step in steps.lines().map(str::trim).filter(|step| !step.is_empty()) {
        let (call, expected) = step.split_once(" -> ").unwrap();
        assert_eq!(player.answer(call), expected, "{call}");
    }
}

/// Makes the segment of a number available and maps it.
fn makes(player: &mut Player, id: u32) {
    run(
        player,
        &format!(
            "SCICreateSegment sd s{id} {id} 4096 NULL NULL 0 -> OK
             SCIPrepareSegment s{id} 0 0 -> OK
             SCISetSegmentAvailable s{id} 0 0 -> OK
             SCIMapLocalSegment s{id} m{id} 0 4096 NULL 0 -> OK address"
        ),
    );
}

fn connects(player: &mut Player, node: u32, id: u32) -> String {
    player.answer(&format!("SCIConnectSegment sd r{node}-{id} {node} {id} 0 NULL NULL 10000 0"))
}

/// What waits for a time is refused when that is over.
fn is_refused(player: &mut Player, node: u32, id: u32) {
    let call = format!("SCIConnectSegment sd refused {node} {id} 0 NULL NULL 0 0");
    assert_eq!(player.answer(&call), "CONNECTION_REFUSED", "{call}");
}

/// Both have the memory of a segment that is made and of which one is connected to.
fn share(owner: &mut Player, user: &mut Player, (node, id): (u32, u32)) {
    assert_eq!(connects(user, node, id), "OK");
    run(owner, &format!("text @m{id} hello -> done"));
    run(
        user,
        &format!(
            "SCIMapRemoteSegment r{node}-{id} x{id} 0 4096 NULL 0 -> OK address
             show @x{id} 5 -> hello
             SCICreateMapSequence x{id} q{id} 0 -> OK
             SCIStartSequence q{id} 0 -> OK SCI_SEQ_OK
             text @x{id}+8 world -> done
             SCICheckSequence q{id} 0 -> OK SCI_SEQ_OK"
        ),
    );
    run(owner, &format!("show @m{id}+8 5 -> world"));
}

#[test]
fn programs_of_two_users_exchange_segments_and_have_none_that_no_list_gives_them() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can start a process of another user");
        return;
    }
    let place = Place::new(&format!(
        "[access]
         nodes = [4, \"theirs\"]
         users = [\"root\", {OTHER}]
         [[access.segments]]
         ids = [20]
         nodes = [12]
         [[access.segments]]
         ids = [21]
         users = [{}]",
        OTHER + 1
    ));
    let (mut owner, mut stranger) = (place.own("4"), place.own("12"));
    let mut other = place.theirs("8");
    for id in [7, 20, 21] {
        makes(&mut owner, id);
    }
    share(&mut owner, &mut other, (4, 7));
    is_refused(&mut other, 4, 20);
    is_refused(&mut other, 4, 21);
    makes(&mut other, 9);
    share(&mut other, &mut owner, (8, 9));
    // Of this user, but of a node that is on one list alone.
    is_refused(&mut stranger, 4, 7);
    share(&mut owner, &mut stranger, (4, 20));
    is_refused(&mut stranger, 8, 9);
    run(
        &mut owner,
        "SCIRemoveSegment s21 0 -> BUSY\nSCIUnmapSegment m21 0 -> OK\nSCIRemoveSegment s21 0 -> OK",
    );
    run(&mut owner, "SCIShareSegment s7 0 -> ILLEGAL_OPERATION");
    // The other user's program dies: its connection is told as lost, and its segment is.
    let lost = "SCIWaitForLocalSegmentEvent s7 out out INFINITE_TIMEOUT 0 -> OK CONNECT 8 0";
    run(&mut owner, lost);
    other.kill();
    run(&mut owner, "SCIWaitForLocalSegmentEvent s7 out out INFINITE_TIMEOUT 0 -> OK LOST 8 0");
    run(&mut owner, "SCIWaitForRemoteSegmentEvent r8-9 out INFINITE_TIMEOUT 0 -> OK LOST 0");
}

#[test]
fn node_that_is_on_no_list_is_refused_and_names_may_stand_for_numbers() {
    let own = rustix::process::geteuid().as_raw();
    let nodes = "[[nodes]]\nid = 4\n[[nodes]]\nid = 8\nname = \"beta\"\n[[nodes]]\nid = 12\n";
    let folder = tempfile::tempdir().unwrap();
    let access = format!("[[access.segments]]\nids = [7]\nnodes = [\"beta\"]\nusers = [{own}]\n");
    std::fs::write(folder.path().join("beeline.toml"), format!("{nodes}{access}")).unwrap();
    let start = |node| opened(Player::start((program(), Ground::Kernel), folder.path(), node));
    let (mut owner, mut beta, mut stranger) = (start("4"), start("8"), start("12"));
    makes(&mut owner, 7);
    makes(&mut owner, 8);
    share(&mut owner, &mut beta, (4, 7));
    is_refused(&mut stranger, 4, 7);
    share(&mut owner, &mut stranger, (4, 8));
    // One that the library has found the number of has the list of that number, and private ones have none.
    run(&mut owner, "SCICreateSegment sd auto 7 64 NULL NULL AUTO_ID -> OK\nSCIGetLocalSegmentId auto -> 9");
    run(&mut owner, "SCICreateSegment sd private 7 64 NULL NULL PRIVATE -> OK");
}

#[test]
fn configuration_that_means_nothing_is_said_with_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("beeline.toml");
    std::fs::write(&file, "node = 4\n[access]\nusers = [\"no-one-is\"]\n").unwrap();
    let mut player = Player::start((program(), Ground::Kernel), folder.path(), "4");
    assert_eq!(player.answer("SCIInitialize 0"), "SYSTEM");
    let why = player.answer("why");
    assert!(why.contains(&format!("{}:3: access.users = no-one-is", file.display())), "{why}");
}
