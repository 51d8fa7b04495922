/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Puts of UCX into the other side's memory, in shared memory: what `ucx_perftest -t ucp_put_lat` and `ucp_put_bw` measure, in the loop
 * of all rivals. Variants: `put` (a message and its answer), `put-stream` and `put-burst` (put.h).
 *
 * The address is where a page is in which each side says what it is: its worker's address, the place of its memory and its key.
 */
#include "put.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "ucx.h"

/* What a side says of itself: the place of its memory, two lengths, then the worker's address and the key. */
struct hello {
	uint64_t region;
	uint32_t address_bytes, key_bytes;
	unsigned char bytes[2000];
};

struct rival {
	struct side side;
	ucp_mem_h memory;
	ucp_rkey_h key;
	unsigned char *here;
	uint64_t there;
	struct turns turns;
	/* The server's and the client's, in memory of both. */
	struct hello *hellos;
	bool serves;
};

static void meet(struct rival *rival, const struct hello *other)
{
	connect_to(&rival->side, other->bytes);
	check(ucp_ep_rkey_unpack(rival->side.peer, other->bytes + other->address_bytes, &rival->key), "cannot take the key");
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

	check(ucp_mem_map(rival->side.context, &params, &rival->memory), "no memory");
	check(ucp_mem_query(rival->memory, &found), "where the memory is");
	rival->here = found.address;
	memset(rival->here, 0, REGION_BYTES);
	check(ucp_worker_get_address(rival->side.worker, &address, &address_bytes), "cannot tell the address");
	check(ucp_rkey_pack(rival->side.context, rival->memory, &key, &key_bytes), "no key");
	if (address_bytes + key_bytes > sizeof(own->bytes))
		die("an address of %zu and a key of %zu bytes", address_bytes, key_bytes);
	own->region = (uintptr_t)rival->here;
	own->address_bytes = (uint32_t)address_bytes;
	own->key_bytes = (uint32_t)key_bytes;
	memcpy(own->bytes, address, address_bytes);
	memcpy(own->bytes + address_bytes, key, key_bytes);
	ucp_rkey_buffer_release(key);
	ucp_worker_release_address(rival->side.worker, address);
}

static void open_side(struct rival *rival, const char *variant)
{
	rival->turns.is_stream = strcmp(variant, "put-stream") == 0;
	rival->turns.is_burst = strcmp(variant, "put-burst") == 0;
	if (!rival->turns.is_stream && !rival->turns.is_burst && strcmp(variant, "put") != 0)
		die("no variant %s: put, put-stream, put-burst", variant);
	open_worker(&rival->side, UCP_FEATURE_RMA);
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
	if (!rival->side.peer)
		meet(rival, &rival->hellos[rival->serves]);
	begin_turns(&rival->turns, bytes);
}

static inline void put(struct rival *rival, size_t offset, const void *from, size_t bytes)
{
	ucp_request_param_t param = { .op_attr_mask = 0 };
	ucs_status_ptr_t request = ucp_put_nbx(rival->side.peer, from, bytes, rival->there + offset, rival->key, &param);

	if (request != NULL)
		finish(&rival->side, request, "cannot put");
}

static inline void look(struct rival *rival)
{
	ucp_worker_progress(rival->side.worker);
}

/* Both have met when a job begins. */
static void before_first_turn(struct rival *rival)
{
	(void)rival;
}

static void order_puts(struct rival *rival)
{
	check(ucp_worker_fence(rival->side.worker), "cannot order puts");
}

#include "turns.h"

static void close_side(struct rival *rival)
{
	if (rival->key)
		ucp_rkey_destroy(rival->key);
	ucp_mem_unmap(rival->side.context, rival->memory);
	close_worker(&rival->side);
}

#include "echo.h"
