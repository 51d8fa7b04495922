//! This target is one side of a link without a common kernel. A hostile peer controls every word of its line, at every look, and the
//! time between looks is any. The side does not panic and always has something to push. It is up only while the peer's
//! line names it and neither side is disabled, and in no session twice.
#![no_main]

use std::collections::HashSet;
use std::time::Duration;

use arbitrary::Arbitrary;
use beeline_contract_link::{Evidence, Heartbeat, LinkKind};
use beeline_heartbeat::{Acceptance, LinkState};
use libfuzzer_sys::fuzz_target;

struct Bridge;

impl LinkKind for Bridge {
    const EVIDENCE: Evidence = Evidence::Heartbeat(Heartbeat::from_millis(10, 50));
}

#[derive(Arbitrary, Debug)]
struct Input {
    random: u64,
    is_told: bool,
    looks: Vec<Look>,
}

#[derive(Arbitrary, Debug)]
struct Look {
    after_ms: u8,
    incarnation: u8,
    beats: u8,
    names_us: bool,
    says_disabled: bool,
    disables: Option<bool>,
    wild: Option<(u8, u64)>,
    is_still: bool,
    accepts: bool,
}

const FORMAT: u64 = beeline_spec::formats::LINK_SIDE_FORMAT as u64;

fuzz_target!(|input: Input| {
    let acceptance = if input.is_told { Acceptance::WhenTold } else { Acceptance::AtOnce };
    let mut state = LinkState::new::<Bridge>(acceptance, input.random, None);
    let (mut now, mut beat, mut theirs, mut ours) = (Duration::ZERO, 0u32, [0; 8], [0; 8]);
    let (mut session, mut over) = (None, HashSet::new());
    for look in input.looks {
        now += Duration::from_millis(u64::from(look.after_ms));
        beat = beat.wrapping_add(u32::from(look.beats));
        if !look.is_still {
            let says = u64::from(look.incarnation) << 32;
            let accepted = if look.names_us { ours[0] >> 32 } else { 0 };
            let declared = u64::from(Heartbeat::of::<Bridge>().to_bits());
            let words = [u64::from(beat), accepted, 0, declared, FORMAT, u64::from(look.says_disabled), 0, 0];
            theirs = words.map(|word| says | word);
            if let Some((at, word)) = look.wild {
                theirs[usize::from(at) % 8] = word;
            }
        }
        match look.disables {
            Some(true) => state.disable(),
            Some(false) => state.enable(),
            None => {}
        }
        ours = state.look(now, &theirs, Some(&ours)).expect("only this side ends the link");
        if let (true, Some(offered)) = (look.accepts, state.offered()) {
            assert!(state.accept(offered));
        }
        let status = state.status().session();
        if let Some(found) = status.filter(|_| session != status) {
            assert_eq!(theirs[1] & 0xffff_ffff, ours[0] >> 32, "it is not named");
            assert!(theirs[5] & 0xffff_ffff == 0 && !state.is_disabled(), "it is disabled");
            assert!(!over.contains(&found), "{found:?} came back");
        }
        over.extend(session.filter(|_| session != status));
        session = status;
    }
});
