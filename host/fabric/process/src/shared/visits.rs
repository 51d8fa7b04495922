//! What is done for somebody who is no member: questions are answered, and calls made as the program would make them.

use beeline_fabric::{Call, Refusal};

use super::Shared;
use crate::questions::{Question, SEGMENTS_AT_ONCE, report_to_bytes};

impl Shared {
    /// The answer to a question; nothing where something was done.
    pub(crate) fn answer(&self, question: Question) -> Result<Vec<u8>, Refusal> {
        self.check_process()?;
        match question {
            Question::Report { after } => Ok(self.enter(|state, _| {
                let segments: Vec<_> = state.member.segments_after(after).take(SEGMENTS_AT_ONCE).collect();
                report_to_bytes(&state.member.report(), &segments)
            })),
            Question::SetLink { adapter, is_up } => {
                self.call(Call::SetLink(adapter, is_up)).map(|_| Vec::new())
            }
            Question::Remove { name, is_forced } => {
                let local = self.lock().member.segment_of(name).ok_or(Refusal::NoSuchSegment)?;
                self.remove(local, is_forced).map(|_| Vec::new())
            }
        }
    }
}
