// SPDX-License-Identifier: GPL-2.0-only
/* The function and its network device: binding, opening, failing, removing. */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/module.h>
#include <linux/random.h>

#include "beeline.h"

#define SERVICE_PERIOD (HZ)

static bool kpio;
module_param(kpio, bool, 0400);
MODULE_PARM_DESC(kpio, "Everything leaves by kPIO+WC from the start; ethtool's flag says so later");

static irqreturn_t interrupt(int irq, void *data)
{
	struct beeline_nic *nic = data;

	napi_schedule(&nic->rx.napi);
	return IRQ_HANDLED;
}

/* Stops the queue; what it had is dropped. */
static void quiesce(struct beeline_nic *nic)
{
	netif_carrier_off(nic->ndev);
	netif_tx_disable(nic->ndev);
	/* It may have looked at the carrier before, and open the queue now. */
	hrtimer_cancel(&nic->retry);
	netif_tx_disable(nic->ndev);
	napi_disable(&nic->rx.napi);
	/* A poller that has just said that it is done looks at the ring once
	 * more.
	 */
	synchronize_net();
	beeline_stop_queues(nic);
}

static int run(struct beeline_nic *nic)
{
	int err = beeline_reset(nic) ?: beeline_start_queues(nic);
	napi_enable(&nic->rx.napi);
	if (err)
		return err;
	netif_carrier_on(nic->ndev);
	netif_wake_queue(nic->ndev);
	napi_schedule(&nic->rx.napi);
	return 0;
}

/* Whether the device has freed what was never stored. */
static bool is_count_wrong(struct beeline_nic *nic)
{
	struct beeline_tx *tx;

	for (tx = nic->tx; tx < nic->tx + BEELINE_PATHS; tx++)
		if (beeline_used_lines(tx) > tx->lines)
			return true;
	return false;
}

/* A queue that has failed is started anew: TCP sends again what it lost. */
static void service(struct work_struct *work)
{
	struct beeline_nic *nic = container_of(to_delayed_work(work), struct beeline_nic, service);
	int is_active;

	if (READ_ONCE(nic->is_closing))
		return;
	is_active = beeline_are_active(nic);
	if (is_active < 0) {
		/* One that answers again is found without a carrier. */
		netif_carrier_off(nic->ndev);
	} else if (!is_active || nic->rx.is_broken || nic->is_stuck || is_count_wrong(nic) ||
		   !netif_carrier_ok(nic->ndev)) {
		if (net_ratelimit())
			netdev_warn(nic->ndev, "the queues are started anew\n");
		nic->is_stuck = false;
		nic->restarts++;
		quiesce(nic);
		if (run(nic) && net_ratelimit())
			netdev_err(nic->ndev, "the device does not start again\n");
	}
	schedule_delayed_work(&nic->service, SERVICE_PERIOD);
}

static int open(struct net_device *ndev)
{
	struct beeline_nic *nic = netdev_priv(ndev);
	int err = beeline_tx_alloc(nic);

	if (err)
		return err;
	err = beeline_rx_alloc(nic);
	if (err)
		goto free_tx;
	err = request_irq(pci_irq_vector(nic->pdev, BEELINE_QUEUE), interrupt, 0, ndev->name, nic);
	if (err)
		goto free_rx;
	netif_carrier_off(ndev);
	err = run(nic);
	if (err)
		goto stop;
	WRITE_ONCE(nic->is_closing, false);
	schedule_delayed_work(&nic->service, SERVICE_PERIOD);
	return 0;
stop:
	netdev_err(ndev, "the device does not start (%d)\n", err);
	quiesce(nic);
	cancel_delayed_work_sync(&nic->service);
	free_irq(pci_irq_vector(nic->pdev, BEELINE_QUEUE), nic);
free_rx:
	beeline_rx_free(nic);
free_tx:
	beeline_tx_free(nic);
	return err;
}

static int stop(struct net_device *ndev)
{
	struct beeline_nic *nic = netdev_priv(ndev);

	WRITE_ONCE(nic->is_closing, true);
	cancel_delayed_work_sync(&nic->service);
	quiesce(nic);
	/* Who received until a moment ago may have asked for it once more. */
	cancel_delayed_work_sync(&nic->service);
	free_irq(pci_irq_vector(nic->pdev, BEELINE_QUEUE), nic);
	beeline_rx_free(nic);
	beeline_tx_free(nic);
	return 0;
}

/* The stack has waited for the queue for seconds. */
static void tx_timeout(struct net_device *ndev, unsigned int queue)
{
	struct beeline_nic *nic = netdev_priv(ndev);

	nic->is_stuck = true;
	mod_delayed_work(system_wq, &nic->service, 0);
}

static void add_counts(struct beeline_counts *counts, u64 *packets, u64 *bytes)
{
	unsigned int start;
	u64 more_packets, more_bytes;

	do {
		start = u64_stats_fetch_begin(&counts->sync);
		more_packets = u64_stats_read(&counts->packets);
		more_bytes = u64_stats_read(&counts->bytes);
	} while (u64_stats_fetch_retry(&counts->sync, start));
	*packets += more_packets;
	*bytes += more_bytes;
}

static void get_stats64(struct net_device *ndev, struct rtnl_link_stats64 *stats)
{
	struct beeline_nic *nic = netdev_priv(ndev);
	struct beeline_tx *tx;

	for (tx = nic->tx; tx < nic->tx + BEELINE_PATHS; tx++) {
		add_counts(&tx->counts, &stats->tx_packets, &stats->tx_bytes);
		stats->tx_dropped += u64_stats_read(&tx->counts.dropped);
	}
	add_counts(&nic->rx.counts, &stats->rx_packets, &stats->rx_bytes);
	stats->rx_dropped = u64_stats_read(&nic->rx.counts.held);
}

