//! Ends that this program plays itself, started as any other: they know nothing of windows.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use clap::Args;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::measured::tell;
use super::{datagrams, ping_pong};
use crate::{BenchError, fail_over};

/// GETs of a client, after some that are not counted.
const GETS: usize = 60_000;
const WARM_UP: usize = 10_000;
const CONNECTS: usize = 20_000;
const IDLE: usize = 1_000;
/// Messages of a connection before it is idle: far more than it needs to leave the kernel.
const MESSAGES: usize = 60;
const SETTLES: Duration = Duration::from_secs(1);
const WATCHED: Duration = Duration::from_secs(2);
const STREAMS: Duration = Duration::from_secs(1);
/// Writes between two looks at the clock.
const WRITES_A_LOOK: usize = 64;

/// What an end plays.
#[derive(Args, Clone, Debug)]
pub struct ClientArgs {
    /// memcached, connect, accept, idle, hold, write, read, ask, answer, flow, sink, udp-ask, udp-answer, udp-flood, udp-hear
    role: String,
    port: u16,
    /// Bytes of each call of `write` and `read`.
    #[arg(long, default_value_t = 4096)]
    bytes: usize,
    /// Connections of `ask` and `answer`, each with a thread of its own.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Port of the group of `udp-flood` and `udp-hear`; without it, they have none.
    #[arg(long)]
    group: Option<u16>,
    /// Ports of the other members to which `udp-flood` sends.
    #[arg(long, value_delimiter = ',')]
    ends: Vec<u16>,
    /// Microseconds between two datagrams of `udp-flood`.
    #[arg(long, default_value_t = 0)]
    every_us: u64,
    /// Address of `flow` and `sink`.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
}

/// Plays the end of a connection that no program of Debian plays.
///
/// # Errors
/// A call on a socket fails; there is no such role.
pub fn be_client(args: &ClientArgs) -> Result<(), BenchError> {
    let at = (Ipv4Addr::LOCALHOST, args.port);
    match args.role.as_str() {
        "memcached" => memcached(TcpStream::connect(at)?),
        "connect" => connect(at),
        "accept" => accept(TcpListener::bind(at)?),
        "idle" => idle(at),
        "hold" => hold(TcpListener::bind(at)?),
        "write" => write(TcpStream::connect(at)?, args.bytes),
        "read" => read(TcpListener::bind(at)?, args.bytes),
        "ask" => ping_pong::ask(at, args.threads),
        "flow" => fail_over::flow((args.host, args.port)),
        "sink" => fail_over::sink((args.host, args.port)),
        "answer" => ping_pong::answer(&TcpListener::bind(at)?, args.threads),
        "udp-ask" => datagrams::ask(args.port),
        "udp-answer" => datagrams::answer(args.port),
        "udp-flood" => {
            datagrams::flood(args.port, args.group, &args.ends, Duration::from_micros(args.every_us))
        }
        "udp-hear" => datagrams::hear(args.port, args.group),
        other => Err(BenchError::Unknown(other.to_owned())),
    }
}

fn memcached(peer: TcpStream) -> Result<(), BenchError> {
    peer.set_nodelay(true)?;
    // One descriptor: a connection with two stays with the kernel.
    let (mut out, mut read) = (&peer, BufReader::new(&peer));
    let value = "v".repeat(32);
    out.write_all(format!("set key 0 0 {}\r\n{value}\r\n", value.len()).as_bytes())?;
    let mut line = String::new();
    read.read_line(&mut line)?;
    let wanted = format!("VALUE key 0 {}\r\n{value}\r\nEND\r\n", value.len());
    let mut answer = vec![0; wanted.len()];
    let mut times = Vec::with_capacity(GETS);
    let mut started = Instant::now();
    for get in 0..WARM_UP + GETS {
        let asked = Instant::now();
        if get == WARM_UP {
            started = asked;
        }
        out.write_all(b"get key\r\n")?;
        read.read_exact(&mut answer)?;
        if get >= WARM_UP {
            times.push(asked.elapsed());
        }
        if answer != wanted.as_bytes() {
            let what = format!("answers {:?}", String::from_utf8_lossy(&answer));
            return Err(BenchError::Rival { rival: "memcached".to_owned(), what });
        }
    }
    tell(times, started.elapsed());
    Ok(())
}

