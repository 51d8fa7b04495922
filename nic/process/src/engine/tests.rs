use std::sync::mpsc::{channel, sync_channel};

use beeline_contract_device::Accept;
use beeline_ethernet::{Traits, Uplink, UplinkError};
use beeline_wait::WaitPolicy;
use rustix::event::{EventfdFlags, eventfd};

use super::*;
use crate::NicProcessConfig;

/// An up-link that costs a system call and has no frames; it stops the loop when it has been looked at so often.
struct Stops {
    looks: u32,
    stop: Arc<AtomicBool>,
}

impl Uplink for Stops {
    fn name(&self) -> &str {
        "stops"
    }

    fn traits(&self) -> Traits {
        Traits { takes: false, mirrors: false, gives: true, waits: false, learns: false }
    }

    fn send(&mut self, _frame: &[u8]) -> Result<Accept, UplinkError> {
        Ok(Accept::Refused)
    }

    fn poll(&mut self, _frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        self.looks -= 1;
        self.stop.store(self.looks == 0, Ordering::Relaxed);
        Ok(false)
    }

    fn looks_by_system_call(&self) -> bool {
        true
    }
}

/// What the loop did until it had looked three times at everything that it looks at now and then; the first time it found a
/// command.
fn until_looked_at_everything(policy: WaitPolicy) -> LoopCounters {
    let stop = Arc::new(AtomicBool::new(false));
    let config = NicProcessConfig::default();
    let endpoints = Endpoints::new(
        &config,
        vec![Box::new(Stops { looks: 3, stop: Arc::clone(&stop) })],
        beeline_domain::Disposer::default(),
    );
    let (sender, commands) = channel();
    let (left, _left) = channel();
    let event = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an event"));
    let departures = Departures::new(config.departure_limit, left);
    let mut engine = Engine::new(endpoints, commands, event, Idle::new(policy), departures);
    let (answer, answered) = sync_channel(1);
    sender.send(Command::Statistics(answer)).expect("the loop is there");
    let counters = engine.run(&stop).rounds;
    assert!(answered.try_recv().is_ok(), "commands are looked at with up-links");
    counters
}

#[test]
fn everything_is_looked_at_after_the_core_was_offered_to_others() {
    let yields = WaitPolicy::new().spins(0).yields(0).sleep(None);
    let counters = until_looked_at_everything(yields);
    assert!(counters.yields <= 4, "each of them may take long: {counters:?}");
}

#[test]
fn loop_that_spins_looks_at_everything_now_and_then() {
    let counters = until_looked_at_everything(WaitPolicy::SPIN);
    assert_eq!((counters.rounds, counters.yields), (3 * ROUNDS_PER_COMMAND, 0));
}
