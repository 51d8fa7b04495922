/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Echo over libfabric's shared memory provider: tagged messages, injected (the buffer is free when the call returns,
 * and no completion is written), receives posted ahead, completions polled without pause.
 *
 * Variants: `tagged` and `untagged`. The address is the server's endpoint name; the client's goes to the server in a
 * first message.
 */
#include "start.h"

#include "libfabric.h"
#include <rdma/fi_tagged.h>

#define MESSAGE_BYTES 4096
/* Receives that are posted at any time. */
#define POSTED 16
#define TAG 7

struct rival {
	struct side side;
	bool tagged, serves, met;
	/* Buffers of the posted receives, in the order in which they complete. */
	unsigned char buffers[POSTED][MESSAGE_BYTES] __attribute__((aligned(64)));
	unsigned next;
};

static void post(struct rival *rival, unsigned char *buffer)
{
	check(rival->tagged ? fi_trecv(rival->side.endpoint, buffer, MESSAGE_BYTES, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL) :
			      fi_recv(rival->side.endpoint, buffer, MESSAGE_BYTES, NULL, FI_ADDR_UNSPEC, NULL),
	      "cannot post a receive");
}

static void open_side(struct rival *rival, const char *variant)
{
	rival->tagged = strcmp(variant, "tagged") == 0;
	if (!rival->tagged && strcmp(variant, "untagged") != 0)
		die("no variant %s: tagged, untagged", variant);
	open_endpoint(&rival->side, rival->tagged ? FI_TAGGED : FI_MSG, 0);
	for (unsigned i = 0; i < POSTED; i++)
		post(rival, rival->buffers[i]);
}

static void inject(struct rival *rival, const void *from, size_t bytes)
{
	for (;;) {
		ssize_t outcome = rival->tagged ?
					  fi_tinject(rival->side.endpoint, from, bytes, rival->side.peer, TAG) :
					  fi_inject(rival->side.endpoint, from, bytes, rival->side.peer);
		if (outcome == 0)
			return;
		if (outcome != -FI_EAGAIN)
			check(outcome, "cannot send");
		progress(&rival->side);
	}
}

/* Waits for the next message and gives where it lies until `release`. */
static unsigned char *receive(struct rival *rival)
{
	wait_for_message(&rival->side);
	return rival->buffers[rival->next];
}

static void release(struct rival *rival)
{
	post(rival, rival->buffers[rival->next]);
	rival->next = (rival->next + 1) % POSTED;
}

static void open_server(struct rival *rival, const char *variant, char *address)
{
	open_side(rival, variant);
	rival->serves = true;
	own_name(&rival->side, address, MESSAGE_BYTES);
}

static void open_client(struct rival *rival, const char *variant, const char *address)
{
	open_side(rival, variant);
	learn(&rival->side, address);
}

static void begin(struct rival *rival, size_t bytes)
{
	(void)bytes;
	if (rival->met)
		return;
	rival->met = true;
	if (!rival->serves) {
		char name[256] = "";
		own_name(&rival->side, name, sizeof(name));
		inject(rival, name, strlen(name) + 1);
	}
}

static void trip(struct rival *rival, const unsigned char *request, unsigned char *answer, size_t bytes)
{
	inject(rival, request, bytes);
	memcpy(answer, receive(rival), bytes);
	release(rival);
}

static void answer_one(struct rival *rival, size_t bytes)
{
	static bool greeted;

	if (!greeted) {
		learn(&rival->side, (const char *)receive(rival));
		release(rival);
		greeted = true;
	}
	/* The answer leaves out of the buffer of the request. */
	inject(rival, receive(rival), bytes);
	release(rival);
}

static void close_side(struct rival *rival)
{
	close_endpoint(&rival->side);
}

#include "echo.h"
