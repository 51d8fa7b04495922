/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Messages through segments of SISCI, in C, as programs that are written for it would send them; and the same loop over memory that two
 * processes have mapped without any of it, the floor.
 *
 * Variants: `stores` (plain stores through the map), `memcpy` (SCIMemCpy()), `bare` (no SISCI). With `-stream` or `-burst` behind it: a
 * stream or a burst (put.h). With `-one-way`: from one store of 8 bytes until the other process sees it, by the counter that all cores share.
 * The address is the number of both sides' segments, or where the server's memory is found. BEELINE_ROOT says where the nodes meet.
 */
#include "put.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "sisci_api.h"
#include "sisci_error.h"

#define SERVER_NODE 4u
#define CLIENT_NODE 8u
#define NO_FLAGS 0

/* What is taken is one way, where a variant says so. */
#define ECHO_TAKES
static uint64_t now_ticks(void);

enum how { STORES, MEMCPY, BARE };

struct rival {
	enum how how;
	bool is_stream, is_burst, is_one_way, serves, has_begun;
	unsigned char *here;
	unsigned char *there;
	uint64_t turn;
	uint64_t job_began;
	/* Of both sides' segments: servers of other variants may have the same node at the same time. */
	unsigned int segment_id;
	sci_desc_t sd;
	sci_local_segment_t local;
	sci_remote_segment_t remote;
	sci_map_t local_map, remote_map;
	/* Of `bare`. */
	int files[2];
};

static void check(const char *what, sci_error_t error)
{
	if (error != SCI_ERR_OK)
		die("%s: error %#x", what, (unsigned int)error);
}

static void choose(struct rival *rival, const char *variant)
{
	static const char *const names[] = { "stores", "memcpy", "bare" };

	for (unsigned int how = 0; how < 3; how++) {
		size_t length = strlen(names[how]);
		if (strncmp(variant, names[how], length) != 0)
			continue;
		rival->how = (enum how)how;
		rival->is_stream = strcmp(variant + length, "-stream") == 0;
		rival->is_burst = strcmp(variant + length, "-burst") == 0;
		rival->is_one_way = strcmp(variant + length, "-one-way") == 0;
		if (rival->is_stream || rival->is_burst || rival->is_one_way || variant[length] == '\0')
			return;
	}
	die("no variant %s: stores, memcpy, bare; -stream, -burst or -one-way behind it", variant);
}

static void offer(struct rival *rival, unsigned int node)
{
	char number[16];
	sci_error_t error;

	sprintf(number, "%u", node);
	setenv("BEELINE_NODE", number, 1);
	SCIInitialize(NO_FLAGS, &error);
	check("SCIInitialize", error);
	SCIOpen(&rival->sd, NO_FLAGS, &error);
	check("SCIOpen", error);
	SCICreateSegment(rival->sd, &rival->local, rival->segment_id, REGION_BYTES, NULL, NULL, NO_FLAGS, &error);
	check("SCICreateSegment", error);
	SCIPrepareSegment(rival->local, 0, NO_FLAGS, &error);
	check("SCIPrepareSegment", error);
	rival->here = (unsigned char *)SCIMapLocalSegment(rival->local, &rival->local_map, 0, REGION_BYTES, NULL,
							  NO_FLAGS, &error);
	check("SCIMapLocalSegment", error);
	SCISetSegmentAvailable(rival->local, 0, NO_FLAGS, &error);
	check("SCISetSegmentAvailable", error);
}

static void reach(struct rival *rival, unsigned int node)
{
	sci_error_t error;

	SCIConnectSegment(rival->sd, &rival->remote, node, rival->segment_id, 0, NULL, NULL, 10000, NO_FLAGS, &error);
	check("SCIConnectSegment", error);
	rival->there = (unsigned char *)SCIMapRemoteSegment(rival->remote, &rival->remote_map, 0, REGION_BYTES, NULL,
							    NO_FLAGS, &error);
	check("SCIMapRemoteSegment", error);
	memset(rival->there, 0, REGION_BYTES);
}

