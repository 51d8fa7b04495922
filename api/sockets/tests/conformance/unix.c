/* What only a stream of AF_UNIX has: descriptors and credentials between bytes, names, and ends that are not those of TCP. */
#include "conformance.h"

#include <stddef.h>
#include <sys/un.h>

/* Every process of a case knows its listener by a number: the port of TCP, or a name without a file here. */
bool is_unix(void)
{
	return getenv("CONFORMANCE_UNIX") != NULL;
}

socklen_t unix_address(struct sockaddr_un *address, int number)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	/* As long for each number: lengths are said. */
	int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "beeline-conformance-%010d", number);
	return offsetof(struct sockaddr_un, sun_path) + 1 + length;
}

/* Sends bytes with a descriptor, or with this process's credentials. */
static long send_with(int fd, const void *bytes, size_t count, int kind, int passed)
{
	struct iovec part = { (void *)bytes, count };
	struct ucred own = { getpid(), getuid(), getgid() };
	size_t length = kind == SCM_RIGHTS ? sizeof passed : sizeof own;
	char room[CMSG_SPACE(sizeof own)] = { 0 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = CMSG_SPACE(length) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = kind;
	head->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(head), kind == SCM_RIGHTS ? (void *)&passed : (void *)&own, length);
	return sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* Receives up to so many bytes and says what came with them; a descriptor that came is given back, and -1 otherwise. */
static int receive_with(struct side *s, int fd, size_t most)
{
	static char bytes[65536];
	char room[256];
	struct iovec part = { bytes, most };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	long got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	int number = -1;
	say_bytes(s, "received", bytes, got);
	if (got < 0)
		return -1;
	say(s, "flags: %d", message.msg_flags & ~MSG_CMSG_CLOEXEC);
	for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
		struct ucred from;
		say(s, "with: %d of %zu bytes", head->cmsg_type, head->cmsg_len);
		if (head->cmsg_type == SCM_RIGHTS)
			memcpy(&number, CMSG_DATA(head), sizeof number);
		if (head->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&from, CMSG_DATA(head), sizeof from);
			say(s, "of the other side: %d", from.pid == s->other_pid && from.uid == getuid());
		}
	}
	return number;
}

/* Bytes, a descriptor with one byte, bytes: the receiver has them in this order, and the descriptor with its byte. */
static void give_rights(struct side *s)
{
	static char bytes[3000];
	int ends[2];
	MUST(pipe(ends));
	pattern(bytes, sizeof bytes, 1);
	SAY(send_all(s->fd, bytes, sizeof bytes));
	SAY(send_with(s->fd, "d", 1, SCM_RIGHTS, ends[1]));
	SAY(send_all(s->fd, bytes, 1000));
	close(ends[1]);
	meet(s);
	char said[8] = { 0 };
	SAY(read(ends[0], said, sizeof said));
	say(s, "by the descriptor: %s", said);
	close(ends[0]);
}

static void take_rights(struct side *s)
{
	static char bytes[3000];
	say_bytes(s, "before", bytes, receive_all(s->fd, bytes, sizeof bytes));
	wait_unread(s->fd, 1001);
	int passed = receive_with(s, s->fd, sizeof bytes);
	SAY(write(passed, "passed", 6));
	close(passed);
	meet(s);
	say_bytes(s, "behind", bytes, receive_all(s->fd, bytes, 1000));
}

static void rights_client(struct side *s)
{
	give_rights(s);
	take_rights(s);
	exchange(s, s->fd);
}

static void rights_server(struct side *s)
{
	take_rights(s);
	give_rights(s);
	exchange(s, s->fd);
}

static void rights_forked_client(struct side *s)
{
	s->fd = connect_cold(s);
	give_rights(s);
}

/* A connection that a child had is the kernel's, with what comes beside its bytes. */
static void rights_forked_server(struct side *s)
{
	s->fd = accept_cold(s);
	keep_over_exec(s->fd);
	pid_t child = MUST(fork());
	if (child == 0)
		_exit(0);
	say_child(s, "child", child);
	take_rights(s);
}

/* A descriptor that nobody takes is closed, and its byte is one of the stream. */
static void rights_unwanted_client(struct side *s)
{
	int ends[2];
	MUST(pipe(ends));
	SAY(send_all(s->fd, "before", 6));
	SAY(send_with(s->fd, "d", 1, SCM_RIGHTS, ends[1]));
	SAY(send_all(s->fd, "behind", 6));
	close(ends[1]);
	meet(s);
	char byte;
	/* The end, since nobody has the other end of the pipe. */
	SAY(read(ends[0], &byte, 1));
	exchange(s, s->fd);
}

