//! A member that publishes anything at any time, and claims anything: it spoils what this side has with it, and nothing else.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod world;

use beeline_fabric::*;
use proptest::prelude::*;
use world::*;

/// What a liar does between two calls of the honest member.
#[derive(Clone, Copy, Debug)]
enum Lie {
    /// Stores a word of its board, which begins as one that is right.
    Board(u32, u64),
    /// Stores a word of its claims.
    Claims(u32, u64),
}

/// Words that are almost right come as often as others.
fn value() -> impl Strategy<Value = u64> {
    let state = (0..3_u64, 0..3_u64, any::<u16>())
        .prop_map(|(inc, phase, bits)| inc << 32 | phase << 16 | u64::from(bits));
    prop_oneof![any::<u64>(), state, 0..8_u64, Just(1 << 32 | 7), Just(u64::MAX), Just(0)]
}

fn lie() -> impl Strategy<Value = Lie> {
    let word = prop_oneof![0..48_u32, 32..48_u32];
    prop_oneof![
        (word, value()).prop_map(|(word, value)| Lie::Board(word, value)),
        (0..3_u32, value()).prop_map(|(word, value)| Lie::Claims(word, value)),
    ]
}

/// Answers everything that a member wants: every name is the liar's, who is reached at once.
fn carry_out(member: &mut Member<InMemory>, board: &Words, claims: &Words) {
    while let Some(want) = member.next_want() {
        match want {
            Want::Name(ask, NameOp::Find(..)) => {
                let candidates = vec![Candidate { member: MemberNumber(1), slot: Slot(0) }];
                member.answered(ask, Answer::Found(Found { is_node_alive: true, candidates }), Nanos(0));
            }
            Want::Name(ask, _) => member.answered(ask, Answer::Done, Nanos(0)),
            Want::Reach { pair, .. } => {
                let reached = Reached::Provider { board: board.clone(), claims: claims.clone() };
                member.reached(pair, reached, Nanos(0));
            }
            Want::Ring(_) | Want::Close(_) | Want::Punch { .. } => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn member_that_lies_harms_its_own_connections_only(lies in prop::collection::vec(lie(), 1..100)) {
        let (board, own_claims, lied_claims) = (Words::default(), Words::default(), Words::default());
        // A board that is right: its format, its node, a life, links, and an available segment of number 7.
        for (word, value) in [(0, FORMAT_WORD), (1, 8), (2, 3), (8, 3), (32, 1 << 32 | 1 << 16 | 1), (33, 1 << 32 | 7), (34, 64)] {
            board.0.borrow_mut().insert(word, value);
        }
        let config = Config { node: NODES[0], adapters: vec![adapter(0)], nodes: NODES.to_vec() };
        let mut member = Member::<InMemory>::new(config, Words::default());
        let liar = member.admit(NODES[1], lied_claims.clone());
        let (id, is_auto, bytes, is_private, is_empty) = (SegmentId(1), false, 64, false, false);
        let segment = Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback: true };
        member.call(segment, Nanos(0)).unwrap();
        carry_out(&mut member, &board, &own_claims);
        let Some(Told::Outcome(_, Ok(Value::Local(local, _)))) = member.next_event() else { panic!("it is made") };
        for (at, lie) in lies.into_iter().enumerate() {
            match lie {
                Lie::Board(word, value) => board.0.borrow_mut().insert(word, value),
                Lie::Claims(word, value) => lied_claims.0.borrow_mut().insert(word, value),
            };
            // What it gets is within what the liar said that there is, or is refused.
            let _ = member.call(connect(NODES[1], 7), Nanos(at as u64)).unwrap();
            carry_out(&mut member, &board, &own_claims);
            member.look(Nanos(at as u64));
            let (mut told, mut connected) = (0, None);
            while let Some(event) = member.next_event().or_else(|| member.next_callback()) {
                told += 1;
                if let Told::Outcome(_, Ok(Value::Remote(remote, bytes))) = event {
                    connected = Some((remote, bytes));
                }
            }
            // As many as one member may have connections, at once gone and there again, and as many again that came and went in between; and
            // what came of the call.
            prop_assert!(told <= 4 * 1024 + 1, "{} events for one word", told);
            if let Some((remote, bytes)) = connected {
                let beyond = Part { offset: bytes, bytes: 1 };
                prop_assert!(member.call(Call::MapRemote(remote, beyond), Nanos(0)).is_err());
                let _ = member.call(Call::MapRemote(remote, Part { offset: 0, bytes }), Nanos(0));
            }
            // Its own segment is as it was.
            let unavailable = Call::SetUnavailable { local, adapter: adapter(0), is_forced: true };
            let refused = member.call(unavailable, Nanos(0)).err();
            prop_assert_eq!(refused, Some(Refusal::SegmentNotPrepared));
        }
        // By force, whatever is claimed; and at once when the liar is gone.
        member.call(Call::RemoveSegment { local, is_forced: true }, Nanos(0)).unwrap();
        member.gone(liar, Nanos(0));
        member.call(segment, Nanos(0)).unwrap();
        carry_out(&mut member, &board, &own_claims);
        let last = core::iter::from_fn(|| member.next_event()).last();
        let Some(Told::Outcome(_, Ok(Value::Local(local, _)))) = last else { panic!("it is made again: {last:?}") };
        member.call(Call::RemoveSegment { local, is_forced: false }, Nanos(0)).unwrap();
    }
}
