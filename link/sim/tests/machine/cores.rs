//! Cores that share a root complex: each gets its share.

use beeline_contract_link::Link;
use beeline_contract_memory::StorePort;
use beeline_link_sim::machine::{CoreId, Next, Sim};

use crate::probe::Probe;
use crate::{WINDOW_BYTES, WINDOW_LINES, WINDOWS_AT, assert_at_rest, run, settings};

/// Several cores that store without end into a link that is too slow for them.
#[test]
fn cores_share_what_is_scarce() {
    for write_places in [1, 2, 3, 16] {
        let mut machine = settings(3);
        machine.root.write_places = write_places;
        let sim = Sim::new(Probe::with([]), machine, 1).unwrap();
        let mut windows: Vec<_> =
            (0..3u16).map(|core| sim.link(CoreId(core)).window(core.into()).unwrap()).collect();
        let mut line = [0u32; 3];
        for core in 0..3 {
            sim.end_turn(CoreId(core), Next::Again);
        }
        run(&sim, |core| {
            let index = usize::from(core.0);
            windows[index].store_line(line[index], &[1; 8]);
            line[index] += 1;
            if line[index] == WINDOW_LINES { Next::Never } else { Next::Again }
        });
        // Who has stored its last line when half of all have arrived has had more than its share.
        let taken = sim.with(|machine| std::mem::take(&mut machine.device().taken));
        assert_eq!(taken.len(), 3 * WINDOW_LINES as usize);
        let mut count = [0u32; 3];
        for write in &taken[..taken.len() / 2] {
            count[((write.offset_bytes - WINDOWS_AT) / WINDOW_BYTES) as usize] += 1;
        }
        let (least, most) = (count.iter().min().unwrap(), count.iter().max().unwrap());
        assert!(most - least <= most / 20, "{count:?} with {write_places} places");
        assert_at_rest(&sim);
    }
}
