/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Writes of libfabric's shared memory provider into the other side's memory: what `fi_rma_bw -o write` and `fi_rma_pingpong` measure, in
 * the loop of all rivals. Variants: `write` (a message and its answer), `write-stream` (put.h). What fits is injected, so that no
 * completion is written; the provider is asked to keep writes in order.
 *
 * The address is the server's endpoint name, the place of its memory and its key. The client's goes to the server in a first message.
 */
#include "put.h"

#include "libfabric.h"
#include <rdma/fi_rma.h>

#define NAME_BYTES 256
#define KEY 7

struct hello {
	char name[NAME_BYTES];
	uint64_t region, key;
};

struct rival {
	struct side side;
	struct fid_mr *memory;
	bool serves, has_met;
	struct hello own, other;
	struct turns turns;
	unsigned char here[REGION_BYTES] __attribute__((aligned(4096)));
};

static void open_side(struct rival *rival, const char *variant)
{
	rival->turns.is_stream = strcmp(variant, "write-stream") == 0;
	if (!rival->turns.is_stream && strcmp(variant, "write") != 0)
		die("no variant %s: write, write-stream", variant);
	open_endpoint(&rival->side, FI_MSG | FI_RMA, FI_ORDER_WAW);
	check(fi_mr_reg(rival->side.domain, rival->here, REGION_BYTES, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, KEY, 0,
			&rival->memory, NULL),
	      "cannot register memory");
	own_name(&rival->side, rival->own.name, sizeof(rival->own.name));
	rival->own.region = (rival->side.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) ? (uintptr_t)rival->here : 0;
	rival->own.key = fi_mr_key(rival->memory);
}

static void meet(struct rival *rival)
{
	learn(&rival->side, rival->other.name);
	rival->has_met = true;
}

static void open_server(struct rival *rival, const char *variant, char *address)
{
	open_side(rival, variant);
	rival->serves = true;
	check(fi_recv(rival->side.endpoint, &rival->other, sizeof(rival->other), NULL, FI_ADDR_UNSPEC, NULL),
	      "cannot post a receive");
	sprintf(address, "%" PRIu64 ",%" PRIu64 ",%s", rival->own.region, rival->own.key, rival->own.name);
}

static void open_client(struct rival *rival, const char *variant, const char *address)
{
	open_side(rival, variant);
	if (sscanf(address, "%" SCNu64 ",%" SCNu64 ",%255s", &rival->other.region, &rival->other.key,
		   rival->other.name) != 3)
		die("not an address: %s", address);
	meet(rival);
}

static void begin(struct rival *rival, size_t bytes)
{
	ssize_t outcome;

	if (!rival->serves && rival->turns.turn == 0) {
		while ((outcome = fi_inject(rival->side.endpoint, &rival->own, sizeof(rival->own), rival->side.peer)) ==
		       -FI_EAGAIN)
			progress(&rival->side);
		check(outcome, "cannot say hello");
	}
	begin_turns(&rival->turns, bytes);
}

static inline void put(struct rival *rival, size_t offset, const void *from, size_t bytes)
{
	uint64_t at = rival->other.region + offset;
	ssize_t outcome;
	bool is_injected = bytes <= rival->side.info->tx_attr->inject_size;

	for (;;) {
		outcome = is_injected ? fi_inject_write(rival->side.endpoint, from, bytes, rival->side.peer, at, rival->other.key) :
					fi_write(rival->side.endpoint, from, bytes, NULL, rival->side.peer, at, rival->other.key,
						 NULL);
		if (outcome == 0)
			break;
		if (outcome != -FI_EAGAIN)
			check(outcome, "cannot write");
		progress(&rival->side);
	}
}

static inline void look(struct rival *rival)
{
	progress(&rival->side);
}

static void before_first_turn(struct rival *rival)
{
	if (!rival->has_met) {
		wait_for_message(&rival->side);
		meet(rival);
	}
}

/* The provider was asked to keep writes in order. */
static void order_puts(struct rival *rival)
{
	(void)rival;
}

#include "turns.h"

static void close_side(struct rival *rival)
{
	fi_close(&rival->memory->fid);
	close_endpoint(&rival->side);
}

#include "echo.h"
