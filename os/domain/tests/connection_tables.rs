//! The table of connections between real processes: who finds whom, and what stopped, killed and hostile ones do to it.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use beeline_domain::{
    Candidate, ConnectionEnds, ConnectionTable, Domain, DomainConfig, MisuseError, OtherProcess, Purpose,
    RegistryError, descriptors,
};
use harness::users::{LISTED, Users};
use harness::{Helper, Role, TestFolder, listen, say, wait_for_end};
use rustix::process::{Resource, Rlimit, setrlimit};

/// The network namespace, which is the same for all.
const NAMESPACE: u64 = 1;
const STORM_PROCESSES: usize = 4;
/// Connections that each of them makes, the same number to each.
const STORM_CONNECTS: usize = 500;
const WORDS_OFFSET: u64 = 4096;

/// The end on port 80 of a connection; the other end is on `port`.
fn server_end(port: u16) -> ConnectionEnds {
    let end = |port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    ConnectionEnds::new(NAMESPACE, end(80), end(port))
}

fn client_end(port: u16) -> ConnectionEnds {
    server_end(port).mirrored()
}

fn ends_of(stream: &TcpStream) -> ConnectionEnds {
    ConnectionEnds::new(NAMESPACE, stream.local_addr().unwrap(), stream.peer_addr().unwrap())
}

fn file(folder: &TestFolder) -> PathBuf {
    folder.path().join("test/connections.table")
}

fn number(text: &str) -> NonZeroU64 {
    text.parse().unwrap()
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    match role.name.as_str() {
        "foreign" => return foreign(&role),
        "forker" => return forker(&role),
        "churn" => churn(&role),
        _ => {}
    }
    let table = role.open().connection_table().unwrap();
    say(&table.number().to_string());
    match role.name.as_str() {
        "storm" => storm(&table),
        "server" => {
            while let Some(port) = listen() {
                let found = table.find(&server_end(port.parse().unwrap())).unwrap();
                say(&format!("{found:?}"));
            }
        }
        other => panic!("unknown role {other}"),
    }
}

/// A helper that finds from the side of the server when it is told a port, and the number with which it has joined.
fn server(folder: &TestFolder) -> (Helper, NonZeroU64) {
    let mut helper = folder.helper("server", "");
    let number = number(&helper.hear());
    (helper, number)
}

#[test]
fn second_of_two_processes_finds_the_first() {
    let folder = TestFolder::new();
    let ours = folder.open().connection_table().unwrap();
    let (mut helper, theirs) = server(&folder);
    let candidate = Candidate { number: theirs, pid: helper.pid() };
    assert_eq!(ours.find(&client_end(4000)).unwrap(), OtherProcess::NotYet);
    helper.tell("4000");
    let found = Candidate { number: ours.number(), pid: std::process::id() };
    helper.expect(&format!("{:?}", OtherProcess::Found(found)));
    helper.tell("4001");
    helper.expect("NotYet");
    assert_eq!(ours.find(&client_end(4001)).unwrap(), OtherProcess::Found(candidate));
    let elsewhere = ConnectionEnds::new(
        NAMESPACE + 1,
        (Ipv4Addr::LOCALHOST, 4001).into(),
        (Ipv4Addr::LOCALHOST, 80).into(),
    );
    assert_eq!(ours.find(&elsewhere).unwrap(), OtherProcess::NotYet, "another network namespace");
}

#[test]
fn process_finds_itself_and_a_socket_that_is_both_ends() {
    let folder = TestFolder::new();
    let ours = folder.open().connection_table().unwrap();
    let again = folder.open().connection_table().unwrap();
    assert_ne!(ours.number(), again.number());
    for (port, second) in [(1, &ours), (2, &again)] {
        assert_eq!(ours.find(&client_end(port)).unwrap(), OtherProcess::NotYet);
        assert_eq!(second.find(&server_end(port)).unwrap(), OtherProcess::ThisProcess);
    }
    assert_eq!(ours.find(&server_end(80)).unwrap(), OtherProcess::SameSocket);
    // Its words are there, and name nobody.
    drop(again);
    assert_eq!(ours.find(&client_end(2)).unwrap(), OtherProcess::NotYet);
}

