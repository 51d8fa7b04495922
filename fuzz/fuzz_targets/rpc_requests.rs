//! This target is a server of calls, whose client may send any messages. Each whole request is answered once, what is no
//! request ends the connection, and nothing is taken for longer than it may be.
#![no_main]

use arbitrary::Arbitrary;
use beeline_rpc::fuzzing::Attacker;
use beeline_rpc::{Replied, Reply, Request};
use beeline_spec::rpc::{Part, RequestWord, ResponseWord};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Message {
    call: u8,
    method: u8,
    part: u8,
    deadline: Option<u64>,
    announced: u32,
    /// The word as it is, in place of the four above.
    word: Option<u64>,
    payload: Vec<u8>,
}

impl Message {
    fn bytes(&self) -> Vec<u8> {
        let part = [Part::Whole, Part::First, Part::Middle, Part::Last][usize::from(self.part % 4)];
        let has_deadline = self.deadline.is_some();
        let word =
            RequestWord::new(self.call.into(), self.method.into(), has_deadline).with_part(part).encode();
        let mut bytes = self.word.unwrap_or(word).to_le_bytes().to_vec();
        if matches!(part, Part::Whole | Part::First) {
            bytes.extend(self.deadline.into_iter().flat_map(u64::to_le_bytes));
        }
        if part == Part::First {
            bytes.extend(u64::from(self.announced).to_le_bytes());
        }
        bytes.extend(&self.payload);
        bytes
    }
}

fn handle(request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
    let mut asked = Vec::new();
    request.copy_to(&mut asked);
    assert_eq!(asked.len(), request.len());
    assert!(asked.len() <= 1 << 20);
    match request.method().0 % 4 {
        0 => reply.send(&asked),
        1 => reply.fail(9, &asked),
        2 => {
            let mut writer = reply.begin(asked.len());
            asked.chunks(7).for_each(|piece| writer.write(piece).expect("it was reserved"));
            writer.commit()
        }
        _ => reply.unknown_method(),
    }
}

fuzz_target!(|input: (u8, Vec<Message>)| {
    let (max_bytes, messages) = (64 + usize::from(input.0), input.1);
    let mut attacker = Attacker::default();
    for message in messages {
        let Ok(answers) = attacker.take(&message.bytes(), max_bytes, &mut handle) else { return };
        let words: Vec<_> = answers
            .iter()
            .map(|answer| {
                assert!((8..=max_bytes).contains(&answer.len()));
                let word = u64::from_le_bytes(*answer.first_chunk().expect("8 bytes at least"));
                ResponseWord::decode(word).expect("an answer has the word of one")
            })
            .collect();
        let parts: Vec<_> = words.iter().map(|word| word.part()).collect();
        match parts[..] {
            [] | [Part::Whole] => {}
            [Part::First, ref middle @ .., Part::Last] => {
                assert!(middle.iter().all(|part| *part == Part::Middle));
            }
            ref other => panic!("{other:?} is no sequence of parts"),
        }
        assert!(words.iter().all(|word| word.call() == words[0].call()));
    }
});
