//! 64 B there and back between two processes: by the engine, and by the same sockets without it.
//!
//! `cargo run --release -p beeline-socket-engine --example carried_round_trip`

use std::error::Error;
use std::io::{IoSlice, IoSliceMut};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use beeline_domain::DomainConfig;
use beeline_socket_engine::{Sockets, Turn};
use beeline_socket_rules::{Rules, Spin};
use rustix::net::{RecvFlags, SendFlags};

const TRIPS: usize = 200_000;
const KERNEL_TRIPS: usize = 20_000;
const BYTES: usize = 64;

type Fallible<T> = Result<T, Box<dyn Error>>;

struct Program {
    socket: TcpStream,
    sockets: Option<Sockets>,
}

impl Program {
    fn receive(&self, out: &mut [u8]) -> Fallible<usize> {
        if let Some(sockets) = &self.sockets {
            match sockets.receive(self.socket.as_fd(), &mut [IoSliceMut::new(out)], RecvFlags::empty()) {
                Turn::Done(done) => return Ok(done?),
                Turn::Kernel(pass) => {
                    let bytes = rustix::net::recv(&self.socket, out, RecvFlags::empty())?.1;
                    pass.moved(bytes);
                    return Ok(bytes);
                }
            }
        }
        Ok(rustix::net::recv(&self.socket, out, RecvFlags::empty())?.1)
    }

    fn send(&self, bytes: &[u8]) -> Fallible<()> {
        if let Some(sockets) = &self.sockets {
            match sockets.send(self.socket.as_fd(), &[IoSlice::new(bytes)], SendFlags::empty()) {
                Turn::Done(done) => {
                    done?;
                    return Ok(());
                }
                Turn::Kernel(pass) => pass.moved(bytes.len()),
            }
        }
        rustix::net::send(&self.socket, bytes, SendFlags::empty())?;
        Ok(())
    }
}

fn server(listener: &TcpListener, sockets: Option<Sockets>) -> Fallible<()> {
    let socket = listener.accept()?.0;
    socket.set_nodelay(true)?;
    if let Some(sockets) = &sockets {
        sockets.accepted(socket.as_fd());
    }
    let program = Program { socket, sockets };
    let mut bytes = [0; BYTES];
    loop {
        match program.receive(&mut bytes)? {
            0 => return Ok(()),
            found => program.send(&bytes[..found])?,
        }
    }
}

fn client(listener: &TcpListener, sockets: Option<Sockets>, what: &str) -> Fallible<()> {
    let socket = TcpStream::connect(listener.local_addr()?)?;
    socket.set_nodelay(true)?;
    if let Some(sockets) = &sockets {
        sockets.connected(socket.as_fd());
    }
    let program = Program { socket, sockets };
    let count = if program.sockets.is_some() { TRIPS } else { KERNEL_TRIPS };
    let mut times = Vec::with_capacity(count);
    // The first part is for the two processes to find each other.
    for trip in 0..count + 2_000 {
        let started = Instant::now();
        let mut bytes = [trip as u8; BYTES];
        program.send(&bytes)?;
        let mut filled = 0;
        while filled < BYTES {
            filled += program.receive(&mut bytes[filled..])?;
        }
        if trip >= 2_000 {
            times.push(started.elapsed());
        }
        if trip == 1_000 {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 1000].as_nanos();
    println!("{what:24} p50 {} p99 {} p99.9 {} ns", at(500), at(990), at(999));
    if let Some(sockets) = &program.sockets {
        let endpoint = sockets.endpoint(program.socket.as_raw_fd());
        println!("  {:?}", endpoint.map(beeline_socket_engine::Endpoint::traffic));
    }
    Ok(())
}

fn pin(core: usize) -> Fallible<()> {
    let mut cores = rustix::thread::CpuSet::new();
    cores.set(core);
    rustix::thread::sched_setaffinity(None, &cores)?;
    Ok(())
}

fn main() -> Fallible<()> {
    let root = std::env::temp_dir().join(format!("beeline-round-trip-{}", std::process::id()));
    std::fs::create_dir_all(&root)?;
    let spins = [("asleep", Spin::For(Duration::ZERO)), ("spinning", Spin::Forever)];
    for round in 0..3 {
        for (what, spin) in
            [("the kernel", None)].into_iter().chain(spins.map(|(what, spin)| (what, Some(spin))))
        {
            let listener = TcpListener::bind(("127.0.0.1", 0))?;
            let sockets = spin.map(|spin| {
                let rules = Rules { spin, ..Rules::default() };
                let domain = DomainConfig { root: Some(root.clone()), name: "d".to_owned() };
                Sockets::new(rules.for_this_program(), domain)
            });
            match fork::fork().map_err(|_| "no child")? {
                fork::Fork::Child => {
                    pin(1)?;
                    let ended = server(&listener, sockets);
                    std::process::exit(i32::from(ended.is_err()));
                }
                fork::Fork::Parent(child) => {
                    // A process of its own too: the engine's thread does not outlive a fork.
                    match fork::fork().map_err(|_| "no child")? {
                        fork::Fork::Child => {
                            pin(0)?;
                            let ended = client(&listener, sockets, &format!("{round} {what}"));
                            std::process::exit(i32::from(ended.is_err()));
                        }
                        fork::Fork::Parent(other) => {
                            for child in [other, child] {
                                rustix::process::waitpid(
                                    rustix::process::Pid::from_raw(child),
                                    rustix::process::WaitOptions::empty(),
                                )?;
                            }
                        }
                    }
                }
            }
        }
    }
    std::fs::remove_dir_all(&root)?;
    Ok(())
}
