// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transmit: a frame becomes lines of the window, stored whole, once, and
 * without a fence.
 *
 * A free word of the window holds the blank, so that the device sees which
 * words have arrived. A word of a frame that equals the blank is stored as a
 * link to the one before it; the header names the last. Nothing is read from
 * the window. How far it is free the device says by an absolute count in
 * memory of the host.
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

/* Puts a link in the place of every word that equals the blank; the index of
 * the last one, 0 if there is none.
 */
static u32 escape(__le64 *words, u32 count, __le64 blank)
{
	u32 last = 0, index;

	for (index = 1; index < count; index++) {
		if (likely(words[index] != blank))
			continue;
		words[index] = cpu_to_le64((u64)last << BEELINE_LINK_PREVIOUS_LSB);
		last = index;
	}
	return last;
}

/* The frame as a message in `staged`; its lines. */
static u32 stage(struct beeline_tx *tx, struct sk_buff *skb)
{
	u32 bytes = skb->len;
	u32 lines = DIV_ROUND_UP(bytes + 8, BEELINE_LINE_BYTES);
	u32 last = 0;
	u64 header;

	/* Whole words and whole lines: what is behind the frame is zeros. */
	memset(tx->staged + (8 + bytes) / 8, 0, lines * BEELINE_LINE_BYTES - round_down(8 + bytes, 8));
	skb_copy_bits(skb, 0, tx->staged + 1, bytes);
	if (tx->blank)
		last = escape(tx->staged, lines * BEELINE_WORDS_PER_LINE, tx->blank);
	header = (u64)bytes << BEELINE_HEADER_LENGTH_BYTES_LSB |
		 (u64)last << BEELINE_HEADER_ESCAPE_LAST_LSB |
		 (u64)BEELINE_MESSAGE_KIND_DATA << BEELINE_HEADER_KIND_LSB |
		 (u64)tx->epoch << BEELINE_HEADER_EPOCH_LSB;
	tx->staged[0] = cpu_to_le64(header);
	return lines;
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
	tx->next += lines;
}

static enum hrtimer_restart look_again(struct hrtimer *timer)
{
	struct beeline_tx *tx = container_of(timer, struct beeline_tx, retry);
	struct beeline_nic *nic = container_of(tx, struct beeline_nic, tx);

	/* Whoever stops the queue takes the carrier away first. */
	if (!netif_carrier_ok(nic->ndev))
		return HRTIMER_NORESTART;
	if (free_lines(tx) >= tx->most_lines) {
		netif_wake_queue(nic->ndev);
		return HRTIMER_NORESTART;
	}
	hrtimer_forward_now(timer, ns_to_ktime(RETRY_NS));
	return HRTIMER_RESTART;
}

netdev_tx_t beeline_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	struct beeline_nic *nic = netdev_priv(ndev);
	struct beeline_tx *tx = &nic->tx;
	u32 bytes;

	/* Frees the frame when there is no memory for its padding. */
	if (eth_skb_pad(skb))
		return NETDEV_TX_OK;
	bytes = skb->len;
	if (unlikely(bytes > nic->caps.max_frame_bytes)) {
		u64_stats_update_begin(&tx->counts.sync);
		u64_stats_inc(&tx->counts.dropped);
		u64_stats_update_end(&tx->counts.sync);
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	store(tx, stage(tx, skb));
	u64_stats_update_begin(&tx->counts.sync);
	u64_stats_inc(&tx->counts.packets);
	u64_stats_add(&tx->counts.bytes, bytes);
	u64_stats_update_end(&tx->counts.sync);
	skb_tx_timestamp(skb);
	dev_consume_skb_any(skb);
	/* The queue is open only while there is room for the longest frame. */
	if (unlikely(free_lines(tx) < tx->most_lines)) {
		netif_stop_queue(ndev);
		u64_stats_update_begin(&tx->counts.sync);
		u64_stats_inc(&tx->counts.held);
		u64_stats_update_end(&tx->counts.sync);
		hrtimer_start(&tx->retry, ns_to_ktime(RETRY_NS), HRTIMER_MODE_REL_SOFT);
	}
	return NETDEV_TX_OK;
}

int beeline_tx_alloc(struct beeline_nic *nic)
{
	struct beeline_tx *tx = &nic->tx;

	tx->window = nic->windows + BEELINE_QUEUE * nic->caps.window_stride;
	tx->staged = kcalloc(tx->most_lines + 1, BEELINE_LINE_BYTES, GFP_KERNEL);
	if (!tx->staged)
		return -ENOMEM;
	tx->freed = dma_alloc_coherent(&nic->pdev->dev, BEELINE_LINE_BYTES, &tx->freed_dma, GFP_KERNEL);
	if (!tx->freed) {
		kfree(tx->staged);
		return -ENOMEM;
	}
	hrtimer_init(&tx->retry, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	tx->retry.function = look_again;
	return 0;
}

void beeline_tx_free(struct beeline_nic *nic)
{
	struct beeline_tx *tx = &nic->tx;

	hrtimer_cancel(&tx->retry);
	dma_free_coherent(&nic->pdev->dev, BEELINE_LINE_BYTES, tx->freed, tx->freed_dma);
	kfree(tx->staged);
}

/* As a queue that has not been used: another epoch, so that stores of the
 * former one that are still on their way are not taken for this one's.
 */
void beeline_tx_start(struct beeline_nic *nic)
{
	struct beeline_tx *tx = &nic->tx;

	tx->next = 0;
	WRITE_ONCE(*tx->freed, 0);
	tx->epoch++;
	tx->blank = 0;
	if (nic->caps.is_blank)
		tx->blank = cpu_to_le64((blank ?: get_random_u64()) | BIT_ULL(BEELINE_BLANK_TAG_LSB));
}
