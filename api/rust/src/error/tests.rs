use std::collections::BTreeSet;
use std::error::Error as _;
use std::time::Duration;

use beeline_contract_link::LinkError;
use beeline_domain::{
    Departure, DomainError, FolderError, MisuseError, NameError, NamespaceError, WindowError, WireError,
};
use beeline_driver::{RxError, TxError};
use beeline_mmio::{MapError, NotChosen, StoreKernel};
use beeline_rpc::{CallError, Loss, RpcError};
use beeline_spec::Interface;
use beeline_window::{CreditError, Position, ReceiveError, Torn};

use super::*;

/// What a printer of chains prints, as anyhow's `{:#}` does.
fn chain(error: &(dyn std::error::Error + 'static)) -> Vec<String> {
    let sources = std::iter::successors(Some(error), |&error| error.source());
    sources.map(ToString::to_string).collect()
}

fn map_errors() -> Vec<MapError> {
    let errno = rustix::io::Errno::PERM;
    let name = || "window".to_owned();
    vec![
        MapError::Size { bytes: 0 },
        MapError::Create { name: name(), bytes: 4096, errno },
        MapError::FileSize { name: name(), bytes: 4096, limit_bytes: 1024 },
        MapError::HugePages { name: name(), needed: 1, page_bytes: 2 << 20, free: 0, errno },
        MapError::Lock { bytes: 4096, limit_bytes: 1024, errno },
        MapError::NotMemfd { fd: 3, errno },
        MapError::Examine { object: name(), errno },
        MapError::Map { object: name(), bytes: 4096, errno, remedy: "raise the limit" },
        MapError::UnaskedHugePages { fd: 3 },
    ]
}

fn domain_offers() -> Vec<beeline_domain::OfferError> {
    use beeline_domain::OfferError as Below;
    let errno = rustix::io::Errno::MFILE;
    vec![
        Below::Name(NameError::Empty),
        Below::Taken { path: "/x".into(), pid: 7 },
        Below::Taken { path: "/x".into(), pid: 0 },
        Below::Squatted { path: "/x".into(), uid: 7 },
        Below::Orphaned { path: "/x".into(), pid: Some(7) },
        Below::Unanswered { path: "/x".into() },
        Below::Folder(FolderError::NotFolder { path: "/x".into() }),
        Below::System { what: "make the socket", path: "/x".into(), errno },
        Below::Misuse(MisuseError::NotOwner { owner: 5 }),
        Below::Misuse(MisuseError::OnDomainThread),
    ]
}

fn domain_connects() -> Vec<beeline_domain::ConnectError> {
    use beeline_domain::ConnectError as Below;
    let (errno, error, waited) = (rustix::io::Errno::ACCESS, WireError::Truncated, Duration::from_millis(5));
    let path = || "/x/y.sock".into();
    vec![
        Below::Name(NameError::Empty),
        Below::Absent { path: path() },
        Below::OwnerDied { path: path(), pid: None },
        Below::Closed { path: path(), pid: 7 },
        Below::Refused { path: path(), pid: 7, reason: "no".to_owned() },
        Below::TimedOut { path: path(), pid: None, waited },
        Below::Impostor { path: path(), found: 1, expected: 2 },
        Below::Invisible { path: path() },
        Below::Protocol { path: path(), pid: 7, error },
        Below::TooLarge { bytes: 1, fds: 2 },
        Below::System { what: "connect to", path: path(), errno },
        Below::Misuse(MisuseError::Forked { opened_by: 1, pid: 2 }),
    ]
}

fn rpc_errors() -> Vec<RpcError> {
    let mut errors = vec![
        RpcError::Option { option: "workers", value: 0, bounds: "from 1 to 64" },
        RpcError::Malformed { what: "nothing".to_owned() },
    ];
    errors.extend(domain_connects().into_iter().map(RpcError::from));
    errors.extend(domain_offers().into_iter().map(RpcError::from));
    errors.extend(map_errors().into_iter().map(|error| RpcError::Window(error.into())));
    errors
}

fn opening() -> Vec<Error> {
    let folder = |error: FolderError| OpenError::new("d".to_owned(), error.into());
    let path = || "/x/d".into();
    vec![
        OpenError::new("D".to_owned(), DomainError::Name(NameError::Empty)).into(),
        OpenError::new("d".to_owned(), NamespaceError::Unmapped { uid: 7 }.into()).into(),
        folder(FolderError::Symlink { path: path() }).into(),
        folder(FolderError::Owner { path: path(), found: 1, expected: 2 }).into(),
        folder(FolderError::Permissions { path: path(), mode: 0o777 }).into(),
        folder(FolderError::Closed { path: path(), mode: 0o500 }).into(),
        OpenError::new(
            "d".to_owned(),
            DomainError::Thread { what: "start a thread", error: std::io::Error::other("no more threads") },
        )
        .into(),
    ]
}

fn offering_and_connecting() -> Vec<Error> {
    let (window, server) = (|| Target::Window("w".to_owned()), || Target::Server("s".to_owned()));
    let windows = || {
        let mut errors =
            vec![WindowError::Lines { lines: 3 }, WindowError::Malformed { what: "no answer".to_owned() }];
        errors.extend(domain_offers().into_iter().map(WindowError::from));
        errors.extend(domain_connects().into_iter().map(WindowError::from));
        errors.extend(map_errors().into_iter().map(WindowError::from));
        errors
    };
    let mut errors = Vec::new();
    errors.extend(windows().into_iter().map(|error| OfferError::window(window(), error).into()));
    errors.extend(windows().into_iter().map(|error| ConnectError::window(window(), error).into()));
    let waited = Duration::from_millis(5);
    let after = windows().into_iter().map(|error| ConnectError::window(window(), error).after(waited));
    errors.extend(after.map(Error::from));
    errors.extend(rpc_errors().into_iter().map(|error| OfferError::server(server(), error).into()));
    errors.extend(rpc_errors().into_iter().map(|error| ConnectError::client(server(), error).into()));
    errors
}

fn messages() -> Vec<Error> {
    use beeline_window::SendError as Below;
    let torn = Torn::new(Position(3), 1, None);
    vec![
        SendError::from(Below::TooLong { bytes: 9, max_bytes: 8 }).into(),
        SendError::from(Below::ReceiverGone).into(),
        SendError::from(Below::Credits(CreditError::Ahead { found: 2, sent: 1 })).into(),
        WriteError::new(3, 2, 4).into(),
        SendError::from(beeline_window::ByteWriteError::Shut).into(),
        KernelError::from(NotChosen::DeviceOnly(StoreKernel::St64b)).into(),
        RecvError::new(ReceiveError::Gone, None).into(),
        RecvError::new(ReceiveError::Torn(torn), Some(Departure::Closed)).into(),
        RecvError::new(ReceiveError::SharedFailed, None).into(),
        RecvError::Forked.into(),
    ]
}

fn notifications() -> Vec<Error> {
    use beeline_domain::{NotificationsEnded as Ended, NotifyError as Below};
    let misuse = || MisuseError::DescriptorLost;
    vec![
        NotifyError::from(Below::Gone).into(),
        NotifyError::from(Below::TooLarge { bytes: 5000, fds: 1 }).into(),
        NotifyError::from(Below::Misuse(misuse())).into(),
        NotifyError::from(Below::System { errno: rustix::io::Errno::NOBUFS }).into(),
        SubscriptionEnded::from(Ended::ClosedHere).into(),
        SubscriptionEnded::from(Ended::Closed).into(),
        SubscriptionEnded::from(Ended::CutOff { missing: Some(3) }).into(),
        SubscriptionEnded::from(Ended::OwnerDied).into(),
        SubscriptionEnded::from(Ended::Broken(WireError::Flood)).into(),
        SubscriptionEnded::from(Ended::Misuse(misuse())).into(),
    ]
}

fn proofs() -> Vec<Error> {
    use beeline_domain::{AdmitError, ExchangeError as Below, NotShared};
    let errno = rustix::io::Errno::ACCESS;
    vec![
        ProofError::from(NotShared::NotTcp).into(),
        ProofError::from(NotShared::NotAccepted).into(),
        ProofError::from(NotShared::System { what: "ask", errno }).into(),
        ProofError::from(Below::NotStream).into(),
        ProofError::from(Below::NotOurs).into(),
        ProofError::from(Below::Malformed).into(),
        ProofError::from(Below::Closed).into(),
        ProofError::from(Below::TimedOut { waited: Duration::from_millis(3) }).into(),
        ProofError::from(AdmitError::from(MisuseError::DescriptorLost)).into(),
    ]
}

fn members() -> Vec<Error> {
    let member = crate::MemberId { index: 0, generation: 0 };
    vec![MemberError { member, taken: 0, error: RecvError::SenderGone }.into()]
}

fn frames() -> Vec<Error> {
    use beeline_driver::PortError as Below;
    let mut errors: Vec<Error> = vec![
        PortError::from(Below::Link(LinkError::DeviceGone)).into(),
        PortError::from(Below::Link(LinkError::NotExpressible)).into(),
        PortError::from(Below::NoInterface { interface: Interface::Coherent, mask: 1 }).into(),
        PortError::from(Below::NoAnswer { what: "start", offset: 0, last: None, waited_ns: 1_000_000 })
            .into(),
        PortError::NoRandom { source: "no device".into() }.into(),
        PortSendError::from(TxError::Length { bytes: 3, min_bytes: 14, max_bytes: 1514 }).into(),
        PortSendError::from(TxError::HoldsMark { at_byte: 8, word: 1 }).into(),
        PortSendError::from(TxError::WildCount { unit: "lines", found: 3, low: 0, high: 2 }).into(),
        PortSendError::from(TxError::Window(beeline_window::SendError::ReceiverGone)).into(),
        PortSendError::from(NicGone).into(),
        PortRecvError::from(NicGone).into(),
        PortRecvError::from(RxError::BadHeader { line: 1, frame: 1, word: 2 }).into(),
    ];
    let links = domain_connects()
        .into_iter()
        .map(|source| beeline_link_shm::ConnectError::Rendezvous { service: "nic".to_owned(), source })
        .chain(map_errors().into_iter().map(beeline_link_shm::ConnectError::Memory));
    errors.extend(links.map(|error| PortError::connect("nic", error, Duration::ZERO).into()));
    errors
}

fn calls() -> Vec<Error> {
    let gone = || Loss::Died { pid: Some(7) };
    let ends = [
        CallError::Failed { code: 3, detail: [1, 2].into() },
        CallError::UnknownMethod,
        CallError::DeadlinePassed,
        CallError::TimedOut,
        CallError::Cancelled,
        CallError::Overloaded,
        CallError::TooLong,
        CallError::Crashed,
        CallError::ServerGone { loss: gone(), was_sent: true },
        CallError::ServerGone { loss: gone(), was_sent: false },
    ];
    let mut errors: Vec<Error> = ends.into_iter().map(|end| CallFailure::from(end).into()).collect();
    errors.push(CallFailure::NoRoom { waited: Duration::from_millis(3) }.into());
    errors.push(CallFailure::Outstanding { outstanding: 2 }.into());
    errors.push(CallFailure::from(StartError::TooLong { bytes: 9, max_bytes: 8 }).into());
    errors.push(StartError::NotConnected { loss: gone() }.into());
    errors
}

fn all() -> Vec<Error> {
    let (windows, others) = ([messages(), members(), notifications()], [proofs(), frames(), calls()]);
    let first = [opening(), offering_and_connecting()];
    first.into_iter().chain(windows).chain(others).flatten().collect()
}

/// The variant, by an exhaustive match: a new one does not compile before it is listed here.
fn variant(error: &Error) -> u32 {
    match error {
        Error::Open(OpenError::Name { .. }) => 0,
        Error::Open(OpenError::Folder { .. }) => 1,
        Error::Open(OpenError::Resources { .. }) => 2,
        Error::Offer(OfferError::Name { .. }) => 3,
        Error::Offer(OfferError::Taken { .. }) => 4,
        Error::Offer(OfferError::Options { .. }) => 5,
        Error::Offer(OfferError::NotOwner { .. }) => 6,
        Error::Offer(OfferError::Misuse { .. }) => 7,
        Error::Offer(OfferError::System { .. }) => 8,
        Error::Connect(error) | Error::Port(PortError::Connect(error)) => match error {
            ConnectError::Name { .. } => 9,
            ConnectError::Absent { .. } => 10,
            ConnectError::OwnerDied { .. } => 11,
            ConnectError::Refused { .. } => 12,
            ConnectError::NoAnswer { .. } => 13,
            ConnectError::Options { .. } => 14,
            ConnectError::Misuse { .. } => 15,
            ConnectError::System { .. } => 16,
            ConnectError::TimedOut { .. } => 40,
        },
        Error::Send(SendError::TooLong { .. }) => 17,
        Error::Send(SendError::ReceiverGone) => 18,
        Error::Send(SendError::ReceiverFaulty { .. }) => 19,
        Error::Write(WriteError { .. }) => 20,
        Error::Recv(RecvError::SenderGone) => 21,
        Error::Recv(RecvError::Torn(_)) => 22,
        Error::Recv(RecvError::SenderFaulty { .. }) => 23,
        Error::Port(PortError::NicGone) => 24,
        Error::Port(PortError::TimedOut { .. }) => 25,
        Error::Port(PortError::NoInterface { .. }) => 26,
        Error::Port(PortError::NoRandom { .. }) => 27,
        Error::Port(PortError::Failed { .. }) => 28,
        Error::PortSend(PortSendError::Length { .. }) => 29,
        Error::PortSend(PortSendError::Content { .. }) => 30,
        Error::PortSend(PortSendError::NicGone) => 31,
        Error::PortSend(PortSendError::NicFaulty { .. }) => 32,
        Error::PortRecv(PortRecvError::NicGone) => 33,
        Error::PortRecv(PortRecvError::NicFaulty { .. }) => 34,
        Error::Call(CallFailure::Start(_)) => 35,
        Error::Call(CallFailure::Call(_)) => 36,
        Error::Call(CallFailure::NoRoom { .. }) => 37,
        Error::Call(CallFailure::Outstanding { .. }) => 38,
        Error::Call(other) => panic!("{other} is not in `calls`"),
        Error::StartCall(_) => 39,
        Error::Kernel(KernelError { .. }) => 41,
        Error::Send(SendError::ShutDown) => 42,
        Error::Recv(RecvError::Forked) => 43,
        Error::Member(_) => 44,
        Error::Notify(NotifyError::Gone) => 45,
        Error::Notify(NotifyError::TooLarge { .. }) => 46,
        Error::Notify(NotifyError::Misuse { .. }) => 47,
        Error::Notify(NotifyError::System { .. }) => 48,
        Error::Ended(SubscriptionEnded::Unsubscribed) => 49,
        Error::Ended(SubscriptionEnded::Closed) => 50,
        Error::Ended(SubscriptionEnded::CutOff { .. }) => 51,
        Error::Ended(SubscriptionEnded::OwnerDied) => 52,
        Error::Ended(SubscriptionEnded::OwnerFaulty { .. }) => 53,
        Error::Ended(SubscriptionEnded::Misuse { .. }) => 54,
        Error::Open(OpenError::Namespace { .. }) => 55,
        Error::Offer(OfferError::Held { .. }) => 56,
        Error::Proof(ProofError::WrongKind) => 57,
        Error::Proof(ProofError::NotShared { .. }) => 58,
        Error::Proof(ProofError::NotToken) => 59,
        Error::Proof(ProofError::Malformed) => 60,
        Error::Proof(ProofError::Closed) => 61,
        Error::Proof(ProofError::TimedOut { .. }) => 62,
        Error::Proof(ProofError::Misuse { .. }) => 63,
        Error::Proof(ProofError::System { .. }) => 64,
    }
}

#[test]
fn every_variant_prints_its_chain_without_a_repetition() {
    let errors = all();
    let seen: BTreeSet<u32> = errors.iter().map(variant).collect();
    assert_eq!(seen, (0..=64).collect(), "an error of every variant is tried");
    for error in &errors {
        let texts = chain(error);
        for (index, text) in texts.iter().enumerate() {
            assert!(!text.is_empty() && !text.contains('\n'), "{texts:?}");
            for inner in &texts[index + 1..] {
                assert!(!text.contains(inner.as_str()) && !inner.contains(text.as_str()), "{texts:?}");
            }
        }
    }
}

#[test]
fn every_cause_has_a_remedy() {
    for error in all() {
        assert!(error.remedy().len() > 10, "{error}");
    }
    let remedy = |name: &str| {
        let target = Target::Window("w".to_owned());
        ConnectError::new(target, beeline_domain::ConnectError::Absent { path: name.into() }).remedy()
    };
    assert!(remedy("/x").contains("start the receiver"));
    let odd = OfferError::window(Target::Window("w".to_owned()), WindowError::Lines { lines: 100 });
    assert!(odd.remedy().contains("bounds"), "an option out of bounds is not a missing receiver");
    assert_eq!(chain(&odd).len(), 2, "the bounds are the cause");
}

#[test]
fn a_process_that_is_not_known_has_no_number() {
    let died = beeline_domain::ConnectError::OwnerDied { path: "/x".into(), pid: None };
    let error = ConnectError::new(Target::Server("s".to_owned()), died);
    assert!(matches!(error, ConnectError::OwnerDied { pid: None, .. }));
    assert!(!error.to_string().contains("process 0"), "{error}");
    assert!(error.source().is_none());
    let refused =
        beeline_domain::ConnectError::Refused { path: "/x".into(), pid: 0, reason: "no".to_owned() };
    let error = ConnectError::new(Target::Window("w".to_owned()), refused);
    assert!(matches!(error, ConnectError::Refused { pid: None, .. }));
    assert!(!error.to_string().contains('0'), "{error}");
}
