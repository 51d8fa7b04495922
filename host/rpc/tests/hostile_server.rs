//! A server that keeps no rule: its client ends every call once, and goes on with the next server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::time::Instant;

use beeline_contract_memory::StorePort;
use beeline_domain::{
    Answer, CreditPage, Domain, FreshWindow, OfferOptions, Peer, Refusal, Reply, SenderParts, Service,
    StoreOptions, WindowTerms,
};
use beeline_mmio::{MemoryOptions, SharedMemory, StoreKernel};
use beeline_rpc::shm::{Client, ClientOptions, ServerOptions};
use beeline_rpc::{CallError, Loss, RpcError};
use beeline_window::{WindowConfig, Writer};
use support::*;

/// Speaks the rendezvous, and hands the reply window to the test.
struct Hostile {
    replies: mpsc::Sender<SenderParts>,
    /// What it answers a client's first request with, in place of what it should.
    welcome: Option<&'static str>,
    page: Option<CreditPage>,
}

impl Service for Hostile {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let window = FreshWindow::create("requests", 64, MemoryOptions::default(), 0).unwrap();
        let table = SharedMemory::create("table", 8192, MemoryOptions::default()).unwrap();
        let honest = serde_json::json!({ "window": window.terms(), "workers": 1 }).to_string();
        let table = table.fd().as_fd().try_clone_to_owned().unwrap();
        let payload = self.welcome.map_or(honest, str::to_owned).into_bytes();
        Ok(Reply { payload, fds: vec![window.clone_fd().unwrap(), table] }.into())
    }

    fn requested(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let open: serde_json::Value = serde_json::from_slice(request).unwrap();
        let terms: WindowTerms = serde_json::from_value(open["window"].clone()).unwrap();
        let page = CreditPage::create("replies").unwrap();
        let options = StoreOptions::with_kernel(StoreKernel::Cached);
        let parts = terms.join(fds.into_iter().next().unwrap(), &page, peer, options).unwrap();
        self.replies.send(parts).unwrap();
        let fd = page.fd().try_clone_to_owned().unwrap();
        self.page = Some(page);
        Ok(Reply { payload: Vec::new(), fds: vec![fd] }.into())
    }

    fn departed(&mut self, _: &Peer) {}
}

fn offer(
    domain: &Domain,
    welcome: Option<&'static str>,
) -> (beeline_domain::Offer, mpsc::Receiver<SenderParts>) {
    let (replies, windows) = mpsc::channel();
    let hostile = Hostile { replies, welcome, page: None };
    (domain.offer_with("echo", Box::new(hostile), OfferOptions::default()).unwrap(), windows)
}

/// Messages that no server sends to a client whose only call has number `call`.
fn lies(call: u32) -> Vec<(Vec<u8>, &'static str)> {
    let call = u64::from(call);
    let word = |word: u64| word.to_le_bytes().to_vec();
    let parts = |word: u64, total: u64, bytes: usize| {
        [&word.to_le_bytes()[..], &total.to_le_bytes(), &vec![1; bytes]].concat()
    };
    vec![
        (word(u64::MAX), "not the first word of a response"),
        (word(call | 9 << 50), "not the first word of a response"),
        (vec![], "a response of 0 bytes"),
        ((call as u32).to_le_bytes().to_vec(), "a response of 4 bytes"),
        (word(call + 1), "which nobody made"),
        (word(call + (1 << 20)), "which nobody made"),
        (parts(call | 3 << 48, 0, 0), "without a first one"),
        (parts(call | 1 << 48, u64::MAX, 0), "are allowed"),
        (parts(call | 1 << 48, 5, 6), "were announced"),
        (parts((call + 1) | 1 << 48, 5, 1), "which nobody made"),
    ]
}

