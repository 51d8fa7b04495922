/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Writes of libfabric's shared memory provider into the other side's memory: what `fi_rma_bw -o write` and `fi_rma_pingpong` measure, in
 * the loop of all rivals. Variants: `write` (a message and its answer), `write-stream` (put.h). What fits is injected, so that no
 * completion is written; the provider is asked to keep writes in order.
 *
 * The address is the server's endpoint name, the place of its memory and its key. The client's goes to the server in a first message.
 */
#include "put.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define NAME_BYTES 256
#define KEY 7

struct hello {
	char name[NAME_BYTES];
	uint64_t region, key;
};

struct rival {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *addresses;
	struct fid_cq *sent, *received;
	struct fid_ep *endpoint;
	struct fid_mr *memory;
	fi_addr_t peer;
	bool is_stream, serves, has_met;
	struct hello own, other;
	uint64_t turn, job_began;
	unsigned char here[REGION_BYTES] __attribute__((aligned(4096)));
};

static void check(ssize_t outcome, const char *what)
{
	if (outcome < 0)
		die("%s: %s", what, fi_strerror((int)-outcome));
}

static struct fi_info *choose(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->fabric_attr->prov_name = strdup("shm");
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_HMEM;
	hints->tx_attr->msg_order = FI_ORDER_WAW;
	check(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "libfabric has no shm provider here");
	fi_freeinfo(hints);
	return info;
}

static void open_side(struct rival *rival, const char *variant)
{
	struct fi_av_attr addresses = { .type = FI_AV_TABLE, .count = 2 };
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE, .size = 1024 };
	size_t name_bytes = NAME_BYTES;

	rival->is_stream = strcmp(variant, "write-stream") == 0;
	if (!rival->is_stream && strcmp(variant, "write") != 0)
		die("no variant %s: write, write-stream", variant);
	rival->info = choose();
	check(fi_fabric(rival->info->fabric_attr, &rival->fabric, NULL), "cannot open the fabric");
	check(fi_domain(rival->fabric, rival->info, &rival->domain, NULL), "cannot open the domain");
	check(fi_av_open(rival->domain, &addresses, &rival->addresses, NULL), "cannot make a table of addresses");
	check(fi_cq_open(rival->domain, &queue, &rival->sent, NULL), "cannot make a completion queue");
	check(fi_cq_open(rival->domain, &queue, &rival->received, NULL), "cannot make a completion queue");
	check(fi_endpoint(rival->domain, rival->info, &rival->endpoint, NULL), "cannot make an endpoint");
	check(fi_ep_bind(rival->endpoint, &rival->addresses->fid, 0), "cannot bind the addresses");
	check(fi_ep_bind(rival->endpoint, &rival->sent->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION),
	      "cannot bind a queue");
	check(fi_ep_bind(rival->endpoint, &rival->received->fid, FI_RECV), "cannot bind a queue");
	check(fi_enable(rival->endpoint), "cannot enable the endpoint");
	check(fi_mr_reg(rival->domain, rival->here, REGION_BYTES, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, KEY, 0,
			&rival->memory, NULL),
	      "cannot register memory");
	check(fi_getname(&rival->endpoint->fid, rival->own.name, &name_bytes), "cannot tell the address");
	rival->own.region = (rival->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) ? (uintptr_t)rival->here : 0;
	rival->own.key = fi_mr_key(rival->memory);
}

static void learn(struct rival *rival)
{
	if (fi_av_insert(rival->addresses, rival->other.name, 1, &rival->peer, 0, NULL) != 1)
		die("not an address: %s", rival->other.name);
	rival->has_met = true;
}

static void progress(struct rival *rival)
{
	struct fi_cq_entry entry;

	fi_cq_read(rival->sent, &entry, 1);
	fi_cq_read(rival->received, NULL, 0);
}

static void open_server(struct rival *rival, const char *variant, char *address)
{
	open_side(rival, variant);
	rival->serves = true;
	check(fi_recv(rival->endpoint, &rival->other, sizeof(rival->other), NULL, FI_ADDR_UNSPEC, NULL),
	      "cannot post a receive");
	sprintf(address, "%" PRIu64 ",%" PRIu64 ",%s", rival->own.region, rival->own.key, rival->own.name);
}