/// Connections one after the other: each says a byte, hears one, and is closed.
fn connect(at: (Ipv4Addr, u16)) -> Result<(), BenchError> {
    let (mut times, started) = (Vec::with_capacity(CONNECTS), Instant::now());
    for _ in 0..CONNECTS {
        let asked = Instant::now();
        let mut peer = TcpStream::connect(at)?;
        peer.write_all(b"?")?;
        peer.read_exact(&mut [0])?;
        times.push(asked.elapsed());
    }
    tell(times, started.elapsed());
    Ok(())
}

fn accept(listener: TcpListener) -> Result<(), BenchError> {
    loop {
        let (mut peer, _) = listener.accept()?;
        peer.read_exact(&mut [0])?;
        peer.write_all(b"!")?;
    }
}

/// Connections that have exchanged some messages, and then nothing: what CPU time both ends use meanwhile, in thousandths of a core.
fn idle(at: (Ipv4Addr, u16)) -> Result<(), BenchError> {
    let peers: Vec<TcpStream> = (0..IDLE).map(|_| TcpStream::connect(at)).collect::<Result<_, _>>()?;
    for _ in 0..MESSAGES {
        for mut peer in &peers {
            peer.write_all(b"?")?;
            peer.read_exact(&mut [0])?;
        }
    }
    std::thread::sleep(SETTLES);
    let used = |mut peer: &TcpStream| -> Result<u64, BenchError> {
        let mut answer = [0; 8];
        peer.write_all(b"=")?;
        peer.read_exact(&mut answer)?;
        Ok(u64::from_le_bytes(answer) + used_ms())
    };
    let before = used(&peers[0])?;
    std::thread::sleep(WATCHED);
    let spent_ms = used(&peers[0])?.saturating_sub(before);
    println!("used: {:.3}", spent_ms as f64 / WATCHED.as_millis() as f64 * 1000.0);
    Ok(())
}

/// Answers each byte by one, and `=` by the milliseconds of CPU time that it has used. It waits by functions of the C library, as programs do: system calls
/// of its own would not be seen.
fn hold(listener: TcpListener) -> Result<(), BenchError> {
    let set = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(std::io::Error::from)?;
    let mut peers: Vec<TcpStream> = Vec::new();
    let add = |fd: &dyn AsFd, at: u64| set.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, at));
    add(&listener, u64::MAX).map_err(std::io::Error::from)?;
    loop {
        let mut events = [EpollEvent::empty(); 64];
        let told = set.wait(&mut events, EpollTimeout::NONE).map_err(std::io::Error::from)?;
        for event in &events[..told] {
            let at = event.data();
            if at == u64::MAX {
                let (peer, _) = listener.accept()?;
                add(&peer, peers.len() as u64).map_err(std::io::Error::from)?;
                peers.push(peer);
                continue;
            }
            let mut peer = &peers[at as usize];
            let mut byte = [0];
            if peer.read(&mut byte)? == 0 {
                // All end at once, and then this is done.
                return Ok(());
            }
            if byte == *b"=" { peer.write_all(&used_ms().to_le_bytes())? } else { peer.write_all(b"!")? }
        }
    }
}

/// Writes as fast as it can, and nothing else: what a program can have whose own loop costs nothing.
fn write(mut peer: TcpStream, bytes: usize) -> Result<(), BenchError> {
    let (piece, started) = (vec![0; bytes], Instant::now());
    while started.elapsed() < STREAMS {
        for _ in 0..WRITES_A_LOOK {
            peer.write_all(&piece)?;
        }
    }
    Ok(())
}

/// Reads what one connection has to its end, and says how fast that came.
fn read(listener: TcpListener, bytes: usize) -> Result<(), BenchError> {
    let (mut peer, _) = listener.accept()?;
    let mut piece = vec![0; bytes];
    let mut total = peer.read(&mut piece)?;
    let started = Instant::now();
    loop {
        match peer.read(&mut piece)? {
            0 => break,
            more => total += more,
        }
    }
    println!("bits a second: {:.1}", total as f64 * 8.0 / started.elapsed().as_secs_f64());
    Ok(())
}

/// Milliseconds of CPU time of this process.
fn used_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks: u64 = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    // Ticks are a hundredth of a second on every Linux.
    ticks * 10
}
