/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Echo over libfabric's shared memory provider: tagged messages, injected (the buffer is free when the call returns,
 * and no completion is written), receives posted ahead, completions polled without pause.
 *
 * Variants: `tagged` and `untagged`. The address is the server's endpoint name; the client's goes to the server in a
 * first message.
 */
#include "start.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define MESSAGE_BYTES 4096
/* Receives that are posted at any time. */
#define POSTED 16
#define TAG 7

struct rival {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *addresses;
	struct fid_cq *sent, *received;
	struct fid_ep *endpoint;
	fi_addr_t peer;
	bool tagged, serves, met;
	/* Buffers of the posted receives, in the order in which they complete. */
	unsigned char buffers[POSTED][MESSAGE_BYTES] __attribute__((aligned(64)));
	unsigned next;
};

static void check(ssize_t outcome, const char *what)
{
	if (outcome < 0)
		die("%s: %s", what, fi_strerror((int)-outcome));
}

static void post(struct rival *rival, unsigned char *buffer)
{
	check(rival->tagged ? fi_trecv(rival->endpoint, buffer, MESSAGE_BYTES, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL) :
			      fi_recv(rival->endpoint, buffer, MESSAGE_BYTES, NULL, FI_ADDR_UNSPEC, NULL),
	      "cannot post a receive");
}

static struct fi_info *choose(const char *variant, struct rival *rival)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	rival->tagged = strcmp(variant, "tagged") == 0;
	if (!rival->tagged && strcmp(variant, "untagged") != 0)
		die("no variant %s: tagged, untagged", variant);
	hints->fabric_attr->prov_name = strdup("shm");
	hints->caps = rival->tagged ? FI_TAGGED : FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_HMEM;
	check(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "libfabric has no shm provider here");
	fi_freeinfo(hints);
	return info;
}

static void open_side(struct rival *rival, const char *variant)
{
	struct fi_av_attr addresses = { .type = FI_AV_TABLE, .count = 2 };
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE, .size = 1024 };

	rival->info = choose(variant, rival);
	check(fi_fabric(rival->info->fabric_attr, &rival->fabric, NULL), "cannot open the fabric");
	check(fi_domain(rival->fabric, rival->info, &rival->domain, NULL), "cannot open the domain");
	check(fi_av_open(rival->domain, &addresses, &rival->addresses, NULL), "cannot make a table of addresses");
	check(fi_cq_open(rival->domain, &queue, &rival->sent, NULL), "cannot make a completion queue");
	check(fi_cq_open(rival->domain, &queue, &rival->received, NULL), "cannot make a completion queue");
	check(fi_endpoint(rival->domain, rival->info, &rival->endpoint, NULL), "cannot make an endpoint");
	check(fi_ep_bind(rival->endpoint, &rival->addresses->fid, 0), "cannot bind the addresses");
	/* Completions of sends only where they are asked for: an injected message has none. */
	check(fi_ep_bind(rival->endpoint, &rival->sent->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION),
	      "cannot bind a queue");
	check(fi_ep_bind(rival->endpoint, &rival->received->fid, FI_RECV), "cannot bind a queue");
	check(fi_enable(rival->endpoint), "cannot enable the endpoint");
	for (unsigned i = 0; i < POSTED; i++)
		post(rival, rival->buffers[i]);
}

static void learn(struct rival *rival, const char *address)
{
	if (fi_av_insert(rival->addresses, address, 1, &rival->peer, 0, NULL) != 1)
		die("not an address: %s", address);
}

static void inject(struct rival *rival, const void *from, size_t bytes)
{
	for (;;) {
		ssize_t outcome = rival->tagged ?
					  fi_tinject(rival->endpoint, from, bytes, rival->peer, TAG) :
					  fi_inject(rival->endpoint, from, bytes, rival->peer);
		if (outcome == 0)
			return;
		if (outcome != -FI_EAGAIN)
			check(outcome, "cannot send");
		/* Progress is made by polling: the other side may still be about to map us. */
		fi_cq_read(rival->sent, NULL, 0);
		fi_cq_read(rival->received, NULL, 0);
	}
}

/* Waits for the next message and gives where it lies until `release`. */
static unsigned char *receive(struct rival *rival)
{
	struct fi_cq_entry entry;

	for (;;) {
		ssize_t outcome = fi_cq_read(rival->received, &entry, 1);
		if (outcome == 1)
			return rival->buffers[rival->next];
		if (outcome != -FI_EAGAIN)
			check(outcome, "cannot receive");
	}
}

static void release(struct rival *rival)
{
	post(rival, rival->buffers[rival->next]);
	rival->next = (rival->next + 1) % POSTED;
}

static void own_name(struct rival *rival, char *name, size_t bytes)
{
	check(fi_getname(&rival->endpoint->fid, name, &bytes), "cannot tell the address");
}

static void open_server(struct rival *rival, const char *variant, char *address)
{
	open_side(rival, variant);
	rival->serves = true;
	own_name(rival, address, MESSAGE_BYTES);
}

static void open_client(struct rival *rival, const char *variant, const char *address)
{
	open_side(rival, variant);
	learn(rival, address);
}

static void begin(struct rival *rival, size_t bytes)
{
	(void)bytes;
	if (rival->met)
		return;
	rival->met = true;
	if (!rival->serves) {
		char name[256] = "";
		own_name(rival, name, sizeof(name));
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
		learn(rival, (const char *)receive(rival));
		release(rival);
		greeted = true;
	}
	/* The answer leaves out of the buffer of the request. */
	inject(rival, receive(rival), bytes);
	release(rival);
}

static void close_side(struct rival *rival)
{
	fi_close(&rival->endpoint->fid);
	fi_close(&rival->received->fid);
	fi_close(&rival->sent->fid);
	fi_close(&rival->addresses->fid);
	fi_close(&rival->domain->fid);
	fi_close(&rival->fabric->fid);
	fi_freeinfo(rival->info);
}

#include "echo.h"
