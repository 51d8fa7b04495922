/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A replicated log over a group: one leader appends, the other replicas check each record and acknowledge it. Any of them may be killed
 * at any time, the leader in the middle of a record too; then another one leads, and no record is lost that was acknowledged.
 *
 *     BEELINE_NODE=4  ./log -replica 0 -records 100000
 *     BEELINE_NODE=8  ./log -replica 1 -records 100000
 *     BEELINE_NODE=12 ./log -replica 2 -records 100000
 *
 *     -replica N   0 to 31. Replica 0 begins. A number is used once: instead of a replica that was killed another one is started
 *     -records N   all end when the log has so many (100000); the same for all
 *     -members N   a leader appends only while so many, itself among them, have all that is acknowledged (2)
 *     -a ADAPTER   the adapter to go through (0)
 *     -slow        this replica rests in the middle of each record that it appends
 *     -halt N      this replica stops for ever in the middle of record N if it appends that
 *
 * The log is a group's segment: a store of the leader is seen by all, and who joins late finds all of it. Each replica has a segment of
 * its own beside it, which the others store their acknowledgements into while it leads. Whoever reads reads memory of its own.
 *
 * A RECORD is a line of eight words, which may arrive in any order. The last word is a digest of the others and of the digest of the
 * record before. So a record that is whole is known from one that is torn, and what a leader stored behind a torn record is not taken for
 * a part of the log that the next leader writes.
 *
 * WHO LEADS. The leader alone stores the set of members into the group. The member of the lowest number that is alive leads. To be dead
 * is what a sequence says of a peer's segment (SCI_SEQ_NOT_RETRIABLE), SCIConnectSegment of a number that had one
 * (SCI_ERR_NO_SUCH_SEGMENT), or SCIProbeNode of a node without processes: the kernel's word, never concluded from silence, so there are
 * never two leaders. A replica that
 * starts is no member until it has caught up and the leader has added it; until then it does not lead, and if all members die before,
 * it ends with a failure. A record counts as acknowledged when every living member has it.
 *
 * Here a group is one memory. Where each node has a copy of its own, the dead leader's last stores may have reached some and not
 * others: a new leader there would have to ask for the record that it lacks first.
 */
#define _POSIX_C_SOURCE 200809L

#include <unistd.h>

#include "example.h"
#include "sisci_glob_defs.h"

#define GROUP_ID 0x3300u
/* And the replica's number: its own segment. */
#define OWN_ID 0x3301u
#define OWN_BYTES 4096u
#define REPLICAS 32u
#define NOBODY REPLICAS

/* The group: the members in the first word, a line for each replica with its node, then the records. */
#define LINE 8u
#define NODE_OF(replica) (LINE * (1 + (replica)))
#define RECORD(number) (LINE * (REPLICAS + (size_t)(number)))
/* Beside a number: somebody has stored it. */
#define KNOWN (1ULL << 63)

/* The leader appends so many records at most that not all have acknowledged. */
#define WINDOW 64u
/* How often memory is looked at in vain before it is asked who is still there. */
#define LOOKS 100u
/* Each replica says how far it is after so many records. */
#define STRIDE 100u

enum connection { UNKNOWN, CONNECTED, GONE };

struct replica {
  sci_desc_t sd;
  unsigned int adapter, number;
  uint64_t records, halt;
  unsigned int least_members;
  int is_slow;
  /* The group, to read from and to write to. */
  struct own log;
  struct peer group;
  struct own acknowledgements;
  struct peer peers[REPLICAS];
  enum connection connections[REPLICAS];
  /* Records that this replica has checked, and the digest of the last one. */
  uint64_t have, digest;
};

static uint64_t mixed(uint64_t digest, uint64_t word)
{
  digest = (digest ^ word) * 0x9e3779b97f4a7c15u;
  return digest ^ (digest >> 29);
}

static uint64_t digest_of(uint64_t before, const uint64_t *record)
{
  unsigned int at;

  for (at = 0; at < LINE - 1; at++)
    before = mixed(before, record[at]);
  return before;
}

/* What a leader writes under a number: something that a reader can compute. */
static uint64_t content(uint64_t number, uint64_t leader, unsigned int at)
{
  return number * 1000003 + leader * 101 + at;
}

/* Checks the next record. Gives 0 if it is not there, or not whole. */
static int take_next(struct replica *self)
{
  const volatile uint64_t *stored = self->log.words + RECORD(self->have + 1);
  uint64_t record[LINE];
  unsigned int at;

  for (at = 0; at < LINE; at++)
    record[at] = stored[at];
  if (record[0] != self->have + 1 || record[LINE - 1] != digest_of(self->digest, record))
    return 0;
  for (at = 2; at < LINE - 1; at++)
    if (record[at] != content(record[0], record[1], at)) {
      fprintf(stderr, "record %llu is not what its leader wrote\n", (unsigned long long)record[0]);
      exit(1);
    }
  self->have = record[0];
  self->digest = record[LINE - 1];
  return 1;
}

