// SPDX-License-Identifier: GPL-2.0-only
/* What ethtool is told: who the driver is, and what the host's side counts. */
#include <linux/ethtool.h>

#include "beeline.h"

static const char names[][ETH_GSTRING_LEN] = {
	"tx_waits_for_room", "tx_too_long", "rx_without_memory", "restarts",
	"window_lines", "window_next", "kpio_next", "kpio_marked", "kpio_injected",
};

/* One bit: everything leaves by kPIO+WC. */
static const char flags[][ETH_GSTRING_LEN] = { "kpio" };

static void get_drvinfo(struct net_device *ndev, struct ethtool_drvinfo *info)
{
	struct beeline_nic *nic = netdev_priv(ndev);

	strscpy(info->driver, BEELINE_NAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(nic->pdev), sizeof(info->bus_info));
}

static int get_sset_count(struct net_device *ndev, int sset)
{
	switch (sset) {
	case ETH_SS_STATS:
		return ARRAY_SIZE(names);
	case ETH_SS_PRIV_FLAGS:
		return ARRAY_SIZE(flags);
	default:
		return -EOPNOTSUPP;
	}
}

static void get_strings(struct net_device *ndev, u32 sset, u8 *data)
{
	if (sset == ETH_SS_STATS)
		memcpy(data, names, sizeof(names));
	else if (sset == ETH_SS_PRIV_FLAGS)
		memcpy(data, flags, sizeof(flags));
}

static void get_ethtool_stats(struct net_device *ndev, struct ethtool_stats *stats, u64 *data)
{
	struct beeline_nic *nic = netdev_priv(ndev);
	struct beeline_tx *mmio = &nic->tx[BEELINE_MMIO], *kpio = &nic->tx[BEELINE_KPIO];

	data[0] = u64_stats_read(&mmio->counts.held) + u64_stats_read(&kpio->counts.held);
	data[1] = u64_stats_read(&mmio->counts.dropped);
	data[2] = u64_stats_read(&nic->rx.counts.held);
	data[3] = nic->restarts;
	data[4] = mmio->lines;
	data[5] = READ_ONCE(mmio->next);
	data[6] = READ_ONCE(kpio->next);
	data[7] = nic->marked;
	data[8] = nic->injected;
}

static u32 get_priv_flags(struct net_device *ndev)
{
	struct beeline_nic *nic = netdev_priv(ndev);

	return nic->is_kpio;
}

/* Holds for the next frame, in the middle of whatever is sent. */
static int set_priv_flags(struct net_device *ndev, u32 wanted)
{
	struct beeline_nic *nic = netdev_priv(ndev);

	if (wanted & ~1)
		return -EINVAL;
	if (wanted && !nic->tx[BEELINE_KPIO].lines)
		return -EOPNOTSUPP;
	WRITE_ONCE(nic->is_kpio, wanted);
	return 0;
}

const struct ethtool_ops beeline_ethtool_ops = {
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
	.get_ethtool_stats = get_ethtool_stats,
	.get_priv_flags = get_priv_flags,
	.set_priv_flags = set_priv_flags,
};
