/* What the cases of UDP have in common: two sockets, each of which knows the name of the other. */
#ifndef DATAGRAMS_H
#define DATAGRAMS_H

#include "conformance.h"

/* More than the longest datagram has. */
#define MOST_BYTES 70000

struct name {
	struct sockaddr_storage of;
	socklen_t length;
};

/* A socket at an address of this host that the kernel chooses; its name. */
int open_bound(int family, struct name *own);
/* A socket of IPv4 at a port of every address, which others may have, too. */
int open_sharing(uint16_t port);
/* A socket for this side, whose name the other side is told. `connects`: it is connected to the other side's. */
int open_cold(struct side *s, int family, bool connects, struct name *other);
/* The same, warm: windows carry what either sends. It is the side's own. */
void open_warm(struct side *s, int family, bool connects, struct name *other);
/* The same, connected and of IPv4. */
void open_connected(struct side *s);

long send_to(int fd, const struct name *to, const void *bytes, size_t count);
bool is_named(const struct name *name, const struct name *other);
/* Receives, and says what came and whether it is of `from`; null: that is not looked at. */
void receive_from(struct side *s, const struct name *from, size_t room, int flags);
/* Both sides come here; what was sent before is there: the kernel may put off what it delivers within the host. */
void meet_delivered(struct side *s);
/* Receives a number that `send_number` sent; -1 where nothing is there. */
int receive_number(int fd, int flags);
void send_number(int fd, int number);
/* What a program does with a connected socket that it was started with: answers messages until an empty one. */
int answer_datagrams(int fd);

#endif