static void append(struct replica *self)
{
  volatile uint64_t *slot = self->group.words + RECORD(self->have + 1);
  uint64_t record[LINE];
  unsigned int at;

  record[0] = self->have + 1;
  record[1] = self->number;
  for (at = 2; at < LINE - 1; at++)
    record[at] = content(record[0], record[1], at);
  record[LINE - 1] = digest_of(self->digest, record);
  for (at = 0; at < LINE; at++) {
    if (at == LINE / 2 && self->is_slow)
      rest_a_millisecond();
    if (at == LINE / 2 && record[0] == self->halt) {
      say("halted in", record[0]);
      pause();
    }
    slot[at] = record[at];
  }
  self->have = record[0];
  self->digest = record[LINE - 1];
}

/* Says whether no process of a node is alive. One that lives and does not answer is another matter. */
static int is_deserted(struct replica *self, uint64_t node)
{
  sci_error_t error;

  return !SCIProbeNode(self->sd, self->adapter, (unsigned int)node, NO_FLAGS, &error) && error == SCI_ERR_NODE_NOT_RESPONDING;
}

/* Says whether a replica is alive that has said its node. Who is dead stays dead, for no number is used twice. */
static int lives(struct replica *self, unsigned int other)
{
  struct peer *peer = &self->peers[other];
  uint64_t node = self->log.words[NODE_OF(other)];
  sci_sequence_status_t status;
  sci_error_t error;

  if (other == self->number)
    return 1;
  if (self->connections[other] == UNKNOWN && node & KNOWN) {
    error = connect_once(self->sd, self->adapter, peer, (unsigned int)node, OWN_ID + other, OWN_BYTES, 0, NO_FLAGS);
    if (error == SCI_ERR_OK)
      self->connections[other] = CONNECTED;
    else if (error == SCI_ERR_NO_SUCH_SEGMENT || (error == SCI_ERR_NODE_NOT_RESPONDING && is_deserted(self, node)))
      self->connections[other] = GONE;
  }
  if (self->connections[other] == CONNECTED) {
    status = SCICheckSequence(peer->sequence, NO_FLAGS, &error);
    if (status == SCI_SEQ_RETRIABLE)
      SCIStartSequence(peer->sequence, NO_FLAGS, &error);
    if (status == SCI_SEQ_NOT_RETRIABLE) {
      disconnect(peer);
      self->connections[other] = GONE;
    }
  }
  return self->connections[other] != GONE;
}

static int is_in(uint64_t members, unsigned int replica)
{
  return (members >> replica & 1) != 0;
}

static unsigned int count_of(uint64_t members)
{
  unsigned int count = 0;

  for (; members != 0; members &= members - 1)
    count++;
  return count;
}

/* The member that leads. */
static unsigned int first_living(struct replica *self, uint64_t members)
{
  unsigned int other;

  for (other = 0; other < REPLICAS; other++)
    if (is_in(members, other) && lives(self, other))
      return other;
  return NOBODY;
}

/* The members that are alive, and those who are so from now on because they have what all have to have. */
static uint64_t members_now(struct replica *self, uint64_t members, uint64_t needed, int *is_someone_near)
{
  unsigned int other;
  uint64_t told;

  *is_someone_near = 0;
  for (other = 0; other < REPLICAS; other++) {
    told = self->acknowledgements.words[other];
    if (is_in(members, other) && !lives(self, other))
      members &= ~(1ULL << other);
    if (is_in(members, other) || !(told & KNOWN) || !lives(self, other))
      continue;
    if ((told & ~KNOWN) >= needed)
      members |= 1ULL << other;
    else if ((told & ~KNOWN) + WINDOW >= needed)
      *is_someone_near = 1;
  }
  return members;
}

static uint64_t acknowledged_by(struct replica *self, uint64_t members)
{
  uint64_t least = self->have, told;
  unsigned int other;

  for (other = 0; other < REPLICAS; other++) {
    told = self->acknowledgements.words[other] & ~KNOWN;
    if (is_in(members, other) && other != self->number && told < least)
      least = told;
  }
  return least;
}

/* Says whether enough have told that they have the whole log: they leave then. */
static int is_complete(struct replica *self)
{
  unsigned int other, count = self->have == self->records;

  for (other = 0; other < REPLICAS; other++)
    count += other != self->number && (self->acknowledgements.words[other] & ~KNOWN) == self->records;
  return count >= self->least_members;
}