static const struct net_device_ops netdev_ops = {
	.ndo_open = open,
	.ndo_stop = stop,
	.ndo_start_xmit = beeline_xmit,
	.ndo_get_stats64 = get_stats64,
	.ndo_tx_timeout = tx_timeout,
	.ndo_validate_addr = eth_validate_addr,
};

static void set_address(struct beeline_nic *nic)
{
	u64 mac = beeline_read(nic, BEELINE_REG(mac));
	u8 address[ETH_ALEN];

	put_unaligned_le32(mac, address);
	put_unaligned_le16(mac >> 32, address + 4);
	if (is_valid_ether_addr(address))
		eth_hw_addr_set(nic->ndev, address);
	else
		eth_hw_addr_random(nic->ndev);
}

static int map_bars(struct beeline_nic *nic)
{
	struct pci_dev *pdev = nic->pdev;

	if (pci_resource_len(pdev, 0) < sizeof(beeline_nic_t) ||
	    !(pci_resource_flags(pdev, 0) & IORESOURCE_MEM) ||
	    !(pci_resource_flags(pdev, BEELINE_PCI_WINDOW_BAR) & IORESOURCE_MEM))
		return -EPROTO;
	nic->regs = pcim_iomap(pdev, 0, 0);
	/* Stores gather in the core's buffers and leave whole, in no order. */
	nic->windows = devm_ioremap_wc(&pdev->dev, pci_resource_start(pdev, BEELINE_PCI_WINDOW_BAR),
				       pci_resource_len(pdev, BEELINE_PCI_WINDOW_BAR));
	return nic->regs && nic->windows ? 0 : -ENOMEM;
}

static int prepare(struct beeline_nic *nic)
{
	struct pci_dev *pdev = nic->pdev;
	int err = pcim_enable_device(pdev);

	if (err)
		return err;
	/* Released with the function, as what pcim_* gives. */
	err = pci_request_regions(pdev, BEELINE_NAME);
	if (err)
		return err;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		return err;
	err = map_bars(nic) ?: beeline_identify(nic);
	if (err)
		return err;
	err = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSIX);
	return err < 0 ? err : 0;
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct net_device *ndev = alloc_etherdev(sizeof(struct beeline_nic));
	struct beeline_nic *nic;
	int err;

	if (!ndev)
		return -ENOMEM;
	SET_NETDEV_DEV(ndev, &pdev->dev);
	nic = netdev_priv(ndev);
	nic->ndev = ndev;
	nic->pdev = pdev;
	nic->is_closing = true;
	u64_stats_init(&nic->tx[BEELINE_MMIO].counts.sync);
	u64_stats_init(&nic->tx[BEELINE_KPIO].counts.sync);
	u64_stats_init(&nic->rx.counts.sync);
	pci_set_drvdata(pdev, nic);
	err = prepare(nic);
	if (err)
		goto free;
	INIT_DELAYED_WORK(&nic->service, service);
	netif_napi_add(ndev, &nic->rx.napi, beeline_poll);
	nic->is_kpio = kpio && nic->tx[BEELINE_KPIO].lines;
	/* Stores of a driver that had the device before are of another epoch. */
	nic->tx[BEELINE_MMIO].epoch = get_random_u8();
	nic->tx[BEELINE_KPIO].epoch = get_random_u8();
	strscpy(ndev->name, "chi%d", sizeof(ndev->name));
	/* Short frames are padded where they are. */
	ndev->priv_flags &= ~IFF_TX_SKB_SHARING;
	ndev->netdev_ops = &netdev_ops;
	ndev->ethtool_ops = &beeline_ethtool_ops;
	ndev->min_mtu = ETH_MIN_MTU;
	/* With room for a tag, which a device on top adds without asking. */
	ndev->max_mtu = nic->caps.max_frame_bytes - VLAN_ETH_HLEN;
	ndev->mtu = min_t(u32, ETH_DATA_LEN, ndev->max_mtu);
	set_address(nic);
	err = register_netdev(ndev);
	if (err)
		goto free;
	netdev_info(ndev, "%u queues, windows of %u lines, frames of up to %u bytes, %s kPIO+WC\n",
		    nic->caps.queues, nic->tx[BEELINE_MMIO].lines, nic->caps.max_frame_bytes,
		    nic->tx[BEELINE_KPIO].lines ? "with" : "without");
	return 0;
free:
	pci_free_irq_vectors(pdev);
	free_netdev(ndev);
	return err;
}

static void remove(struct pci_dev *pdev)
{
	struct beeline_nic *nic = pci_get_drvdata(pdev);

	unregister_netdev(nic->ndev);
	cancel_delayed_work_sync(&nic->service);
	pci_free_irq_vectors(pdev);
	pci_clear_master(pdev);
	free_netdev(nic->ndev);
}

static const struct pci_device_id ids[] = {
	{ PCI_DEVICE(BEELINE_PCI_VENDOR_ID, BEELINE_PCI_DEVICE_ID) },
	{ }
};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver beeline_driver = {
	.name = BEELINE_NAME,
	.id_table = ids,
	.probe = probe,
	.remove = remove,
};
module_pci_driver(beeline_driver);

MODULE_DESCRIPTION("Beeline NIC: transmit by unordered write-combined stores");
MODULE_LICENSE("GPL");
