/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A stream through Concurrency Kit's ring, one sender and one receiver. It has no batches: each message publishes an index.
 * So messages are stored in place (reserve, commit), and the receiver looks at the ring only when a chunk is there, which lets
 * the sender get ahead: at its heels, the two would share a line of indices with each message.
 */
#include "start.h"
#include <ck_ring.h>
#include "message.h"

CK_RING_PROTOTYPE(message, message)

struct ring {
	_Alignas(128) struct ck_ring ring;
	_Alignas(128) struct message *slots;
};

static void *touched(size_t bytes);

static void open_ring(struct ring *ring, const char *variant, size_t slots, size_t chunk)
{
	(void)variant, (void)chunk;
	ring->slots = touched(slots * sizeof(struct message));
	ck_ring_init(&ring->ring, (unsigned int)slots);
}

static inline size_t put(struct ring *ring, const struct message *messages, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct message *slot = ck_ring_enqueue_reserve_spsc_message(&ring->ring, ring->slots);
		if (!slot)
			return i;
		*slot = messages[i];
		ck_ring_enqueue_commit_spsc(&ring->ring);
	}
	return count;
}

static inline size_t take(struct ring *ring, size_t wanted, uint64_t *sum)
{
	struct message message;

	if (ck_ring_size(&ring->ring) < wanted)
		return 0;
	for (size_t i = 0; i < wanted; i++) {
		if (!ck_ring_dequeue_spsc_message(&ring->ring, ring->slots, &message))
			return i;
		add(sum, &message);
	}
	return wanted;
}

#include "stream.h"
