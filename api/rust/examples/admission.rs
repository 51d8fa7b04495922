//! Two programs that share a connection of TCP, and no list: `cargo run -p beeline-ipc --example admission`.
//!
//! The server knows nothing of its client but the connection. The client exchanges a token in it, which lets this process in and
//! no other, whoever its user is; they meet in the network namespace, so they need no folder. Then the client's requests go
//! through a window.

use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use beeline::{Admissions, Domain, NETWORK_NAMESPACE, ReceiverOptions, SenderOptions, Token};

const TIME: Duration = Duration::from_secs(30);
const MESSAGES: u64 = 1000;

/// What goes from here to there in a `main`: several kinds of error meet.
type Result<T> = core::result::Result<T, Box<dyn std::error::Error>>;

fn client(name: &str, port: u16) -> Result<()> {
    let connection = TcpStream::connect(("127.0.0.1", port))?;
    let token = Token::exchange(&connection, TIME)?;
    // Whose domain it is the token says, and the kernel is asked whether that is so.
    let domain = Domain::open_foreign(NETWORK_NAMESPACE, name, token.uid())?;
    let mut sender = domain.sender_proving("requests", token, SenderOptions::new())?;
    for number in 0..MESSAGES {
        sender.send(&number.to_le_bytes())?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, name, port] = &arguments[..] {
        return client(name, port.parse()?);
    }
    let name = format!("example-admission-{}", std::process::id());
    let domain = Domain::open_in(NETWORK_NAMESPACE, &name)?;
    let admissions = Admissions::new();
    let options = ReceiverOptions::new().admissions(&admissions);
    let mut receiver = domain.receiver_with("requests", options)?;
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port().to_string();
    let mut other = Command::new(std::env::current_exe()?).args([name, port]).spawn()?;
    let (connection, _) = listener.accept()?;
    // It lasts until it is dropped, or the client has come.
    let _admitted = admissions.admit_other_side(&connection, TIME)?;
    for number in 0..MESSAGES {
        let message = receiver.recv_timeout(TIME)?.ok_or("the client sends nothing")?;
        assert_eq!(message.word(0), number);
    }
    assert!(other.wait()?.success());
    println!("{MESSAGES} messages of a process that was let in by its connection");
    Ok(())
}
