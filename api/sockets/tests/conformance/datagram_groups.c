/* One socket of UDP under several addresses: of this host, of a group, of everybody. What one sender sends to it comes in order, by whichever of them. */
#include "datagrams.h"

/* The group of a port: other runs have others, whose members would be members of the host. */
static uint32_t group_of(uint16_t port)
{
	return 0xefff0000 | ntohs(port);
}

static uint16_t port_of(const struct name *name)
{
	return ((const struct sockaddr_in *)&name->of)->sin_port;
}

/* The name of a socket at another address. */
static struct name with_address(const struct name *name, uint32_t address)
{
	struct name other = *name;
	((struct sockaddr_in *)&other.of)->sin_addr.s_addr = htonl(address);
	return other;
}

/* The server's socket is at every address of the host. */
static void open_everywhere(struct side *s, struct name *other)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct name own;
	if (s->is_client) {
		s->fd = open_bound(AF_INET, &own);
	} else {
		s->fd = MUST(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
		MUST(bind(s->fd, (struct sockaddr *)&any, sizeof any));
		own.length = sizeof own.of;
		MUST(getsockname(s->fd, (struct sockaddr *)&own.of, &own.length));
		own = with_address(&own, INADDR_LOOPBACK);
	}
	MUST(write(s->to_other, &own, sizeof own));
	if (read(s->from_other, other, sizeof *other) != sizeof *other)
		fail("the other side has no socket");
	meet(s);
	warm_up_with(s, s->fd, &other->of, other->length);
	meet(s);
}

static void send_number_to(struct side *s, const struct name *to, int number)
{
	if (send_to(s->fd, to, &number, sizeof number) != sizeof number)
		say(s, "not sent: %d, %s", number, strerrorname_np(errno));
}

static int by_loopback(int fd)
{
	struct in_addr loopback = { htonl(INADDR_LOOPBACK) };
	return setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback);
}

static int join(int fd, int name, uint16_t port)
{
	struct ip_mreq group = { { htonl(group_of(port)) }, { htonl(INADDR_LOOPBACK) } };
	return setsockopt(fd, IPPROTO_IP, name, &group, sizeof group);
}

/* Between two numbers to the first name one to the other one; what was sent is received behind that. */
static void send_between(struct side *s, const struct name *first, const struct name *between)
{
	/* The last number by the first name is received, and the next ones by a window, if there is one. */
	for (int i = 0; i < 10; i++) {
		send_number_to(s, first, 4 * i);
		send_number_to(s, first, 4 * i + 1);
		send_number_to(s, between, 4 * i + 2);
		send_number_to(s, first, 4 * i + 3);
		meet(s);
		meet(s);
		/* As long as is waited for windows. */
		poll(NULL, 0, 3);
	}
}

static void say_between(struct side *s, int fd)
{
	for (int i = 0; i < 10; i++) {
		meet_delivered(s);
		for (int at = 0; at < 5; at++)
			say(s, "number %d", receive_number(fd, MSG_DONTWAIT));
		meet(s);
	}
}

static void names_client(struct side *s)
{
	struct name other;
	open_everywhere(s, &other);
	struct name second = with_address(&other, INADDR_LOOPBACK + 1);
	send_between(s, &other, &second);
}

static void names_server(struct side *s)
{
	struct name other;
	open_everywhere(s, &other);
	say_between(s, s->fd);
}

static void group_client(struct side *s)
{
	struct name other;
	open_everywhere(s, &other);
	SAY(by_loopback(s->fd));
	struct name group = with_address(&other, group_of(port_of(&other)));
	/* Nobody has joined. */
	send_between(s, &other, &group);
	/* The server has, with another socket; its first one has all groups of the host. */
	hear(s);
	send_between(s, &other, &group);
	/* The first one, too. */
	hear(s);
	send_between(s, &other, &group);
	/* Nobody any more. */
	hear(s);
	send_between(s, &other, &group);
}

static void group_server(struct side *s)
{
	struct name other, name, own = { .length = sizeof own.of };
	open_everywhere(s, &other);
	MUST(getsockname(s->fd, (struct sockaddr *)&own.of, &own.length));
	uint16_t port = port_of(&own);
	int member = open_bound(AF_INET, &name);
	say_between(s, s->fd);
	SAY(join(member, IP_ADD_MEMBERSHIP, port));
	tell(s);
	say_between(s, s->fd);
	SAY(join(s->fd, IP_ADD_MEMBERSHIP, port));
	tell(s);
	say_between(s, s->fd);
	SAY(join(s->fd, IP_DROP_MEMBERSHIP, port));
	SAY(join(member, IP_DROP_MEMBERSHIP, port));
	tell(s);
	say_between(s, s->fd);
	close(member);
}

/* Members of one port: each has each datagram once, also while others join and leave. */
#define ROUNDS 20
#define OF_ROUND 20

static void members_client(struct side *s)
{
	struct name group;
	open_warm(s, AF_INET, false, &group);
	SAY(by_loopback(s->fd));
	if (read(s->from_other, &group, sizeof group) != sizeof group)
		fail("a group");
	for (int round = 0; round < ROUNDS; round++) {
		/* The third member joins between two of these. */
		for (int i = 0; i < OF_ROUND; i++)
			send_number_to(s, &group, OF_ROUND * round + i);
		meet(s);
		/* It is there. */
		for (int i = 0; i < OF_ROUND; i++)
			send_number_to(s, &group, OF_ROUND * (ROUNDS + round) + i);
		meet(s);
		meet(s);
	}
}

/* Says whether all numbers of a round are there, each once and in order. `joins`: some of the first half are missing. */
static void say_round(struct side *s, int at, int fd, int round, bool joins)
{
	int got[2] = { 0 }, wrong = 0, last = -1;
	for (int number; (number = receive_number(fd, MSG_DONTWAIT)) >= 0; last = number) {
		int of = number / OF_ROUND;
		wrong += number <= last || of % ROUNDS != round;
		got[of >= ROUNDS]++;
	}
	say(s, "member %d: all of the first half %d, all of the second %d, wrong %d", at, joins || got[0] == OF_ROUND, got[1] == OF_ROUND, wrong);
}

static void members_server(struct side *s)
{
	struct name other, group = { .length = sizeof group.of };
	int members[3];
	open_warm(s, AF_INET, false, &other);
	members[0] = open_sharing(0);
	MUST(getsockname(members[0], (struct sockaddr *)&group.of, &group.length));
	uint16_t port = port_of(&group);
	MUST(join(members[0], IP_ADD_MEMBERSHIP, port));
	members[1] = open_sharing(port);
	MUST(join(members[1], IP_ADD_MEMBERSHIP, port));
	group = with_address(&group, group_of(port));
	MUST(write(s->to_other, &group, sizeof group));
	for (int round = 0; round < ROUNDS; round++) {
		members[2] = open_sharing(port);
		MUST(join(members[2], IP_ADD_MEMBERSHIP, port));
		meet(s);
		meet_delivered(s);
		for (int at = 0; at < 3; at++)
			say_round(s, at, members[at], round, at == 2);
		close(members[2]);
		meet(s);
	}
	close(members[0]);
	close(members[1]);
}

const struct test_case datagram_group_cases[] = {
	{ "udp_names", ANYWHERE, true, names_server, names_client, "one socket under two addresses: the order of what one sender sends to both" },
	{ "udp_group", ANYWHERE, true, group_server, group_client, "the same with a group that others join and leave" },
	{ "udp_members", ANYWHERE, true, members_server, members_client, "members of a group: each datagram once, also while others join and leave" },
	{ 0 },
};
