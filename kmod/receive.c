// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receive: the device writes a frame into the ring and then its header word,
 * so a header that is not zero means that the frame is there. The host clears
 * the first word of every line that it frees and tells an absolute count.
 */
#include <linux/etherdevice.h>

#include "beeline.h"

#define RING_LINES 4096

static __le64 *header_of(struct beeline_rx *rx, u64 position)
{
	return (__le64 *)(rx->ring + (position & (rx->lines - 1)) * BEELINE_LINE_BYTES);
}

static void tell(struct beeline_nic *nic)
{
	struct beeline_rx *rx = &nic->rx;

	if (rx->told == rx->next)
		return;
	rx->told = rx->next;
	/* The lines are clear before the device hears that they are free:
	 * writeq orders what was stored to coherent memory before it.
	 */
	beeline_write(nic, BEELINE_DOORBELL_REG(BEELINE_QUEUE, rx_freed), rx->next);
}

/* Copies a frame out, which may go round the ring's end. */
static void copy_out(struct beeline_rx *rx, u64 position, void *to, u32 bytes)
{
	size_t ring = (size_t)rx->lines * BEELINE_LINE_BYTES;
	size_t at = (position & (rx->lines - 1)) * BEELINE_LINE_BYTES + 8;
	size_t first = min_t(size_t, bytes, ring - at);

	memcpy(to, rx->ring + at, first);
	memcpy(to + first, rx->ring, bytes - first);
}

static void free_frame(struct beeline_rx *rx, u32 bytes)
{
	u64 end = rx->next + DIV_ROUND_UP(bytes + 8, BEELINE_LINE_BYTES);

	for (; rx->next != end; rx->next++)
		WRITE_ONCE(*header_of(rx, rx->next), 0);
}

static void hand_up(struct beeline_nic *nic, u32 bytes)
{
	struct beeline_rx *rx = &nic->rx;
	struct sk_buff *skb = napi_alloc_skb(&rx->napi, bytes);

	u64_stats_update_begin(&rx->counts.sync);
	if (likely(skb)) {
		u64_stats_inc(&rx->counts.packets);
		u64_stats_add(&rx->counts.bytes, bytes);
	} else {
		u64_stats_inc(&rx->counts.held);
	}
	u64_stats_update_end(&rx->counts.sync);
	if (unlikely(!skb))
		return;
	copy_out(rx, rx->next, skb_put(skb, bytes), bytes);
	skb->protocol = eth_type_trans(skb, nic->ndev);
	napi_gro_receive(&rx->napi, skb);
}

/* The next frame, if it is there; whether it was. */
static bool take(struct beeline_nic *nic)
{
	struct beeline_rx *rx = &nic->rx;
	u64 header = le64_to_cpu(READ_ONCE(*header_of(rx, rx->next)));
	u32 bytes = lower_32_bits(header);

	if (!header)
		return false;
	/* The device writes the header last. */
	dma_rmb();
	if (unlikely(upper_32_bits(header) != 1 || bytes < ETH_HLEN ||
		     bytes > nic->caps.max_frame_bytes)) {
		/* Where the next frame begins nobody knows now. */
		rx->is_broken = true;
		if (net_ratelimit())
			netdev_err(nic->ndev, "the device wrote %#llx where a frame begins\n",
				   header);
		mod_delayed_work(system_wq, &nic->service, HZ / 10);
		return false;
	}
	hand_up(nic, bytes);
	free_frame(rx, bytes);
	if (rx->next - rx->told >= rx->lines / 4)
		tell(nic);
	return true;
}

int beeline_poll(struct napi_struct *napi, int budget)
{
	struct beeline_rx *rx = container_of(napi, struct beeline_rx, napi);
	struct beeline_nic *nic = container_of(rx, struct beeline_nic, rx);
	int done = 0;

	while (done < budget && !rx->is_broken && take(nic))
		done++;
	tell(nic);
	if (done < budget && napi_complete_done(napi, done) && !rx->is_broken &&
	    READ_ONCE(*header_of(rx, rx->next)))
		/* It came between the last look and the end of polling. */
		napi_schedule(napi);
	return done;
}

int beeline_rx_alloc(struct beeline_nic *nic)
{
	struct beeline_rx *rx = &nic->rx;

	rx->lines = RING_LINES;
	rx->ring = dma_alloc_coherent(&nic->pdev->dev, rx->lines * BEELINE_LINE_BYTES, &rx->ring_dma,
				      GFP_KERNEL);
	return rx->ring ? 0 : -ENOMEM;
}

void beeline_rx_free(struct beeline_nic *nic)
{
	struct beeline_rx *rx = &nic->rx;

	dma_free_coherent(&nic->pdev->dev, rx->lines * BEELINE_LINE_BYTES, rx->ring, rx->ring_dma);
}

void beeline_rx_start(struct beeline_nic *nic)
{
	struct beeline_rx *rx = &nic->rx;

	memset(rx->ring, 0, rx->lines * BEELINE_LINE_BYTES);
	rx->next = 0;
	rx->told = 0;
	rx->is_broken = false;
}
