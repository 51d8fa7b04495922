//! The receiver's half: a name under which senders ask for a window.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use beeline_mmio::{MemoryOptions, Pace, StoreKernel, Unpaced, is_small_memory};
use beeline_spec::formats::CONTROL_PAGE_BYTES;

use super::halves::{FreshWindow, MappedWindow, ReceiverParts, UnmappedCreditPage};
use super::hello::{Request, encode_answer};
use super::options::{SMALL_BYTES, WindowError, WindowOptions, check_lines, line_bytes};
use super::spare::SpareWindow;
use super::waiting::{Arrival, Page, Place, Queue};
use crate::{
    Answer, Domain, Event, Offer, OfferOptions, Peer, Process, Refusal, Reply, Service, process_name,
};

/// A name under which a window is offered to one sender at a time.
#[derive(Debug)]
pub struct WindowListener {
    offer: Arc<Offer>,
    design: Arc<Design>,
    queue: Arc<Queue>,
}

/// What the windows of a listener have in common.
#[derive(Debug)]
struct Design {
    name: String,
    lines: u32,
    memory: MemoryOptions,
}

impl Design {
    /// Whether a constant bounds the time that it takes to make one.
    fn is_small(&self) -> bool {
        self.memory == MemoryOptions::default() && line_bytes(self.lines) <= SMALL_BYTES
    }

    /// A fresh window, all blank.
    fn make(&self, epoch: u8, pace: &dyn Pace) -> Result<FreshWindow, WindowError> {
        FreshWindow::create_paced(&self.name, self.lines, self.memory, epoch, pace)
    }
}

/// Offers a window under `name`. Each sender gets a fresh one; a second is refused while the first is there.
///
/// # Errors
/// The number of lines cannot be, or the name cannot be offered.
pub fn offer_window(
    domain: &Domain,
    name: &str,
    options: WindowOptions,
) -> Result<WindowListener, WindowError> {
    check_lines(options.lines)?;
    let queue = Arc::new(Queue::default());
    let design = Design { name: name.to_owned(), lines: options.lines, memory: options.memory };
    let design = Arc::new(design);
    let maker = Maker { design: Arc::clone(&design), queue: Arc::clone(&queue), sender: None, epoch: 0 };
    let WindowOptions { allowed_uids, admissions, .. } = options;
    let offer_options = OfferOptions { allowed_uids, admissions, ..OfferOptions::default() };
    let offer = Arc::new(domain.offer_with(name, Box::new(maker), offer_options)?);
    Ok(WindowListener { offer, design, queue })
}

impl WindowListener {
    /// The window of a sender that has connected, if one waits. The name stays taken until the listener and every
    /// window accepted from it are dropped. In a process that was forked from the one that offers there is never one.
    pub fn try_accept(&self) -> Option<ReceiverParts> {
        self.accept(Duration::ZERO)
    }

    /// As [`WindowListener::try_accept`], but waits for a sender for at most `timeout`.
    pub fn accept(&self, timeout: Duration) -> Option<ReceiverParts> {
        // Before the lock, which a thread may hold that a child does not have.
        if !self.offer.is_own() {
            return None;
        }
        let mut parts = match self.queue.try_accept() {
            Some(parts) => parts,
            None if timeout.is_zero() => return None,
            None => {
                // A timeout beyond the clock's range is no timeout.
                let deadline = Instant::now().checked_add(timeout);
                if self.design.is_small() {
                    // Before the sleep, so that the next sender is woken for and not waited for.
                    self.queue.keep_spare(|| self.design.make(0, &Unpaced).map(SpareWindow::keep));
                }
                self.queue.accept(deadline)?
            }
        };
        // Not earlier: who waits in the queue belongs to the service, which the offer owns.
        parts.sink.keep(Arc::clone(&self.offer));
        Some(parts)
    }

    /// Has `event` signalled when a sender comes, instead of what was given before. Whoever came before the call is there
    /// for the next [`WindowListener::try_accept`].
    pub fn signal(&self, event: Option<&Event>) {
        if self.offer.is_own() {
            self.queue.signal(event);
        }
    }
}

impl Drop for WindowListener {
    fn drop(&mut self) {
        // In a forked child the lock may have been held by a thread that the child does not have.
        if self.offer.is_own() {
            self.queue.close();
        }
    }
}