/// Makes and takes connections with all processes of the storm at once, and looks until it knows who has the other end of each.
fn storm(table: &ConnectionTable) {
    let many = Rlimit { current: Some(4096), maximum: Some(4096) };
    setrlimit(Resource::Nofile, many).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    say(&listener.local_addr().unwrap().port().to_string());
    let peers: Vec<(u16, NonZeroU64)> = listen()
        .unwrap()
        .split(' ')
        .map(|peer| peer.split_once(':').unwrap())
        .map(|(port, other)| (port.parse().unwrap(), number(other)))
        .collect();
    let accept = || {
        let mut bytes = [0; 8];
        let mut stream = listener.accept().unwrap().0;
        stream.read_exact(&mut bytes).unwrap();
        (stream, NonZeroU64::new(u64::from_le_bytes(bytes)).unwrap())
    };
    let connect = |index: usize| {
        let (port, number) = peers[index % peers.len()];
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.write_all(&table.number().get().to_le_bytes()).unwrap();
        (stream, number)
    };
    let (made, accepted) = std::thread::scope(|scope| {
        let accepting = scope.spawn(|| find_all(table, STORM_CONNECTS, |_| accept()));
        (find_all(table, STORM_CONNECTS, connect), accepting.join().unwrap())
    });
    let (found, told) = (made.found + accepted.found, made.told + accepted.told);
    say(&format!("{} known, {} wrong", found + told, made.wrong + accepted.wrong));
    say(&format!("{found} found"));
    wait_for_end();
}

/// Looks for the other end of each connection when it is made, and then for those that were not found, until each was, or the other end
/// says in the connection that it has found this one: from then on it publishes nothing any more.
fn find_all(table: &ConnectionTable, count: usize, make: impl Fn(usize) -> (TcpStream, NonZeroU64)) -> Storm {
    let mut storm = Storm::default();
    let mut missing = Vec::new();
    let mut made: Vec<(TcpStream, NonZeroU64)> = Vec::new();
    for index in 0..count {
        made.push(make(index));
        let (stream, expected) = &made[index];
        if !storm.look(table, stream, *expected) {
            missing.push(index);
        }
        stream.set_nonblocking(true).unwrap();
    }
    while !missing.is_empty() {
        missing.retain(|index| {
            let (stream, expected) = &made[*index];
            let is_told = (&*stream).read(&mut [0]).is_ok_and(|bytes| bytes == 1);
            storm.told += usize::from(is_told);
            !is_told && !storm.look(table, stream, *expected)
        });
        std::thread::yield_now();
    }
    storm.connections = made;
    storm
}

/// What became of connections in the storm.
#[derive(Default)]
struct Storm {
    found: usize,
    told: usize,
    wrong: usize,
    /// Open until the end: others may not have been told yet.
    connections: Vec<(TcpStream, NonZeroU64)>,
}

impl Storm {
    fn look(&mut self, table: &ConnectionTable, mut stream: &TcpStream, expected: NonZeroU64) -> bool {
        let number = match table.find(&ends_of(stream)).unwrap() {
            OtherProcess::Found(candidate) => candidate.number,
            OtherProcess::ThisProcess => table.number(),
            OtherProcess::NotYet => return false,
            OtherProcess::SameSocket => panic!("two sockets"),
        };
        self.found += 1;
        self.wrong += usize::from(number != expected);
        // The other end may have been found, and closed.
        let _ = stream.write_all(b"f");
        true
    }
}

#[test]
fn both_ends_of_2_000_connections_that_four_processes_make_at_once_find_each_other() {
    let folder = TestFolder::new();
    let mut helpers: Vec<Helper> = (0..STORM_PROCESSES).map(|_| folder.helper("storm", "")).collect();
    let mut addresses = Vec::new();
    for helper in &mut helpers {
        let (number, port) = (helper.hear(), helper.hear());
        addresses.push(format!("{port}:{number}"));
    }
    for helper in &mut helpers {
        helper.tell(&addresses.join(" "));
    }
    for helper in &mut helpers {
        helper.expect(&format!("{} known, 0 wrong", 2 * STORM_CONNECTS));
        println!("{}", helper.hear());
    }
}

