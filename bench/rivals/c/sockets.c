/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Echo over the kernel's sockets: the low bar of a round trip on one machine, and the rival over a wire.
 *
 * Variants: `tcp` (TCP_NODELAY) and `udp`, blocking, as most programs use them; `udp-busy-poll`, blocking with
 * SO_BUSY_POLL of 50 us, where the kernel polls the device if that can be polled; `tcp-polled` and `udp-polled`, which
 * ask again and never sleep. The address is `IP:PORT`; a server listens on the address in ECHO_BIND, 127.0.0.1
 * without it.
 */
#include "start.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define BUSY_POLL_US 50

struct rival {
	int socket;
	bool stream;
	/* Flags of every receive. */
	int flags;
};

static void set(int socket, int level, int option, int value, const char *name)
{
	if (setsockopt(socket, level, option, &value, sizeof(value)) != 0)
		die("cannot set %s: %s", name, strerror(errno));
}

static int open_socket(struct rival *rival, const char *variant)
{
	rival->stream = strncmp(variant, "tcp", 3) == 0;
	if (!rival->stream && strncmp(variant, "udp", 3) != 0)
		die("no variant %s: tcp, udp, udp-busy-poll, tcp-polled, udp-polled", variant);
	rival->flags = strstr(variant, "-polled") ? MSG_DONTWAIT : 0;
	int socket_ = socket(AF_INET, rival->stream ? SOCK_STREAM : SOCK_DGRAM, 0);
	if (socket_ < 0)
		die("cannot open a socket: %s", strerror(errno));
	if (rival->stream)
		set(socket_, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
	if (strcmp(variant, "udp-busy-poll") == 0)
		set(socket_, SOL_SOCKET, SO_BUSY_POLL, BUSY_POLL_US, "SO_BUSY_POLL");
	return socket_;
}

static void open_server(struct rival *rival, const char *variant, char *address)
{
	const char *bind_to = getenv("ECHO_BIND");
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t length = sizeof(at);

	rival->socket = open_socket(rival, variant);
	if (inet_pton(AF_INET, bind_to ? bind_to : "127.0.0.1", &at.sin_addr) != 1)
		die("ECHO_BIND is no IPv4 address: %s", bind_to);
	if (bind(rival->socket, (struct sockaddr *)&at, sizeof(at)) != 0)
		die("cannot bind to %s: %s", bind_to ? bind_to : "127.0.0.1", strerror(errno));
	if (rival->stream && listen(rival->socket, 1) != 0)
		die("cannot listen: %s", strerror(errno));
	if (getsockname(rival->socket, (struct sockaddr *)&at, &length) != 0)
		die("cannot ask for the port: %s", strerror(errno));
	sprintf(address, "%s:%u", inet_ntoa(at.sin_addr), ntohs(at.sin_port));
}

static void open_client(struct rival *rival, const char *variant, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	char ip[64];
	unsigned port;

	if (sscanf(address, "%63[^:]:%u", ip, &port) != 2 || inet_pton(AF_INET, ip, &to.sin_addr) != 1)
		die("not an address: %s", address);
	to.sin_port = htons((uint16_t)port);
	rival->socket = open_socket(rival, variant);
	if (connect(rival->socket, (struct sockaddr *)&to, sizeof(to)) != 0)
		die("cannot connect to %s: %s", address, strerror(errno));
}

static void begin(struct rival *rival, size_t bytes)
{
	(void)rival;
	(void)bytes;
}

static void send_whole(struct rival *rival, const unsigned char *from, size_t bytes)
{
	ssize_t sent = send(rival->socket, from, bytes, MSG_NOSIGNAL);
	if (sent != (ssize_t)bytes)
		die("sent %zd of %zu bytes: %s", sent, bytes, strerror(errno));
}

static void receive_whole(struct rival *rival, unsigned char *into, size_t bytes)
{
	for (size_t have = 0; have < bytes;) {
		ssize_t got = recv(rival->socket, into + have, bytes - have, rival->flags);
		if (got < 0 && errno == EAGAIN)
			continue;
		if (got <= 0 || (!rival->stream && (size_t)got != bytes))
			die("received %zd of %zu bytes: %s", got, bytes, strerror(errno));
		have += (size_t)got;
	}
}

static void trip(struct rival *rival, const unsigned char *request, unsigned char *answer, size_t bytes)
{
	send_whole(rival, request, bytes);
	receive_whole(rival, answer, bytes);
}

/* The first request shows who asks: a stream is accepted, a datagram socket connected, so that both sides pay for no
 * address after it. */
static void meet(struct rival *rival)
{
	if (rival->stream) {
		int accepted = accept(rival->socket, NULL, NULL);
		if (accepted < 0)
			die("cannot accept: %s", strerror(errno));
		set(accepted, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
		close(rival->socket);
		rival->socket = accepted;
		return;
	}
	struct sockaddr_in from;
	socklen_t length = sizeof(from);
	if (recvfrom(rival->socket, NULL, 0, MSG_PEEK, (struct sockaddr *)&from, &length) < 0 ||
	    connect(rival->socket, (struct sockaddr *)&from, length) != 0)
		die("cannot meet the client: %s", strerror(errno));
}

static void answer_one(struct rival *rival, size_t bytes)
{
	static bool met;
	unsigned char message[4096];

	if (!met)
		meet(rival);
	met = true;
	receive_whole(rival, message, bytes);
	send_whole(rival, message, bytes);
}

static void close_side(struct rival *rival)
{
	close(rival->socket);
}

#include "echo.h"