/// The service behind the name: has a window made for each sender.
struct Maker {
    design: Arc<Design>,
    queue: Arc<Queue>,
    /// The last sender.
    sender: Option<Peer>,
    /// Epoch of the last window.
    epoch: u8,
}

impl Service for Maker {
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        match self.begin(peer, request) {
            // At once where a constant bounds it: to wake a worker up would take longer.
            Ok((place, making)) if making.is_small(&fds) => making.make_at_once(place, fds),
            Ok((place, making)) => Ok(Answer::later(move |pace| making.make_in(place, fds, pace))),
            Err(refusal) => Ok(Answer::refusal(refusal, fds)),
        }
    }

    fn requested(&mut self, _peer: &Peer, _request: &[u8], _fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Err(Refusal::new("a window answers no further requests"))
    }

    fn departed(&mut self, peer: &Peer) {
        if self.sender.as_ref().is_some_and(|sender| sender.id() == peer.id()) {
            self.sender = None;
        }
    }
}

impl Maker {
    /// Gives the window to a sender, if it is free.
    fn begin(&mut self, peer: &Peer, request: &[u8]) -> Result<(Place, Making), Refusal> {
        let kernel = Request::decode(request).map_err(Refusal::new)?;
        if let Some(sender) = self.sender.as_ref().filter(|sender| sender.is_connected_now()) {
            return Err(Refusal::new(format!("the window is taken by {}", process_name(sender.pid()))));
        }
        let place = Place::reserve(&self.queue, Process::of(peer))?;
        self.sender = Some(peer.clone());
        self.epoch = self.epoch.wrapping_add(1);
        let (design, queue) = (Arc::clone(&self.design), Arc::clone(&self.queue));
        Ok((place, Making { design, queue, epoch: self.epoch, peer: peer.clone(), kernel }))
    }
}

/// What it takes to make a window.
struct Making {
    design: Arc<Design>,
    queue: Arc<Queue>,
    epoch: u8,
    peer: Peer,
    kernel: Option<StoreKernel>,
}

impl Making {
    /// Whether a constant bounds the time that it takes, with what the sender has sent for it.
    fn is_small(&self, fds: &[OwnedFd]) -> bool {
        let is_credit_page = |fd: &OwnedFd| is_small_memory(fd.as_fd(), CONTROL_PAGE_BYTES);
        self.design.is_small() && fds.iter().all(is_credit_page)
    }

    /// The answer with a window that was made in advance, if there is one. What the sender need not wait for comes after it.
    fn make_at_once(self, place: Place, fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let page = credit_page(fds)?;
        let taken = self.queue.take_spare().and_then(|spare| spare.take(self.epoch));
        let (fd, window, left) = match taken {
            Some((fd, window, left)) => (fd, window, Some(left)),
            None => {
                let (fd, window) = self.window(&Unpaced)?;
                (fd, window, None)
            }
        };
        let (reply, arrival) = self.answer(fd, window, Page::Passed(page));
        place.fill(Arc::clone(&arrival))?;
        let afterwards = move || {
            self.queue.announce();
            arrival.map();
            drop((arrival, left));
        };
        Ok(Answer::Then(reply, Box::new(afterwards)))
    }

    fn make_in(self, place: Place, fds: Vec<OwnedFd>, pace: &dyn Pace) -> Result<Reply, Refusal> {
        let page = credit_page(fds)?.map().map_err(unusable)?;
        let (fd, window) = self.window(pace)?;
        let (reply, arrival) = self.answer(fd, window, Page::Mapped(page.region().clone()));
        place.fill(arrival)?;
        self.queue.announce();
        Ok(reply)
    }

    fn answer(&self, fd: OwnedFd, window: MappedWindow, page: Page) -> (Reply, Arc<Arrival>) {
        let reply = Reply { payload: encode_answer(&window.terms), fds: vec![fd] };
        (reply, Arc::new(Arrival::new(window, self.kernel, self.peer.clone(), page)))
    }

    fn window(&self, pace: &dyn Pace) -> Result<(OwnedFd, MappedWindow), Refusal> {
        self.design.make(self.epoch, pace).map(FreshWindow::split).map_err(|error| {
            tracing::error!(%error, window = self.design.name, "cannot make a window");
            Refusal::new(format!("the receiver cannot make a window: {error}"))
        })
    }
}

