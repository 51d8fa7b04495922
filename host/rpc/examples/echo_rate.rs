//! Scratch
use beeline_domain::{Domain, DomainConfig};
use beeline_rpc::{Method, Replied, Reply, Request, Started, shm};
use std::time::Instant;
fn main() {
    let dir = tempfile::tempdir().unwrap();
    let config = DomainConfig { root: Some(dir.path().into()), name: "bench".into() };
    let server = Domain::open(&config).unwrap();
    let cores = std::env::args().nth(1).is_some();
    let _ = cores;
    let (_server, mut workers) = shm::Server::offer(&server, "echo", shm::ServerOptions::default()).unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stop2 = stop.clone();
    let mut worker = workers.remove(0);
    let thread = std::thread::spawn(move || {
        pin(1);
        let mut echo = |request: &mut Request<'_>, reply: Reply<'_>| -> Replied {
            let mut buf = [0u8; 128];
            let n = request.copy_out(&mut buf);
            reply.send(&buf[..n])
        };
        worker.run(&mut echo, &beeline_rpc::WaitPolicy::SPIN, &stop2);
    });
    pin(0);
    let mut client = shm::Client::connect(&server, "echo", shm::ClientOptions::default()).unwrap();
    for size in [10usize, 32, 100] {
        let request = vec![7u8; size];
        let mut times = Vec::new();
        for _ in 0..200_000 {
            let t = Instant::now();
            let Started::Call(id) = client.start(Method(1), &request, None).unwrap() else { panic!() };
            loop {
                if let Some(c) = client.poll() {
                    assert_eq!(c.id, id);
                    let mut out = [0u8; 128];
                    let n = c.result.unwrap().copy_out(&mut out);
                    assert_eq!(n, size);
                    break;
                }
                std::hint::spin_loop();
            }
            times.push(t.elapsed().as_nanos() as u64);
        }
        times.sort();
        println!("{size} B: p50 {} p99 {} p99.9 {}", times[100_000], times[198_000], times[199_800]);
    }
    let request = [7u8; 32];
    for backoff_n in [0, 4, 16, 64] {
        println!("backoff {backoff_n}");
        for depth in [16usize, 64, 256, 512, 1000] {
            let total = 5_000_000u64;
            let (mut started, mut done) = (0u64, 0u64);
            let t = Instant::now();
            let mut sum = 0u64;
            let low = depth as u64 / 2;
            while done < total {
                while started - done < depth as u64 && started < total {
                    match client.start(Method(1), &request, None).unwrap() {
                        Started::Call(_) => started += 1,
                        Started::Full => break,
                    }
                }
                let mut backoff = 0;
                while started - done > low || (started == total && done < total) {
                    if let Some(c) = client.poll() {
                        let mut out = [0u8; 32];
                        c.result.unwrap().copy_out(&mut out);
                        sum += u64::from(out[3]);
                        done += 1;
                    } else {
                        for _ in 0..backoff_n {
                            std::hint::spin_loop();
                        }
                        backoff += 1;
                    }
                }
                let _ = backoff;
            }
            let s = t.elapsed().as_secs_f64();
            println!("depth {depth}: {:.1} M/s ({sum})", total as f64 / s / 1e6);
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    thread.join().unwrap();
}
fn pin(core: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set).unwrap();
}
