//! A table of connections: by it two processes that have the two ends of one connection of TCP find each other.
//!
//! Nothing is done when a connection is made, accepted or closed, and nobody has a name or a lock for it. A process that would like to
//! know who has the other end writes one word to where the connection's addresses lead, passes a barrier, and reads the word beside it,
//! which the process at the other end writes. So of two that look at any time the second one finds the first. The table loses words:
//! another connection's may be written over one, so who found nobody looks again later. Nobody waits.
//!
//! What is found is a hint. A word may be of a connection that has ended, of a process that has died, or somebody's who writes what he
//! likes: whoever is found must confirm over a connection of the domain that it has the socket at the other end (`SO_COOKIE` of both).
//! Until then the only harm is a look in vain (record 0073).
//!
//! The words are in a file of the domain's folder ([`words`]). The list of those who are named in them is a registry
//! ([`crate::Registry`]), whose record locks are the evidence that they live.

mod file;
#[cfg(fuzzing)]
pub(crate) mod fuzzed;
mod words;

use std::hash::Hasher;
use std::net::{SocketAddr, SocketAddrV4};
use std::num::NonZeroU64;
use std::os::fd::AsFd;

use beeline_tcp::{NoOtherSocket, OtherSocket, Tuple};
use file::Table;
use siphasher::sip::SipHasher13;
pub(crate) use words::end_bytes;
use words::{Resident, Spot, look, publish_and_look};

use crate::Domain;
use crate::error::MisuseError;
use crate::group_ends::{self, GroupMember};
use crate::registry::{Holder, Member, Registry, RegistryError};

/// The registry of the processes that have joined.
const MEMBERS: &str = "connections";

/// The addresses of a connection, as one end has them; or of two sockets of UDP that send to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEnds {
    protocol: Protocol,
    namespace_cookie: u64,
    /// Its addresses mean the same in every network namespace.
    is_between_hosts: bool,
    tuple: Tuple,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Tcp,
    Udp,
    /// A stream of `AF_UNIX`, whose inodes stand for addresses.
    Unix,
    /// What a socket of UDP sends to one member of a group, whose end has an address that is none ([`crate::group_ends`]).
    Group,
}

/// Added to the cookie of a namespace, so that ends of UDP have other words than a connection of the same addresses. Cookies are counts.
const OF_DATAGRAMS: u64 = 17 << 56;
/// The same for streams of `AF_UNIX`.
const OF_UNIX: u64 = 1 << 56;
/// In the place of a cookie, for connections between hosts.
const OF_HOSTS: u64 = 33 << 56;
/// The same for members of groups.
const OF_GROUP: u64 = 2 << 56;

/// Who has the other end of a connection, as the table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherProcess {
    /// Nobody has said so, or another word was written over it: look again later.
    NotYet,
    /// Both ends are this one socket, which is connected to itself.
    SameSocket,
    /// This process, if it still has it.
    ThisProcess,
    /// Maybe this one.
    Found(Candidate),
}

/// A process that may have the other end of a connection, and lives, by the kernel's word; unless it is another user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// With which it has joined the table ([`ConnectionTable::number`]).
    pub number: NonZeroU64,
    /// 0 outside this pid namespace, and for a process of another user.
    pub pid: u32,
}

/// The table of connections of a domain, which this process has joined. Dropping it leaves the table.
///
/// A child of fork joins by itself.
#[derive(Debug)]
pub struct ConnectionTable {
    table: Table,
    members: Registry,
    holder: Holder,
    own: Resident,
}

/// The table of connections of another user's domain, for reading.
#[derive(Debug)]
pub struct OthersConnectionTable {
    table: Table,
    members: Registry,
}

impl ConnectionEnds {
    /// The end at `local` of a connection in the network namespace with this cookie (`SO_NETNS_COOKIE`).
    pub fn new(namespace_cookie: u64, local: SocketAddr, remote: SocketAddr) -> Self {
        Self::made(Protocol::Tcp, namespace_cookie, Tuple::new(local, remote))
    }