fn credit_page(fds: Vec<OwnedFd>) -> Result<UnmappedCreditPage, Refusal> {
    let [fd] = <[OwnedFd; 1]>::try_from(fds)
        .map_err(|fds| Refusal::new(format!("{} descriptors, one credit page is needed", fds.len())))?;
    UnmappedCreditPage::from_fd(fd).map_err(unusable)
}

fn unusable(error: WindowError) -> Refusal {
    Refusal::new(format!("the credit page cannot be used: {error}"))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use beeline_contract_memory::{CreditSink, LoadPort};
    use beeline_mmio::SharedMemory;

    use super::*;
    use crate::peer::tests::peer_with_socket;
    use crate::window::hello::decode_answer;
    use crate::window::{CreditPage, WindowTerms};
    use crate::{Afterwards, DomainConfig};

    fn page() -> CreditPage {
        CreditPage::create("page").unwrap()
    }

    fn passed(page: &CreditPage) -> Vec<OwnedFd> {
        vec![page.fd().try_clone_to_owned().unwrap()]
    }

    /// What a small window's sender is answered, and what is to be done then.
    fn ask_with(
        maker: &mut Maker,
        peer: &Peer,
        page: &CreditPage,
    ) -> Result<(WindowTerms, OwnedFd, Afterwards), Refusal> {
        match maker.connected(peer, &Request::encode(StoreKernel::Cached), passed(page))? {
            Answer::Then(mut reply, afterwards) => {
                Ok((decode_answer(&reply.payload).unwrap(), reply.fds.pop().unwrap(), afterwards))
            }
            Answer::Later(work) => Err(work(&Unpaced).unwrap_err()),
            Answer::Now(_) => panic!("nothing is to be done after it"),
        }
    }

    fn ask(maker: &mut Maker, peer: &Peer) -> Result<(WindowTerms, OwnedFd), Refusal> {
        let (terms, fd, afterwards) = ask_with(maker, peer, &page())?;
        afterwards();
        Ok((terms, fd))
    }

    fn maker(lines: u32) -> Maker {
        let design = Design { name: "test".into(), lines, memory: MemoryOptions::default() };
        Maker { design: Arc::new(design), queue: Arc::default(), sender: None, epoch: 255 }
    }

    /// Has the next sender get a window that is made now, and tells its blank.
    fn make_in_advance(maker: &Maker) -> u64 {
        let window = maker.design.make(77, &Unpaced).unwrap();
        let blank = window.terms().blank;
        maker.queue.keep_spare(|| Ok(SpareWindow::keep(window)));
        blank
    }

    #[test]
    fn window_made_in_advance_is_one_senders_and_all_blank() {
        let mut maker = maker(64);
        let blank = make_in_advance(&maker);
        let other = make_in_advance(&maker);
        let ((first, first_end), (second, _second_end)) = (peer_with_socket(), peer_with_socket());
        let (terms, fd) = ask(&mut maker, &first).unwrap();
        assert_eq!((terms.blank, terms.epoch, terms.lines), (blank, 0, 64));
        let theirs = SharedMemory::from_fd(fd, terms.bytes).unwrap().map().unwrap();
        let mut parts = maker.queue.try_accept().unwrap();
        assert_eq!((parts.blank, parts.epoch), (blank, 0));
        assert!((0..64).all(|line| parts.load.load_line(line) == [blank; 8]));
        theirs.word(CONTROL_PAGE_BYTES).store(7);
        assert_eq!(parts.load.load_word(0, 0), 7, "it is the same memory");
        drop(first_end);
        let (terms, _fd) = ask(&mut maker, &second).unwrap();
        assert!(![blank, other].contains(&terms.blank) && terms.epoch == 1);
        assert_ne!(maker.queue.try_accept().unwrap().blank, blank);
    }

    #[test]
    fn window_made_in_advance_whose_descriptor_was_closed_is_nobodys() {
        let mut maker = maker(64);
        let window = maker.design.make(0, &Unpaced).unwrap();
        let (blank, number) = (window.terms().blank, std::os::fd::AsRawFd::as_raw_fd(&window.fd()));
        maker.queue.keep_spare(|| Ok(SpareWindow::keep(window)));
        nix::unistd::close(number).unwrap();
        let (peer, _end) = peer_with_socket();
        let (terms, fd) = ask(&mut maker, &peer).unwrap();
        assert_ne!(terms.blank, blank);
        SharedMemory::from_fd(fd, terms.bytes).unwrap();
        assert_eq!(maker.queue.try_accept().unwrap().blank, terms.blank);
    }

    #[test]
    fn only_a_thread_that_waits_for_a_sender_makes_its_window_in_advance_if_it_is_small() {
        let folder = tempfile::tempdir().unwrap();
        let config = DomainConfig { root: Some(folder.path().to_owned()), name: "test".into() };
        let domain = Domain::open(&config).unwrap();
        for (lines, is_made) in [(256, true), (512, false)] {
            let options = WindowOptions { lines, ..WindowOptions::default() };
            let listener = offer_window(&domain, "window", options).unwrap();
            assert!(listener.try_accept().is_none() && listener.queue.take_spare().is_none());
            assert!(listener.accept(Duration::from_millis(1)).is_none());
            assert_eq!(listener.queue.take_spare().is_some(), is_made, "{lines} lines");
        }
    }

    #[test]
    fn sender_whose_window_was_under_way_when_the_listener_was_dropped_is_told_so_and_not_only_cut_off() {
        for is_at_once in [true, false] {
            let (mut maker, (peer, _end)) = (maker(64), peer_with_socket());
            let (place, making) = maker.begin(&peer, &Request::encode(StoreKernel::Cached)).unwrap();
            maker.queue.close();
            let fds = passed(&page());
            let answer = if is_at_once {
                making.make_at_once(place, fds).map(drop)
            } else {
                making.make_in(place, fds, &Unpaced).map(drop)
            };
            assert!(answer.unwrap_err().reason().contains("accepts no more senders"));
            assert!(peer.is_connected_now(), "the refusal is sent to it after this");
        }
    }

    #[test]
    fn receiver_that_accepts_before_the_answer_is_sent_has_the_senders_page() {
        let mut maker = maker(64);
        let ((peer, _end), page) = (peer_with_socket(), page());
        let (_terms, _fd, afterwards) = ask_with(&mut maker, &peer, &page).unwrap();
        let mut parts = maker.queue.try_accept().unwrap();
        parts.sink.publish(3);
        afterwards();
        assert_eq!(page.region().word(0).load(), 3);
        assert!(maker.queue.try_accept().is_none());
    }

    #[test]
    fn small_window_is_made_at_once_if_what_came_for_it_is_small() {
        use rustix::fs::{MemfdFlags, SealFlags};

        let page = || passed(&page()).pop().unwrap();
        let is_now = |lines: u32, fds: Vec<OwnedFd>| {
            let (peer, _end) = peer_with_socket();
            let answer = maker(lines).connected(&peer, &Request::encode(StoreKernel::Cached), fds);
            matches!(answer.unwrap(), Answer::Then(..))
        };
        assert!(is_now(64, vec![page()]) && is_now(256, vec![page()]));
        assert!(!is_now(512, vec![page()]), "it is larger");
        // To close it takes as long as the pages take that are hidden behind its end.
        let hidden = rustix::fs::memfd_create("page", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&hidden, CONTROL_PAGE_BYTES as u64).unwrap();
        let behind = rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&hidden, behind, CONTROL_PAGE_BYTES as u64, 1 << 20).unwrap();
        rustix::fs::fcntl_add_seals(&hidden, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).unwrap();
        assert!(!is_now(64, vec![hidden]));
        assert!(!is_now(64, vec![page(), std::fs::File::open("/proc/self/exe").unwrap().into()]));
    }

    #[test]
    fn departed_sender_frees_the_window_before_its_hang_up_is_seen() {
        let mut maker = maker(64);
        let ((first, first_end), (second, _second_end)) = (peer_with_socket(), peer_with_socket());
        ask(&mut maker, &first).unwrap();
        assert!(ask(&mut maker, &second).unwrap_err().reason().contains("taken by process"));
        drop(first_end);
        assert!(first.is_alive(), "the domain's thread has not seen the hang-up");
        ask(&mut maker, &second).unwrap();
        let epochs = std::iter::from_fn(|| maker.queue.try_accept()).map(|parts| parts.epoch);
        assert_eq!(epochs.collect::<Vec<_>>(), [0, 1], "the epoch wraps");
    }
}
