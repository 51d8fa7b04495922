//! Short sessions with pauses between them, both sides on threads of their own: no frame stays on its way, the last one of a
//! session neither, after which its sender does nothing more.
//!
//! `BEELINE_SESSIONS` has more of them than usual, to look for what happens once in thousands.

use std::time::Duration;

use beeline_ethernet::{AfXdp, Uplink, XdpAttach};
use beeline_mmio::cpu::pin_current_thread;

use crate::rig::{Net, frame, receive, send};

/// Sessions of each kind if nothing else is said.
const SESSIONS: u32 = 60;
/// Sockets are opened anew after so many.
const SESSIONS_A_SOCKET: u32 = 20;
/// Longest pause between two sessions, in which nobody polls.
const PAUSE_MS: u32 = 12;

/// Answers so many frames, and then does nothing more.
fn answer(uplink: &mut AfXdp, trips: u32) {
    for _ in 0..trips {
        let asked = receive(uplink);
        send(uplink, &asked);
    }
}

/// Sends frames, each when the one before has come back. Whatever stays on its way ends the test by the watchdog of `receive`.
fn ask(uplink: &mut AfXdp, session: u32, trips: u32) {
    for trip in 0..trips {
        let asked = frame(session << 8 | trip, 60 + (session as usize * 7 + trip as usize * 13) % 1400);
        send(uplink, &asked);
        assert_eq!(receive(uplink), asked, "trip {trip} of session {session}");
    }
}

fn sessions(net: &Net, attach: XdpAttach, cores: Option<[usize; 2]>) {
    let all = std::env::var("BEELINE_SESSIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(SESSIONS);
    let pin = |side: usize| {
        // Where there is one core only, both are on it.
        cores
            .map_or(Ok(()), |cores| pin_current_thread(cores[side]))
            .or_else(|_| pin_current_thread(0))
            .unwrap();
    };
    for first in (0..all).step_by(SESSIONS_A_SOCKET as usize) {
        let (mut near, mut far) = (net.near.xdp(attach), net.far.xdp(attach));
        let of_socket = first..all.min(first + SESSIONS_A_SOCKET);
        for session in of_socket {
            let trips = 1 + session * 31 % 40;
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    pin(1);
                    answer(&mut far, trips);
                });
                scope.spawn(|| {
                    pin(0);
                    ask(&mut near, session, trips);
                });
            });
            std::thread::sleep(Duration::from_millis((session * 5 % PAUSE_MS).into()));
        }
        let counted = near.statistics().unwrap();
        assert_eq!((counted.sent, counted.sent), (counted.transmitted, counted.received), "{counted:?}");
        assert!(!near.poll(&mut Vec::new()).unwrap() && !far.poll(&mut Vec::new()).unwrap());
    }
}

#[test]
fn short_sessions_of_af_xdp_leave_no_frame_on_its_way() {
    let Some(net) = Net::make() else { return };
    for attach in [XdpAttach::Native, XdpAttach::Generic] {
        for cores in [None, Some([0, 1]), Some([0, 0])] {
            sessions(&net, attach, cores);
        }
    }
}