    /// A socket of UDP at `local`, and what it has with the one at `remote`.
    pub fn of_datagrams(namespace_cookie: u64, local: SocketAddr, remote: SocketAddr) -> Self {
        Self::made(Protocol::Udp, namespace_cookie, Tuple::new(local, remote))
    }

    fn made(protocol: Protocol, namespace_cookie: u64, tuple: Tuple) -> Self {
        ConnectionEnds { protocol, namespace_cookie, is_between_hosts: false, tuple }
    }

    /// The same, of a connection whose addresses mean the same hosts in every network namespace of this machine where processes of this
    /// domain are: nothing on the way translates them, and no two hosts have the same one. Its other end is looked for in all of them.
    /// Both processes have to say so. Of sockets of UDP and streams of `AF_UNIX` it says nothing.
    pub fn between_hosts(self) -> Self {
        ConnectionEnds { is_between_hosts: self.is_connection(), ..self }
    }

    /// Whether [`ConnectionEnds::between_hosts`] has said so.
    pub fn are_between_hosts(&self) -> bool {
        self.is_between_hosts
    }

    pub(crate) fn tuple(&self) -> Tuple {
        self.tuple
    }

    /// What a socket of UDP at `sender` sends to one member of a group, as the sender has it; the member has it [`Self::mirrored`].
    pub fn of_group(namespace_cookie: u64, sender: SocketAddrV4, member: GroupMember) -> Self {
        Self::made(Protocol::Group, namespace_cookie, Tuple::new(sender.into(), member.to_address()))
    }

    pub(crate) fn is_connection(&self) -> bool {
        self.protocol == Protocol::Tcp
    }

    /// Whether it is a stream of `AF_UNIX`, whose ends have inodes ([`beeline_tcp::unix_inode`]) and no addresses.
    pub fn is_unix(&self) -> bool {
        self.protocol == Protocol::Unix
    }

    /// Those of a connected stream of `AF_UNIX`, by the kernel's word for its peer.
    ///
    /// # Errors
    /// It is not connected, or not accepted yet; its peer is in another network namespace, or the kernel cannot be asked.
    pub fn of_unix(socket: impl AsFd) -> Result<Self, NoOtherSocket> {
        let tuple = beeline_tcp::unix_tuple(&socket)?;
        let namespace_cookie = beeline_tcp::netns_cookie(&socket).map_err(NoOtherSocket::System)?;
        Ok(Self::made(Protocol::Unix, namespace_cookie, tuple))
    }

    /// Those of a connected socket.
    ///
    /// # Errors
    /// It is not connected, or the kernel tells no number of its namespace.
    pub fn of(socket: impl AsFd) -> Result<Self, NoOtherSocket> {
        let tuple = Tuple::of(&socket)?;
        let namespace_cookie = beeline_tcp::netns_cookie(&socket).map_err(NoOtherSocket::System)?;
        Ok(Self::made(Protocol::Tcp, namespace_cookie, tuple))
    }

    /// The number of the established socket at this end (`SO_COOKIE`), whoever has it, by the kernel's word: some ten system calls. `None`
    /// where there is none, in another network namespace than this thread's, and where the kernel cannot be asked.
    pub fn established_cookie(&self) -> Option<u64> {
        match self.protocol {
            Protocol::Unix | Protocol::Group => self.socket_at_the_kernel(),
            Protocol::Tcp | Protocol::Udp => beeline_tcp::established(self.namespace_cookie, self.tuple).ok(),
        }
        .map(|socket| socket.cookie)
    }

    /// The number of what a socket of UDP, with this cookie, has with the other address: one socket has many. Both processes compute the same.
    pub fn datagrams_cookie(&self, socket_cookie: u64) -> u64 {
        let mut hasher = SipHasher13::new();
        hasher.write_u64(socket_cookie);
        for end in [self.tuple.local, self.tuple.remote] {
            hasher.write(&end_bytes(end.ip(), end.port()));
        }
        hasher.finish().max(1)
    }