#[test]
fn stopped_process_is_found_and_holds_nobody_up() {
    let folder = TestFolder::new();
    let ours = folder.open().connection_table().unwrap();
    let (mut stopped, theirs) = server(&folder);
    stopped.tell("1");
    stopped.expect("NotYet");
    stopped.stop();
    let candidate = Candidate { number: theirs, pid: stopped.pid() };
    assert_eq!(ours.find(&client_end(1)).unwrap(), OtherProcess::Found(candidate));
    let (mut other, others) = server(&folder);
    other.tell("2");
    other.expect("NotYet");
    let candidate = Candidate { number: others, pid: other.pid() };
    assert_eq!(ours.find(&client_end(2)).unwrap(), OtherProcess::Found(candidate));
    drop(ours);
    folder.open().connection_table().unwrap();
}

#[test]
fn words_of_a_killed_process_name_nobody_also_when_another_has_its_place() {
    let folder = TestFolder::new();
    let (mut killed, theirs) = server(&folder);
    for port in 0..64_u16 {
        killed.tell(&port.to_string());
        killed.expect("NotYet");
    }
    let ours = folder.open().connection_table().unwrap();
    assert!(matches!(ours.find(&client_end(7)).unwrap(), OtherProcess::Found(it) if it.number == theirs));
    killed.kill();
    assert!((0..64).all(|port| ours.find(&client_end(port)).unwrap() == OtherProcess::NotYet));
    // The first place that is free is that of the killed one.
    let (mut next, number) = server(&folder);
    assert!((0..64).all(|port| ours.find(&client_end(port)).unwrap() == OtherProcess::NotYet));
    next.tell("7");
    next.hear();
    assert!(matches!(ours.find(&client_end(7)).unwrap(), OtherProcess::Found(it) if it.number == number));
}

/// Makes and joins tables, and looks in them, until it is killed.
fn churn(role: &Role) {
    let name = |round| format!("{}-{round}", role.argument);
    for round in 0.. {
        let config = DomainConfig { name: name(round), ..role.config.clone() };
        let fresh = Domain::open(&config).unwrap().connection_table().unwrap();
        fresh.find(&client_end(1)).unwrap();
        let shared = role.open().connection_table().unwrap();
        if round == 0 {
            say("ready");
        }
        for port in 0..32 {
            shared.find(&server_end(port)).unwrap();
            shared.find(&client_end(port)).unwrap();
        }
    }
}

#[test]
fn processes_that_are_killed_at_any_moment_leave_tables_that_are_whole_and_name_nobody() {
    let folder = TestFolder::new();
    let ours = folder.open().connection_table().unwrap();
    for kill in 0..40_u32 {
        let mut helpers = [0, 1].map(|which| folder.helper("churn", &format!("fresh-{kill}-{which}")));
        helpers.iter_mut().for_each(|helper| helper.expect("ready"));
        // Another moment each time.
        (0..kill * 50).for_each(|port| _ = ours.find(&client_end(port as u16 % 32)).unwrap());
        helpers.iter_mut().for_each(Helper::kill);
        for port in 0..32 {
            assert_eq!(ours.find(&client_end(port)).unwrap(), OtherProcess::NotYet);
        }
    }
    let domains = std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name());
    let fresh = domains.filter_map(|it| it.into_string().ok());
    let fresh: Vec<String> = fresh.filter(|name| name.starts_with("fresh")).collect();
    assert!(fresh.len() > 80);
    for name in fresh {
        let config = DomainConfig { name, ..folder.config() };
        let table = Domain::open(&config).unwrap().connection_table().unwrap();
        assert_eq!(table.find(&server_end(1)).unwrap(), OtherProcess::NotYet, "{}", config.name);
        assert_eq!(table.find(&client_end(1)).unwrap(), OtherProcess::ThisProcess, "{}", config.name);
    }
}

/// SplitMix64.
fn random_words(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }
}

