/* Each call that sends, received by each call that receives; then what the calls say of a socket with nothing to receive. */
#include "ground.h"

static int ends[2];
static char text[] = "0123456789abcdef";
static char got[64];

static void show(const char *how, long bytes)
{
	printf("%s: %ld \"%.*s\"\n", how, bytes, bytes > 0 ? (int)bytes : 0, got);
}

static long by_write(void) { return write(ends[0], text, 5); }
static long by_send(void) { return send(ends[0], text, 6, MSG_NOSIGNAL); }
static long by_sendto(void) { return sendto(ends[0], text, 7, 0, NULL, 0); }

/* Of a connection the address says nothing. */
static long by_sendto_an_address(void)
{
	struct sockaddr_in elsewhere = { .sin_family = AF_INET, .sin_port = htons(9) };

	return sendto(ends[0], text, 8, 0, (struct sockaddr *)&elsewhere, sizeof elsewhere);
}

static long by_writev(void)
{
	struct iovec parts[] = { { text, 3 }, { NULL, 0 }, { text + 9, 4 } };

	return writev(ends[0], parts, 3);
}

static long by_sendmsg(void)
{
	struct iovec parts[] = { { text + 2, 2 }, { text + 5, 3 } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

	return sendmsg(ends[0], &message, MSG_DONTWAIT);
}

static long by_sendmmsg(void)
{
	struct iovec parts[] = { { text, 2 }, { text + 5, 3 } };
	struct mmsghdr messages[] = { { .msg_hdr = { .msg_iov = parts, .msg_iovlen = 1 } },
				      { .msg_hdr = { .msg_iov = parts + 1, .msg_iovlen = 1 } } };
	long count = sendmmsg(ends[0], messages, 2, 0);

	printf("sendmmsg: %ld of %u and %u bytes\n", count, messages[0].msg_len, messages[1].msg_len);
	return messages[0].msg_len + messages[1].msg_len;
}

static long by_sendfile(void)
{
	char name[] = "/tmp/beeline-callsXXXXXX";
	int file = mkstemp(name);
	off_t offset = 4;

	MUST(file);
	MUST(write(file, text, 16));
	long sent = sendfile(ends[0], file, &offset, 9);

	printf("sendfile: offset %ld\n", (long)offset);
	unlink(name);
	close(file);
	return sent;
}

static long by_splice(void)
{
	int ways[2];

	MUST(pipe(ways));
	MUST(write(ways[1], text, 8));
	long sent = splice(ways[0], NULL, ends[0], NULL, 8, 0);

	close(ways[0]);
	close(ways[1]);
	return sent;
}

static void take(long bytes, int how)
{
	struct iovec parts[] = { { got, 2 }, { NULL, 0 }, { got + 2, sizeof got - 2 } };
	struct sockaddr_in6 address;
	socklen_t length = sizeof address;
	struct msghdr message = { .msg_name = &address, .msg_namelen = sizeof address,
				  .msg_iov = parts, .msg_iovlen = 3,
				  .msg_control = &address, .msg_controllen = sizeof address, .msg_flags = -1 };
	struct mmsghdr messages[] = { { .msg_hdr = message }, { .msg_hdr = message } };
	struct timespec none = { 0, 0 };
	int waiting = -1;

	memset(got, '.', sizeof got);
	while (waiting < bytes)
		MUST(ioctl(ends[1], FIONREAD, &waiting));
	printf("FIONREAD: %d\n", waiting);
	switch (how) {
	case 0: show("read", read(ends[1], got, sizeof got)); break;
	case 1: show("readv", readv(ends[1], parts, 3)); break;
	case 2: show("recv", recv(ends[1], got, sizeof got, 0)); break;
	case 3:
		show("recvfrom", recvfrom(ends[1], got, sizeof got, 0, (struct sockaddr *)&address, &length));
		printf("recvfrom: address of %u\n", length);
		break;
	case 4:
		show("recvmsg", recvmsg(ends[1], &message, MSG_CMSG_CLOEXEC));
		printf("recvmsg: name %u, control %zu, flags %x\n", message.msg_namelen, message.msg_controllen, message.msg_flags);
		break;
	case 5:
		printf("recvmmsg: %d\n", recvmmsg(ends[1], messages, 2, MSG_WAITFORONE, &none));
		show("recvmmsg", messages[0].msg_len);
		break;
	case 6:
		show("peek", recv(ends[1], got, 3, MSG_PEEK));
		show("all", recv(ends[1], got, bytes, MSG_WAITALL));
		break;
	case 7:
		show("truncated", recv(ends[1], NULL, 2, MSG_TRUNC) == 2 ? 0 : -1);
		show("rest", recv(ends[1], got, sizeof got, MSG_DONTWAIT));
		break;
	}
}

static void with_nothing_to_receive(void)
{
	struct iovec parts[] = { { got, sizeof got } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 1 };
	struct mmsghdr messages[] = { { .msg_hdr = message } };
	int on = 1, off = 0, value = 0;

	SAY(recv(ends[1], got, sizeof got, MSG_DONTWAIT));
	SAY(recvmsg(ends[1], &message, MSG_DONTWAIT));
	SAY(recvmmsg(ends[1], messages, 1, MSG_DONTWAIT, NULL));
	SAY(fcntl(ends[1], F_SETFL, fcntl(ends[1], F_GETFL) | O_NONBLOCK));
	SAY(fcntl(ends[1], F_GETFL));
	SAY(read(ends[1], got, sizeof got));
	SAY(readv(ends[1], parts, 1));
	SAY(read(ends[1], got, 0));
	SAY(recv(ends[1], got, 0, 0));
	SAY(ioctl(ends[1], FIONBIO, &off));
	SAY(fcntl(ends[1], F_GETFL));
	SAY(ioctl(ends[1], FIONBIO, &on));
	SAY(ioctl(ends[1], FIONREAD, &value));
	SAY(ioctl(ends[0], TIOCOUTQ, &value));
	SAY(recv(ends[1], got, sizeof got, MSG_OOB));
	SAY(recv(ends[1], got, sizeof got, MSG_ERRQUEUE | MSG_DONTWAIT));
	SAY(sockatmark(ends[1]));
	SAY(read(-1, got, 1));
	SAY(write(1000, got, 1));
	SAY(readv(ends[1], parts, -1));
	SAY(readv(ends[1], parts, 2000));
	SAY(readv(ends[1], NULL, 1));
	SAY(writev(ends[1], parts, 2000));
	message.msg_iovlen = 2000;
	SAY(recvmsg(ends[1], &message, 0));
	SAY(sendmsg(ends[1], &message, 0));
	SAY(write(ends[1], NULL, 4));
	SAY(write(ends[1], got, (size_t)-1));
	SAY(read(ends[1], got, (size_t)-1));
	SAY(write(ends[1], got, 0));
	SAY(setsockopt(ends[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
	SAY(setsockopt(ends[1], SOL_SOCKET, SO_OOBINLINE, &on, sizeof on));
	SAY(setsockopt(ends[1], SOL_SOCKET, 12345, &on, sizeof on));
	socklen_t length = sizeof value;
	SAY(getsockopt(ends[1], SOL_SOCKET, SO_ERROR, &value, &length));
}

static void to_the_end(void)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	SAY(write(ends[0], text, 4));
	SAY(shutdown(ends[0], 77));
	SAY(shutdown(ends[0], SHUT_WR));
	SAY(send(ends[0], text, 1, MSG_NOSIGNAL));
	wait_readable(ends[1]);
	SAY(recv(ends[1], got, sizeof got, MSG_WAITALL));
	SAY(read(ends[1], got, sizeof got));
	SAY(write(ends[1], text, 3));
	wait_readable(ends[0]);
	SAY(read(ends[0], got, sizeof got));
	SAY(connect(ends[0], &none, sizeof none));
	SAY(read(ends[0], got, sizeof got));
	SAY(close(ends[0]));
	SAY(close(ends[0]));
	SAY(close(ends[1]));
}

int main(int count, char **arguments)
{
	long (*const senders[])(void) = { by_write, by_send, by_sendto, by_sendto_an_address, by_writev,
					  by_sendmsg, by_sendmmsg, by_sendfile, by_splice };

	int has_splice = count < 2;

	(void)arguments;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t how = 0; how < sizeof senders / sizeof *senders; how++) {
		connection(ends);
		/* Behind it a carried connection is the kernel's, and pieces are received one by one. */
		if (senders[how] == by_splice && !has_splice)
			continue;
		for (int receives = 0; receives < 8; receives++)
			take(senders[how](), receives);
		close(ends[0]);
		close(ends[1]);
	}
	connection(ends);
	with_nothing_to_receive();
	to_the_end();
	return 0;
}