    /// What [`crate::Pairs`] are told of this end, by the kernel's word: the cookie of an established connection's socket, or
    /// [`Self::datagrams_cookie`] of the socket that receives what comes from the other address, or is a group's. `None` as [`Self::established_cookie`] says.
    pub fn cookie_at_the_kernel(&self) -> Option<u64> {
        self.socket_at_the_kernel().map(|socket| socket.cookie)
    }

    /// The same, with the user who has the socket.
    pub fn socket_at_the_kernel(&self) -> Option<OtherSocket> {
        match self.protocol {
            Protocol::Tcp => beeline_tcp::established(self.namespace_cookie, self.tuple).ok(),
            Protocol::Unix => beeline_tcp::unix_established(self.namespace_cookie, self.tuple).ok(),
            Protocol::Udp => {
                let found = beeline_tcp::receiver(self.namespace_cookie, self.tuple).ok()?;
                Some(OtherSocket { cookie: self.datagrams_cookie(found.cookie), ..found })
            }
            Protocol::Group => {
                let found = group_ends::socket_at(self.namespace_cookie, self.tuple)?;
                Some(OtherSocket { cookie: self.datagrams_cookie(found.cookie), ..found })
            }
        }
    }

    /// The address of this end; one of IPv4 also where the socket has it as IPv6, and that of the group where it is a member's.
    pub fn local(&self) -> SocketAddr {
        self.shown(self.tuple.local)
    }

    /// The address of the other end.
    pub fn remote(&self) -> SocketAddr {
        self.shown(self.tuple.remote)
    }

    fn shown(&self, end: SocketAddr) -> SocketAddr {
        let member = GroupMember::of_address(end).filter(|_| self.protocol == Protocol::Group);
        member.map_or(end, |member| member.group.into())
    }

    /// The same connection, as the process at the other end has it.
    pub fn mirrored(self) -> Self {
        ConnectionEnds { tuple: self.tuple.mirrored(), ..self }
    }

    fn spot(self, table: &Table) -> Option<Spot> {
        let space = match self.protocol {
            Protocol::Tcp if self.is_between_hosts => OF_HOSTS,
            Protocol::Tcp => self.namespace_cookie,
            Protocol::Udp => self.namespace_cookie ^ OF_DATAGRAMS,
            Protocol::Unix => self.namespace_cookie ^ OF_UNIX,
            Protocol::Group => self.namespace_cookie ^ OF_GROUP,
        };
        table.key().spot(space, self.tuple)
    }
}

impl Domain {
    /// Joins the table of connections of this user's domain, and makes it if it is not there. Some hundred system calls, once for a
    /// process.
    ///
    /// # Errors
    /// The domain has no folder, or is another user's; 8,192 processes have joined; a file of the table was cut or removed, or another
    /// version of this library made it.
    pub fn connection_table(&self) -> Result<ConnectionTable, RegistryError> {
        let members = self.registry(MEMBERS)?;
        members.check_names()?;
        let table = Table::open_own(&members)?;
        let number = random_number(|errno| RegistryError::System {
            what: "get a random number for",
            path: table.path(),
            errno,
        })?;
        let holder = members.join(number)?;
        let own = Resident::new(holder.place(), number).expect("the number was drawn so");
        Ok(ConnectionTable { table, members, holder, own })
    }

    /// Opens the table of connections of another user's domain, whose owner lets others read it
    /// ([`ConnectionTable::let_others_read`]).
    ///
    /// # Errors
    /// The domain has no folder; its owner has made no table, or keeps it for itself.
    pub fn others_connection_table(&self) -> Result<OthersConnectionTable, RegistryError> {
        let members = self.registry(MEMBERS)?;
        let table = Table::open_foreign(&members)?;
        Ok(OthersConnectionTable { table, members })
    }
}

impl ConnectionTable {
    /// Under which this process is in the table; drawn at random.
    pub fn number(&self) -> NonZeroU64 {
        self.holder.number()
    }

    /// Whether this is the process that has joined, and no child of it.
    pub(crate) fn check_process(&self) -> Result<(), MisuseError> {
        self.table.check_process()
    }

    /// The place of this process in the list of members.
    pub(crate) fn place(&self) -> u16 {
        self.own.place
    }

