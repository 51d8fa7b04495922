// SPDX-License-Identifier: GPL-2.0-only
/* What ethtool is told: who the driver is, and what the host's side counts. */
#include <linux/ethtool.h>

#include "beeline.h"

static const char names[][ETH_GSTRING_LEN] = {
	"tx_waits_for_room", "tx_too_long", "rx_without_memory", "restarts",
	"window_lines", "window_next",
};

static void get_drvinfo(struct net_device *ndev, struct ethtool_drvinfo *info)
{
	struct beeline_nic *nic = netdev_priv(ndev);

	strscpy(info->driver, BEELINE_NAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(nic->pdev), sizeof(info->bus_info));
}

static int get_sset_count(struct net_device *ndev, int sset)
{
	return sset == ETH_SS_STATS ? ARRAY_SIZE(names) : -EOPNOTSUPP;
}

static void get_strings(struct net_device *ndev, u32 sset, u8 *data)
{
	if (sset == ETH_SS_STATS)
		memcpy(data, names, sizeof(names));
}

static void get_ethtool_stats(struct net_device *ndev, struct ethtool_stats *stats, u64 *data)
{
	struct beeline_nic *nic = netdev_priv(ndev);

	data[0] = u64_stats_read(&nic->tx.counts.held);
	data[1] = u64_stats_read(&nic->tx.counts.dropped);
	data[2] = u64_stats_read(&nic->rx.counts.held);
	data[3] = nic->restarts;
	data[4] = nic->tx.lines;
	data[5] = READ_ONCE(nic->tx.next);
}

const struct ethtool_ops beeline_ethtool_ops = {
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
	.get_ethtool_stats = get_ethtool_stats,
};