static void rights_unwanted_server(struct side *s)
{
	char bytes[13];
	say_bytes(s, "all", bytes, receive_all(s->fd, bytes, sizeof bytes));
	meet(s);
	exchange(s, s->fd);
}

static void credentials_client(struct side *s)
{
	hear(s);
	SAY(send_with(s->fd, "given", 5, SCM_CREDENTIALS, 0));
	hear(s);
	SAY(send_all(s->fd, "without", 7));
	exchange(s, s->fd);
}

static void credentials_server(struct side *s)
{
	int one = 1;
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof one));
	tell(s);
	receive_with(s, s->fd, 5);
	tell(s);
	wait_unread(s->fd, 7);
	receive_with(s, s->fd, 7);
	exchange(s, s->fd);
}

/* Bytes lie in the connection when their receiver begins to ask who has sent them. */
static void credentials_late_client(struct side *s)
{
	SAY(send_all(s->fd, "unread", 6));
	meet(s);
	meet(s);
	exchange(s, s->fd);
}

static void credentials_late_server(struct side *s)
{
	int one = 1;
	char bytes[6];
	meet(s);
	wait_unread(s->fd, 6);
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof one));
	say_bytes(s, "all", bytes, receive_all(s->fd, bytes, sizeof bytes));
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_PASSCRED, &(int){ 0 }, sizeof one));
	meet(s);
	exchange(s, s->fd);
}

static void say_names(struct side *s)
{
	struct sockaddr_un name;
	struct ucred peer;
	socklen_t length = sizeof name, peer_length = sizeof peer;
	SAY(getsockname(s->fd, (struct sockaddr *)&name, &length));
	say(s, "own: family %d, %u bytes, %.19s", name.sun_family, length, length > 2 ? name.sun_path + 1 : "");
	length = sizeof name;
	SAY(getpeername(s->fd, (struct sockaddr *)&name, &length));
	say(s, "peer: family %d, %u bytes, %.19s", name.sun_family, length, length > 2 ? name.sun_path + 1 : "");
	SAY(getsockopt(s->fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_length));
	say(s, "peer: %d", peer.pid == s->other_pid && peer.uid == getuid());
	int value = -1;
	length = sizeof value;
	SAY(getsockopt(s->fd, SOL_SOCKET, SO_DOMAIN, &value, &length));
	SAY(getsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &value, &length));
	SAY(setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value));
}

