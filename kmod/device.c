// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers: who the device is, its reset, and the start and stop of a queue.
 * Nothing that a device answers is trusted; what makes no sense is an error.
 */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/iopoll.h>

#include "beeline.h"

#define SUPPORTED_MAJOR 1
#define CAPS_MAX_BYTES (256 * 8)
/* What the longest message takes that a header can name. */
#define MAX_WINDOW_LINES BIT(18)
#define POLL_US 20
#define TIMEOUT_US 1000000

static void take_cap(struct beeline_caps *caps, u16 kind, u64 first, u64 second)
{
	switch (kind) {
	case BEELINE_CAPABILITY_APERTURE:
		caps->window_offset = first;
		caps->window_stride = second;
		break;
	case BEELINE_CAPABILITY_QUEUES:
		caps->queues = first;
		break;
	case BEELINE_CAPABILITY_WINDOW_KIND:
		caps->is_blank = (u32)first == 2;
		break;
	case BEELINE_CAPABILITY_INTERFACES:
		caps->interfaces = first;
		break;
	case BEELINE_CAPABILITY_MAX_FRAME:
		caps->max_frame_bytes = first;
		break;
	}
}

static int read_caps(struct beeline_nic *nic)
{
	u64 place = beeline_read(nic, BEELINE_REG(caps));
	u32 at = lower_32_bits(place), bytes = upper_32_bits(place);
	u32 end, words;

	if (at % 8 || bytes > CAPS_MAX_BYTES || at > sizeof(beeline_nic_t) - CAPS_MAX_BYTES)
		return -EPROTO;
	for (end = at + bytes; at < end; at += 8 * (1 + words)) {
		u64 head = beeline_read(nic, at);
		u16 kind = head, length = head >> 16;

		if (kind == BEELINE_CAPABILITY_END)
			return 0;
		words = DIV_ROUND_UP(length, 8);
		if (at + 8 * (1 + words) > end)
			return -EPROTO;
		take_cap(&nic->caps, kind,
			 words > 0 ? beeline_read(nic, at + 8) : 0,
			 words > 1 ? beeline_read(nic, at + 16) : 0);
	}
	return -EPROTO;
}

/* A window of the device's, if it has the path. */
static int check_path(struct beeline_nic *nic, enum beeline_path path, u32 iface)
{
	struct beeline_caps *caps = &nic->caps;
	struct beeline_tx *tx = &nic->tx[path];
	u64 bar = pci_resource_len(nic->pdev, BEELINE_PCI_WINDOW_BAR);
	u64 at = path * caps->window_stride, lines;

	if (path >= caps->queues || !(caps->interfaces & BIT(iface)))
		return -EOPNOTSUPP;
	lines = beeline_read(nic, BEELINE_QUEUE_REG(path, window_lines));
	/* Divided and not multiplied: no product of a device's number wraps. */
	if (!is_power_of_2(lines) || lines < 2 || at > bar ||
	    lines > MAX_WINDOW_LINES || lines > (bar - at) / BEELINE_LINE_BYTES ||
	    lines > caps->window_stride / BEELINE_LINE_BYTES)
		return -EPROTO;
	/* A header, or a line of signatures, more than the frame. */
	tx->most_lines = caps->max_frame_bytes / BEELINE_LINE_BYTES + 2;
	if (tx->most_lines > lines)
		return -EPROTO;
	tx->lines = lines;
	return 0;
}

/* What the rest of the driver computes with lies in the BARs. */
static int check_caps(struct beeline_nic *nic)
{
	struct beeline_caps *caps = &nic->caps;

	if (caps->queues < 1 || caps->queues > BEELINE_MAX_QUEUES ||
	    caps->window_stride % BEELINE_LINE_BYTES ||
	    caps->window_stride > pci_resource_len(nic->pdev, BEELINE_PCI_WINDOW_BAR))
		return -EPROTO;
	if (caps->max_frame_bytes < ETH_MIN_MTU + VLAN_ETH_HLEN ||
	    caps->max_frame_bytes > BEELINE_MAX_FRAME_BYTES)
		return -EPROTO;
	/* The second path is one that a device may do without. */
	if (check_path(nic, BEELINE_KPIO, BEELINE_QUEUE_CONTROL_IFACE_KPIO))
		nic->tx[BEELINE_KPIO].lines = 0;
	return check_path(nic, BEELINE_MMIO, BEELINE_QUEUE_CONTROL_IFACE_MMIO);
}

