/* A storm of short connections. `storm` says its port and answers each connection in a thread of a few; `storm PORT THREADS CONNECTIONS` connects from
 * many threads, each time for some messages there and back that are checked, and closes. Says how many were answered, how many of them left the kernel,
 * and what is left behind. */
#include "resources.h"

enum { ANSWERING = 8, MOST_MESSAGES = 24, MOST_BYTES = 3000, FIRST_STORMS = 100 };

static struct sockaddr_in address = { .sin_family = AF_INET };
static int each;
static volatile long answered, lost, carried;

static unsigned char value(unsigned seed, size_t byte)
{
	return (unsigned char)(seed * 2654435761u >> 24) ^ (unsigned char)(byte * 37 + seed);
}

static int receive_all(int fd, void *out, size_t bytes)
{
	for (size_t got = 0; got < bytes;) {
		ssize_t more = recv(fd, (char *)out + got, bytes - got, 0);

		if (more <= 0)
			return -1;
		got += (size_t)more;
	}
	return 0;
}

static int send_all(int fd, const void *from, size_t bytes)
{
	for (size_t sent = 0; sent < bytes;) {
		ssize_t more = send(fd, (const char *)from + sent, bytes - sent, MSG_NOSIGNAL);

		if (more <= 0)
			return -1;
		sent += (size_t)more;
	}
	return 0;
}

/* Each message begins with its seed and its length. An end in the middle is the other process's: it was killed. */
static void *answer(void *unused)
{
	unsigned char bytes[MOST_BYTES];
	unsigned head[2];

	(void)unused;
	for (;;) {
		int fd = accept(listener_fd, NULL, NULL);

		MUST(fd);
		while (!receive_all(fd, head, sizeof head)) {
			if (head[1] > MOST_BYTES) {
				printf("length %u\n", head[1]);
				exit(8);
			}
			if (receive_all(fd, bytes, head[1]))
				break;
			for (size_t byte = 0; byte < head[1]; byte++) {
				if (bytes[byte] != value(head[0], byte)) {
					printf("server: byte %zu of %u\n", byte, head[1]);
					exit(8);
				}
				bytes[byte] ^= 0x55;
			}
			if (send_all(fd, bytes, head[1]))
				break;
		}
		close(fd);
	}
	return NULL;
}

/* One connection; whether everything came back. */
static int ask(unsigned seed)
{
	unsigned char bytes[MOST_BYTES];
	int fd = socket(AF_INET, SOCK_STREAM, 0), is_lost = 0;
	/* Some end before they can have left the kernel, some at that moment, some behind it. */
	unsigned messages = 1 + seed % MOST_MESSAGES;
	unsigned long long sent = 0;

	MUST(fd);
	is_lost = connect(fd, (struct sockaddr *)&address, sizeof address) < 0;
	for (unsigned message = 0; message < messages && !is_lost; message++, seed += 977) {
		unsigned head[2] = { seed, 1 + seed * 2654435761u % MOST_BYTES };
		unsigned char whole[sizeof head + MOST_BYTES];

		for (size_t byte = 0; byte < head[1]; byte++)
			bytes[byte] = value(seed, byte);
		sent += sizeof head + head[1];
		memcpy(whole, head, sizeof head);
		memcpy(whole + sizeof head, bytes, head[1]);
		errno = 0;
		is_lost = send_all(fd, whole, sizeof head + head[1]) || receive_all(fd, bytes, head[1]);
		if (is_lost)
			printf("lost at message %u of %u: %s\n", message, messages, strerror(errno));
		for (size_t byte = 0; byte < head[1] && !is_lost; byte++)
			if (bytes[byte] != (value(seed, byte) ^ 0x55)) {
				printf("client: byte %zu of %u\n", byte, head[1]);
				exit(7);
			}
	}
	if (!is_lost && kernel_bytes(fd) < sent)
		__sync_add_and_fetch(&carried, 1);
	close(fd);
	return is_lost;
}

static void *storm(void *thread)
{
	for (int at = 0; at < each; at++) {
		if (ask((unsigned)(long)thread * 1000003u + (unsigned)at * 7919u))
			__sync_add_and_fetch(&lost, 1);
		else
			__sync_add_and_fetch(&answered, 1);
	}
	return NULL;
}

static void run(int threads)
{
	pthread_t all[64];

	for (long at = 0; at < threads; at++)
		MUST(-pthread_create(&all[at], NULL, storm, (void *)at));
	for (int at = 0; at < threads; at++)
		pthread_join(all[at], NULL);
}

int main(int arguments, char **argument)
{
	pthread_t threads[ANSWERING];

	set_limits();
	if (arguments < 4) {
		address = listener();
		MUST(listen(listener_fd, 4096));
		printf("port %d\n", ntohs(address.sin_port));
		fflush(stdout);
		for (int at = 0; at < ANSWERING; at++)
			MUST(-pthread_create(&threads[at], NULL, answer, NULL));
		/* Each line asks what this process has; the end is the end. */
		while (getchar() == '\n')
			say_resources("server", "left", 0, resources());
		exit(0);
	}
	address.sin_port = htons((uint16_t)atoi(argument[1]));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/* What a process has once a connection has left the kernel is there before anything is counted. On a busy machine that takes a few. */
	each = 10;
	for (int more = FIRST_STORMS; more > 0 && !carried; more--)
		run(atoi(argument[2]));
	answered = 0;
	each = atoi(argument[3]);
	/* Twice: what is left behind the first time is once for a process. */
	for (int round = 0; round < 2; round++) {
		struct resources last = { 0 }, now;

		run(atoi(argument[2]));
		/* Until nothing of what was closed goes on in the background. */
		while (now = resources(), memcmp(&now, &last, sizeof now)) {
			last = now;
			usleep(200000);
		}
		say_resources("client", "left", round, now);
	}
	printf("answered %ld lost %ld carried %ld\n", answered, lost, carried);
	return 0;
}
