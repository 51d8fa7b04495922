//! The rows of a run as CSV files.

use super::results::{LatencyRow, RateRow, Results, StoreRow};

impl Results {
    /// The CSV files of a run: file name and text.
    pub fn csv(&self) -> Vec<(&'static str, String)> {
        let (rate, transmit) = (rates(&self.rates), rates(&self.transmits));
        vec![
            ("stores.csv", self.stores_csv()),
            ("latency.csv", self.latencies_csv()),
            ("rate.csv", rate),
            ("transmit.csv", transmit),
            ("floor.csv", self.floors_csv()),
            ("rounds.csv", self.rounds_csv()),
        ]
    }

    fn stores_csv(&self) -> String {
        let mut text = String::from(
            "kind,placement,policy,receiver,kernel,message_bytes,messages_per_s,goodput_gbps,spread\n",
        );
        for r in &self.stores {
            let StoreRow { placement, policy, receiver, kernel, message_bytes, .. } = r;
            text += &format!(
                "measured,{placement},{policy},{receiver},{kernel},{message_bytes},{:.0},{:.4},{:.4}\n",
                r.messages_per_s, r.goodput_gbps, r.spread
            );
        }
        text
    }

    fn latencies_csv(&self) -> String {
        let mut text = String::from(
            "kind,placement,interface,way,kernel,frame_bytes,samples,p50_ns,p99_ns,p999_ns,spread\n",
        );
        for r in &self.latencies {
            let LatencyRow { placement, interface, kernel, frame_bytes, samples, p50_ns, p99_ns, .. } = r;
            text += &format!(
                "measured,{placement},{interface},{},{kernel},{frame_bytes},{samples},{p50_ns},{p99_ns},{},{:.4}\n",
                r.latency_kind.label(),
                r.p999_ns,
                r.spread
            );
        }
        text
    }

    fn floors_csv(&self) -> String {
        let mut text = String::from("kind,part,placement,rounds,bare_line_ns,bare_copy_ns\n");
        for r in &self.floors {
            text += &format!(
                "measured,{},{},{},{:.1},{:.1}\n",
                r.part, r.placement, r.rounds, r.bare_line_ns, r.bare_copy_ns
            );
        }
        text
    }

    fn rounds_csv(&self) -> String {
        let mut text = String::from("kind,part,placement,round,bare_line_ns,what,kernel,bytes,value,unit\n");
        for r in &self.rounds {
            text += &format!(
                "measured,{},{},{},{:.1},{},{},{},{:.4},{}\n",
                r.part, r.placement, r.round, r.bare_line_ns, r.what, r.kernel, r.bytes, r.value, r.unit
            );
        }
        text
    }
}

fn rates(rows: &[RateRow]) -> String {
    let mut text = String::from(
        "kind,placement,interface,kernel,frame_bytes,burst,frames,frames_per_s,goodput_gbps,host_ns_per_frame,spread\n",
    );
    for r in rows {
        let RateRow { placement, interface, kernel, frame_bytes, burst, frames, .. } = r;
        text += &format!(
            "measured,{placement},{interface},{kernel},{frame_bytes},{burst},{frames},{:.0},{:.4},{:.2},{:.4}\n",
            r.frames_per_s, r.goodput_gbps, r.host_ns_per_frame, r.spread
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::results::sample::sample;

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
        assert!(lines("rate.csv")[0].ends_with(",1000,12345678,123.4000,1234.00,0.0200"));
        assert!(lines("transmit.csv")[0].ends_with(",1000,98765432,123.4000,1234.00,0.0200"));
    }
}
