//! Both ends of 64 B there and back by plain sockets that block, on one connection of each thread.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::BenchError;

const BYTES: usize = 64;
/// Round trips before it counts: far more than a connection needs to leave the kernel.
const WARM_UP: u32 = 2000;
const LASTS: Duration = Duration::from_secs(1);
/// Round trips between two looks at the clock.
const TRIPS_A_LOOK: u64 = 64;

/// Asks on so many connections at once, a thread each, and says how many answers came a second.
pub(super) fn ask(at: (Ipv4Addr, u16), threads: usize) -> Result<(), BenchError> {
    let begin = Barrier::new(threads);
    let rates = on_threads(threads, || TcpStream::connect(at), |peer| ask_one(peer, &begin))?;
    println!("a second: {:.1}", rates.iter().sum::<f64>());
    Ok(())
}

fn ask_one(mut peer: TcpStream, begin: &Barrier) -> Result<f64, BenchError> {
    peer.set_nodelay(true)?;
    let mut message = [0; BYTES];
    let mut trips = 0_u64;
    let mut go = |count| -> Result<u64, BenchError> {
        for _ in 0..count {
            trips += 1;
            message[..8].copy_from_slice(&trips.to_le_bytes());
            peer.write_all(&message)?;
            peer.read_exact(&mut message)?;
            if message[..8] != trips.to_le_bytes() {
                let what = format!("another answer than that to {trips}");
                return Err(BenchError::Rival { rival: "a ping-pong".to_owned(), what });
            }
        }
        Ok(count)
    };
    go(WARM_UP.into())?;
    begin.wait();
    let (started, mut counted) = (Instant::now(), 0);
    while started.elapsed() < LASTS {
        counted += go(TRIPS_A_LOOK)?;
    }
    Ok(counted as f64 / started.elapsed().as_secs_f64())
}

/// Answers on so many connections, a thread each, until they end.
pub(super) fn answer(listener: &TcpListener, threads: usize) -> Result<(), BenchError> {
    let accept = || listener.accept().map(|(peer, _)| peer);
    on_threads(threads, accept, |mut peer| {
        peer.set_nodelay(true)?;
        let mut message = [0; BYTES];
        // A client ends between two messages.
        while peer.read_exact(&mut message).is_ok() {
            peer.write_all(&message)?;
        }
        Ok(())
    })
    .map(drop)
}

/// Connects all, then plays each on a thread of its own.
fn on_threads<T: Send>(
    threads: usize,
    connect: impl Fn() -> std::io::Result<TcpStream>,
    play: impl Fn(TcpStream) -> Result<T, BenchError> + Sync,
) -> Result<Vec<T>, BenchError> {
    let peers: Vec<TcpStream> = (0..threads).map(|_| connect()).collect::<Result<_, _>>()?;
    let play = &play;
    std::thread::scope(|scope| {
        let playing: Vec<_> = peers.into_iter().map(|peer| scope.spawn(move || play(peer))).collect();
        playing.into_iter().map(|one| one.join().expect("no thread of an end panics")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_answers_of_its_own() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::scope(|scope| {
            let server = scope.spawn(|| answer(&listener, 2));
            ask((Ipv4Addr::LOCALHOST, port), 2).unwrap();
            server.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_wrong_answer_is_an_error() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut peer, _) = listener.accept().unwrap();
                let mut message = [0; BYTES];
                peer.read_exact(&mut message).unwrap();
                message[0] ^= 1;
                peer.write_all(&message).unwrap();
            });
            assert!(ask((Ipv4Addr::LOCALHOST, port), 1).is_err());
        });
    }
}
