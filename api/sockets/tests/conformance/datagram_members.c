/* Members of a group that is of these two programs alone: what they see of what is sent to it, by the kernel or by a window each. */
#include "datagrams.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>

#define MEMBERS 3

static int membership(int fd, int name, const struct name *group)
{
	struct ip_mreq request = { ((const struct sockaddr_in *)&group->of)->sin_addr, { htonl(INADDR_LOOPBACK) } };
	return setsockopt(fd, IPPROTO_IP, name, &request, sizeof request);
}

/* The group of a port: other runs have others. */
static struct name group_of(uint16_t port)
{
	struct name group = { .length = sizeof(struct sockaddr_in) };
	struct sockaddr_in *of = (struct sockaddr_in *)&group.of;
	of->sin_family = AF_INET;
	of->sin_port = port;
	of->sin_addr.s_addr = htonl(0xefff0000 | ntohs(port));
	return group;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in own;
	socklen_t length = sizeof own;
	MUST(getsockname(fd, (struct sockaddr *)&own, &length));
	return own.sin_port;
}

/* The server's members, warm; what the client's socket is called. */
static struct name open_members(struct side *s, int *members, int count, struct name *group)
{
	struct name client;
	uint16_t port = 0;
	for (int at = 0; at < count; at++) {
		members[at] = open_sharing(port);
		port = port_of(members[at]);
		*group = group_of(port);
		MUST(membership(members[at], IP_ADD_MEMBERSHIP, group));
	}
	MUST(write(s->to_other, group, sizeof *group));
	if (read(s->from_other, &client, sizeof client) != sizeof client)
		fail("the other side has no socket");
	warm_members(s, members, count, NULL, 0);
	return client;
}

static void open_sender(struct side *s, struct name *group)
{
	struct in_addr loopback = { htonl(INADDR_LOOPBACK) };
	struct name own;
	s->fd = open_bound(AF_INET, &own);
	MUST(setsockopt(s->fd, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback));
	if (read(s->from_other, group, sizeof *group) != sizeof *group)
		fail("the other side has no socket");
	MUST(write(s->to_other, &own, sizeof own));
	warm_members(s, &s->fd, 1, &group->of, group->length);
}

static void close_all(const int *fds, int count)
{
	for (int at = 0; at < count; at++)
		close(fds[at]);
}

/* So many numbers from the first one on, one behind the other. */
static void send_numbers(struct side *s, const struct name *group, int first, int count)
{
	for (int number = first; number < first + count; number++)
		if (send_to(s->fd, group, &number, sizeof number) != sizeof number)
			say(s, "not sent: %d, %s", number, strerrorname_np(errno));
}

/* What a member has: the first number, how many in a row, and whether others are behind them. */
static void say_numbers(struct side *s, int at, int fd)
{
	int first = receive_number(fd, MSG_DONTWAIT), count = first >= 0, more;
	while ((more = receive_number(fd, MSG_DONTWAIT)) == first + count && more >= 0)
		count++;
	say(s, "member %d: %d from %d on, then %d", at, count, first, more);
}

static void say_all(struct side *s, const int *members, int count)
{
	meet(s);
	meet_delivered(s);
	for (int at = 0; at < count; at++)
		say_numbers(s, at, members[at]);
	meet(s);
}

/* Sends some numbers, and lets the members have them. */
static void send_round(struct side *s, const struct name *group, int round)
{
	/* The members are what they are to be. */
	meet(s);
	send_numbers(s, group, 100 * round, 20);
	meet_delivered(s);
	meet(s);
}

static const size_t lengths[] = { 0, 1, 8, 48, 49, 56, 64, 1000, 1472, 9000, 40000, 65507, 3 };
#define LENGTHS (sizeof lengths / sizeof *lengths)

static void lengths_client(struct side *s)
{
	static __thread char bytes[MOST_BYTES];
	struct name group;
	open_sender(s, &group);
	for (size_t i = 0; i < LENGTHS; i++) {
		pattern(bytes, lengths[i], i);
		SAY(send_to(s->fd, &group, bytes, lengths[i]));
		meet(s);
	}
	SAY(send_to(s->fd, &group, bytes, 65508));
	for (int i = 0; i < 4; i++)
		SAY(send_to(s->fd, &group, bytes + i, 100 + i));
	meet(s);
	meet(s);
}

static void lengths_server(struct side *s)
{
	static __thread char bytes[MOST_BYTES];
	int members[MEMBERS], unread;
	struct name group, client = open_members(s, members, MEMBERS, &group);
	for (size_t i = 0; i < LENGTHS; i++) {
		for (int at = 0; at < MEMBERS; at++) {
			s->fd = members[at];
			receive_from(s, &client, sizeof bytes, 0);
		}
		meet(s);
	}
	meet_delivered(s);
	for (int at = 0; at < MEMBERS; at++) {
		s->fd = members[at];
		receive_from(s, &client, 10, MSG_PEEK);
		receive_from(s, &client, 10, MSG_TRUNC);
		SAY(ioctl(s->fd, FIONREAD, &unread));
		say(s, "unread %d", unread);
		say_events(s, "ready", ready_now(s->fd, POLLIN));
		receive_from(s, &client, sizeof bytes, 0);
		receive_from(s, &client, 0, 0);
		receive_from(s, &client, sizeof bytes, MSG_DONTWAIT);
		receive_from(s, &client, sizeof bytes, MSG_DONTWAIT);
		say_events(s, "ready", ready_now(s->fd, POLLIN));
	}
	meet(s);
	s->fd = -1;
	close_all(members, MEMBERS);
}

