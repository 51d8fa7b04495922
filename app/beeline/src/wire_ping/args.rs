//! Options of `ping` over a wire.

use beeline_datagram::{Chances, MacAddress};
use beeline_ethernet::WireConfig;
use clap::Args;

/// Which side of a wire, which wire, and what it suffers.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Over a wire")]
pub struct WireArgs {
    /// Answer whoever asks over the up-link, until Ctrl-C
    #[arg(long, requires = "uplink", conflicts_with_all = ["interface", "nic", "named", "policy", "size", "json", "csv"])]
    pub server: bool,
    /// Ask the server at this station address
    #[arg(long, value_name = "STATION", requires = "uplink", conflicts_with_all = ["server", "interface", "nic", "named", "policy"])]
    pub client: Option<MacAddress>,
    /// The wire: af-xdp:IFNAME, af-packet:IFNAME or auto:IFNAME, then ,OPTION=VALUE
    ///
    /// Options as of `beeline nic --uplink`: netns=NAME, and for af-xdp queue=N, copy=auto|copy|zero-copy,
    /// attach=auto|native|generic, frames=N, busy-poll=MICROSECONDS/FRAMES. A client may name several and measures one
    /// after the other; one that this machine refuses is n/a. Needs CAP_NET_RAW, af-xdp also CAP_NET_ADMIN and CAP_BPF.
    #[arg(long, value_name = "UP-LINK")]
    pub uplink: Vec<WireConfig>,
    /// Core of the polling thread [default: wherever the system puts it]
    #[arg(long, value_name = "CORE")]
    pub core: Option<usize>,
    /// Lose this share of the frames that come in
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub loss: f64,
    /// Take this share of the frames that come in twice
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub duplicate: f64,
    /// Let up to four later frames overtake this share of those that come in
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub reorder: f64,
    /// Seed of what is lost, doubled and overtaken
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// End when standard input does, so that a server started by a program ends with it
    #[arg(long, hide = true)]
    pub until_stdin_closes: bool,
}

impl WireArgs {
    /// Whether a wire is meant, and not a NIC of this machine.
    pub fn is_wanted(&self) -> bool {
        self.server || self.client.is_some()
    }

    /// What the adversary does, if it is wanted at all.
    pub fn chances(&self) -> Option<Chances> {
        let part = |percent: f64| percent / 100.0;
        let chances =
            Chances { loss: part(self.loss), duplicate: part(self.duplicate), reorder: part(self.reorder) };
        (chances != Chances::default()).then_some(chances)
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("give a number from 0 to less than 100".to_owned()),
    }
}
