//! Queues of a driver whose device is the fuzzer, opened when the input first uses them.
//!
//! The device's memory is plain words that the fuzzer writes. What the driver did is looked up where a device would
//! look (`sent.rs`); what the device does for queues that receive is in `fillers.rs`.

use beeline_driver::{
    CoherentConfig, DescriptorConfig, EnsoConfig, InlineConfig, KpioConfig, LongFrameConfig, MmioConfig,
    NiqConfig, Port, QueueHalf, RxCoherentConfig, RxDescriptorConfig, RxEnsoConfig, RxNiqConfig,
    RxRingConfig, Sent, Transmit, TxCoherent, TxDescriptor, TxEnso, TxError, TxInline, TxKpio, TxMmio, TxNiq,
};
use beeline_spec::Interface;
use beeline_spec::caps::Capabilities;
use beeline_spec::coherent::given_back;
use beeline_spec::escape::blank_from_random;
use beeline_spec::formats::MIN_FRAME_BYTES;
use beeline_spec::header::lines_of;

use crate::fillers::{
    BUFFERS, BufferFiller, EntryFiller, LINE_BUFFERS, LINE_ENTRIES as RX_LINE_ENTRIES, LINES, LineFiller,
    NOTIFICATIONS, PipeFiller, RingFiller,
};
use crate::opened::{Opened, Words};
use crate::received::{FuzzedReceiver, Lies, Received};
use crate::scripted::{Bell, Memory, Scripted, Window, sound_capabilities};
use crate::sent::{
    ENTRIES, ENTRY_LINES, LINE_ENTRIES, RING_LINES, check_coherent, check_descriptor, check_inline,
    check_lines, check_message, check_niq, check_pipe, window,
};
use crate::{BLANK, Word};

/// Transmit queues, one for each interface.
pub const TRANSMIT: u8 = 7;
/// Receive queues, one for each kind of receive half.
pub const RECEIVE: u8 = 5;

/// A port, and its queues as far as they are open.
pub struct Host {
    /// Link between driver and device.
    pub link: Scripted,
    port: Port<Scripted>,
    /// The blank of its windows, if they are blank.
    blank: Option<u64>,
    mmio: Option<Opened<TxMmio<Window, Memory>>>,
    kpio: Option<Opened<TxKpio<Window, Memory>>>,
    descriptor: Option<Opened<TxDescriptor<Memory, Bell>>>,
    inline: Option<Opened<TxInline<Window, Memory, Bell>>>,
    enso: Option<Opened<TxEnso<Memory, Bell>>>,
    niq: Option<Opened<TxNiq<Window, Memory>>>,
    coherent: Option<Opened<TxCoherent<Memory>>>,
    receivers: [Option<Box<dyn FuzzedReceiver>>; RECEIVE as usize],
}

impl Host {
    /// Nothing open, on a device whose windows are blank or observed.
    pub fn new(is_blank: bool) -> Self {
        let capabilities = Capabilities { blank: Some(is_blank), ..sound_capabilities() };
        let link = Scripted::with(LINES, &capabilities);
        let port = link.ready();
        Host {
            link,
            port,
            blank: is_blank.then(|| blank_from_random(BLANK)),
            mmio: None,
            kpio: None,
            descriptor: None,
            inline: None,
            enso: None,
            niq: None,
            coherent: None,
            receivers: Default::default(),
        }
    }
}

/// An accessor that opens the queue when it is first asked for. Queues with a doorbell have numbers of their own.
macro_rules! opened {
    ($name:ident: $half:ty, $queue:literal, $config:expr) => {
        fn $name(&mut self) -> Option<&mut Opened<$half>> {
            if self.$name.is_none() {
                self.$name = Opened::new(&mut self.port, &self.link, |port| port.$name($queue, $config));
            }
            self.$name.as_mut()
        }
    };
}

