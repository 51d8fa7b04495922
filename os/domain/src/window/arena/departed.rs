//! Clients that have gone while windows that they had opened wait to be accepted: how many there may be.

use std::sync::{Arc, Weak};

use super::owner::OwnedArena;
use crate::{Process, Refusal, Shares};

/// Who has gone. Whoever comes is let in only while these are fewer than the offer has clients, and a process and another user only
/// while theirs are fewer than its share: so those that come, open a window and go take no more of the owner than twice as many
/// clients that stay.
#[derive(Clone, Debug)]
pub(super) struct Departed {
    clients: Vec<Client>,
    most: usize,
    shares: Shares,
}

#[derive(Clone, Debug)]
struct Client {
    process: Process,
    /// Gone when the client was heard for the last time and none of its windows waits.
    waits: Weak<()>,
    arena: Weak<OwnedArena>,
}

impl Departed {
    /// Nobody has gone; `most` and `shares` are those of the clients that are there.
    pub(super) fn new(most: usize, shares: Shares) -> Self {
        Departed { clients: Vec::new(), most, shares }
    }

    /// Takes a client in that has just gone. What it told last may not have been heard yet.
    pub(super) fn add(&mut self, process: Process, arena: &Arc<OwnedArena>) {
        let (waits, arena) = (arena.waits(), Arc::downgrade(arena));
        self.clients.push(Client { process, waits, arena });
    }

    /// Whether a process may join.
    ///
    /// # Errors
    /// Windows of too many that have gone wait.
    pub(super) fn check(&mut self, comer: Process) -> Result<(), Refusal> {
        self.clients.retain(|client| client.waits.strong_count() != 0);
        if let Err(exceeded) = self.shares.check(comer, self.clients.iter().map(|client| client.process)) {
            let reason =
                format!("of the clients that have gone and whose windows wait to be accepted {exceeded}");
            return Err(Refusal::new(reason));
        }
        if self.clients.len() >= self.most {
            let reason =
                format!("windows of {} clients that have gone wait to be accepted", self.clients.len());
            return Err(Refusal::new(reason));
        }
        Ok(())
    }

    /// As [`Departed::check`], after what all of them told was heard: those that have left no window do not count. A worker's, for it
    /// takes as long as that is much.
    pub(super) fn check_heard(mut self, comer: Process) -> Result<(), Refusal> {
        for client in &self.clients {
            if let Some(arena) = client.arena.upgrade() {
                OwnedArena::hear_out(arena);
            }
        }
        self.check(comer)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::super::owner::tests::Told;
    use super::*;
    use crate::folder::own_uid;

    fn process(pid: u32) -> Process {
        Process { pid, uid: own_uid() }
    }

    /// For six clients at a time, of which a process may be two.
    fn departed() -> Departed {
        Departed::new(6, Shares { of_process: 2, of_other_user: 3 })
    }

    /// A client with a window that was opened.
    fn client() -> Told {
        let mut told = Told::new();
        told.open(1);
        told
    }

    fn reason(refused: Result<(), Refusal>) -> String {
        refused.unwrap_err().reason().to_owned()
    }

    #[test]
    fn clients_that_have_gone_are_bounded_as_those_that_are_there_until_their_windows_are_accepted() {
        let (mut departed, mut gone) = (departed(), Vec::new());
        let uid = own_uid() + 1;
        for comer in [7, 7, 8, 8, 9].map(process).into_iter().chain([Process { pid: 10, uid }]) {
            departed.check(comer).unwrap();
            let told = client();
            told.arena.end();
            departed.add(comer, &told.arena);
            gone.push(told);
        }
        let full = reason(departed.check(process(7)));
        assert!(full.contains("process 7 has 2 of them"), "{full}");
        let full = reason(departed.check(process(11)));
        assert!(full.contains("windows of 6 clients that have gone wait"), "{full}");
        drop(gone[0].queue.try_take());
        departed.check(process(11)).unwrap();
        departed.check(process(7)).unwrap();
        for pid in [12, 13] {
            let told = client();
            departed.add(Process { pid, uid }, &told.arena);
            gone.push(told);
        }
        let full = reason(departed.check(Process { pid: 14, uid }));
        assert!(full.contains(&format!("uid {uid} has 3 of them")), "{full}");
    }

    #[test]
    fn client_whose_last_words_were_not_heard_yet_counts_until_they_are() {
        for opens in [true, false] {
            let (mut departed, gone) =
                (departed(), [(); 2].map(|()| if opens { client() } else { Told::new() }));
            gone.iter().for_each(|told| departed.add(process(7), &told.arena));
            assert!(departed.check(process(7)).is_err(), "nobody has heard them for the last time");
            assert_eq!(departed.clone().check_heard(process(7)).is_ok(), !opens);
            assert_eq!(departed.check(process(7)).is_ok(), !opens);
        }
    }
}