int beeline_identify(struct beeline_nic *nic)
{
	u64 magic = beeline_read(nic, BEELINE_REG(magic));
	u64 version = beeline_read(nic, BEELINE_REG(version));
	int err;

	if (magic != BEELINE_NIC__MAGIC__VALUE_reset) {
		dev_err(&nic->pdev->dev, "no NIC of Beeline: its mark is %#llx\n", magic);
		return -ENODEV;
	}
	if ((version & BEELINE_NIC__VERSION__MAJOR_bm) != SUPPORTED_MAJOR) {
		dev_err(&nic->pdev->dev, "register map %llu.%llu, this driver speaks %u\n",
			version & 0xffff, version >> 16 & 0xffff, SUPPORTED_MAJOR);
		return -EPROTO;
	}
	err = read_caps(nic) ?: check_caps(nic);
	if (err)
		dev_err(&nic->pdev->dev, "its capabilities make no sense to this driver (%d)\n", err);
	return err;
}

/* Waits for bits of a register. */
static int until(struct beeline_nic *nic, size_t offset, u64 mask, u64 value)
{
	u64 found;
	int err;

	err = read_poll_timeout(beeline_read, found, found == U64_MAX || (found & mask) == value,
				POLL_US, TIMEOUT_US, false, nic, offset);
	/* All ones: nobody answers. */
	return found == U64_MAX ? -ENODEV : err;
}

int beeline_reset(struct beeline_nic *nic)
{
	const u8 *address = nic->ndev->dev_addr;
	int err;

	beeline_write(nic, BEELINE_REG(control), BEELINE_NIC__CONTROL__RESET_bm);
	err = until(nic, BEELINE_REG(status), BEELINE_NIC__STATUS__ACTIVE_bm, 0);
	if (err)
		return err;
	/* No earlier: a queue that had not stopped would still have addresses of
	 * memory that was given back.
	 */
	pci_set_master(nic->pdev);
	beeline_write(nic, BEELINE_REG(mac),
		      get_unaligned_le32(address) | (u64)get_unaligned_le16(address + 4) << 32);
	beeline_write(nic, BEELINE_REG(control), BEELINE_NIC__CONTROL__ENABLE_bm);
	return until(nic, BEELINE_REG(status), BEELINE_NIC__STATUS__ACTIVE_bm,
		     BEELINE_NIC__STATUS__ACTIVE_bm);
}

static u64 moderation(u32 count, u32 time_ns)
{
	return count | (u64)time_ns << 32;
}