impl Host {
    opened!(mmio: TxMmio<Window, Memory>, 0, MmioConfig { random: BLANK, ..Default::default() });
    opened!(kpio: TxKpio<Window, Memory>, 1, KpioConfig { random: BLANK, ..Default::default() });
    opened!(descriptor: TxDescriptor<Memory, Bell>, 2, DescriptorConfig {
        entries: ENTRIES as u32,
        buffer_bytes: 4096,
        completion_frames: 2,
        ..Default::default()
    });
    opened!(inline: TxInline<Window, Memory, Bell>, 3, InlineConfig {
        random: BLANK,
        ring_lines: RING_LINES as u32,
        buffer_bytes: 4096,
        completion_frames: 2,
        ..Default::default()
    });
    opened!(enso: TxEnso<Memory, Bell>, 0, EnsoConfig {
        lines: RING_LINES as u32,
        completion_frames: 2,
        ..Default::default()
    });
    opened!(niq: TxNiq<Window, Memory>, 2, NiqConfig {
        random: BLANK,
        entry_lines_log2: ENTRY_LINES.ilog2(),
        buffer_bytes: 4096,
        ..Default::default()
    });
    opened!(coherent: TxCoherent<Memory>, 1, CoherentConfig {
        entries: LINE_ENTRIES as u32,
        entry_lines_log2: ENTRY_LINES.ilog2(),
        short_buffers: 4,
        long_buffers: 2,
        ..Default::default()
    });

    /// A transmit queue, if it can be opened.
    pub fn transmit(&mut self, which: u8) -> Option<&mut dyn Transmit> {
        match which % TRANSMIT {
            0 => self.mmio().map(|opened| &mut opened.half as _),
            1 => self.kpio().map(|opened| &mut opened.half as _),
            2 => self.descriptor().map(|opened| &mut opened.half as _),
            3 => self.inline().map(|opened| &mut opened.half as _),
            4 => self.enso().map(|opened| &mut opened.half as _),
            5 => self.niq().map(|opened| &mut opened.half as _),
            _ => self.coherent().map(|opened| &mut opened.half as _),
        }
    }

    /// Sends a frame, and looks for it where the device would.
    pub fn send(&mut self, which: u8, frame: &[u8]) {
        self.try_send(which % TRANSMIT, frame);
    }

    /// `None`: the queue is not there, or takes nothing now.
    fn try_send(&mut self, which: u8, frame: &[u8]) -> Option<()> {
        fn sent<H: Transmit>(half: &mut H, frame: &[u8]) -> Option<()> {
            let sent = half.try_send(frame);
            // Only kPIO+WC has frames that it cannot carry, and only a length is the caller's fault.
            let is_carried = half.declared().interface != Interface::Kpio;
            assert!(!is_carried || !matches!(sent, Err(TxError::HoldsMark { .. })), "{sent:?}");
            let fits = (MIN_FRAME_BYTES..=half.max_frame_bytes()).contains(&frame.len());
            assert_eq!(matches!(sent, Err(TxError::Length { .. })), !fits, "{sent:?}");
            (sent == Ok(Sent::Sent)).then_some(())
        }
        let (link, blank) = (self.link.clone(), self.blank);
        match which {
            0 => {
                let opened = self.mmio()?;
                let start = opened.half.writer().position().0;
                sent(&mut opened.half, frame)?;
                let end = opened.half.writer().position().0;
                assert_eq!(end, start + u64::from(lines_of(frame.len() as u32)));
                check_message(&window(&link, 0), blank, start, frame);
            }
            1 => {
                let opened = self.kpio()?;
                let start = opened.half.stored_lines();
                sent(&mut opened.half, frame)?;
                check_lines(&window(&link, 1), start, opened.half.stored_lines(), frame);
            }
            2 => {
                let opened = self.descriptor()?;
                sent(&mut opened.half, frame)?;
                check_descriptor(opened, &link, frame);
            }
            3 => {
                let opened = self.inline()?;
                let before = (opened.half.posted(), opened.half.pushes());
                sent(&mut opened.half, frame)?;
                check_inline(opened, (&link, blank), before, frame);
            }
            4 => {
                let opened = self.enso()?;
                let before = opened.half.posted();
                sent(&mut opened.half, frame)?;
                check_pipe(opened, &link, before, frame);
            }
            5 => {
                let opened = self.niq()?;
                let before = opened.half.stored();
                sent(&mut opened.half, frame)?;
                check_niq(opened, (&link, blank), before, frame);
            }
            _ => {
                let opened = self.coherent()?;
                sent(&mut opened.half, frame)?;
                check_coherent(opened, frame);
            }
        }
        Some(())
    }

