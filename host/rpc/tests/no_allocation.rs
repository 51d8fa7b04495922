//! A call of one message allocates nothing, on either side.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use beeline_rpc::shm::{ClientOptions, ServerOptions};
use beeline_rpc::{Deadline, Replied, Reply, Request, Started};
use support::*;

#[test]
fn a_call_of_one_message_allocates_nothing() {
    let folder = TestFolder::new();
    let domain = folder.domain();
    let (_server, mut workers) = server(&domain, ServerOptions::default());
    let mut client = client(&domain, ClientOptions::default());
    let mut echo = |request: &mut Request<'_>, reply: Reply<'_>| -> Replied {
        let mut asked = [0; 200];
        let bytes = request.copy_out(&mut asked);
        reply.send(&asked[..bytes])
    };
    let deadline = Deadline::after(WATCHDOG);
    let mut round = |bytes: usize, deadline| {
        let asked = [7; 200];
        let mut answer = [0; 200];
        assert!(matches!(client.start(ECHO, &asked[..bytes], deadline), Ok(Started::Call(_))));
        while workers[0].poll(&mut echo) == 0 {}
        loop {
            if let Some(completion) = client.poll() {
                assert_eq!(completion.result.unwrap().copy_out(&mut answer), bytes);
                return;
            }
        }
    };
    // The first answer makes the thread take up the client and its reply window.
    round(8, None);
    let counted = allocation_counter::measure(|| {
        for bytes in [0, 8, 48, 56, 200] {
            for deadline in [None, Some(deadline)] {
                (0..300).for_each(|_| round(bytes, deadline));
            }
        }
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
}