static unsigned char *mapped(int file)
{
	void *at = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);

	if (at == MAP_FAILED)
		die("cannot map: %s", strerror(errno));
	return at;
}

static int opened(const char *process, const char *file)
{
	char path[64];
	int found;

	snprintf(path, sizeof(path), "/proc/%s/fd/%s", process, file);
	found = open(path, O_RDWR | O_CLOEXEC);
	if (found < 0)
		die("cannot open %s: %s", path, strerror(errno));
	return found;
}

static void open_server(struct rival *rival, const char *variant, char *address)
{
	choose(rival, variant);
	rival->serves = true;
	if (rival->how != BARE) {
		rival->segment_id = (unsigned int)getpid();
		offer(rival, SERVER_NODE);
		sprintf(address, "%u", rival->segment_id);
		return;
	}
	for (int side = 0; side < 2; side++) {
		rival->files[side] = memfd_create("bare", MFD_CLOEXEC);
		if (rival->files[side] < 0 || ftruncate(rival->files[side], REGION_BYTES) != 0)
			die("no memory: %s", strerror(errno));
	}
	rival->here = mapped(rival->files[0]);
	rival->there = mapped(rival->files[1]);
	sprintf(address, "%d:%d:%d", (int)getpid(), rival->files[0], rival->files[1]);
}

static void open_client(struct rival *rival, const char *variant, const char *address)
{
	char process[16], there[16], here[16];

	choose(rival, variant);
	if (rival->how != BARE) {
		if (sscanf(address, "%u", &rival->segment_id) != 1)
			die("not an address: %s", address);
		offer(rival, CLIENT_NODE);
		reach(rival, SERVER_NODE);
		return;
	}
	if (sscanf(address, "%15[0-9]:%15[0-9]:%15[0-9]", process, there, here) != 3)
		die("not an address: %s", address);
	rival->there = mapped(opened(process, there));
	rival->here = mapped(opened(process, here));
}

static void begin(struct rival *rival, size_t bytes)
{
	check_sizes(bytes, rival->is_stream);
	if (rival->serves && rival->how != BARE && !rival->has_begun)
		reach(rival, CLIENT_NODE);
	rival->has_begun = true;
	rival->job_began = rival->turn;
}

/* Bytes into the other side's memory, without a flag. */
static inline void put(struct rival *rival, size_t offset, const unsigned char *from, size_t bytes)
{
	sci_error_t error;

	if (rival->how == MEMCPY) {
		SCIMemCpy(NULL, (void *)(uintptr_t)from, rival->remote_map, offset, bytes, NO_FLAGS, &error);
		check("SCIMemCpy", error);
	} else if (bytes == 4) {
		/* A program knows how long its small messages are. */
		memcpy(rival->there + offset, from, 4);
	} else if (bytes == 8) {
		memcpy(rival->there + offset, from, 8);
	} else if (bytes == 16) {
		memcpy(rival->there + offset, from, 16);
	} else if (bytes == 32) {
		memcpy(rival->there + offset, from, 32);
	} else if (bytes == 64) {
		memcpy(rival->there + offset, from, 64);
	} else {
		memcpy(rival->there + offset, from, bytes);
	}
}

static inline void put_message(struct rival *rival, const unsigned char *from, size_t bytes)
{
	size_t before = before_flag(bytes);

	if (bytes == 4) {
		__atomic_store_n((uint32_t *)rival->there, (uint32_t)rival->turn, __ATOMIC_RELEASE);
		return;
	}
	if (before != 0)
		put(rival, 0, from, before);
	__atomic_store_n((uint64_t *)(rival->there + before), rival->turn, __ATOMIC_RELEASE);
}

static inline void wait_for(struct rival *rival, size_t offset, size_t bytes)
{
	while (!has_flag(rival->here + offset, bytes, rival->turn))
		pause_looking();
}

