/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What programs over libfabric's shared memory provider have in common: an endpoint with a table of addresses and two queues of completions,
 * polled without pause. Completions of what is sent are written only where they are asked for: an injected message has none.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *addresses;
	struct fid_cq *sent, *received;
	struct fid_ep *endpoint;
	fi_addr_t peer;
};

static void check(ssize_t outcome, const char *what)
{
	if (outcome < 0)
		die("%s: %s", what, fi_strerror((int)-outcome));
}

static struct fi_info *choose(uint64_t capabilities, uint64_t order)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->fabric_attr->prov_name = strdup("shm");
	hints->caps = capabilities;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_HMEM;
	hints->tx_attr->msg_order = order;
	check(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "libfabric has no shm provider here");
	fi_freeinfo(hints);
	return info;
}

static void open_endpoint(struct side *side, uint64_t capabilities, uint64_t order)
{
	struct fi_av_attr addresses = { .type = FI_AV_TABLE, .count = 2 };
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE, .size = 1024 };

	side->info = choose(capabilities, order);
	check(fi_fabric(side->info->fabric_attr, &side->fabric, NULL), "cannot open the fabric");
	check(fi_domain(side->fabric, side->info, &side->domain, NULL), "cannot open the domain");
	check(fi_av_open(side->domain, &addresses, &side->addresses, NULL), "cannot make a table of addresses");
	check(fi_cq_open(side->domain, &queue, &side->sent, NULL), "cannot make a completion queue");
	check(fi_cq_open(side->domain, &queue, &side->received, NULL), "cannot make a completion queue");
	check(fi_endpoint(side->domain, side->info, &side->endpoint, NULL), "cannot make an endpoint");
	check(fi_ep_bind(side->endpoint, &side->addresses->fid, 0), "cannot bind the addresses");
	check(fi_ep_bind(side->endpoint, &side->sent->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION),
	      "cannot bind a queue");
	check(fi_ep_bind(side->endpoint, &side->received->fid, FI_RECV), "cannot bind a queue");
	check(fi_enable(side->endpoint), "cannot enable the endpoint");
}

static void own_name(struct side *side, char *name, size_t bytes)
{
	check(fi_getname(&side->endpoint->fid, name, &bytes), "cannot tell the address");
}

static void learn(struct side *side, const char *address)
{
	if (fi_av_insert(side->addresses, address, 1, &side->peer, 0, NULL) != 1)
		die("not an address: %s", address);
}

/* Progress is made by polling: the other side may still be about to map this one's memory. */
static inline void progress(struct side *side)
{
	struct fi_cq_entry entry;

	fi_cq_read(side->sent, &entry, 1);
	fi_cq_read(side->received, NULL, 0);
}

/* Waits for the next message that arrives. */
static void wait_for_message(struct side *side)
{
	struct fi_cq_entry entry;
	ssize_t outcome;

	while ((outcome = fi_cq_read(side->received, &entry, 1)) == -FI_EAGAIN)
		;
	check(outcome, "cannot receive");
}

static void close_endpoint(struct side *side)
{
	fi_close(&side->endpoint->fid);
	fi_close(&side->received->fid);
	fi_close(&side->sent->fid);
	fi_close(&side->addresses->fid);
	fi_close(&side->domain->fid);
	fi_close(&side->fabric->fid);
	fi_freeinfo(side->info);
}