    /// What a queue with a count has handed over, and the word at the start of its memory in which the device counts.
    fn counted(&mut self, which: u8) -> Option<(u64, Words)> {
        Some(match which % TRANSMIT {
            0 => self.mmio().map(|opened| (opened.half.writer().position().0, opened.words()))?,
            1 => self.kpio().map(|opened| (opened.half.stored_lines(), opened.words()))?,
            2 => self.descriptor().map(|opened| (opened.half.posted(), opened.words()))?,
            3 => self.inline().map(|opened| (opened.half.posted(), opened.words()))?,
            4 => self.enso().map(|opened| (opened.half.posted(), opened.words()))?,
            5 => self.niq().map(|opened| (opened.half.stored(), opened.words()))?,
            _ => return None,
        })
    }

    /// The device says that it has finished so many more than were handed over (less, if negative), and the driver
    /// looks.
    pub fn finished(&mut self, which: u8, more: i8) {
        let Some((handed_over, words)) = self.counted(which) else { return self.given_back(which, more) };
        let finished = handed_over.wrapping_add_signed(more.into());
        words.borrow_mut()[0] = finished;
        let Some(tx) = self.transmit(which) else { return };
        let outcome = tx.progress();
        assert!(outcome.is_err() || finished <= handed_over, "{finished} of {handed_over} were finished");
        if outcome.is_ok() && more == 0 {
            assert!(tx.is_idle(), "all {handed_over} are finished");
        }
    }

    /// The same for coherent lines, which come back one by one: so many of the last four are kept.
    fn given_back(&mut self, which: u8, kept: i8) {
        if which % TRANSMIT != TRANSMIT - 1 {
            return;
        }
        let Some(opened) = self.coherent() else { return };
        let (passed, words) = (opened.half.passed(), opened.words());
        let kept = u64::from(kept.unsigned_abs()).min(LINE_ENTRIES);
        for count in passed.saturating_sub(LINE_ENTRIES)..passed.saturating_sub(kept) {
            let header = &mut words.borrow_mut()[(count % LINE_ENTRIES) as usize * ENTRY_LINES * 8];
            *header = given_back(*header);
        }
        if opened.half.progress().is_ok() && kept == 0 {
            assert!(opened.half.is_idle(), "all {passed} came back");
        }
    }

    /// A receive queue, if it can be opened.
    pub fn receiver(&mut self, which: u8) -> Option<&mut Box<dyn FuzzedReceiver>> {
        let place = usize::from(which % RECEIVE);
        if self.receivers[place].is_none() {
            self.receivers[place] = self.open_receiver(which % RECEIVE);
        }
        self.receivers[place].as_mut()
    }