static void lead(struct replica *self)
{
  uint64_t members = self->log.words[0] | 1ULL << self->number, acknowledged = 0, needed, turn, before, now;
  int is_someone_near = 0;

  /* The leader before this one is dead, so what it has appended is all here. */
  while (take_next(self))
    ;
  say("leads from", self->have);
  /* What of this was acknowledged is not known, so whoever is to be a member needs all of it. */
  needed = self->have;
  if (self->have < self->records && self->log.words[RECORD(self->have + 1)] != 0)
    say("torn record", self->have + 1);
  for (turn = 0; acknowledged < self->records; turn++) {
    if (turn % LOOKS == 0) {
      before = turn == 0 ? 0 : members;
      members = members_now(self, members, needed > acknowledged ? needed : acknowledged, &is_someone_near);
      self->group.words[0] = members;
      if (members != before)
        say("members", count_of(members));
    }
    /* Whoever has almost caught up is waited for. */
    if (self->have < self->records && self->have < acknowledged + WINDOW && !is_someone_near &&
        count_of(members) >= self->least_members)
      append(self);
    else
      sched_yield();
    now = acknowledged_by(self, members);
    if (count_of(members) < self->least_members && !is_complete(self))
      now = acknowledged;
    if (now / STRIDE > acknowledged / STRIDE)
      say("acknowledged", now);
    if (now > acknowledged)
      acknowledged = now;
  }
}

static void acknowledge(struct replica *self, unsigned int leader)
{
  if (leader != NOBODY && self->connections[leader] == CONNECTED)
    self->peers[leader].words[self->number] = KNOWN | self->have;
}

/* Gives 1 when this replica has to lead, 0 when it has all records. */
static int follow(struct replica *self)
{
  unsigned int leader = NOBODY;
  uint64_t turn, members;

  if (self->log.words[0] == 0 && self->number != 0)
    say("waits for replica", 0);

  for (turn = 0; self->have < self->records; turn++) {
    if (take_next(self)) {
      acknowledge(self, leader);
      if (self->have % STRIDE == 0)
        say("have", self->have);
      continue;
    }
    sched_yield();
    if (turn % LOOKS != 0)
      continue;
    members = self->log.words[0];
    if (members == 0 && self->number == 0)
      return 1;
    leader = first_living(self, members);
    acknowledge(self, leader);
    /* A leader that has died meanwhile may have changed the members before. */
    if (self->log.words[0] != members || members == 0)
      continue;
    if (leader == self->number)
      return 1;
    if (leader == NOBODY) {
      fprintf(stderr, "all members are gone, and this replica was none yet: start replica 0 anew when all have ended\n");
      exit(1);
    }
  }
  return 0;
}

static void join(struct replica *self)
{
  size_t bytes = (RECORD(self->records) + LINE) * sizeof(uint64_t);
  unsigned int node;
  sci_error_t error;

  SCIGetLocalNodeId(self->adapter, &node, NO_FLAGS, &error);
  check("SCIGetLocalNodeId", error);
  self->log = offer(self->sd, self->adapter, GROUP_ID, bytes, SCI_FLAG_BROADCAST);
  self->group = reach(self->sd, self->adapter, DIS_BROADCAST_NODEID_GROUP_ALL, GROUP_ID, bytes, SCI_FLAG_BROADCAST);
  if (self->log.words[NODE_OF(self->number)] != 0) {
    fprintf(stderr, "replica %u was there already: start this one with a number that was not used\n", self->number);
    exit(1);
  }
  self->acknowledgements = offer(self->sd, self->adapter, OWN_ID + self->number, OWN_BYTES, NO_FLAGS);
  self->group.words[NODE_OF(self->number)] = KNOWN | node;
}

static void leave(struct replica *self)
{
  unsigned int other;

  for (other = 0; other < REPLICAS; other++)
    if (self->connections[other] == CONNECTED)
      disconnect(&self->peers[other]);
  disconnect(&self->group);
  /* Others may be connected still. */
  withdraw(&self->acknowledgements, SCI_FLAG_FORCE_REMOVE);
  withdraw(&self->log, SCI_FLAG_FORCE_REMOVE);
}

int main(int argc, char **argv)
{
  static struct replica self;

  self.adapter = sisci_demo_option(argc, argv, "-a", 0);
  self.number = sisci_demo_option(argc, argv, "-replica", NOBODY);
  self.records = sisci_demo_option(argc, argv, "-records", 100000);
  self.least_members = sisci_demo_option(argc, argv, "-members", 2);
  self.halt = sisci_demo_option(argc, argv, "-halt", 0);
  self.is_slow = sisci_demo_has(argc, argv, "-slow");
  if (self.number >= REPLICAS) {
    fprintf(stderr, "usage: %s -replica 0..%u [-records N] [-members N] [-a ADAPTER] [-slow] [-halt N]\n", argv[0],
            REPLICAS - 1);
    return 2;
  }
  self.sd = start_sisci();
  join(&self);
  if (follow(&self))
    lead(&self);
  printf("%llu records, digest %016llx\n", (unsigned long long)self.have, (unsigned long long)self.digest);
  leave(&self);
  end_sisci(self.sd);
  return 0;
}
