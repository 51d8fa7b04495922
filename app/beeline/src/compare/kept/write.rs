//! The rows of a run as CSV files.

use super::super::results::{CheckRow, FloorRow, LatencyRow, RateRow, Results, RoundRow, StoreRow};
use super::{CHECK, FLOOR, LATENCY, MEASURED, RATE, ROUNDS, RUN, STORES, TRANSMIT, columns};

impl Results {
    /// The CSV files of a run: file name and text.
    pub fn csv(&self) -> Vec<(&'static str, String)> {
        let mut files = vec![
            (STORES, table(columns::STORES, self.stores.iter().map(store))),
            (LATENCY, table(columns::LATENCY, self.latencies.iter().map(latency))),
            (RATE, table(columns::RATE, self.rates.iter().map(rate))),
            (TRANSMIT, table(columns::RATE, self.transmits.iter().map(rate))),
            (FLOOR, table(columns::FLOOR, self.floors.iter().map(floor))),
            (CHECK, table(columns::CHECK, self.checks.iter().map(check))),
            (ROUNDS, table(columns::ROUNDS, self.rounds.iter().map(round))),
        ];
        files.push((RUN, table(columns::RUN, self.run())));
        files
    }

    /// What `run.csv` says.
    fn run(&self) -> Vec<[String; 3]> {
        let machine = &self.machine;
        let cores: Vec<_> = machine.cores.iter().map(usize::to_string).collect();
        let mut rows = Vec::new();
        let mut say = |what: &str, name: &str, value: String| {
            rows.push([what.to_owned(), name.to_owned(), value]);
        };
        say("machine", "cpu", machine.cpu.clone());
        say("machine", "cpus", machine.cpus.to_string());
        say("machine", "kernel", machine.kernel.clone());
        say("machine", "hypervisor", machine.hypervisor.clone());
        say("machine", "cores", cores.join(" "));
        say("run", "command", self.command.clone());
        say("run", "version", self.version.clone());
        for row in &self.kernels {
            say("store kernel", &row.traffic, row.kernel.to_owned());
            say("method", &row.traffic, row.method.clone());
        }
        for row in &self.dropped {
            say("rounds dropped", row.part, row.rounds.to_string());
        }
        let counts = [
            (STORES, self.stores.len()),
            (LATENCY, self.latencies.len()),
            (RATE, self.rates.len()),
            (TRANSMIT, self.transmits.len()),
            (FLOOR, self.floors.len()),
            (CHECK, self.checks.len()),
            (ROUNDS, self.rounds.len()),
        ];
        // A part that was not measured is not named.
        for (file, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            say("rows", file, count.to_string());
        }
        rows
    }
}

fn table<const COLUMNS: usize>(
    columns: &[&str],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    const SOUND: &str = "writing into memory does not fail, and every row has as many columns";
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(columns).expect(SOUND);
    rows.into_iter().for_each(|row| out.write_record(row).expect(SOUND));
    String::from_utf8(out.into_inner().expect(SOUND)).expect("text in, text out")
}

/// A row that begins with the kind of its figures; numbers have all their digits.
macro_rules! measured {
    ($($value:expr),+ $(,)?) => { [MEASURED.to_owned(), $($value.to_string()),+] };
}

fn store(row: &StoreRow) -> [String; 9] {
    let StoreRow { placement, policy, receiver, kernel, message_bytes, .. } = row;
    let StoreRow { messages_per_s, goodput_gbps, spread, .. } = row;
    measured![placement, policy, receiver, kernel, message_bytes, messages_per_s, goodput_gbps, spread]
}

fn latency(row: &LatencyRow) -> [String; 11] {
    let LatencyRow { placement, interface, latency_kind, kernel, frame_bytes, samples, .. } = row;
    let LatencyRow { p50_ns, p99_ns, p999_ns, spread, .. } = row;
    let way = latency_kind.label();
    measured![placement, interface, way, kernel, frame_bytes, samples, p50_ns, p99_ns, p999_ns, spread]
}

fn rate(row: &RateRow) -> [String; 11] {
    let RateRow { placement, interface, kernel, frame_bytes, burst, frames, frames_per_s, .. } = row;
    let RateRow { goodput_gbps: gbps, host_ns_per_frame: host_ns, spread, .. } = row;
    measured![placement, interface, kernel, frame_bytes, burst, frames, frames_per_s, gbps, host_ns, spread]
}

fn floor(row: &FloorRow) -> [String; 6] {
    let FloorRow { part, placement, rounds, bare_line_ns, bare_copy_ns } = row;
    measured![part, placement, rounds, bare_line_ns, bare_copy_ns]
}

fn check(row: &CheckRow) -> [String; 5] {
    let CheckRow { interface, frames, bytes, result } = row;
    measured![interface, frames, bytes, result]
}

fn round(row: &RoundRow) -> [String; 10] {
    let RoundRow { part, placement, round, bare_line_ns, what, kernel, bytes, value, unit } = row;
    measured![part, placement, round, bare_line_ns, what, kernel, bytes, value, unit]
}

#[cfg(test)]
mod tests {
    use super::super::super::results::sample::sample;

    #[test]
    fn every_row_is_in_a_file_of_its_kind() {
        let results = sample();
        let lines = |file: &str| {
            let (_, text) = results.csv().into_iter().find(|(name, _)| *name == file).expect("the file");
            text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines("stores.csv").len(), results.stores.len());
        assert_eq!(lines("latency.csv").len(), results.latencies.len());
        assert_eq!(lines("rate.csv").len(), results.rates.len());
        assert_eq!(lines("transmit.csv").len(), results.transmits.len());
        assert_eq!(lines("check.csv").len(), results.checks.len());
        assert!(lines("rate.csv")[0].ends_with(",1000,12345678,123.4,1234,0.02"));
        assert!(lines("transmit.csv")[0].ends_with(",1000,98765432,123.4,1234,0.02"));
        assert!(lines("run.csv").contains(&"rows,latency.csv,54".to_owned()));
    }
}
