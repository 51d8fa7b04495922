// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transmit: a frame becomes lines of a window, stored whole, once, and without
 * a fence. Nothing is read from the window. How far it is free the device says
 * by an absolute count in memory of the host.
 */
#include <linux/etherdevice.h>
#include <linux/moduleparam.h>
#include <linux/random.h>

#include "beeline.h"

/* How long a queue without room waits before it looks again: no interrupt
 * tells of freed lines, because the device pushes the count by itself.
 */
#define RETRY_NS 20000

static unsigned long long blank;
module_param(blank, ullong, 0400);
MODULE_PARM_DESC(blank, "What a free word of a window holds, with bit 63 set; 0: random for each start. For tests: frames made of it are escaped");

/* Lines that may be stored; 0 if the device's count makes no sense, which
 * the service finds out.
 */
static u32 free_lines(struct beeline_tx *tx)
{
	u64 used = tx->next - le64_to_cpu(READ_ONCE(*tx->freed));

	return used > tx->lines ? 0 : tx->lines - used;
}

/* Whether each window has room for the longest frame. */
static bool has_room(struct beeline_nic *nic)
{
	struct beeline_tx *tx;

	for (tx = nic->tx; tx < nic->tx + BEELINE_PATHS; tx++)
		if (tx->lines && free_lines(tx) < tx->most_lines)
			return false;
	return true;
}

/* Lines in use, by counts that both move meanwhile: the device's is read until
 * it stands still around the other.
 */
u64 beeline_used_lines(struct beeline_tx *tx)
{
	u64 before, next, tries;

	if (!tx->lines)
		return 0;
	for (tries = 0; tries < 100; tries++) {
		before = le64_to_cpu(READ_ONCE(*tx->freed));
		smp_rmb();
		next = READ_ONCE(tx->next);
		smp_rmb();
		if (before == le64_to_cpu(READ_ONCE(*tx->freed)))
			return next - before;
	}
	/* It moves all the time, so it is sound. */
	return 0;
}

static void store(struct beeline_tx *tx, u32 lines)
{
	u32 line;

	for (line = 0; line < lines; line++) {
		u32 at = (tx->next + line) & (tx->lines - 1);

		__iowrite64_copy(tx->window + at * BEELINE_LINE_BYTES,
				 tx->staged + line * BEELINE_WORDS_PER_LINE,
				 BEELINE_WORDS_PER_LINE);
	}
	/* The device takes lines of kPIO+WC as they come. Those of a frame leave
	 * the buffers in order, as the paper assumes; those of the next frame,
	 * which another CPU may store, follow them for certain. `mmio` needs
	 * neither.
	 */
	if (tx->path == BEELINE_KPIO)
		wmb();
	WRITE_ONCE(tx->next, tx->next + lines);
}

static enum hrtimer_restart look_again(struct hrtimer *timer)
{
	struct beeline_nic *nic = container_of(timer, struct beeline_nic, retry);

	/* Whoever stops the queue takes the carrier away first. */
	if (!netif_carrier_ok(nic->ndev))
		return HRTIMER_NORESTART;
	if (has_room(nic)) {
		netif_wake_queue(nic->ndev);
		return HRTIMER_NORESTART;
	}
	hrtimer_forward_now(timer, ns_to_ktime(RETRY_NS));
	return HRTIMER_RESTART;
}

static void count_sent(struct beeline_tx *tx, u32 bytes)
{
	u64_stats_update_begin(&tx->counts.sync);
	u64_stats_inc(&tx->counts.packets);
	u64_stats_add(&tx->counts.bytes, bytes);
	u64_stats_update_end(&tx->counts.sync);
}

static void count(struct beeline_tx *tx, u64_stats_t *what)
{
	u64_stats_update_begin(&tx->counts.sync);
	u64_stats_inc(what);
	u64_stats_update_end(&tx->counts.sync);
}

netdev_tx_t beeline_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	struct beeline_nic *nic = netdev_priv(ndev);
	struct beeline_tx *tx = &nic->tx[BEELINE_MMIO];
	u32 bytes, lines = 0;

	/* Frees the frame when there is no memory for its padding. */
	if (eth_skb_pad(skb))
		return NETDEV_TX_OK;
	bytes = skb->len;
	if (unlikely(bytes > nic->caps.max_frame_bytes)) {
		count(tx, &tx->counts.dropped);
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	if (beeline_goes_by_kpio(nic, skb))
		lines = beeline_stage_kpio(nic, skb);
	if (lines)
		tx = &nic->tx[BEELINE_KPIO];
	else
		lines = beeline_stage_mmio(tx, skb);
	store(tx, lines);
	count_sent(tx, bytes);
	skb_tx_timestamp(skb);
	dev_consume_skb_any(skb);
	/* The queue is open only while there is room for the longest frame. */
	if (unlikely(!has_room(nic))) {
		netif_stop_queue(ndev);
		count(tx, &tx->counts.held);
		hrtimer_start(&nic->retry, ns_to_ktime(RETRY_NS), HRTIMER_MODE_REL_SOFT);
	}
	return NETDEV_TX_OK;
}

static int alloc_path(struct beeline_nic *nic, struct beeline_tx *tx)
{
	tx->path = tx - nic->tx;
	tx->window = nic->windows + tx->path * nic->caps.window_stride;
	tx->staged = kcalloc(tx->most_lines + 1, BEELINE_LINE_BYTES, GFP_KERNEL);
	if (!tx->staged)
		return -ENOMEM;
	tx->freed = dma_alloc_coherent(&nic->pdev->dev, BEELINE_LINE_BYTES, &tx->freed_dma, GFP_KERNEL);
	return tx->freed ? 0 : -ENOMEM;
}

int beeline_tx_alloc(struct beeline_nic *nic)
{
	struct beeline_tx *tx;

	hrtimer_init(&nic->retry, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	nic->retry.function = look_again;
	for (tx = nic->tx; tx < nic->tx + BEELINE_PATHS; tx++) {
		int err = tx->lines ? alloc_path(nic, tx) : 0;

		if (err) {
			beeline_tx_free(nic);
			return err;
		}
	}
	return 0;
}

void beeline_tx_free(struct beeline_nic *nic)
{
	struct beeline_tx *tx;

	hrtimer_cancel(&nic->retry);
	for (tx = nic->tx; tx < nic->tx + BEELINE_PATHS; tx++) {
		if (tx->freed)
			dma_free_coherent(&nic->pdev->dev, BEELINE_LINE_BYTES, tx->freed, tx->freed_dma);
		kfree(tx->staged);
		tx->freed = NULL;
		tx->staged = NULL;
	}
}

/* As a queue that has not been used: another epoch, so that stores of the
 * former one that are still on their way are not taken for this one's.
 */
void beeline_tx_start(struct beeline_tx *tx, bool is_blank)
{
	tx->next = 0;
	WRITE_ONCE(*tx->freed, 0);
	tx->epoch++;
	tx->blank = 0;
	if (is_blank)
		tx->blank = cpu_to_le64((blank ?: get_random_u64()) | BIT_ULL(BEELINE_BLANK_TAG_LSB));
}
