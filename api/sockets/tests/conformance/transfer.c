/* Calls that move bytes by other ways: files, pipes, several messages, many parts. */
#include "conformance.h"

#include <sys/mman.h>
#include <sys/sendfile.h>

#define FILE_BYTES (1 << 20)

static int filled_file(unsigned seed)
{
	int fd = MUST(memfd_create("file", MFD_CLOEXEC));
	char *bytes = malloc(FILE_BYTES);
	pattern(bytes, FILE_BYTES, seed);
	MUST(write(fd, bytes, FILE_BYTES));
	MUST(lseek(fd, 0, SEEK_SET));
	free(bytes);
	return fd;
}

static void say_file(struct side *s, const char *name, int fd)
{
	off_t bytes = MUST(lseek(fd, 0, SEEK_END));
	char *all = malloc(bytes + 1);
	MUST(pread(fd, all, bytes, 0));
	say_bytes(s, name, all, bytes);
	free(all);
}

static void sendfile_client(struct side *s)
{
	int fd = filled_file(1);
	signal(SIGPIPE, SIG_IGN);
	off_t at = 1000, left = FILE_BYTES - at;
	while (left > 0)
		left -= MUST(sendfile(s->fd, fd, &at, left));
	say(s, "at: %ld, offset of the file: %ld", (long)at, (long)lseek(fd, 0, SEEK_CUR));
	MUST(send_all(s->fd, "between", 7));
	for (left = 100000; left > 0;)
		left -= MUST(sendfile(s->fd, fd, NULL, left));
	say(s, "offset of the file: %ld", (long)lseek(fd, 0, SEEK_CUR));
	MUST(lseek(fd, 0, SEEK_END));
	SAY(sendfile(s->fd, fd, NULL, 10));
	SAY(sendfile(s->fd, -1, NULL, 10));
	MUST(send_all(s->fd, "behind", 6));
	SAY(shutdown(s->fd, SHUT_WR));
	SAY(sendfile(s->fd, fd, &(off_t){ 0 }, 10) < 0 ? -1 : 0);
	close(fd);
}

static void to_end_server(struct side *s)
{
	signal(SIGPIPE, SIG_IGN);
	receive_to_end(s, s->fd);
}