static int start_path(struct beeline_nic *nic, struct beeline_tx *tx)
{
	u32 queue = tx->path;
	u32 iface = queue == BEELINE_KPIO ? BEELINE_QUEUE_CONTROL_IFACE_KPIO :
					    BEELINE_QUEUE_CONTROL_IFACE_MMIO;
	u64 control = BEELINE_NIC__QUEUEX__CONTROL__ENABLE_bm |
		      (u64)iface << BEELINE_NIC__QUEUEX__CONTROL__IFACE_bp |
		      1ULL << BEELINE_NIC__QUEUEX__CONTROL__WEIGHT_bp |
		      /* Messages wait for the wire; none is lost for want of room. */
		      BEELINE_NIC__QUEUEX__CONTROL__BACKPRESSURE_bm;

	beeline_tx_start(tx, nic->caps.is_blank);
	control |= (u64)tx->epoch << BEELINE_NIC__QUEUEX__CONTROL__EPOCH_bp;
	beeline_write(nic, BEELINE_QUEUE_REG(queue, blank), le64_to_cpu(tx->blank));
	beeline_write(nic, BEELINE_QUEUE_REG(queue, credit_address), tx->freed_dma);
	/* A quarter of a window at the latest, and soon after the wire has taken it. */
	beeline_write(nic, BEELINE_QUEUE_REG(queue, credit_coalesce), moderation(tx->lines / 4, 2000));
	/* A store that is lost would hold the queue back for ever. */
	beeline_write(nic, BEELINE_QUEUE_REG(queue, hole_timeout_ns), NSEC_PER_SEC);
	beeline_write(nic, BEELINE_QUEUE_REG(queue, kpio_eop), BEELINE_KPIO_EOP_DEFAULT);
	beeline_write(nic, BEELINE_QUEUE_REG(queue, control), control);
	return until(nic, BEELINE_QUEUE_REG(queue, status), BEELINE_NIC__QUEUEX__STATUS__ACTIVE_bm,
		     BEELINE_NIC__QUEUEX__STATUS__ACTIVE_bm);
}

int beeline_start_queues(struct beeline_nic *nic)
{
	struct beeline_rx *rx = &nic->rx;
	struct beeline_tx *tx;
	int err = 0;

	beeline_rx_start(nic);
	beeline_write(nic, BEELINE_QUEUE_REG(BEELINE_QUEUE, rx_ring_address), rx->ring_dma);
	beeline_write(nic, BEELINE_QUEUE_REG(BEELINE_QUEUE, rx_ring_entries), rx->lines);
	beeline_write(nic, BEELINE_QUEUE_REG(BEELINE_QUEUE, rx_moderation), moderation(16, 20000));
	beeline_write(nic, BEELINE_QUEUE_REG(BEELINE_QUEUE, rx_mode), BEELINE_RX_MODE_MODE_RING);
	beeline_write(nic, BEELINE_REG(irq_mask),
		      BEELINE_NIC__IRQ_MASK__RX_FRAME_bm | BEELINE_NIC__IRQ_MASK__QUEUE_FAILED_bm);
	for (tx = nic->tx; tx < nic->tx + BEELINE_PATHS && !err; tx++)
		if (tx->lines)
			err = start_path(nic, tx);
	return err;
}

/* Whether each queue takes writes; an error if the device does not answer. */
int beeline_are_active(struct beeline_nic *nic)
{
	struct beeline_tx *tx;
	u64 status;

	for (tx = nic->tx; tx < nic->tx + BEELINE_PATHS; tx++) {
		if (!tx->lines)
			continue;
		status = beeline_read(nic, BEELINE_QUEUE_REG(tx->path, status));
		/* All ones: it does not answer, now or ever. */
		if (status == U64_MAX)
			return -ENODEV;
		if (!(status & BEELINE_NIC__QUEUEX__STATUS__ACTIVE_bm))
			return 0;
	}
	return 1;
}

void beeline_stop_queues(struct beeline_nic *nic)
{
	struct beeline_tx *tx;
	int err = 0;

	beeline_write(nic, BEELINE_REG(irq_mask), 0);
	for (tx = nic->tx; tx < nic->tx + BEELINE_PATHS; tx++)
		if (tx->lines)
			beeline_write(nic, BEELINE_QUEUE_REG(tx->path, control), 0);
	/* The reads push every DMA write before them: none comes after. */
	for (tx = nic->tx; tx < nic->tx + BEELINE_PATHS; tx++)
		if (tx->lines)
			err |= until(nic, BEELINE_QUEUE_REG(tx->path, status),
				     BEELINE_NIC__QUEUEX__STATUS__ACTIVE_bm, 0);
	if (err) {
		dev_err_ratelimited(&nic->pdev->dev,
				    "a queue does not stop: the device is cut off from memory\n");
		pci_clear_master(nic->pdev);
	}
}
