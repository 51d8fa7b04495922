//! Processes of other users open windows in an arena because they share a connection with its owner; nobody else joins it.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::net::{Ipv4Addr, TcpListener, TcpStream};

use beeline_contract_memory::{LoadPort, StorePort};
use beeline_domain::{
    Admissions, ArenaListener, ArenaOptions, Domain, DomainConfig, OtherEnd, SenderArena, StoreOptions,
    Token, WindowOptions, connect_window, join_windows, join_windows_proving, offer_window, offer_windows,
};
use beeline_mmio::StoreKernel;
use harness::users::{LISTED, UNLISTED, Users};
use harness::{Helper, Role, WATCHDOG, listen, say, wait_for_end, wait_until, watchdog};

const LINES: u32 = 64;
/// Windows that each process opens: more than are lent at once, so that some are asked for.
const WINDOWS: u64 = 50;

/// Opens windows, and stores a number in each.
fn use_arena(arena: &SenderArena) {
    let mut windows: Vec<_> = (0..WINDOWS).map(|_| arena.open(StoreKernel::Cached).unwrap()).collect();
    for (number, window) in (1..).zip(&mut windows) {
        window.store.store_word(1, 0, number);
    }
    say("stored");
    wait_for_end();
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let _watchdog = watchdog();
    let (name, port) = role.argument.split_once(',').unwrap();
    let config = DomainConfig::in_network_namespace(name);
    let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port.parse().unwrap())).unwrap();
    match role.name.as_str() {
        "holder" => {
            let connection = connect();
            let token = Token::exchange(&connection, WATCHDOG).unwrap();
            let domain = Domain::open_foreign(&config, token.uid()).unwrap();
            assert_eq!(listen().as_deref(), Some("join"));
            let arena = join_windows_proving(&domain, &token, "arena", LINES).unwrap();
            say(&join_windows_proving(&domain, &token, "arena", LINES).unwrap_err().to_string());
            use_arena(&arena);
        }
        "sharer" => {
            let connection = connect();
            say("connected");
            assert_eq!(listen().as_deref(), Some("join"));
            let owner = OtherEnd::of_tcp(&connection).unwrap().uid();
            let domain = Domain::open_foreign(&config, owner).unwrap();
            use_arena(&join_windows(&domain, "arena", LINES).unwrap());
        }
        "unproved" => {
            let domain = Domain::open_foreign(&config, 0).unwrap();
            let store = StoreOptions::with_kernel(StoreKernel::Cached);
            say(&connect_window(&domain, "window", store).unwrap_err().to_string());
            say(&join_windows(&domain, "arena", LINES).unwrap_err().to_string());
        }
        other => panic!("unknown role {other}"),
    }
}

/// An arena and a window that nobody may use but who shares a connection, and where to connect.
struct Owner {
    users: Users,
    admissions: Admissions,
    arena: ArenaListener,
    tcp: TcpListener,
    argument: String,
    _kept: Box<dyn std::any::Any>,
}

impl Owner {
    fn new(test: &str) -> Option<Self> {
        let users = Users::new()?;
        // A domain of a test's own: every process of the machine that is in this network namespace sees its name.
        let name = format!("arena-{test}-{}", std::process::id());
        let domain = Domain::open(&DomainConfig::in_network_namespace(name.as_str())).unwrap();
        let admissions = Admissions::default();
        let for_sharers = || Some(admissions.clone());
        let options = ArenaOptions { admissions: for_sharers(), ..ArenaOptions::default() };
        let arena = offer_windows(&domain, "arena", options).unwrap();
        let options = WindowOptions { lines: LINES, admissions: for_sharers(), ..WindowOptions::default() };
        let window = offer_window(&domain, "window", options).unwrap();
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let argument = format!("{name},{}", tcp.local_addr().unwrap().port());
        Some(Owner { users, admissions, arena, tcp, argument, _kept: Box::new(window) })
    }

    fn start(&self, uid: u32, role: &str) -> Helper {
        self.users.helper(uid, role, &self.argument)
    }

    /// A process that nothing admits is refused, for an arena as for a window.
    fn refuses(&self, uid: u32) {
        let mut unproved = self.start(uid, "unproved");
        for kind in ["window", "arena"] {
            let refused = unproved.hear();
            let reason = format!("uid {uid} is not on the offer's list");
            assert!(refused.contains(&reason) && refused.contains(kind), "{refused}");
        }
    }

    fn receives_of(&self, helper: &Helper, uid: u32) {
        for number in 1..=WINDOWS {
            let parts = self.arena.accept(WATCHDOG).unwrap();
            assert_eq!((parts.peer.uid(), parts.peer.pid()), (uid, helper.pid()));
            assert!(parts.peer.is_alive());
            wait_until(|| parts.load.load_word(1, 0) == number);
        }
    }
}

#[test]
fn holder_of_a_token_joins_once_and_others_of_its_user_are_refused_as_at_a_window() {
    let Some(owner) = Owner::new("token") else { return };
    let mut holder = owner.start(LISTED, "holder");
    let (connection, _) = owner.tcp.accept().unwrap();
    let token = Token::exchange(&connection, WATCHDOG).unwrap();
    owner.refuses(LISTED);
    let _admitted = owner.admissions.admit_holder(token).unwrap();
    owner.refuses(UNLISTED);
    holder.tell("join");
    let refused = holder.hear();
    assert!(refused.contains(&format!("uid {LISTED} is not on the offer's list")), "{refused}");
    holder.expect("stored");
    owner.receives_of(&holder, LISTED);
    owner.refuses(LISTED);
}

#[test]
fn user_at_the_other_end_of_a_connection_joins_while_admitted_and_its_windows_stay() {
    let Some(owner) = Owner::new("connection") else { return };
    let mut sharer = owner.start(LISTED, "sharer");
    sharer.expect("connected");
    let (connection, _) = owner.tcp.accept().unwrap();
    owner.refuses(LISTED);
    let admitted = owner.admissions.admit(OtherEnd::of_tcp(&connection).unwrap()).unwrap();
    owner.refuses(UNLISTED);
    sharer.tell("join");
    sharer.expect("stored");
    drop(admitted);
    owner.refuses(LISTED);
    owner.receives_of(&sharer, LISTED);
}
