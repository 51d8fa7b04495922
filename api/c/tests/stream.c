/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One side of a stream of messages of all lengths, sent and received in every way there is. Usage:
 *
 *   stream send ROOT COUNT [OWNER_UID]            every message in one of the ways to send, in turn
 *   stream receive ROOT COUNT HOW [ALLOWED_UID]
 *
 * HOW is poll, drain, into, small or mixed: the first three are the ways to receive, small has memory for few messages, mixed
 * takes a way after the other. Every byte of every message is checked. Prints "COUNT messages, CHECKSUM". Also C++17.
 */
#include <beeline_window.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest message by far fits neither the lines that are looked at together nor the small memory. */
enum { LINES = 128, LONGEST = 1500, MEMORY_BYTES = 1 << 16, SMALL_BYTES = 512, MESSAGES = 256 };
static const uint64_t WATCHDOG_NS = UINT64_C(60000000000);

static beeline_window_receiver *receiver;
static beeline_window_sender *sender;
static uint64_t expected, checksum;
static unsigned char wanted[LONGEST], memory[MEMORY_BYTES];

static void check(int is_so, const char *what) {
  if (!is_so) {
    fprintf(stderr, "message %llu: %s (%s)\n", (unsigned long long)expected, what, beeline_last_error());
    exit(EXIT_FAILURE);
  }
}

/* All lengths up to a few lines, in an order that puts short ones beside long ones; runs of short ones; some long ones. */
static size_t length_of(uint64_t number) {
  if (number % 97 == 0)
    return (size_t)(number * 31 % (LONGEST + 1));
  return number / 512 % 2 ? (size_t)(number % 57) : (size_t)(number * 7 % 301);
}

static size_t make(uint64_t number, unsigned char *bytes) {
  size_t length = length_of(number);

  for (size_t at = 0; at < length; at++)
    bytes[at] = (unsigned char)(number * 131 + at * 29 + (at >> 8));
  return length;
}

static void count_in(const unsigned char *bytes, size_t length) {
  size_t is = make(expected, wanted);

  check(length == is, "a wrong length");
  check(length == 0 || memcmp(bytes, wanted, length) == 0, "wrong bytes");
  for (size_t at = 0; at < length; at++)
    checksum = (checksum + bytes[at] + 1) * 1099511628211u;
  expected++;
}

/* Reads a message where it lies, in every way there is. */
static void read_in_place(beeline_window_message *message, size_t length) {
  size_t words = (length + 7) / 8, half = words / 2;
  unsigned char bytes[LONGEST + 8];

  check(beeline_window_message_length(message) == length, "two lengths");
  check(length <= LONGEST, "too long");
  check(beeline_window_message_copy(message, 0, bytes, sizeof bytes) == length, "a copy of another length");
  if (expected % 5 == 0) {
    for (size_t index = 0; index < words; index++) {
      uint64_t word = beeline_window_message_word(message, index);

      for (size_t byte = 0; byte < 8; byte++)
        check((unsigned char)(word >> (8 * byte)) == (index * 8 + byte < length ? bytes[index * 8 + byte] : 0),
              "a word that differs from the copy");
    }
    check(beeline_window_message_word(message, words) == 0, "a word past the end");
    check(beeline_window_message_copy(message, half, wanted, sizeof wanted) == length - half * 8, "half of another length");
    check(memcmp(wanted, bytes + half * 8, length - half * 8) == 0, "half of other bytes");
    check(beeline_window_message_copy(message, words + 1, wanted, sizeof wanted) == 0, "a copy past the end");
  }
  count_in(bytes, length);
}

static void each(void *context, beeline_window_message *message, size_t length) {
  *(size_t *)context += 1;
  read_in_place(message, length);
}

static int receive_by_poll(void) {
  beeline_window_message *message;
  size_t length;
  int status = beeline_window_poll(receiver, &message, &length);

  if (status == BEELINE_OK)
    read_in_place(message, length);
  return status;
}

static int receive_by_drain(size_t max) {
  size_t taken = 77, given = 0;
  int status = beeline_window_drain(receiver, max, each, &given, &taken);

  check(taken == given && taken <= max, "another count than the callback's");
  check((status == BEELINE_OK) == (taken > 0), "a status that does not go with the count");
  return status;
}

static int receive_into(size_t capacity, size_t max) {
  beeline_window_span spans[MESSAGES];
  size_t taken = 77, end = 0;
  int status = beeline_window_drain_into(receiver, memory, capacity, spans, max, &taken);

  if (status == BEELINE_NO_SPACE) {
    check(taken == 0 && spans[0].length == length_of(expected) && spans[0].length > capacity, "no reason to have no space");
    return receive_by_poll();
  }
  check(taken <= max && (status == BEELINE_OK) == (taken > 0), "a status that does not go with the count");
  for (size_t at = 0; at < taken; at++) {
    check(spans[at].offset >= end && spans[at].offset % 8 == 0, "messages that lie in one another");
    end = spans[at].offset + spans[at].length;
    check(end <= capacity, "a message past the memory");
    count_in(memory + spans[at].offset, spans[at].length);
  }
  return status;
}

/* Looks away for a while, so that messages gather. */
static void look_away(uint64_t turn) {
  static volatile uint64_t work;

  for (uint64_t times = turn % 37 == 0 ? 20000 : 0; times > 0; times--)
    work = work + times;
}

static int receive_once(const char *how, uint64_t turn) {
  if (strcmp(how, "poll") == 0)
    return receive_by_poll();
  if (strcmp(how, "drain") == 0)
    return receive_by_drain(1 + (size_t)(turn % 100));
  if (strcmp(how, "into") == 0)
    return receive_into(sizeof memory, MESSAGES);
  if (strcmp(how, "small") == 0)
    return receive_into(SMALL_BYTES + (size_t)(turn % 5) * 200, 1 + (size_t)(turn % MESSAGES));
  switch (turn % 3) {
  case 0:
    return receive_by_poll();
  case 1:
    return receive_by_drain(3);
  default:
    return receive_into(SMALL_BYTES * 4, 20);
  }
}

