/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Puts of UCX into the other side's memory, in shared memory: what `ucx_perftest -t ucp_put_lat` and `ucp_put_bw` measure, in the loop
 * of all rivals. Variants: `put` (a message and its answer), `put-stream` (put.h). UCX's own variables win; without them this program
 * takes POSIX shared memory.
 *
 * The address is where a page is in which each side says what it is: its worker's address, the place of its memory and its key.
 */
#include "put.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <ucp/api/ucp.h>

/* What a side says of itself: the place of its memory, two lengths, then the worker's address and the key. */
struct hello {
	uint64_t region;
	uint32_t address_bytes, key_bytes;
	unsigned char bytes[2000];
};

struct rival {
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h peer;
	ucp_mem_h memory;
	ucp_rkey_h key;
	bool is_stream;
	unsigned char *here;
	uint64_t there, turn, job_began;
	/* The server's and the client's, in memory of both. */
	struct hello *hellos;
	bool serves;
};

static void check(ucs_status_t status, const char *what)
{
	if (status != UCS_OK)
		die("%s: %s", what, ucs_status_string(status));
}

static void finish(struct rival *rival, ucs_status_ptr_t request, const char *what)
{
	if (request == NULL)
		return;
	if (UCS_PTR_IS_ERR(request))
		die("%s: %s", what, ucs_status_string(UCS_PTR_STATUS(request)));
	while (ucp_request_check_status(request) == UCS_INPROGRESS)
		ucp_worker_progress(rival->worker);
	check(ucp_request_check_status(request), what);
	ucp_request_free(request);
}

static void meet(struct rival *rival, const struct hello *other)
{
	ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
				   .address = (const ucp_address_t *)other->bytes };

	check(ucp_ep_create(rival->worker, &params, &rival->peer), "cannot connect");
	check(ucp_ep_rkey_unpack(rival->peer, other->bytes + other->address_bytes, &rival->key), "cannot take the key");
	rival->there = other->region;
}

static void expose(struct rival *rival, struct hello *own)
{
	ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
		.length = REGION_BYTES,
		.flags = UCP_MEM_MAP_ALLOCATE,
	};
	ucp_mem_attr_t found = { .field_mask = UCP_MEM_ATTR_FIELD_ADDRESS };
	ucp_address_t *address;
	size_t address_bytes, key_bytes;
	void *key;

	check(ucp_mem_map(rival->context, &params, &rival->memory), "no memory");
	check(ucp_mem_query(rival->memory, &found), "where the memory is");
	rival->here = found.address;
	memset(rival->here, 0, REGION_BYTES);
	check(ucp_worker_get_address(rival->worker, &address, &address_bytes), "cannot tell the address");
	check(ucp_rkey_pack(rival->context, rival->memory, &key, &key_bytes), "no key");
	if (address_bytes + key_bytes > sizeof(own->bytes))
		die("an address of %zu and a key of %zu bytes", address_bytes, key_bytes);
	own->region = (uintptr_t)rival->here;
	own->address_bytes = (uint32_t)address_bytes;
	own->key_bytes = (uint32_t)key_bytes;
	memcpy(own->bytes, address, address_bytes);
	memcpy(own->bytes + address_bytes, key, key_bytes);
	ucp_rkey_buffer_release(key);
	ucp_worker_release_address(rival->worker, address);
}

static void open_side(struct rival *rival, const char *variant)
{
	ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
				.features = UCP_FEATURE_RMA,
				.estimated_num_eps = 1 };
	ucp_worker_params_t worker = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				       .thread_mode = UCS_THREAD_MODE_SINGLE };
	ucp_config_t *config;

	rival->is_stream = strcmp(variant, "put-stream") == 0;
	if (!rival->is_stream && strcmp(variant, "put") != 0)
		die("no variant %s: put, put-stream", variant);
	setenv("UCX_TLS", "posix,self", 0);
	check(ucp_config_read(NULL, NULL, &config), "cannot read the configuration");
	check(ucp_init(&params, config, &rival->context), "cannot start UCX");
	ucp_config_release(config);
	check(ucp_worker_create(rival->context, &worker, &rival->worker), "cannot make a worker");
}

static struct hello *mapped(int file)
{
	void *at = mmap(NULL, 2 * sizeof(struct hello), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (at == MAP_FAILED)
		die("cannot map: %s", strerror(errno));
	return at;
}

static void open_server(struct rival *rival, const char *variant, char *address)
{
	int file = memfd_create("hellos", MFD_CLOEXEC);

	open_side(rival, variant);
	rival->serves = true;
	if (file < 0 || ftruncate(file, 2 * sizeof(struct hello)) != 0)
		die("no memory: %s", strerror(errno));
	rival->hellos = mapped(file);
	expose(rival, &rival->hellos[0]);
	sprintf(address, "/proc/%d/fd/%d", (int)getpid(), file);
}

static void open_client(struct rival *rival, const char *variant, const char *address)
{
	int file = open(address, O_RDWR | O_CLOEXEC);

	open_side(rival, variant);
	if (file < 0)
		die("cannot open %s: %s", address, strerror(errno));
	rival->hellos = mapped(file);
	expose(rival, &rival->hellos[1]);
}

static void begin(struct rival *rival, size_t bytes)
{
	check_sizes(bytes, rival->is_stream);
	if (!rival->peer)
		meet(rival, &rival->hellos[rival->serves]);
	rival->job_began = rival->turn;
}

static inline void put(struct rival *rival, size_t offset, const void *from, size_t bytes)
{
	ucp_request_param_t param = { .op_attr_mask = 0 };
	ucs_status_ptr_t request = ucp_put_nbx(rival->peer, from, bytes, rival->there + offset, rival->key, &param);

	if (request != NULL)
		finish(rival, request, "cannot put");
}

static inline void wait_for(struct rival *rival, size_t offset, size_t bytes)
{
	while (!has_flag(rival->here + offset, bytes, rival->turn))
		ucp_worker_progress(rival->worker);
}

static void put_flag(struct rival *rival)
{
	static uint64_t flag;

	check(ucp_worker_fence(rival->worker), "cannot order puts");
	flag = rival->turn;
	put(rival, FLAG_AT, &flag, sizeof(flag));
}

/* The flag is the last word of the message, so one put is all, as in UCX's own program. */
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
	if (rival->key)
		ucp_rkey_destroy(rival->key);
	ucp_mem_unmap(rival->context, rival->memory);
	ucp_worker_destroy(rival->worker);
	ucp_cleanup(rival->context);
}

#include "echo.h"