/* Receives by calls that give an address, and sends to one. */
static void say_addresses(struct side *s)
{
	struct sockaddr_un name = { 0 };
	socklen_t length = sizeof name;
	char bytes[16] = { 0 };
	struct iovec part = { bytes, 4 };
	struct msghdr message = { .msg_name = &name, .msg_namelen = sizeof name, .msg_iov = &part, .msg_iovlen = 1 };
	wait_unread(s->fd, 12);
	SAY(recvfrom(s->fd, bytes, 4, 0, (struct sockaddr *)&name, &length));
	say(s, "from: %u bytes, %.19s", length, length > 2 ? name.sun_path + 1 : "");
	SAY(recvmsg(s->fd, &message, 0));
	say(s, "from: %u bytes, %.19s, flags %d", message.msg_namelen, message.msg_namelen > 2 ? name.sun_path + 1 : "", message.msg_flags);
	/* TCP would throw them away. */
	say_bytes(s, "cut", bytes, SAY(recv(s->fd, bytes, 4, MSG_TRUNC)));
	length = unix_address(&name, 1);
	SAY(sendto(s->fd, "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&name, length));
}

static void names_client(struct side *s)
{
	say_names(s);
	SAY(send_all(s->fd, "four and cut", 12));
	say_addresses(s);
	meet(s);
}

static void names_server(struct side *s)
{
	say_names(s);
	SAY(send_all(s->fd, "four and cut", 12));
	say_addresses(s);
	meet(s);
}

/* Who shuts its reading down tells the sender, which TCP does not. */
static void shut_read_client(struct side *s)
{
	SAY(send_all(s->fd, "before", 6));
	meet(s);
	hear(s);
	say_events(s, "ready", ready_now(s->fd, POLLIN | POLLOUT | POLLRDHUP));
	SAY(send(s->fd, "x", 1, MSG_NOSIGNAL));
	tell(s);
	char bytes[8];
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	meet(s);
}

static void shut_read_server(struct side *s)
{
	char bytes[16];
	meet(s);
	wait_unread(s->fd, 6);
	SAY(shutdown(s->fd, SHUT_RD));
	tell(s);
	/* It has looked whether there is something, and there was nothing. */
	hear(s);
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	SAY(send(s->fd, "back", 4, MSG_NOSIGNAL));
	meet(s);
}

static void say_error(struct side *s)
{
	int error = -1;
	socklen_t length = sizeof error;
	MUST(getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &length));
	say(s, "error: %s", error > 0 ? strerrorname_np(error) : "none");
}

/* The other side closes, with unread bytes of this one or without. */
static void say_closed(struct side *s)
{
	char byte;
	say_events(s, "ready", wait_ready(s->fd, POLLIN | POLLRDHUP));
	SAY(send(s->fd, "x", 1, MSG_NOSIGNAL));
	say_error(s);
	SAY(recv(s->fd, &byte, 1, 0));
	SAY(recv(s->fd, &byte, 1, 0));
	say_events(s, "ready", ready_now(s->fd, POLLIN | POLLOUT | POLLRDHUP));
}

static void closed_client(struct side *s)
{
	hear(s);
	say_closed(s);
}

static void closed_server(struct side *s)
{
	SAY(close(s->fd));
	s->fd = -1;
	tell(s);
}

static void unread_client(struct side *s)
{
	SAY(send_all(s->fd, "unread", 6));
	tell(s);
	hear(s);
	say_closed(s);
}

static void unread_server(struct side *s)
{
	hear(s);
	wait_unread(s->fd, 6);
	SAY(close(s->fd));
	s->fd = -1;
	tell(s);
}

/* The reset is what a receive has first, too. */
static void unread_received_client(struct side *s)
{
	char byte;
	SAY(send_all(s->fd, "unread", 6));
	tell(s);
	SAY(recv(s->fd, &byte, 1, 0));
	SAY(recv(s->fd, &byte, 1, 0));
	SAY(send(s->fd, "x", 1, MSG_NOSIGNAL));
	/* Who tells that it has closed finds this side. */
	hear(s);
}

static void urgent_client(struct side *s)
{
	SAY(send_all(s->fd, "before", 6));
	SAY(send(s->fd, "u", 1, MSG_OOB | MSG_NOSIGNAL));
	SAY(send_all(s->fd, "behind", 6));
	meet(s);
	meet(s);
}

static void urgent_server(struct side *s)
{
	char bytes[16];
	meet(s);
	say_bytes(s, "before", bytes, receive_all(s->fd, bytes, 6));
	SAY(recv(s->fd, bytes, 1, MSG_OOB));
	say_bytes(s, "behind", bytes, receive_all(s->fd, bytes, 6));
	meet(s);
}

static void peek_offset_client(struct side *s)
{
	SAY(send_all(s->fd, "abcdef", 6));
	meet(s);
	exchange(s, s->fd);
}

static void peek_offset_server(struct side *s)
{
	int offset = 2;
	char bytes[8];
	wait_unread(s->fd, 6);
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset));
	for (int i = 0; i < 2; i++)
		say_bytes(s, "peeked", bytes, SAY(recv(s->fd, bytes, 2, MSG_PEEK)));
	say_bytes(s, "received", bytes, receive_all(s->fd, bytes, 6));
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_PEEK_OFF, &(int){ -1 }, sizeof offset));
	meet(s);
	exchange(s, s->fd);
}

/* Bytes that no hook sees come between others: nobody counts them, and none is lost or in another's place. */
static long send_unseen(int fd, const void *bytes, size_t count)
{
#ifdef __x86_64__
	long gave;
	__asm__ volatile("syscall" : "=a"(gave) : "0"(SYS_write), "D"(fd), "S"(bytes), "d"(count) : "rcx", "r11", "memory");
	return gave;
#else
	return write(fd, bytes, count);
#endif
}

static void unseen_client(struct side *s)
{
	s->fd = connect_cold(s);
	SAY(send_unseen(s->fd, "unseen", 6));
	for (int i = 0; i < 400; i++) {
		exchange(s, s->fd);
		/* The libraries agree meanwhile, in the background. */
		poll(NULL, 0, 1);
	}
	SAY(send_unseen(s->fd, "unseen", 6));
	exchange(s, s->fd);
	close(s->fd);
	s->fd = -1;
}

