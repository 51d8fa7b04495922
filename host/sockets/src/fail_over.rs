//! Connections that go off their windows because somebody has ordered it, and back: at a moment that their programs know nothing of.

use beeline_ledger::Path;
use beeline_socket_rules::Windows;
use beeline_stream::TcpError;

use crate::answers::postpone;
use crate::endpoint::{Endpoint, Stage, Writer};
use crate::held;

impl Endpoint {
    /// Whether this process alone has it. What another one of its family may have taken over is not touched in the background.
    pub(crate) fn is_this_process_s(&self) -> bool {
        self.stage() != Stage::Free && self.is_settled()
    }

    /// Goes off its windows, both ways, or may go back with its next bytes. The other process has to be rung for its own direction.
    pub(crate) fn obey(&self, windows: Windows) {
        if let Some((_, agreed)) = self.agreed() {
            agreed.slot.ask_down(windows == Windows::Down);
        }
        if self.is_this_process_s() {
            let mut writer = self.lock_writer();
            match self.is_held_down(&writer) {
                true => self.go_down(&mut writer),
                false => writer.try_up_soon(),
            }
        }
        self.tell_why(self.is_held());
    }

    fn is_held(&self) -> bool {
        held::are_down() || self.agreed().is_some_and(|(_, agreed)| agreed.slot.is_asked_down())
    }

    /// Whether it is not to go up, by an order to this process or to the other one. Two loads.
    pub(crate) fn is_held_down(&self, writer: &Writer) -> bool {
        held::are_down() || writer.slot.as_ref().is_some_and(|agreed| agreed.slot.is_asked_down())
    }

    /// Does what the other side asks for, where the program does not send.
    pub(crate) fn tend(&self) {
        if self.stage() == Stage::Free {
            return;
        }
        // Also where a child may have it: nobody else answers.
        self.answer_return();
        if !self.is_settled() && !self.claims_for_loss() {
            return;
        }
        // What a sender looks at by itself is done by whoever has the lock. For an order it is waited for.
        let agreed = self.agreed();
        let is_asked = agreed.as_ref().is_some_and(|(_, agreed)| agreed.slot.is_asked_down());
        // Also where a program that sends has the lock: nobody rings again for what is listed.
        self.tell_why(self.is_held());
        let writer = if is_asked { Some(self.lock_writer()) } else { self.try_lock_writer() };
        let Some(mut writer) = writer else {
            // It may have looked before it was asked for what is lost. A send can be long, and others wait for this thread.
            if agreed.is_some_and(|(_, agreed)| agreed.is_kept) {
                postpone();
            }
            return;
        };
        if self.stage() == Stage::Forbidden {
            self.send_no_more(&mut writer, None);
        }
        self.answer_loss(&mut writer, None);
        if is_asked {
            self.go_down(&mut writer);
        }
        if let Some(stream) = &mut writer.stream
            && stream.path() == Path::Window
            && stream.is_asked_down::<TcpError>() != Ok(false)
        {
            self.go_down(&mut writer);
        }
    }
}