#[test]
fn garbage_in_the_table_names_nobody_who_has_not_joined() {
    let folder = TestFolder::new();
    let ours = folder.open().connection_table().unwrap();
    let (_helper, theirs) = server(&folder);
    let words = File::options().read(true).write(true).open(file(&folder)).unwrap();
    ours.find(&client_end(1)).unwrap();
    let mut bytes = vec![0; words.metadata().unwrap().len() as usize];
    words.read_exact_at(&mut bytes, 0).unwrap();
    let is_word = |at: &u64| bytes[*at as usize..*at as usize + 8] != [0; 8];
    let own: Vec<u64> = (WORDS_OFFSET..bytes.len() as u64).step_by(8).filter(is_word).collect();
    let [own] = own[..] else { panic!("{own:?}") };
    let tag = &bytes[own as usize + 4..own as usize + 8];

    let mut random = random_words(73);
    // Right tags, and any place and generation. The last two words are true.
    for round in 0..20_000_u64 {
        let mut word = (random() as u32).to_le_bytes().to_vec();
        word.extend(tag);
        words.write_all_at(&word, own ^ 8).unwrap();
        match ours.find(&client_end(1)).unwrap() {
            OtherProcess::NotYet => {}
            OtherProcess::ThisProcess => panic!("round {round}"),
            OtherProcess::Found(candidate) => assert_eq!(candidate.number, theirs),
            OtherProcess::SameSocket => panic!("two sockets"),
        }
    }
    bytes[WORDS_OFFSET as usize..]
        .chunks_exact_mut(8)
        .for_each(|word| word.copy_from_slice(&random().to_le_bytes()));
    words.write_all_at(&bytes, 0).unwrap();
    for port in 0..20_000 {
        assert_eq!(ours.find(&server_end(port | 1)).unwrap(), OtherProcess::NotYet, "{port}");
    }
}

#[test]
fn file_that_was_cut_removed_or_is_none_is_an_error() {
    let folder = TestFolder::new();
    let table = || folder.open().connection_table();
    let ours = table().unwrap();
    ours.check().unwrap();
    let moved = folder.path().join("moved");
    std::fs::rename(file(&folder), &moved).unwrap();
    assert!(matches!(ours.check(), Err(RegistryError::Removed { .. })));
    assert_eq!(ours.find(&client_end(1)).unwrap(), OtherProcess::NotYet);
    // Whoever began it was killed before it was whole.
    File::create(file(&folder)).unwrap().set_len(5000).unwrap();
    assert_eq!(table().unwrap().find(&client_end(1)).unwrap(), OtherProcess::NotYet);
    std::fs::rename(&moved, file(&folder)).unwrap();
    ours.check().unwrap();
    File::options().write(true).open(file(&folder)).unwrap().set_len(WORDS_OFFSET).unwrap();
    assert!(
        (0..100).all(|port| matches!(ours.find(&client_end(port)), Ok(_) | Err(RegistryError::Short { .. })))
    );
    File::options().write(true).open(file(&folder)).unwrap().set_len(WORDS_OFFSET).unwrap();
    assert!(matches!(table(), Err(RegistryError::Short { .. })));
    std::fs::write(file(&folder), "another thing").unwrap();
    assert!(matches!(table(), Err(RegistryError::Format { .. })));
    let without = Domain::open(&DomainConfig::in_network_namespace("table")).unwrap();
    assert!(matches!(without.connection_table(), Err(RegistryError::NoFolder)));
}

#[test]
fn file_of_the_program_that_takes_the_number_is_not_written() {
    let folder = TestFolder::new();
    let mut helper = folder.helper("forker", "lost");
    helper.expect("refused, and 0 bytes written");
    assert!(helper.finish().success());
}

