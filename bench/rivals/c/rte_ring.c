/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A stream through DPDK's ring, one sender and one receiver, in bulk: an index is published once a chunk. Variants: `copied`
 * (the caller hands over a table of messages, and is handed one) and `in-place` (zero copy: the caller stores into the slots and
 * loads from them). The ring lies in memory of ours, so DPDK's environment is not initialised.
 */
#include "start.h"
#define ALLOW_EXPERIMENTAL_API
#include <rte_ring.h>
#include <rte_ring_peek_zc.h>
#include "message.h"

struct ring {
	_Alignas(128) struct rte_ring *ring;
	bool in_place;
	/* What the receiver is handed when messages are copied. */
	_Alignas(128) struct message *table;
};

static void *touched(size_t bytes);

static void open_ring(struct ring *ring, const char *variant, size_t slots, size_t chunk)
{
	ssize_t bytes = rte_ring_get_memsize_elem(sizeof(struct message), (unsigned int)slots);
	if (bytes < 0)
		die("no ring of %zu slots", slots);
	ring->in_place = strcmp(variant, "in-place") == 0;
	ring->ring = touched((size_t)bytes);
	ring->table = touched(chunk * sizeof(struct message));
	if (rte_ring_init(ring->ring, "stream", (unsigned int)slots, RING_F_SP_ENQ | RING_F_SC_DEQ) != 0)
		die("the ring cannot be initialised");
}

static inline size_t put_in_place(struct rte_ring *ring, const struct message *messages, size_t count)
{
	struct rte_ring_zc_data slots;
	if (rte_ring_enqueue_zc_bulk_elem_start(ring, sizeof(*messages), (unsigned int)count, &slots, NULL) == 0)
		return 0;
	struct message *first = slots.ptr1, *second = slots.ptr2;
	for (size_t i = 0; i < slots.n1; i++)
		first[i] = messages[i];
	for (size_t i = slots.n1; i < count; i++)
		second[i - slots.n1] = messages[i];
	rte_ring_enqueue_zc_elem_finish(ring, (unsigned int)count);
	return count;
}

static inline size_t take_in_place(struct rte_ring *ring, size_t wanted, uint64_t *sum)
{
	struct rte_ring_zc_data slots;
	if (rte_ring_dequeue_zc_bulk_elem_start(ring, sizeof(struct message), (unsigned int)wanted, &slots, NULL) == 0)
		return 0;
	const struct message *first = slots.ptr1, *second = slots.ptr2;
	for (size_t i = 0; i < slots.n1; i++)
		add(sum, &first[i]);
	for (size_t i = slots.n1; i < wanted; i++)
		add(sum, &second[i - slots.n1]);
	rte_ring_dequeue_zc_elem_finish(ring, (unsigned int)wanted);
	return wanted;
}

static inline size_t put(struct ring *ring, const struct message *messages, size_t count)
{
	if (ring->in_place)
		return put_in_place(ring->ring, messages, count);
	return rte_ring_sp_enqueue_bulk_elem(ring->ring, messages, sizeof(*messages), (unsigned int)count, NULL);
}

static inline size_t take(struct ring *ring, size_t wanted, uint64_t *sum)
{
	if (ring->in_place)
		return take_in_place(ring->ring, wanted, sum);
	size_t taken = rte_ring_sc_dequeue_bulk_elem(ring->ring, ring->table, sizeof(*ring->table),
						     (unsigned int)wanted, NULL);
	for (size_t i = 0; i < taken; i++)
		add(sum, &ring->table[i]);
	return taken;
}

#include "stream.h"