    /// Whether the process with this number of a process is the one that has joined with `number` and has `place`, by the kernel's word.
    /// One of another pid namespace has no number here, and is believed.
    pub(crate) fn is_member(&self, place: u16, number: NonZeroU64, pid: u32) -> bool {
        let member = self.members.member_at(place).ok().flatten();
        member.filter(|member| member.number == number).is_some_and(|member| {
            let has_place = member.other_pid.unwrap_or(std::process::id());
            has_place == pid || has_place == 0 || pid == 0
        })
    }

    /// Says that this process has one end of a connection, and looks who has the other one. Three system calls where nobody is found,
    /// two more where somebody is. Never waits.
    ///
    /// # Errors
    /// The file was cut; its descriptor was lost; this process was forked from the one that joined.
    pub fn find(&self, ends: &ConnectionEnds) -> Result<OtherProcess, RegistryError> {
        let Some(spot) = ends.spot(&self.table) else { return Ok(OtherProcess::SameSocket) };
        match publish_and_look(&self.table.check()?, spot, self.own)? {
            Some(found) if found == self.own => Ok(OtherProcess::ThisProcess),
            Some(found) => Ok(who(found, self.members.member_at(found.place)?)),
            None => Ok(OtherProcess::NotYet),
        }
    }

    /// Whether the files of the table have their names: once they were removed, this process finds nobody who comes later. Ask now and
    /// then, and join again where they were.
    ///
    /// # Errors
    /// A file was removed or replaced.
    pub fn check(&self) -> Result<(), RegistryError> {
        self.table.check()?;
        self.table.check_name()?;
        self.members.check_names()
    }

    /// Lets every user of the machine read the table who knows the folder, to find processes of this user; nobody but its owner writes
    /// it. Who reads it learns which connections are whose process's.
    ///
    /// # Errors
    /// The kernel refused it.
    pub fn let_others_read(&self) -> Result<(), RegistryError> {
        self.members.let_others_read()?;
        self.table.let_others_read()
    }
}

impl OthersConnectionTable {
    /// Looks which process of the table's owner has the other end of a connection. Call it after [`ConnectionTable::find`] on this
    /// user's own table: of two users who both do so, each with the other's table, the second one finds the first.
    ///
    /// # Errors
    /// The file was cut, or removed; its descriptor was lost; this process was forked from the one that opened it.
    pub fn find(&self, ends: &ConnectionEnds) -> Result<OtherProcess, RegistryError> {
        let Some(spot) = ends.spot(&self.table) else { return Ok(OtherProcess::SameSocket) };
        match look(&self.table.check()?, spot)? {
            Some(found) => Ok(who(found, self.members.member_at(found.place)?)),
            None => {
                // Whoever has made another one since is in that.
                self.table.check_name()?;
                Ok(OtherProcess::NotYet)
            }
        }
    }

    /// Whether a process has joined the table with `number`, has `place`, and lives, as far as that can be seen.
    pub(crate) fn is_member(&self, place: u16, number: NonZeroU64) -> bool {
        self.members.member_at(place).ok().flatten().is_some_and(|member| member.number == number)
    }
}

/// Who a word says is at the other end, if that process is the one that has the place now.
fn who(found: Resident, member: Option<Member>) -> OtherProcess {
    let is_meant = |member: &Member| Resident::new(found.place, member.number) == Some(found);
    match member.filter(is_meant) {
        None => OtherProcess::NotYet,
        // Joined by another domain of the same folder.
        Some(Member { other_pid: None, .. }) => OtherProcess::ThisProcess,
        Some(Member { number, other_pid: Some(pid) }) => OtherProcess::Found(Candidate { number, pid }),
    }
}

/// A number that has a generation.
fn random_number<E>(failed: impl Fn(rustix::io::Errno) -> E) -> Result<NonZeroU64, E> {
    loop {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|_| failed(rustix::io::Errno::NOSYS))?;
        if let Some(number) = NonZeroU64::new(u64::from_le_bytes(bytes))
            && Resident::new(0, number).is_some()
        {
            return Ok(number);
        }
    }
}