static void unseen_server(struct side *s)
{
	char bytes[6];
	s->fd = accept_cold(s);
	say_bytes(s, "unseen", bytes, receive_all(s->fd, bytes, sizeof bytes));
	for (int i = 0; i < 400; i++)
		exchange(s, s->fd);
	say_bytes(s, "unseen", bytes, receive_all(s->fd, bytes, sizeof bytes));
	exchange(s, s->fd);
}

/* Both directions at the same time, by pieces of all sizes: each byte has its value. */
enum { BOTH_WAYS_BYTES = 6 << 20 };

static void *send_both(void *number)
{
	static __thread unsigned char piece[70000];
	unsigned state = 12345;
	for (size_t at = 0; at < BOTH_WAYS_BYTES;) {
		state = state * 1664525 + 1013904223;
		size_t count = 1 + (state >> 8) % (state & 0x40000000 ? sizeof piece - 1 : 300);
		if (count > BOTH_WAYS_BYTES - at)
			count = BOTH_WAYS_BYTES - at;
		for (size_t i = 0; i < count; i++)
			piece[i] = (unsigned char)((at + i) * 31 + (at + i) / 251);
		if (send_all(*(int *)number, piece, count) != (long)count)
			fail("a piece");
		at += count;
	}
	return NULL;
}

static void both_ways(struct side *s)
{
	static __thread unsigned char piece[50000];
	unsigned state = s->is_client ? 777 : 4711;
	size_t wrong = 0, at = 0;
	pthread_t sender;
	if (pthread_create(&sender, NULL, send_both, &s->fd) != 0)
		fail("pthread_create");
	while (at < BOTH_WAYS_BYTES) {
		state = state * 1664525 + 1013904223;
		size_t most = 1 + (state >> 8) % sizeof piece;
		ssize_t got = recv(s->fd, piece, most < BOTH_WAYS_BYTES - at ? most : BOTH_WAYS_BYTES - at, 0);
		if (got <= 0)
			fail("receive a piece");
		for (ssize_t i = 0; i < got; i++)
			wrong += piece[i] != (unsigned char)((at + i) * 31 + (at + i) / 251);
		at += got;
	}
	pthread_join(sender, NULL);
	say(s, "%zu bytes, wrong: %zu", at, wrong);
	meet(s);
}

const struct test_case unix_cases[] = {
	{ "unix_unseen", TWO_PROCESSES, true, unseen_server, unseen_client, "a writer that no library sees" },
	{ "unix_both_ways", TWO_PROCESSES, false, both_ways, both_ways, "6 MB each way at the same time, by pieces of all sizes" },
	{ "unix_rights", TWO_PROCESSES, false, rights_server, rights_client, "`SCM_RIGHTS` between bytes, both ways" },
	{ "unix_rights_forked", TWO_PROCESSES, true, rights_forked_server, rights_forked_client, "`SCM_RIGHTS` behind `fork`" },
	{ "unix_rights_unwanted", TWO_PROCESSES, false, rights_unwanted_server, rights_unwanted_client, "`SCM_RIGHTS` that `recv` throws away" },
	{ "unix_credentials", TWO_PROCESSES, false, credentials_server, credentials_client, "`SCM_CREDENTIALS`, `SO_PASSCRED`" },
	{ "unix_credentials_late", TWO_PROCESSES, false, credentials_late_server, credentials_late_client, "`SO_PASSCRED` with unread bytes" },
	{ "unix_names", TWO_PROCESSES, false, names_server, names_client, "`getsockname`, `getpeername`, `SO_PEERCRED`; addresses of receives and sends" },
	{ "unix_shut_read", TWO_PROCESSES, false, shut_read_server, shut_read_client, "`SHUT_RD`: the sender is told" },
	{ "unix_closed", TWO_PROCESSES, false, closed_server, closed_client, "the other side closes: readiness, `EPIPE` at once" },
	{ "unix_closed_unread", TWO_PROCESSES, false, unread_server, unread_client, "the other side closes with unread bytes: `ECONNRESET`" },
	{ "unix_closed_unread_received", TWO_PROCESSES, false, unread_server, unread_received_client, "the same, seen by a receive that waits" },
	{ "unix_urgent", TWO_PROCESSES, false, urgent_server, urgent_client, "`MSG_OOB`" },
	{ "unix_peek_offset", TWO_PROCESSES, false, peek_offset_server, peek_offset_client, "`SO_PEEK_OFF`" },
	{ 0 },
};
