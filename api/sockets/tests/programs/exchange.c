/* Two processes exchange messages over one connection: rounds, bytes of a message, and how many at a time. Says which share of the bytes the kernel carried. */
#include "ground.h"

static unsigned char value(size_t at, int turn)
{
	return (unsigned char)(at * 31 + at / 251 + (size_t)turn * 7);
}

static void receive_all(int fd, unsigned char *out, size_t bytes)
{
	size_t got = 0;

	while (got < bytes) {
		ssize_t more = recv(fd, out + got, bytes - got, 0);

		if (more <= 0) {
			printf("recv gave %zd %s after %zu of %zu\n", more, more < 0 ? strerrorname_np(errno) : "", got, bytes);
			exit(9);
		}
		got += (size_t)more;
	}
}

static void send_all(int fd, const unsigned char *from, size_t bytes)
{
	while (bytes) {
		ssize_t more = send(fd, from, bytes, 0);

		MUST(more);
		from += more;
		bytes -= (size_t)more;
	}
}

/* Each byte of the stream has a value of its own, in both directions. */
static void serve(int fd, int rounds, size_t bytes)
{
	unsigned char *room = malloc(bytes);

	for (int turn = 0; turn < rounds; turn++) {
		receive_all(fd, room, bytes);
		for (size_t at = 0; at < bytes; at++)
			if (room[at] != value(at, turn)) {
				printf("server: byte %zu of round %d is %d\n", at, turn, room[at]);
				exit(8);
			}
		for (size_t at = 0; at < bytes; at++)
			room[at] ^= 0x55;
		send_all(fd, room, bytes);
	}
	char end;

	SAY(recv(fd, &end, 1, 0));
	free(room);
}

static void ask(int fd, int rounds, size_t bytes)
{
	unsigned char *room = malloc(bytes);

	for (int turn = 0; turn < rounds; turn++) {
		for (size_t at = 0; at < bytes; at++)
			room[at] = value(at, turn);
		send_all(fd, room, bytes);
		receive_all(fd, room, bytes);
		for (size_t at = 0; at < bytes; at++)
			if (room[at] != (value(at, turn) ^ 0x55)) {
				printf("client: byte %zu of round %d is %d\n", at, turn, room[at]);
				exit(7);
			}
	}
	free(room);
}

int main(int count, char **arguments)
{
	int rounds = count > 1 ? atoi(arguments[1]) : 1000;
	size_t bytes = count > 2 ? strtoul(arguments[2], NULL, 10) : 64;
	struct sockaddr_in address = listener();
	struct tcp_info info;
	socklen_t length = sizeof info;
	pid_t server = fork();

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!server) {
		int peer = accept(listener_fd, NULL, NULL);

		MUST(peer);
		close(listener_fd);
		serve(peer, rounds, bytes);
		return 0;
	}
	close(listener_fd);
	int fd = socket(AF_INET, SOCK_STREAM, 0), status;

	MUST(connect(fd, (struct sockaddr *)&address, sizeof address));
	ask(fd, rounds, bytes);
	MUST(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length));
	fprintf(stderr, "kernel: %llu of %llu bytes\n", (unsigned long long)info.tcpi_bytes_acked,
		(unsigned long long)rounds * bytes);
	close(fd);
	MUST(waitpid(server, &status, 0));
	printf("server: %d\n", status);
	return 0;
}