/* A member that leaves has the group of others on its host still; the last one has nothing. */
static void leaving_client(struct side *s)
{
	struct name group;
	int off = 0, on = 1, far = 9;
	open_sender(s, &group);
	for (int round = 1; round < 6; round++)
		send_round(s, &group, round);
	SAY(setsockopt(s->fd, IPPROTO_IP, IP_MULTICAST_LOOP, &off, sizeof off));
	send_round(s, &group, 6);
	SAY(setsockopt(s->fd, IPPROTO_IP, IP_MULTICAST_LOOP, &on, sizeof on));
	send_round(s, &group, 7);
	SAY(setsockopt(s->fd, IPPROTO_IP, IP_MULTICAST_TTL, &off, sizeof off));
	send_round(s, &group, 8);
	SAY(setsockopt(s->fd, IPPROTO_IP, IP_MULTICAST_TTL, &far, sizeof far));
	send_round(s, &group, 9);
}

static void leaving_server(struct side *s)
{
	int members[MEMBERS];
	struct name group;
	open_members(s, members, MEMBERS, &group);
	say_all(s, members, MEMBERS);
	SAY(membership(members[0], IP_DROP_MEMBERSHIP, &group));
	SAY(membership(members[0], IP_DROP_MEMBERSHIP, &group));
	say_all(s, members, MEMBERS);
	close(members[1]);
	members[1] = members[2];
	say_all(s, members, 2);
	SAY(membership(members[1], IP_DROP_MEMBERSHIP, &group));
	say_all(s, members, 2);
	SAY(membership(members[1], IP_ADD_MEMBERSHIP, &group));
	SAY(membership(members[1], IP_ADD_MEMBERSHIP, &group));
	for (int round = 5; round < 10; round++)
		say_all(s, members, 2);
	close_all(members, 2);
}

/* Sockets that have the port and have not joined, or hear from others alone; a member that sends; the same port by one address. */
static void sharing_client(struct side *s)
{
	struct name group;
	open_sender(s, &group);
	for (int round = 1; round < 6; round++)
		send_round(s, &group, round);
	struct name one = group;
	((struct sockaddr_in *)&one.of)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/* By the address of one the last socket of the port has it. */
	meet(s);
	send_numbers(s, &group, 600, 3);
	send_numbers(s, &one, 603, 1);
	send_numbers(s, &group, 604, 3);
	meet_delivered(s);
	meet(s);
	send_round(s, &group, 7);
}

static void sharing_server(struct side *s)
{
	int members[MEMBERS + 1], number = 4711;
	struct name group;
	open_members(s, members, 2, &group);
	uint16_t port = port_of(members[0]);
	say_all(s, members, 2);
	/* It has the groups of others. */
	members[2] = open_sharing(port);
	say_all(s, members, 3);
	/* It joins, and sends. */
	SAY(membership(members[2], IP_ADD_MEMBERSHIP, &group));
	SAY(setsockopt(members[2], IPPROTO_IP, IP_MULTICAST_IF, &(struct in_addr){ htonl(INADDR_LOOPBACK) }, sizeof(struct in_addr)));
	SAY(send_to(members[2], &group, &number, sizeof number));
	poll(NULL, 0, 20);
	for (int at = 0; at < 3; at++)
		say(s, "member %d: %d", at, receive_number(members[at], MSG_DONTWAIT));
	say_all(s, members, 3);
	/* It hears from somebody else alone. */
	members[3] = open_sharing(port);
	struct sockaddr_in nobody = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	MUST(connect(members[3], (struct sockaddr *)&nobody, sizeof nobody));
	say_all(s, members, 4);
	close(members[3]);
	say_all(s, members, 3);
	close(members[2]);
	say_all(s, members, 2);
	say_all(s, members, 2);
	close_all(members, 2);
}

/* A receive and a set of epoll that wait are woken. */
static void waiting_client(struct side *s)
{
	struct name group;
	open_sender(s, &group);
	for (int number = 0; number < 30; number++) {
		meet(s);
		if (number % 3)
			poll(NULL, 0, number % 7);
		send_numbers(s, &group, number, 1);
		meet(s);
	}
}

static void waiting_server(struct side *s)
{
	int members[MEMBERS];
	struct name group;
	open_members(s, members, MEMBERS, &group);
	int set = MUST(epoll_create1(EPOLL_CLOEXEC));
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 7 };
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, members[1], &event));
	for (int number = 0; number < 30; number++) {
		meet(s);
		say(s, "member 0: %d", receive_number(members[0], 0));
		say(s, "set: %d", (int)epoll_wait(set, &event, 1, 5000));
		say(s, "member 1: %d", receive_number(members[1], MSG_DONTWAIT));
		wait_readable(members[2]);
		say(s, "member 2: %d", receive_number(members[2], MSG_DONTWAIT));
		meet(s);
	}
	close(set);
	close_all(members, MEMBERS);
}

const struct test_case datagram_member_cases[] = {
	{ "udp_group_lengths", ANYWHERE, true, lengths_server, lengths_client, "members of a group: lengths, addresses, `MSG_PEEK`, `MSG_TRUNC`, `FIONREAD`" },
	{ "udp_group_leaving", ANYWHERE, true, leaving_server, leaving_client, "members that leave and close, `IP_MULTICAST_LOOP`, `IP_MULTICAST_TTL`" },
	{ "udp_group_sharing", ANYWHERE, true, sharing_server, sharing_client, "sockets of the port that have not joined or are connected, a member that sends, the port by one address" },
	{ "udp_group_waiting", ANYWHERE, true, waiting_server, waiting_client, "members that wait in a receive, in `epoll` and in `poll`" },
	{ 0 },
};