#[test]
fn a_lie_ends_every_call_and_the_client_goes_on_with_the_next_server() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    for (index, _) in lies(0).iter().enumerate() {
        let (hostile, windows) = offer(&domain, None);
        let mut client = client(&domain, ClientOptions::default());
        let parts = windows.recv_timeout(WATCHDOG).unwrap();
        let config = WindowConfig::blank(parts.blank, parts.epoch);
        let mut writer = Writer::new(parts.store, parts.credits, config);
        let id = start(&mut client, ECHO, b"anyone?");
        // A fresh client's first call: slot 0, used once.
        let (lie, word) = lies(1024).swap_remove(index);
        let _ = writer.try_send(&lie).unwrap();
        let (ended, result) = next_end(&mut client, &mut []);
        assert_eq!(ended, id);
        match result {
            Err(CallError::ServerGone { loss: Loss::Broke { what }, was_sent: true }) => {
                assert!(what.contains(word), "{index}: {what}");
            }
            other => panic!("{index}: {other:?}"),
        }
        drop(hostile);
        let (_server, mut workers) = server(&domain, ServerOptions::default());
        // It may have come back to the one that lied before that one went, and then ends calls once more.
        let begun = Instant::now();
        loop {
            while client.loss().is_some() {
                assert!(client.poll().is_none());
                assert!(begun.elapsed() < WATCHDOG);
            }
            match ask(&mut client, &mut workers, ECHO, b"honest") {
                Ok(answer) => break assert_eq!(answer, b"honest"),
                Err(error) => assert!(matches!(error, CallError::ServerGone { .. }), "{error}"),
            }
        }
    }
}

#[test]
fn half_an_answer_of_a_server_that_went_ends_the_call() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (hostile, windows) = offer(&domain, None);
    let mut client = client(&domain, ClientOptions::default());
    let mut parts = windows.recv_timeout(WATCHDOG).unwrap();
    let (first, second) = (start(&mut client, ECHO, b"answered"), start(&mut client, ECHO, b"half"));
    // A whole answer to the first call, and of an answer to the second the first of its four lines.
    let whole = beeline_spec::Header::new(beeline_spec::Kind::Data, 16, parts.epoch).encode();
    let half = beeline_spec::Header::new(beeline_spec::Kind::Data, 200, parts.epoch).encode();
    parts.store.store_head_line(0, whole, &[1024u64.to_le_bytes(), *b"answered"].concat());
    parts.store.store_head_line(1, half, &[1025u64.to_le_bytes().as_slice(), &[7; 48]].concat());
    drop(hostile);
    assert_eq!(next_end(&mut client, &mut []), (first, Ok(b"answered".to_vec())));
    let (ended, result) = next_end(&mut client, &mut []);
    assert_eq!(ended, second);
    assert!(matches!(result, Err(CallError::ServerGone { loss: Loss::Closed { .. }, .. })), "{result:?}");
}

#[test]
fn a_welcome_that_makes_no_sense_is_an_error_that_says_so() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    for welcome in [
        "",
        "{}",
        r#"{"window":{"lines":64,"bytes":8192,"blank":5,"epoch":0},"workers":1}"#,
        r#"{"window":{"lines":63,"bytes":8192,"blank":9223372036854775813,"epoch":0},"workers":1}"#,
        r#"{"window":{"lines":64,"bytes":8192,"blank":9223372036854775813,"epoch":0},"workers":0}"#,
        r#"{"window":{"lines":64,"bytes":8192,"blank":9223372036854775813,"epoch":0},"workers":65}"#,
        r#"{"window":{"lines":1024,"bytes":69632,"blank":9223372036854775813,"epoch":0},"workers":1}"#,
    ] {
        let (_hostile, _windows) = offer(&domain, Some(welcome));
        match Client::connect(&domain, "echo", ClientOptions::default()) {
            Err(RpcError::Malformed { .. } | RpcError::Window(_) | RpcError::Option { .. }) => {}
            other => panic!("{welcome}: {other:?}"),
        }
    }
}