static void receive(beeline_domain *domain, uint64_t count, const char *how, const uint32_t *allowed_uid) {
  beeline_window_receiver_options options = BEELINE_WINDOW_RECEIVER_OPTIONS_INIT;
  int status = BEELINE_EMPTY;

  options.lines = LINES;
  options.allowed_uids = allowed_uid;
  options.allowed_uid_count = allowed_uid != NULL;
  check(beeline_window_receiver_offer(domain, "stream", &options, &receiver) == BEELINE_OK, "no receiver");
  printf("offered\n");
  fflush(stdout);
  for (uint64_t turn = 0; status != BEELINE_SENDER_GONE; turn++) {
    look_away(turn);
    status = receive_once(how, turn);
    check(status == BEELINE_OK || status == BEELINE_EMPTY || status == BEELINE_SENDER_GONE, "no message");
    if (status == BEELINE_EMPTY)
      check(beeline_window_wait(receiver, WATCHDOG_NS) == BEELINE_OK, "nothing came");
  }
  check(expected == count, "another count than was sent");
  check(beeline_window_receiver_sender(receiver) == BEELINE_EMPTY, "a sender that has ended");
  printf("%llu messages, %016llx\n", (unsigned long long)expected, (unsigned long long)checksum);
}

/* Sends messages from `number` on in one of the ways there are; how many. */
static uint64_t send_some(uint64_t number, uint64_t left, uint64_t turn) {
  static unsigned char bytes[16][LONGEST];
  beeline_window_bytes messages[16];
  size_t count = left < 16 ? (size_t)left : 16, length, sent = 77;
  int status;

  switch (turn % 6) {
  case 0:
    length = make(number, bytes[0]);
    while ((status = beeline_window_try_send(sender, bytes[0], length)) == BEELINE_FULL)
      check(beeline_window_wait_for_room(sender, length, WATCHDOG_NS) == BEELINE_OK, "no room");
    check(status == BEELINE_OK, "not sent");
    return 1;
  case 1:
    length = make(number, bytes[0]);
    check(beeline_window_send(sender, bytes[0], length, WATCHDOG_NS) == BEELINE_OK, "not sent");
    return 1;
  case 2:
  case 3:
    for (size_t at = 0; at < count; at++) {
      messages[at].start = bytes[at];
      messages[at].length = make(number + at, bytes[at]);
    }
    if (turn % 6 == 2) {
      check(beeline_window_send_all(sender, messages, count, WATCHDOG_NS, &sent) == BEELINE_OK && sent == count, "not all");
      return count;
    }
    status = beeline_window_try_send_all(sender, messages, count, &sent);
    check(status == BEELINE_OK ? sent > 0 && sent <= count : status == BEELINE_FULL && sent == 0, "not tried");
    return sent;
  case 4:
    length = make(number, bytes[0]);
    check(beeline_window_reserve(sender, length + 100, WATCHDOG_NS) == BEELINE_OK, "no room");
    for (size_t at = 0; at < length; at += 13)
      check(beeline_window_write(sender, bytes[0] + at, length - at < 13 ? length - at : 13) == BEELINE_OK, "not written");
    check(beeline_window_commit(sender) == BEELINE_OK, "not committed");
    return 1;
  default:
    check(beeline_window_batch(sender, LONGEST + 100, WATCHDOG_NS) == BEELINE_OK, "no room");
    for (sent = 0; sent < count; sent++) {
      length = make(number + sent, bytes[0]);
      status = beeline_window_push(sender, bytes[0], length);
      if (status == BEELINE_FULL)
        break;
      check(status == BEELINE_OK, "not pushed");
    }
    check(sent > 0 && beeline_window_commit(sender) == BEELINE_OK, "no batch");
    return sent;
  }
}

static void send(beeline_domain *domain, uint64_t count) {
  uint64_t number = 0;

  check(beeline_window_sender_connect(domain, "stream", NULL, &sender) == BEELINE_OK, "no sender");
  check(beeline_window_sender_max_length(sender) > LONGEST, "a window that is too small");
  for (uint64_t turn = 0; number < count; turn++)
    number += send_some(number, count - number, turn);
  check(beeline_window_flush(sender, WATCHDOG_NS) == BEELINE_OK, "not everything was received");
  check(beeline_window_sender_close(&sender) == BEELINE_OK, "not closed");
}

int main(int argc, char **argv) {
  beeline_domain *domain;
  uint64_t count;
  uint32_t uid;
  int is_sender;

  if (argc < 4)
    return EXIT_FAILURE;
  is_sender = strcmp(argv[1], "send") == 0;
  count = strtoull(argv[3], NULL, 10);
  uid = argc > 4 ? (uint32_t)strtoul(argv[argc - 1], NULL, 10) : 0;
  if (is_sender && argc > 4)
    check(beeline_domain_open_foreign("default", argv[2], uid, &domain) == BEELINE_OK, "no domain");
  else
    check(beeline_domain_open("default", argv[2], &domain) == BEELINE_OK, "no domain");
  if (is_sender)
    send(domain, count);
  else
    receive(domain, count, argc > 4 ? argv[4] : "poll", argc > 5 ? &uid : NULL);
  check(beeline_window_receiver_close(&receiver) == BEELINE_OK, "not closed");
  check(beeline_domain_close(&domain) == BEELINE_OK, "not closed");
  return EXIT_SUCCESS;
}