static void splice_in_client(struct side *s)
{
	int fd = filled_file(2), ends[2];
	signal(SIGPIPE, SIG_IGN);
	MUST(pipe(ends));
	MUST(send_all(s->fd, "before", 6));
	for (long left = FILE_BYTES; left > 0;) {
		long part = MUST(splice(fd, NULL, ends[1], NULL, left < 65536 ? left : 65536, SPLICE_F_MORE));
		left -= part;
		while (part > 0)
			part -= MUST(splice(ends[0], NULL, s->fd, NULL, part, 0));
	}
	MUST(send_all(s->fd, "behind", 6));
	SAY(splice(ends[0], NULL, s->fd, NULL, 10, SPLICE_F_NONBLOCK));
	SAY(shutdown(s->fd, SHUT_WR));
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void plain_client(struct side *s)
{
	char *bytes = malloc(FILE_BYTES);
	pattern(bytes, FILE_BYTES, 3);
	meet(s);
	SAY(send_all(s->fd, bytes, FILE_BYTES));
	SAY(shutdown(s->fd, SHUT_WR));
	free(bytes);
}

static void splice_out_server(struct side *s)
{
	int fd = MUST(memfd_create("file", MFD_CLOEXEC)), ends[2];
	long all = 0, part;
	MUST(pipe(ends));
	set_nonblocking(s->fd, true);
	SAY(splice(s->fd, NULL, ends[1], NULL, 10, SPLICE_F_NONBLOCK));
	set_nonblocking(s->fd, false);
	meet(s);
	while ((part = MUST(splice(s->fd, NULL, ends[1], NULL, 65536, 0))) > 0) {
		all += part;
		while (part > 0)
			part -= MUST(splice(ends[0], NULL, fd, NULL, part, 0));
	}
	say(s, "spliced: %ld", all);
	say_file(s, "file", fd);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void sendfile_out_server(struct side *s)
{
	int fd = MUST(memfd_create("file", MFD_CLOEXEC));
	SAY(sendfile(fd, s->fd, NULL, 100));
	meet(s);
	receive_to_end(s, s->fd);
	close(fd);
}

static void several_client(struct side *s)
{
	char texts[3][8] = { "one", "two", "three" };
	struct iovec parts[3] = { { texts[0], 3 }, { texts[1], 3 }, { texts[2], 5 } };
	struct mmsghdr messages[3] = { 0 };
	for (int i = 0; i < 3; i++)
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
	SAY(sendmmsg(s->fd, messages, 3, 0));
	say(s, "of %u, %u and %u bytes", messages[0].msg_len, messages[1].msg_len, messages[2].msg_len);
	meet(s);
	SAY(sendmmsg(s->fd, messages, 3, 0));
	SAY(sendmmsg(s->fd, messages, 0, 0));
	meet(s);
}

static void several_server(struct side *s)
{
	char bytes[2][16];
	struct iovec parts[2] = { { bytes[0], 4 }, { bytes[1], 16 } };
	struct mmsghdr messages[2] = { 0 };
	struct timespec limit = { .tv_sec = 60 };
	for (int i = 0; i < 2; i++)
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
	wait_unread(s->fd, 11);
	SAY(recvmmsg(s->fd, messages, 2, 0, &limit));
	say_bytes(s, "first", bytes[0], messages[0].msg_len);
	say_bytes(s, "second", bytes[1], messages[1].msg_len);
	SAY(recvmmsg(s->fd, messages, 2, MSG_DONTWAIT, NULL));
	meet(s);
	wait_unread(s->fd, 11);
	SAY(recvmmsg(s->fd, messages, 2, MSG_WAITFORONE, NULL));
	SAY(recvmmsg(s->fd, messages, 2, MSG_WAITFORONE | MSG_DONTWAIT, NULL));
	meet(s);
}

static void parts_client(struct side *s)
{
	static char bytes[1 << 18];
	struct iovec parts[100];
	pattern(bytes, sizeof bytes, 4);
	for (int i = 0; i < 100; i++)
		parts[i] = (struct iovec){ bytes + 1000 * i, i % 3 ? 10 * i : 0 };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 100 };
	SAY(writev(s->fd, parts, 100));
	SAY(sendmsg(s->fd, &message, MSG_NOSIGNAL));
	SAY(writev(s->fd, parts, 0));
	volatile int none = -1, too_many = 5000;
	SAY(writev(s->fd, parts, none));
	SAY(writev(s->fd, parts, too_many));
	message.msg_iovlen = 5000;
	SAY(sendmsg(s->fd, &message, MSG_NOSIGNAL));
	SAY(send(s->fd, bytes, 100, MSG_MORE));
	SAY(send(s->fd, bytes, 100, 0));
	SAY(send(s->fd, bytes, 100, MSG_EOR | MSG_NOSIGNAL));
	SAY(shutdown(s->fd, SHUT_WR));
}

static void parts_server(struct side *s)
{
	static char bytes[100000];
	struct iovec parts[3] = { { bytes, 10000 }, { NULL, 0 }, { bytes + 10000, 20000 } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 3 };
	wait_unread(s->fd, 30000);
	SAY(readv(s->fd, parts, 2));
	SAY(recvmsg(s->fd, &message, MSG_WAITALL) < 30000);
	receive_to_end(s, s->fd);
}

static void large_client(struct side *s)
{
	static char bytes[8 << 20];
	pattern(bytes, sizeof bytes, 5);
	for (size_t done = 0, size = 1; done < sizeof bytes; size = size * 3 % 300007 + 1) {
		size_t part = size < sizeof bytes - done ? size : sizeof bytes - done;
		MUST(send_all(s->fd, bytes + done, part));
		done += part;
	}
	MUST(shutdown(s->fd, SHUT_WR));
	receive_to_end(s, s->fd);
}

static void large_server(struct side *s)
{
	static char bytes[8 << 20];
	receive_to_end(s, s->fd);
	pattern(bytes, sizeof bytes, 6);
	SAY(send_all(s->fd, bytes, sizeof bytes));
}

#define OWN_BYTES (2 << 20)

/* One thread has both ends and writes two megabytes before it reads them. */
static void own_server(struct side *s)
{
	static char bytes[OWN_BYTES];
	int to = connect_cold(s), from = accept_cold(s);
	warm_alone(to, from);
	pattern(bytes, sizeof bytes, 7);
	SAY(send_all(to, bytes, sizeof bytes));
	say_events(s, "ready", ready_now(from, POLLIN));
	memset(bytes, 0, sizeof bytes);
	say_bytes(s, "received", bytes, receive_all(from, bytes, sizeof bytes));
	SAY(close(to));
	SAY(recv(from, bytes, 1, 0));
	SAY(close(from));
}

static void nothing_client(struct side *s)
{
	(void)s;
}

const struct test_case transfer_cases[] = {
	{ "sendfile", ANYWHERE, false, to_end_server, sendfile_client, "`sendfile` of a file" },
	{ "sendfile_out", ANYWHERE, false, sendfile_out_server, plain_client, "`sendfile` from a connection" },
	{ "splice_in", ANYWHERE, false, to_end_server, splice_in_client, "`splice` from a pipe" },
	{ "splice_out", ANYWHERE, false, splice_out_server, plain_client, "`splice` to a pipe" },
	{ "several", ANYWHERE, false, several_server, several_client, "`sendmmsg`, `recvmmsg`" },
	{ "parts", ANYWHERE, false, parts_server, parts_client, "`readv`, `writev`, `sendmsg` and `recvmsg` of several parts, `MSG_MORE`" },
	{ "large", ANYWHERE, false, large_server, large_client, "8 MB each way by parts of all sizes" },
	{ "own", TWO_PROCESSES, true, own_server, nothing_client, "2 MB that one thread writes and then reads itself" },
	{ 0 },
};
