//! What rounds found, put together: one row for each thing that was measured, apart for each placement.

use beeline_floor::Placement;
use beeline_session::{BURST, Rated, Times, new_times};
use beeline_spec::Interface;

use super::results::{DroppedRow, FloorRow, LatencyKind, LatencyRow, RateRow, Results, RoundRow, StoreRow};
use beeline_floor::rounds::{Middle, Rounds};

/// Names of parts and units in rows of rounds.
pub const STORES_PART: &str = "stores";
pub const THERE_AND_BACK: &str = "there and back";
pub const ONTO_THE_WIRE: &str = "onto the wire";
pub const MESSAGES_PER_S: &str = "messages/s";
pub const P50_NS: &str = "ns (p50)";
pub const FRAMES_PER_S: &str = "frames/s";

/// What raw stores are called in rows of rounds.
pub fn stores_name(policy: &str, receiver: bool) -> String {
    let receiver = if receiver { "received" } else { "not received" };
    format!("{policy} {receiver}")
}

/// What one round of a part measured.
#[derive(Debug)]
pub struct Taken<S> {
    /// Round trip of the bare copy in this round, p50 in ns.
    pub bare_copy_ns: f64,
    pub samples: Vec<S>,
}

/// Raw stores of one size in one round.
#[derive(Clone, Copy, Debug)]
pub struct StoreSample {
    pub policy: &'static str,
    pub receiver: bool,
    pub kernel: &'static str,
    pub message_bytes: u32,
    pub messages_per_s: f64,
}

/// What was sent in a sample through the NIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    pub interface: Interface,
    pub kernel: &'static str,
    pub frame_bytes: u32,
}

/// A sample of one round.
#[derive(Debug)]
pub enum NicSample {
    Latency(Sent, LatencyKind, Times),
    Rate(Sent, Rated),
}

/// Samples of the same thing in all rounds of a placement, in the order of the first round.
fn grouped<S, K: PartialEq, V>(
    rounds: &Rounds<Taken<S>>,
    split: impl Fn(&S) -> Option<(K, V)>,
) -> Vec<(Placement, K, Vec<V>)> {
    let mut groups: Vec<(Placement, K, Vec<V>)> = Vec::new();
    for round in &rounds.kept {
        for (key, value) in round.taken.samples.iter().filter_map(&split) {
            let group = groups.iter_mut().find(|group| group.0 == round.placement && group.1 == key);
            match group {
                Some((_, _, values)) => values.push(value),
                None => groups.push((round.placement, key, vec![value])),
            }
        }
    }
    groups
}

impl Results {
    /// Adds the floors of a part, and what its rounds found one by one.
    pub fn add_rounds<S>(
        &mut self,
        part: &'static str,
        rounds: &Rounds<Taken<S>>,
        each: impl Fn(&S) -> (String, &'static str, u32, f64, &'static str),
    ) {
        if rounds.dropped > 0 {
            self.dropped.push(DroppedRow { part, rounds: rounds.dropped });
        }
        for placement in rounds.placements() {
            let middle = |value: fn(&beeline_floor::rounds::Round<Taken<S>>) -> f64| {
                Middle::of(rounds.of(placement).map(value)).map_or(f64::NAN, |middle| middle.value)
            };
            self.floors.push(FloorRow {
                part,
                placement,
                rounds: rounds.of(placement).count() as u32,
                bare_line_ns: middle(|round| round.line_ns),
                bare_copy_ns: middle(|round| round.taken.bare_copy_ns),
            });
        }
        for (number, kept) in (0..).zip(&rounds.kept) {
            let (placement, bare_line_ns) = (kept.placement, kept.line_ns);
            self.rounds.extend(kept.taken.samples.iter().map(|sample| {
                let (what, kernel, bytes, value, unit) = each(sample);
                RoundRow { part, placement, round: number, bare_line_ns, what, kernel, bytes, value, unit }
            }));
        }
    }

    /// Adds the rounds of raw stores.
    pub fn add_stores(&mut self, rounds: &Rounds<Taken<StoreSample>>) {
        self.add_rounds(STORES_PART, rounds, |s| {
            let name = stores_name(s.policy, s.receiver);
            (name, s.kernel, s.message_bytes, s.messages_per_s, MESSAGES_PER_S)
        });
        let split =
            |s: &StoreSample| Some(((s.policy, s.receiver, s.kernel, s.message_bytes), s.messages_per_s));
        for (placement, key, rates) in grouped(rounds, split) {
            let (policy, receiver, kernel, message_bytes) = key;
            let Some(middle) = Middle::of(rates) else { continue };
            self.stores.push(StoreRow {
                placement,
                policy,
                receiver,
                kernel,
                message_bytes,
                messages_per_s: middle.value,
                goodput_gbps: middle.value * f64::from(message_bytes) * 8.0 / 1e9,
                spread: middle.spread(),
            });
        }
    }