static void open_client(struct rival *rival, const char *variant, const char *address)
{
	open_side(rival, variant);
	if (sscanf(address, "%" SCNu64 ",%" SCNu64 ",%255s", &rival->other.region, &rival->other.key,
		   rival->other.name) != 3)
		die("not an address: %s", address);
	learn(rival);
}

static void begin(struct rival *rival, size_t bytes)
{
	ssize_t outcome;

	check_sizes(bytes, rival->is_stream);
	if (!rival->serves && rival->turn == 0) {
		while ((outcome = fi_inject(rival->endpoint, &rival->own, sizeof(rival->own), rival->peer)) ==
		       -FI_EAGAIN)
			progress(rival);
		check(outcome, "cannot say hello");
	}
	rival->job_began = rival->turn;
}

/* Waits for the client's first message. */
static void greet(struct rival *rival)
{
	struct fi_cq_entry entry;
	ssize_t outcome;

	while ((outcome = fi_cq_read(rival->received, &entry, 1)) == -FI_EAGAIN)
		;
	check(outcome, "nobody says hello");
	learn(rival);
}

static inline void put(struct rival *rival, size_t offset, const void *from, size_t bytes)
{
	uint64_t at = rival->other.region + offset;
	ssize_t outcome;
	bool is_injected = bytes <= rival->info->tx_attr->inject_size;

	for (;;) {
		outcome = is_injected ? fi_inject_write(rival->endpoint, from, bytes, rival->peer, at, rival->other.key) :
					fi_write(rival->endpoint, from, bytes, NULL, rival->peer, at, rival->other.key,
						 NULL);
		if (outcome == 0)
			break;
		if (outcome != -FI_EAGAIN)
			check(outcome, "cannot write");
		progress(rival);
	}
}

static inline void wait_for(struct rival *rival, size_t offset, size_t bytes)
{
	while (!has_flag(rival->here + offset, bytes, rival->turn))
		progress(rival);
}

static void put_flag(struct rival *rival)
{
	static uint64_t flag;

	flag = rival->turn;
	put(rival, FLAG_AT, &flag, sizeof(flag));
}

/* The flag is the last word of the message, so one write is all. */
static void put_message(struct rival *rival, const unsigned char *from, size_t bytes)
{
	static unsigned char message[MESSAGE_BYTES] __attribute__((aligned(64)));

	memcpy(message, from, before_flag(bytes));
	memcpy(message + before_flag(bytes), &rival->turn, bytes - before_flag(bytes));
	put(rival, 0, message, bytes);
}

static void put_stream(struct rival *rival, const unsigned char *from, size_t bytes)
{
	static unsigned char message[MESSAGE_BYTES] __attribute__((aligned(64)));
	size_t count = stream_messages(bytes);

	memcpy(message, from, bytes);
	for (size_t i = 0; i < count; i++) {
		mark(message, bytes, rival->turn, i);
		put(rival, i * bytes, message, bytes);
	}
	put_flag(rival);
	wait_for(rival, FLAG_AT, 8);
}

static void trip(struct rival *rival, const unsigned char *request, unsigned char *answer, size_t bytes)
{
	rival->turn++;
	if (rival->is_stream) {
		put_stream(rival, request, bytes);
		memcpy(answer, request, bytes);
		return;
	}
	put_message(rival, request, bytes);
	wait_for(rival, 0, bytes);
	memcpy(answer, rival->here, before_flag(bytes));
	memcpy(answer + before_flag(bytes), request + before_flag(bytes), bytes - before_flag(bytes));
}

static void answer_one(struct rival *rival, size_t bytes)
{
	if (!rival->has_met)
		greet(rival);
	rival->turn++;
	if (rival->is_stream) {
		wait_for(rival, FLAG_AT, 8);
		if (rival->turn == rival->job_began + 1)
			look_at_stream(rival->here, bytes, rival->turn);
		put_flag(rival);
		return;
	}
	wait_for(rival, 0, bytes);
	put(rival, 0, rival->here, bytes);
}

static void close_side(struct rival *rival)
{
	fi_close(&rival->endpoint->fid);
	fi_close(&rival->memory->fid);
	fi_close(&rival->received->fid);
	fi_close(&rival->sent->fid);
	fi_close(&rival->addresses->fid);
	fi_close(&rival->domain->fid);
	fi_close(&rival->fabric->fid);
	fi_freeinfo(rival->info);
}

#include "echo.h"
