/* What goes around the C library or changes the process: io_uring, filters of system calls, namespaces, loaded libraries. */
#include "conformance.h"

#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static void exchanging_client(struct side *s)
{
	for (int i = 0; i < 8; i++)
		exchange(s, s->fd);
	SAY(shutdown(s->fd, SHUT_WR));
	receive_to_end(s, s->fd);
}

static void rest_of_8(struct side *s, int done)
{
	char byte;
	for (int i = done; i < 8; i++)
		exchange(s, s->fd);
	SAY(recv(s->fd, &byte, 1, 0));
}

struct ring {
	int fd;
	unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static bool open_ring(struct ring *ring)
{
	struct io_uring_params params = { 0 };
	ring->fd = syscall(SYS_io_uring_setup, 8, &params);
	if (ring->fd < 0)
		return false;
	size_t sq_bytes = params.sq_off.array + params.sq_entries * sizeof(unsigned);
	size_t cq_bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	int both = PROT_READ | PROT_WRITE;
	char *sq = mmap(NULL, sq_bytes, both, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
	char *cq = mmap(NULL, cq_bytes, both, MAP_SHARED, ring->fd, IORING_OFF_CQ_RING);
	ring->sqes = mmap(NULL, params.sq_entries * sizeof(struct io_uring_sqe), both, MAP_SHARED, ring->fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || (void *)ring->sqes == MAP_FAILED)
		fail("mmap of the ring");
	ring->sq_tail = (unsigned *)(sq + params.sq_off.tail);
	ring->sq_mask = (unsigned *)(sq + params.sq_off.ring_mask);
	ring->sq_array = (unsigned *)(sq + params.sq_off.array);
	ring->cq_head = (unsigned *)(cq + params.cq_off.head);
	ring->cq_tail = (unsigned *)(cq + params.cq_off.tail);
	ring->cq_mask = (unsigned *)(cq + params.cq_off.ring_mask);
	ring->cqes = (struct io_uring_cqe *)(cq + params.cq_off.cqes);
	return true;
}

static int by_ring(struct ring *ring, int operation, int fd, void *bytes, unsigned count)
{
	unsigned tail = *ring->sq_tail, at = tail & *ring->sq_mask;
	ring->sqes[at] = (struct io_uring_sqe){ .opcode = operation, .fd = fd, .addr = (uintptr_t)bytes, .len = count };
	ring->sq_array[at] = at;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	MUST(syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
	unsigned head = *ring->cq_head;
	if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
		fail("no completion");
	int result = ring->cqes[head & *ring->cq_mask].res;
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return result;
}

/* A ring that is set up late, with bytes unread, and used beside the ordinary calls. */
static void ring_server(struct side *s)
{
	struct ring ring;
	char bytes[200];
	exchange(s, s->fd);
	wait_unread(s->fd, 200);
	if (!open_ring(&ring)) {
		say(s, "no ring: %s", strerrorname_np(errno));
		rest_of_8(s, 1);
		return;
	}
	for (int i = 1; i < 8; i++) {
		if (i == 4) {
			exchange(s, s->fd);
			continue;
		}
		int got = by_ring(&ring, IORING_OP_RECV, s->fd, bytes, sizeof bytes);
		say_bytes(s, "by the ring", bytes, got);
		pattern(bytes, sizeof bytes, 0);
		say(s, "sent: %d", by_ring(&ring, IORING_OP_SEND, s->fd, bytes, sizeof bytes));
	}
	rest_of_8(s, 8);
	close(ring.fd);
}

/* Ends the process at every system call but a few. */
static void filter(struct side *s, unsigned otherwise)
{
	static const int allowed[] = { SYS_read, SYS_write, SYS_recvfrom, SYS_sendto, SYS_recvmsg, SYS_sendmsg, SYS_close, SYS_shutdown,
		SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_brk, SYS_mmap, SYS_munmap, SYS_wait4, SYS_lseek, SYS_newfstatat, SYS_openat,
	};
	enum { COUNT = sizeof allowed / sizeof *allowed };
	struct sock_filter rules[COUNT + 3] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
	for (int i = 0; i < COUNT; i++)
		rules[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], COUNT - i, 0);
	rules[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
	rules[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { COUNT + 3, rules };
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	SAY(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void filter_server(struct side *s)
{
	exchange(s, s->fd);
	wait_unread(s->fd, 200);
	filter(s, SECCOMP_RET_KILL_PROCESS);
	rest_of_8(s, 1);
}

static void filter_errno_server(struct side *s)
{
	filter(s, SECCOMP_RET_ERRNO | EPERM);
	rest_of_8(s, 0);
}

/* All but reading, writing and the end is forbidden. */
static void strict_server(struct side *s)
{
	char byte;
	SAY(recv(s->fd, &byte, 1, 0));
	flush(s);
	fflush(NULL);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	for (;;) {
		long got = read(s->fd, &byte, 1);
		if (got == 1)
			got = write(s->fd, &byte, 1);
		if (got != 1)
			syscall(SYS_exit, got == 0 ? 0 : 3);
	}
}

static void strict_child_server(struct side *s)
{
	pid_t child = MUST(fork());
	if (child == 0) {
		s->fd = accept_warm(s);
		strict_server(s);
	}
	say_child(s, "child", child);
}

static void strict_client(struct side *s)
{
	int wrong = 0;
	s->fd = connect_warm(s);
	MUST(send_all(s->fd, "b", 1));
	for (int i = 0; i < 100; i++) {
		char byte = i, answer = 0;
		MUST(send_all(s->fd, &byte, 1));
		wrong += receive_all(s->fd, &answer, 1) != 1 || answer != byte;
	}
	say(s, "wrong: %d", wrong);
	SAY(shutdown(s->fd, SHUT_WR));
	receive_to_end(s, s->fd);
}

static void unshare_server(struct side *s)
{
	exchange(s, s->fd);
	SAY(unshare(CLONE_NEWUSER));
	rest_of_8(s, 1);
}

static void chroot_server(struct side *s)
{
	exchange(s, s->fd);
	int status = chroot("/proc/self/fdinfo");
	say(s, "chroot: %s", status < 0 ? strerrorname_np(errno) : "done");
	SAY(chdir("/"));
	rest_of_8(s, 1);
}

static void setuid_server(struct side *s)
{
	exchange(s, s->fd);
	pid_t child = MUST(fork());
	if (child == 0) {
		int gave = setgid(65534) + setuid(65534);
		for (int i = 0; i < 3; i++)
			exchange(s, s->fd);
		_exit(gave ? 20 : 21);
	}
	say_child(s, "child", child);
	rest_of_8(s, 4);
}

static void limits_server(struct side *s)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	SAY(prctl(PR_SET_NAME, "renamed", 0, 0, 0));
	rest_of_8(s, 0);
}

/* A library that is loaded late has calls of its own; with RTLD_DEEPBIND it has them before those that are preloaded, and in a namespace of its
 * own instead of them. */
static void loaded(struct side *s, void *library)
{
	char bytes[200];
	ssize_t (*receive)(int, void *, size_t) = library ? (ssize_t(*)(int, void *, size_t))dlsym(library, "plugin_receive") : NULL;
	ssize_t (*give)(int, const void *, size_t) = library ? (ssize_t(*)(int, const void *, size_t))dlsym(library, "plugin_send") : NULL;
	if (!receive || !give) {
		say(s, "not loaded: %s", dlerror());
		rest_of_8(s, 0);
		return;
	}
	for (int i = 0; i < 4; i++) {
		wait_unread(s->fd, 200);
		say_bytes(s, "by the library", bytes, receive(s->fd, bytes, sizeof bytes));
		pattern(bytes, sizeof bytes, 0);
		say(s, "sent: %zd", give(s->fd, bytes, sizeof bytes));
	}
	rest_of_8(s, 4);
	dlclose(library);
}

static const char *plugin_path(void)
{
	static char path[4200];
	snprintf(path, sizeof path, "%s.plugin.so", own_path());
	return path;
}

static void loaded_server(struct side *s)
{
	loaded(s, dlopen(plugin_path(), RTLD_NOW | RTLD_LOCAL));
}

static void deep_server(struct side *s)
{
	loaded(s, dlopen(plugin_path(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND));
}

static void apart_server(struct side *s)
{
	wait_unread(s->fd, 200);
	loaded(s, dlmopen(LM_ID_NEWLM, plugin_path(), RTLD_NOW | RTLD_LOCAL));
}

struct waiter {
	struct side *side;
	int set, tid;
	bool is_there;
	char bytes[200];
	long got;
};

static void *wait_for_bytes(void *argument)
{
	struct waiter *own = argument;
	struct epoll_event event = { 0 };
	own->tid = gettid();
	__atomic_store_n(&own->is_there, true, __ATOMIC_RELEASE);
	if (own->set >= 0 && (epoll_wait(own->set, &event, 1, -1) != 1 || event.data.u64 != 7))
		return NULL;
	own->got = receive_all(own->side->fd, own->bytes, sizeof own->bytes);
	return NULL;
}

/* Another thread waits while this one does something that is not for every process. */
static void while_waiting(struct side *s, bool has_set, void restrict_process(struct side *s))
{
	struct waiter other = { .side = s, .set = -1 };
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 7 };
	pthread_t thread;
	if (has_set) {
		other.set = MUST(epoll_create1(EPOLL_CLOEXEC));
		MUST(epoll_ctl(other.set, EPOLL_CTL_ADD, s->fd, &event));
		SAY(epoll_wait(other.set, &event, 1, -1));
	}
	exchange(s, s->fd);
	MUST(-pthread_create(&thread, NULL, wait_for_bytes, &other));
	while (!__atomic_load_n(&other.is_there, __ATOMIC_ACQUIRE))
		sched_yield();
	wait_thread_asleep(getpid(), other.tid);
	restrict_process(s);
	meet(s);
	pthread_join(thread, NULL);
	say_bytes(s, "the other thread", other.bytes, other.got);
	pattern(other.bytes, sizeof other.bytes, 0);
	SAY(send_all(s->fd, other.bytes, sizeof other.bytes));
	if (has_set) {
		SAY(epoll_wait(other.set, &event, 1, -1));
		say(s, "data: %d", (int)event.data.u64);
	}
	rest_of_8(s, 2);
	if (has_set)
		close(other.set);
}

static void open_deep(struct side *s)
{
	say(s, "loaded: %d", dlopen(plugin_path(), RTLD_NOW | RTLD_DEEPBIND) != NULL);
}

/* For every thread, at once. */
static void filter_all(struct side *s)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &allow };
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	SAY(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
}

static void deep_waiting_server(struct side *s)
{
	while_waiting(s, false, open_deep);
}

static void deep_waiting_set_server(struct side *s)
{
	while_waiting(s, true, open_deep);
}

static void filter_waiting_server(struct side *s)
{
	while_waiting(s, true, filter_all);
}

static void waited_for_client(struct side *s)
{
	exchange(s, s->fd);
	meet(s);
	for (int i = 1; i < 8; i++)
		exchange(s, s->fd);
	SAY(shutdown(s->fd, SHUT_WR));
	receive_to_end(s, s->fd);
}

/* System calls by their numbers. */
static void by_number_server(struct side *s)
{
	char bytes[200];
	for (int i = 0; i < 8; i++) {
		struct iovec part = { bytes, sizeof bytes };
		wait_unread(s->fd, 200);
		if (i % 2)
			SAY(syscall(SYS_read, s->fd, bytes, sizeof bytes));
		else
			SAY(syscall(SYS_readv, s->fd, &part, 1));
		say_bytes(s, "received", bytes, sizeof bytes);
		pattern(bytes, sizeof bytes, 0);
		SAY(syscall(SYS_sendto, s->fd, bytes, sizeof bytes, 0, NULL, 0));
	}
	rest_of_8(s, 8);
}

const struct test_case foreign_cases[] = {
	{ "ring", TWO_PROCESSES, false, ring_server, exchanging_client, "io_uring that is set up late" },
	{ "filter", TWO_PROCESSES, false, filter_server, exchanging_client, "a seccomp filter that kills, installed late" },
	{ "filter_errno", TWO_PROCESSES, false, filter_errno_server, exchanging_client, "a seccomp filter that refuses" },
	{ "strict", TWO_PROCESSES, true, strict_child_server, strict_client, "strict seccomp" },
	{ "unshare", TWO_PROCESSES, false, unshare_server, exchanging_client, "`unshare(CLONE_NEWUSER)`" },
	{ "chroot", TWO_PROCESSES, false, chroot_server, exchanging_client, "`chroot`" },
	{ "setuid", TWO_PROCESSES, false, setuid_server, exchanging_client, "`setuid` in a child" },
	{ "dumpable", TWO_PROCESSES, false, limits_server, exchanging_client, "`PR_SET_DUMPABLE`, `PR_SET_NAME`" },
	{ "loaded", TWO_PROCESSES, false, loaded_server, exchanging_client, "a library that `dlopen` loads" },
	{ "loaded_deep", TWO_PROCESSES, false, deep_server, exchanging_client, "one with `RTLD_DEEPBIND`" },
	{ "loaded_apart", TWO_PROCESSES, false, apart_server, exchanging_client, "one that `dlmopen` loads into a namespace of its own" },
	{ "deep_waiting", TWO_PROCESSES, false, deep_waiting_server, waited_for_client, "`RTLD_DEEPBIND` while another thread receives" },
	{ "deep_waiting_set", TWO_PROCESSES, false, deep_waiting_set_server, waited_for_client, "`RTLD_DEEPBIND` while another thread is in `epoll_wait`" },
	{ "filter_waiting", TWO_PROCESSES, false, filter_waiting_server, waited_for_client, "a seccomp filter for all threads, of which one is in `epoll_wait`" },
	{ "by_number", TWO_PROCESSES, false, by_number_server, exchanging_client, "`syscall` by number" },
	{ 0 },
};