/// Loses the descriptor of a table to a file of its own, or has a child of fork use it.
fn forker(role: &Role) {
    let domain = role.open();
    let table = domain.connection_table().unwrap();
    table.find(&server_end(1)).unwrap();
    if role.argument == "lost" {
        let (number, _) = descriptors().into_iter().find(|(_, it)| *it == Purpose::Connections).unwrap();
        let own = role.config.root.as_ref().unwrap().join("own");
        let file = File::create(&own).unwrap();
        nix::unistd::close(number).unwrap();
        let taken = rustix::io::fcntl_dupfd_cloexec(&file, number).unwrap();
        assert_eq!(taken.as_raw_fd(), number);
        let refused = table.find(&server_end(2));
        assert!(matches!(refused, Err(RegistryError::Misuse(MisuseError::DescriptorLost))), "{refused:?}");
        say(&format!("refused, and {} bytes written", own.metadata().unwrap().len()));
        wait_for_end();
        std::process::exit(0);
    }
    if let fork::Fork::Child = fork::fork().unwrap() {
        let refused = table.find(&client_end(1));
        assert!(matches!(refused, Err(RegistryError::Misuse(MisuseError::Forked { .. }))), "{refused:?}");
        let own = domain.connection_table().unwrap();
        assert!(
            matches!(own.find(&client_end(1)).unwrap(), OtherProcess::Found(it) if it.number == table.number())
        );
        drop(table);
        own.find(&server_end(2)).unwrap();
        say(&own.number().to_string());
        wait_for_end();
        std::process::exit(0);
    }
    wait_for_end();
}

#[test]
fn child_of_fork_joins_by_itself_and_does_not_end_its_parents_place() {
    let folder = TestFolder::new();
    let mut forker = folder.helper("forker", "");
    let child = number(&forker.hear());
    let ours = folder.open().connection_table().unwrap();
    let who = |ends| match ours.find(&ends).unwrap() {
        OtherProcess::Found(candidate) => candidate,
        other => panic!("{other:?}"),
    };
    let (parent, of_child) = (who(client_end(1)), who(client_end(2)));
    assert_eq!((parent.pid, of_child.number), (forker.pid(), child));
    assert_ne!(parent.number, child);
}

/// A process of another user, on a table that is not its own.
fn foreign(role: &Role) {
    let domain = Domain::open_foreign(&role.config, 0);
    let Ok(domain) = domain else {
        say("closed");
        wait_for_end();
        return;
    };
    let root = role.config.root.clone().unwrap();
    let refused = domain.connection_table();
    assert!(matches!(refused, Err(RegistryError::Misuse(MisuseError::NotOwner { owner: 0 }))), "{refused:?}");
    let theirs = domain.others_connection_table().unwrap();
    let path = root.join("test/connections.table");
    assert!(File::options().write(true).open(path).is_err());
    let name = format!("user-{LISTED}");
    let own = Domain::open(&DomainConfig { root: Some(root.join(name)), name: "test".into() }).unwrap();
    let own = own.connection_table().unwrap();
    own.let_others_read().unwrap();
    say(&own.number().to_string());
    while let Some(port) = listen() {
        let ends = server_end(port.parse().unwrap());
        assert_eq!(own.find(&ends).unwrap(), OtherProcess::NotYet);
        say(&format!("{:?}", theirs.find(&ends).unwrap()));
    }
}

#[test]
fn processes_of_two_users_find_each_other_where_each_lets_others_read_its_table() {
    let Some(users) = Users::new() else { return };
    let config = DomainConfig { root: Some(users.folder().to_owned()), name: "test".into() };
    let domain = Domain::open(&config).unwrap();
    let ours = domain.connection_table().unwrap();
    users.helper(LISTED, "foreign", "").expect("closed");
    ours.let_others_read().unwrap();
    let their_root = users.folder().join(format!("user-{LISTED}"));
    std::fs::create_dir(&their_root).unwrap();
    std::os::unix::fs::chown(&their_root, Some(LISTED), Some(LISTED)).unwrap();
    let mut foreign = users.helper(LISTED, "foreign", "");
    let their_number = number(&foreign.hear());
    let their_config = DomainConfig { root: Some(their_root), name: "test".into() };
    let their_domain = Domain::open_foreign(&their_config, LISTED).unwrap();
    let theirs = their_domain.others_connection_table().unwrap();
    let look = |port| {
        assert_eq!(ours.find(&client_end(port)).unwrap(), OtherProcess::NotYet);
        theirs.find(&client_end(port)).unwrap()
    };
    assert_eq!(look(1), OtherProcess::NotYet);
    foreign.tell("1");
    let found = OtherProcess::Found(Candidate { number: ours.number(), pid: 0 });
    foreign.expect(&format!("{found:?}"));
    foreign.tell("2");
    foreign.expect("NotYet");
    assert_eq!(look(2), OtherProcess::Found(Candidate { number: their_number, pid: 0 }));
}