static void put_stream(struct rival *rival, const unsigned char *from, size_t bytes)
{
	static unsigned char messages[MESSAGE_BYTES] __attribute__((aligned(64)));
	size_t count = stream_messages(bytes), made = messages_made(bytes), next = 0;

	make_messages(messages, from, bytes, rival->turn);
	for (size_t i = 0; i < count; i++) {
		unsigned char *message = messages + next * bytes;

		put(rival, i * bytes, message, bytes);
		mark(message, bytes, rival->turn, i + made);
		next = next + 1 == made ? 0 : next + 1;
	}
	__atomic_store_n((uint64_t *)(rival->there + FLAG_AT), rival->turn, __ATOMIC_RELEASE);
	wait_for(rival, FLAG_AT, 8);
}

static void put_burst(struct rival *rival, const unsigned char *from, size_t bytes)
{
	for (unsigned int left = BURST_TRIPS; left > 0; left--) {
		rival->turn++;
		put_message(rival, from, bytes);
		wait_for(rival, 0, bytes);
	}
}

static void answer_burst(struct rival *rival, size_t bytes)
{
	for (unsigned int left = BURST_TRIPS; left > 0; left--) {
		rival->turn++;
		wait_for(rival, 0, bytes);
		put_message(rival, rival->here, bytes);
	}
}

/* The ticks of one trip, or of one way. */
static uint64_t trip(struct rival *rival, const unsigned char *request, unsigned char *answer, size_t bytes)
{
	uint64_t sent = now_ticks(), taken;

	if (rival->is_burst) {
		put_burst(rival, request, bytes);
		taken = now_ticks() - sent;
		memcpy(answer, request, bytes);
		return taken;
	}
	rival->turn++;
	if (rival->is_one_way) {
		/* The number of the ticks is the message. The answer has the turn above the ticks that it took. */
		uint64_t found;

		__atomic_store_n((uint64_t *)rival->there, sent, __ATOMIC_RELEASE);
		while ((found = __atomic_load_n((uint64_t *)rival->here, __ATOMIC_ACQUIRE)) >> 32 != rival->turn)
			pause_looking();
		memcpy(answer, request, bytes);
		return found & UINT32_MAX;
	}
	if (rival->is_stream) {
		put_stream(rival, request, bytes);
		memcpy(answer, request, bytes);
		return now_ticks() - sent;
	}
	put_message(rival, request, bytes);
	wait_for(rival, 0, bytes);
	memcpy(answer, rival->here, before_flag(bytes));
	taken = now_ticks() - sent;
	memcpy(answer + before_flag(bytes), request + before_flag(bytes), bytes - before_flag(bytes));
	return taken;
}

static void answer_one(struct rival *rival, size_t bytes)
{
	if (rival->is_burst) {
		answer_burst(rival, bytes);
		return;
	}
	rival->turn++;
	if (rival->is_one_way) {
		static uint64_t last;
		uint64_t found, seen;

		while ((found = __atomic_load_n((uint64_t *)rival->here, __ATOMIC_ACQUIRE)) == last)
			pause_looking();
		seen = now_ticks();
		last = found;
		if (seen < found || seen - found > UINT32_MAX)
			die("the counters of the cores differ");
		__atomic_store_n((uint64_t *)rival->there, rival->turn << 32 | (seen - found), __ATOMIC_RELEASE);
		return;
	}
	if (rival->is_stream) {
		wait_for(rival, FLAG_AT, 8);
		if (rival->turn == rival->job_began + 1)
			look_at_stream(rival->here, bytes, rival->turn);
		__atomic_store_n((uint64_t *)(rival->there + FLAG_AT), rival->turn, __ATOMIC_RELEASE);
		return;
	}
	wait_for(rival, 0, bytes);
	put_message(rival, rival->here, bytes);
}

static void close_side(struct rival *rival)
{
	if (rival->how != BARE)
		SCITerminate();
}

#include "echo.h"
