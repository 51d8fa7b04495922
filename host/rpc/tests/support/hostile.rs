//! A client that keeps no rule: it speaks the rendezvous as `src/shm/hello.rs` writes it and stores what it likes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use beeline_domain::{Connection, CreditPage, Domain, MemoryCredits, PeerWindow, StoreOptions, WindowTerms};
use beeline_mmio::StoreKernel;
use beeline_window::{Sent, WindowConfig, Writer};

/// Messages that are not requests.
pub const GARBAGE: [&[u8]; 9] = [
    // Nothing, and less than the first word.
    &[],
    &[1, 0, 0],
    // Reserved bits of the first word.
    &[0xff; 8],
    // A deadline is announced and does not follow.
    &[1, 0, 0, 0, 0, 0, 4, 0],
    // A last part without a first one.
    &[1, 0, 0, 0, 0, 0, 3, 0, 1],
    // A middle part without a first one.
    &[1, 0, 0, 0, 0, 0, 2, 0],
    // A first part of more bytes than any request may have.
    &[1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 16, 0, 0, 0, 0, 0],
    // A first part that ends inside its header.
    &[1, 0, 0, 0, 0, 0, 1, 0, 1, 0],
    // A first part of more bytes than it announces.
    &[1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 7],
];

pub struct Hostile {
    connection: Connection,
    writer: Writer<PeerWindow, MemoryCredits>,
    _reply: beeline_domain::FreshWindow,
}

impl Hostile {
    pub fn connect(domain: &Domain, name: &str) -> Self {
        let page = CreditPage::create("hostile").unwrap();
        let hello = br#"{"rpc":1,"slots":8,"stores":"cached"}"#;
        let (connection, reply) = domain.connect(name, hello, &[page.fd()]).unwrap();
        let welcome: serde_json::Value = serde_json::from_slice(&reply.payload).unwrap();
        let terms: WindowTerms = serde_json::from_value(welcome["window"].clone()).unwrap();
        let window_fd = reply.fds.into_iter().next().unwrap();
        let options = StoreOptions::with_kernel(StoreKernel::Cached);
        let parts = terms.join(window_fd, &page, connection.peer(), options).unwrap();
        // Without a reply window none of its requests would be taken.
        let window = beeline_domain::FreshWindow::create("hostile", 64, Default::default(), 0).unwrap();
        let open = serde_json::json!({ "worker": 0, "window": window.terms() });
        connection.call(open.to_string().as_bytes(), &[window.fd()]).unwrap();
        let again = connection.call(open.to_string().as_bytes(), &[window.fd()]).unwrap_err().to_string();
        assert!(again.contains("has a reply window"), "{again}");
        let config = WindowConfig::blank(parts.blank, parts.epoch);
        Hostile { connection, writer: Writer::new(parts.store, parts.credits, config), _reply: window }
    }

    pub fn send(&mut self, message: &[u8]) {
        assert_eq!(self.writer.try_send(message), Ok(Sent::Sent));
    }

    pub fn is_connected(&self) -> bool {
        self.connection.peer().is_alive()
    }
}
