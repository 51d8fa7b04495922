/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Echo over the kernel's sockets: the low bar of a round trip on one machine, and the rival over a wire.
 *
 * Variants: `tcp` (TCP_NODELAY), `unix` (AF_UNIX) and `udp`, blocking, as most programs use them; `udp-busy-poll`, blocking with
 * SO_BUSY_POLL of 50 us, where the kernel polls the device if that can be polled; `tcp-polled`, `unix-polled` and `udp-polled`, which
 * ask again and never sleep. `tcp-stream` and `unix-stream` send messages one behind the other (put.h), each by a call of its own, and
 * are answered once. The address is `IP:PORT`, and `@NAME` of AF_UNIX; a server listens on the address in ECHO_BIND, 127.0.0.1 without
 * it.
 */
#include "put.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define BUSY_POLL_US 50

struct rival {
	int socket;
	/* Connected, and bytes without borders. */
	bool stream;
	bool is_local, sends_streams;
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
	rival->is_local = strncmp(variant, "unix", 4) == 0;
	rival->stream = rival->is_local || strncmp(variant, "tcp", 3) == 0;
	if (!rival->stream && strncmp(variant, "udp", 3) != 0)
		die("no variant %s: tcp, unix, udp, each with -polled, -stream (not udp), -busy-poll (udp alone)", variant);
	rival->flags = strstr(variant, "-polled") ? MSG_DONTWAIT : 0;
	rival->sends_streams = rival->stream && strstr(variant, "-stream");
	int socket_ = socket(rival->is_local ? AF_UNIX : AF_INET, rival->stream ? SOCK_STREAM : SOCK_DGRAM, 0);
	if (socket_ < 0)
		die("cannot open a socket: %s", strerror(errno));
	if (rival->stream && !rival->is_local)
		set(socket_, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
	if (strcmp(variant, "udp-busy-poll") == 0)
		set(socket_, SOL_SOCKET, SO_BUSY_POLL, BUSY_POLL_US, "SO_BUSY_POLL");
	return socket_;
}

/* Listens under a name that the kernel chooses; nothing of it is in a file system. */
static void listen_locally(struct rival *rival, char *address)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	socklen_t length = sizeof(at);

	if (bind(rival->socket, (struct sockaddr *)&at, sizeof(at.sun_family)) != 0 || listen(rival->socket, 1) != 0 ||
	    getsockname(rival->socket, (struct sockaddr *)&at, &length) != 0)
		die("cannot listen: %s", strerror(errno));
	/* The name begins behind a zero. */
	sprintf(address, "@%.*s", (int)(length - offsetof(struct sockaddr_un, sun_path) - 1), at.sun_path + 1);
}

static void connect_locally(struct rival *rival, const char *name)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t bytes = strlen(name);

	if (bytes >= sizeof(to.sun_path))
		die("not an address: @%s", name);
	memcpy(to.sun_path + 1, name, bytes);
	if (connect(rival->socket, (struct sockaddr *)&to, offsetof(struct sockaddr_un, sun_path) + 1 + bytes) != 0)
		die("cannot connect to @%s: %s", name, strerror(errno));
}

static void open_server(struct rival *rival, const char *variant, char *address)
{
	const char *bind_to = getenv("ECHO_BIND");
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t length = sizeof(at);

	rival->socket = open_socket(rival, variant);
	if (rival->is_local) {
		listen_locally(rival, address);
		return;
	}
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

	rival->socket = open_socket(rival, variant);
	if (rival->is_local) {
		connect_locally(rival, address + 1);
		return;
	}
	if (sscanf(address, "%63[^:]:%u", ip, &port) != 2 || inet_pton(AF_INET, ip, &to.sin_addr) != 1)
		die("not an address: %s", address);
	to.sin_port = htons((uint16_t)port);
	if (connect(rival->socket, (struct sockaddr *)&to, sizeof(to)) != 0)
		die("cannot connect to %s: %s", address, strerror(errno));
}

static void begin(struct rival *rival, size_t bytes)
{
	if (rival->sends_streams)
		check_sizes(bytes, true);
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

static void send_stream(struct rival *rival, const unsigned char *from, size_t bytes)
{
	static unsigned char message[MESSAGE_BYTES];
	size_t count = stream_messages(bytes);

	memcpy(message, from, bytes);
	for (size_t i = 0; i < count; i++) {
		mark(message, bytes, 1, i);
		send_whole(rival, message, bytes);
	}
	receive_whole(rival, message, 1);
}

static void trip(struct rival *rival, const unsigned char *request, unsigned char *answer, size_t bytes)
{
	if (rival->sends_streams) {
		send_stream(rival, request, bytes);
		memcpy(answer, request, bytes);
		return;
	}
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
		if (!rival->is_local)
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
	/* The size of which a stream was looked at whole. */
	static size_t looked_at;
	static unsigned char message[STREAM_BYTES];

	if (!met)
		meet(rival);
	met = true;
	if (rival->sends_streams) {
		receive_whole(rival, message, STREAM_BYTES);
		if (bytes != looked_at)
			look_at_stream(message, bytes, 1);
		looked_at = bytes;
		send_whole(rival, message, 1);
		return;
	}
	receive_whole(rival, message, bytes);
	send_whole(rival, message, bytes);
}

static void close_side(struct rival *rival)
{
	close(rival->socket);
}

#include "echo.h"