    /// Adds the rounds through a NIC that gives frames back.
    pub fn add_there_and_back(&mut self, rounds: &Rounds<Taken<NicSample>>) {
        self.add_nic_rounds(THERE_AND_BACK, rounds);
        let latency = |sample: &NicSample| match sample {
            NicSample::Latency(sent, latency_kind, times) => Some(((*sent, *latency_kind), times.clone())),
            NicSample::Rate(..) => None,
        };
        for (placement, (sent, latency_kind), times) in grouped(rounds, latency) {
            let medians = times.iter().map(|times| times.value_at_quantile(0.5) as f64);
            let Some(middle) = Middle::of(medians) else { continue };
            let mut all = new_times();
            for times in &times {
                all.add(times).expect("all histograms have the same bounds");
            }
            let Sent { interface, kernel, frame_bytes } = sent;
            self.latencies.push(LatencyRow {
                placement,
                interface,
                latency_kind,
                kernel,
                frame_bytes,
                samples: all.len(),
                p50_ns: middle.value as u64,
                p99_ns: all.value_at_quantile(0.99),
                p999_ns: all.value_at_quantile(0.999),
                spread: middle.spread(),
            });
        }
        self.rates = rate_rows(rounds);
    }

    /// Adds the rounds through a NIC whose wire leads nowhere.
    pub fn add_transmits(&mut self, rounds: &Rounds<Taken<NicSample>>) {
        self.add_nic_rounds(ONTO_THE_WIRE, rounds);
        self.transmits = rate_rows(rounds);
    }

    fn add_nic_rounds(&mut self, part: &'static str, rounds: &Rounds<Taken<NicSample>>) {
        self.add_rounds(part, rounds, |sample| match sample {
            NicSample::Latency(sent, latency_kind, times) => {
                let what = format!("{} {}", sent.interface, latency_kind.label());
                (what, sent.kernel, sent.frame_bytes, times.value_at_quantile(0.5) as f64, P50_NS)
            }
            NicSample::Rate(sent, rated) => {
                let rate = rated.frames_per_second();
                (sent.interface.to_string(), sent.kernel, sent.frame_bytes, rate, FRAMES_PER_S)
            }
        });
    }
}

fn rate_rows(rounds: &Rounds<Taken<NicSample>>) -> Vec<RateRow> {
    let rate = |sample: &NicSample| match sample {
        NicSample::Rate(sent, rated) => Some((*sent, *rated)),
        NicSample::Latency(..) => None,
    };
    let groups = grouped(rounds, rate);
    let rows = groups.into_iter().filter_map(|(placement, sent, rated)| {
        let middle = Middle::of(rated.iter().map(Rated::frames_per_second))?;
        let host_ns = Middle::of(rated.iter().map(|rated| rated.host_ns_per_frame))?;
        let Sent { interface, kernel, frame_bytes } = sent;
        Some(RateRow {
            placement,
            interface,
            kernel,
            frame_bytes,
            burst: BURST as u32,
            frames: rated.iter().map(|rated| rated.frames).sum(),
            frames_per_s: middle.value,
            goodput_gbps: middle.value * f64::from(frame_bytes) * 8.0 / 1e9,
            host_ns_per_frame: host_ns.value,
            spread: middle.spread(),
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_floor::rounds::Round;

    fn round(placement: Placement, p50_ns: u64, frames_per_s: f64) -> Round<Taken<NicSample>> {
        let sent = Sent { interface: Interface::Mmio, kernel: "cached", frame_bytes: 64 };
        let mut times = new_times();
        times.record_n(p50_ns, 100).unwrap();
        let rated = Rated { frames: 10, seconds: 10.0 / frames_per_s, host_ns_per_frame: 5.0 };
        let samples =
            vec![NicSample::Latency(sent, LatencyKind::OneWay, times), NicSample::Rate(sent, rated)];
        Round { placement, line_ns: 130.0, taken: Taken { bare_copy_ns: 160.0, samples } }
    }

    #[test]
    fn part_without_a_kept_round_lists_its_dropped_rounds() {
        let mut results = super::super::results::sample::empty();
        results.add_transmits(&Rounds { kept: Vec::new(), dropped: 14 });
        let dropped: Vec<_> = results.dropped.iter().map(|row| (row.part, row.rounds)).collect();
        assert_eq!(dropped, [("onto the wire", 14)]);
    }

    #[test]
    fn rows_are_middles_of_the_rounds_of_one_placement() {
        let (near, far) = (Placement::Near, Placement::Far);
        let kept =
            vec![round(near, 300, 1e6), round(far, 900, 9e6), round(near, 320, 3e6), round(near, 800, 2e6)];
        let mut results = super::super::results::sample::empty();
        results.add_there_and_back(&Rounds { kept, dropped: 2 });
        let latencies: Vec<_> =
            results.latencies.iter().map(|row| (row.placement, row.p50_ns, row.samples)).collect();
        assert_eq!(latencies, [(near, 320, 300), (far, 900, 100)]);
        assert!(results.latencies[0].p999_ns >= 800 && results.latencies[0].spread > 1.0);
        let rates: Vec<_> =
            results.rates.iter().map(|row| (row.placement, row.frames_per_s.round())).collect();
        assert_eq!(rates, [(near, 2e6), (far, 9e6)]);
        assert_eq!(results.rates[0].frames, 30);
        let floors: Vec<_> = results.floors.iter().map(|row| (row.placement, row.rounds)).collect();
        assert_eq!(floors, [(near, 3), (far, 1)]);
        let dropped: Vec<_> = results.dropped.iter().map(|row| (row.part, row.rounds)).collect();
        assert_eq!(dropped, [("there and back", 2)]);
        assert_eq!(results.rounds.len(), 8, "every figure of every round is kept");
    }
}