    fn open_receiver(&mut self, which: u8) -> Option<Box<dyn FuzzedReceiver>> {
        let (port, link) = (&mut self.port, &self.link);
        Some(match which {
            0 => {
                let config = RxRingConfig { lines: LINES, ..Default::default() };
                let opened = Opened::new(port, link, |port| port.rx_ring(0, config))?;
                let filler = RingFiller::new(0, opened.words());
                Box::new(Received::new(opened, filler))
            }
            1 => {
                let config = RxDescriptorConfig { entries: BUFFERS, ..Default::default() };
                let opened = Opened::new(port, link, |port| port.rx_descriptor(3, config))?;
                let filler = BufferFiller::new(3, opened.words());
                Box::new(Received::new(opened, filler))
            }
            2 => {
                let config =
                    RxEnsoConfig { lines: LINES, notifications: NOTIFICATIONS, ..Default::default() };
                let opened = Opened::new(port, link, |port| port.rx_enso(1, config))?;
                let filler = PipeFiller::new(1, opened.words());
                Box::new(Received::new(opened, filler))
            }
            3 => {
                let long = LongFrameConfig::Ring(RxRingConfig { lines: LINES, ..Default::default() });
                let config = RxNiqConfig { long, ..RxNiqConfig::default() };
                let opened = Opened::new(port, link, |port| port.rx_niq(2, config))?;
                let window = link.0.borrow().readable[&2].clone();
                window.borrow_mut().fill(0);
                let ring = RingFiller::new(2, opened.words());
                let life = (2, opened.epoch());
                let filler = EntryFiller::new(life, window, config.entry_lines_log2, Some(Box::new(ring)));
                Box::new(Received::new(opened, filler))
            }
            _ => {
                let config = RxCoherentConfig {
                    entries: RX_LINE_ENTRIES,
                    buffers: LINE_BUFFERS,
                    ..RxCoherentConfig::default()
                };
                let opened = Opened::new(port, link, |port| port.rx_coherent(1, config))?;
                let filler = LineFiller::new(opened.words(), opened.address, config.entry_lines_log2);
                Box::new(Received::new(opened, filler))
            }
        })
    }

    /// The device delivers a frame.
    pub fn deliver(&mut self, which: u8, frame: &[u8], lies: Lies) {
        let link = self.link.clone();
        let Some(receiver) = self.receiver(which) else { return };
        receiver.deliver(&link, frame, lies);
    }

    /// Polls a receive queue; whether a frame came.
    pub fn receive(&mut self, which: u8) -> bool {
        let link = self.link.clone();
        self.receiver(which).is_some_and(|receiver| receiver.poll(&link))
    }

    /// Asks a receive queue whether the host may sleep.
    pub fn look(&mut self, which: u8) {
        let link = self.link.clone();
        let Some(receiver) = self.receiver(which) else { return };
        receiver.look(&link);
    }

    /// Recovers a queue that is open.
    pub fn recover(&mut self, which: u8) {
        fn recover<H: QueueHalf>(port: &mut Port<Scripted>, queue: &mut Option<Opened<H>>) {
            *queue = queue.take().and_then(|opened| opened.recovered(port));
        }
        let port = &mut self.port;
        match which % (TRANSMIT + RECEIVE) {
            0 => recover(port, &mut self.mmio),
            1 => recover(port, &mut self.kpio),
            2 => recover(port, &mut self.descriptor),
            3 => recover(port, &mut self.inline),
            4 => recover(port, &mut self.enso),
            5 => recover(port, &mut self.niq),
            6 => recover(port, &mut self.coherent),
            index => {
                let receiver = &mut self.receivers[usize::from(index - TRANSMIT)];
                if !receiver.as_mut().is_some_and(|receiver| receiver.recover(port)) {
                    *receiver = None;
                }
            }
        }
    }

    /// Writes a word into a region of the driver's memory, or where its reads look, if it has one there.
    pub fn poke(&mut self, region: u8, word: usize, value: Word) {
        let shared = self.link.0.borrow();
        let places = shared.regions.iter().chain(shared.readable.values());
        let Some(place) = usize::from(region).checked_rem(places.clone().count()) else { return };
        if let Some(word) = places.clone().nth(place).expect("one of them").borrow_mut().get_mut(word) {
            *word = value.value();
        }
        self.receivers.iter_mut().flatten().for_each(|receiver| receiver.lied());
    }
}
