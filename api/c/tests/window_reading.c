/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a receiver holds, keeps and gives, step by step, in one process that has both ends: messages that a wait has found or
 * that found no space, runs, descriptors, an error behind messages. Usage: window_reading ROOT. Also C++17.
 */
#include <beeline_window.h>

#include "expect.h"

#include <stdlib.h>
#include <sys/resource.h>

enum { LINES = 64 };
static const uint64_t WATCHDOG_NS = UINT64_C(60000000000);

static beeline_window_receiver *receiver;
static beeline_window_sender *sender;

static void ignore(void *context, beeline_window_message *message, size_t length) {
  (void)context, (void)message, (void)length;
}

static void count(void *context, beeline_window_message *message, size_t length) {
  (void)message;
  *(size_t *)context += length;
}

static void held(void) {
  beeline_window_message *message, *again, *kept;
  unsigned char bytes[16];
  size_t length = 7;

  EXPECT(beeline_window_send(sender, "the first", 9, 0), BEELINE_OK);
  EXPECT(beeline_window_poll(receiver, &kept, NULL), BEELINE_OK);
  EXPECT(beeline_window_send(sender, "twelve bytes", 12, 0), BEELINE_OK);
  EXPECT(beeline_window_wait(receiver, WATCHDOG_NS), BEELINE_OK);
  /* A wait has found it, and has not given it; nor does another wait. */
  EXPECT(beeline_window_wait(receiver, WATCHDOG_NS), BEELINE_OK);
  EXPECT(beeline_window_message_length(kept), 0);
  EXPECT_SAID("no message is held");
  EXPECT(beeline_window_poll(receiver, &message, &length), BEELINE_OK);
  EXPECT(length, 12);
  EXPECT(beeline_window_message_word(message, 1), 0x73657479);
  EXPECT(beeline_window_message_word(message, 2), 0);
  EXPECT(beeline_window_message_word(message, SIZE_MAX), 0);
  EXPECT(beeline_window_message_word(message, SIZE_MAX / 8), 0);
  EXPECT(beeline_window_message_copy(message, 1, bytes, sizeof bytes), 4);
  EXPECT(beeline_window_message_copy(message, 0, bytes, 3), 3);
  EXPECT(memcmp(bytes, "twe", 3), 0);
  EXPECT(beeline_window_message_copy(message, SIZE_MAX, bytes, sizeof bytes), 0);
  EXPECT(beeline_window_message_copy(message, SIZE_MAX / 8 + 1, bytes, sizeof bytes), 0);
  EXPECT(beeline_window_message_copy(message, 0, NULL, 1), 0);
  EXPECT_SAID("out is NULL");
  /* Held until the receiver is used. */
  EXPECT(beeline_window_wait(receiver, 0), BEELINE_EMPTY);
  EXPECT(beeline_window_message_length(message), 0);
  EXPECT_SAID("copy what is needed");
  /* A message that a wait has found is there after whatever else is done. */
  EXPECT(beeline_window_send(sender, "waited for", 10, 0), BEELINE_OK);
  EXPECT(beeline_window_wait(receiver, WATCHDOG_NS), BEELINE_OK);
  EXPECT(beeline_window_receiver_sender(receiver), BEELINE_OK);
  EXPECT(beeline_window_receiver_release(receiver), BEELINE_OK);
  EXPECT(beeline_window_message_length(message), 0);
  EXPECT(beeline_window_wait(receiver, 0), BEELINE_OK);
  EXPECT(beeline_window_poll(receiver, &again, &length), BEELINE_OK);
  EXPECT(length, 10);
  EXPECT(beeline_window_message_word(again, 1), 0x726f);
  EXPECT(beeline_window_message_copy(again, 1, bytes, sizeof bytes), 2);
  EXPECT(beeline_window_poll(receiver, &again, &length), BEELINE_EMPTY);
}

static void spans(void) {
  beeline_window_span found[4];
  unsigned char memory[128];
  size_t taken = 7;
  int as_bytes[8];

  EXPECT(beeline_window_send(sender, "more than there is memory for", 29, 0), BEELINE_OK);
  EXPECT(beeline_window_send(sender, "", 0, 0), BEELINE_OK);
  EXPECT(beeline_window_drain_into(receiver, NULL, 1, found, 4, &taken), BEELINE_INVALID);
  EXPECT(beeline_window_drain_into(receiver, memory, SIZE_MAX, found, 4, &taken), BEELINE_INVALID);
  EXPECT(beeline_window_drain_into(receiver, memory, sizeof memory, NULL, 4, &taken), BEELINE_INVALID);
  EXPECT_SAID("spans has 4 elements, and is NULL");
  EXPECT(beeline_window_drain_into(receiver, memory, sizeof memory, found, SIZE_MAX, &taken), BEELINE_INVALID);
  EXPECT(beeline_window_drain_into(receiver, memory, sizeof memory, found, 0, &taken), BEELINE_INVALID);
  EXPECT(beeline_window_drain_into(receiver, memory, sizeof memory, found, 4, NULL), BEELINE_INVALID);
  EXPECT_SAID("taken is NULL");
  EXPECT(beeline_window_drain_into(receiver, memory, sizeof memory,
                                   (beeline_window_span *)(void *)((char *)as_bytes + 1), 1, &taken),
         BEELINE_INVALID);
  /* A message that finds no space stays the next, for whoever has some. */
  EXPECT(beeline_window_drain_into(receiver, memory, 28, found, 4, &taken), BEELINE_NO_SPACE);
  EXPECT_SAID("the next message has 29 bytes, and the memory 28");
  EXPECT(taken, 0);
  EXPECT(found[0].length, 29);
  EXPECT(beeline_window_drain_into(receiver, NULL, 0, found, 4, &taken), BEELINE_NO_SPACE);
  EXPECT(beeline_window_drain_into(receiver, memory, 29, found, 4, &taken), BEELINE_OK);
  EXPECT(taken, 2);
  EXPECT(found[0].offset, 0);
  EXPECT(found[0].length, 29);
  EXPECT(found[1].length, 0);
  EXPECT(memcmp(memory, "more than there is memory for", 29), 0);
  EXPECT(beeline_window_drain_into(receiver, memory, sizeof memory, found, 4, &taken), BEELINE_EMPTY);
}

/* Sends messages of so many bytes, each of its own letter. */
static void send_lengths(const size_t *lengths, size_t count) {
  char bytes[1000];

  for (size_t at = 0; at < count; at++) {
    memset(bytes, 'a' + (int)at, sizeof bytes);
    EXPECT(beeline_window_send(sender, bytes, lengths[at], 0), BEELINE_OK);
  }
}

/* What a callback is given, in order. */
static void note(void *context, beeline_window_message *message, size_t length) {
  char **end = (char **)context;

  EXPECT(length, beeline_window_message_length(message));
  *(*end)++ = (char)beeline_window_message_word(message, 0);
}

/* Messages are read in runs where there is space for short ones; one that has none stays the next, and so do those behind. */
static void runs(void) {
  static const size_t short_ones[8] = {8, 8, 8, 8, 8, 8, 8, 8}, mixed[8] = {8, 8, 8, 900, 8, 8, 8, 8};
  static const size_t long_first[8] = {900, 8, 8, 8, 8, 8, 8, 8};
  static unsigned char memory[1024];
  static beeline_window_span found[20];
  beeline_window_message *message;
  char letters[9] = {0}, *end = letters;
  size_t taken = 7, length = 7;

  send_lengths(short_ones, 8);
  EXPECT(beeline_window_drain_into(receiver, memory, 512, found, 20, &taken), BEELINE_OK);
  EXPECT(taken, 8);
  send_lengths(mixed, 8);
  EXPECT(beeline_window_drain_into(receiver, memory, 512, found, 20, &taken), BEELINE_OK);
  EXPECT(taken, 3);
  EXPECT(memory[found[2].offset], 'c');
  EXPECT(beeline_window_drain_into(receiver, memory, 512, found, 20, &taken), BEELINE_NO_SPACE);
  EXPECT(found[0].length, 900);
  /* The next is that one by whatever way; and those behind it come in order, whether they are in the window or not. */
  EXPECT(beeline_window_try_send(sender, "i", 1), BEELINE_OK);
  EXPECT(beeline_window_wait(receiver, 0), BEELINE_OK);
  EXPECT(beeline_window_poll(receiver, &message, &length), BEELINE_OK);
  EXPECT(length, 900);
  EXPECT(beeline_window_message_word(message, 112), 0x64646464);
  EXPECT(beeline_window_message_word(message, 113), 0);
  EXPECT(beeline_window_message_copy(message, 112, memory, sizeof memory), 4);
  EXPECT(beeline_window_drain_into(receiver, memory, sizeof memory, found, 2, &taken), BEELINE_OK);
  EXPECT(taken, 2);
  EXPECT(memory[0], 'e');
  EXPECT(beeline_window_drain(receiver, 20, note, &end, &taken), BEELINE_OK);
  EXPECT(taken, 3);
  EXPECT(strcmp(letters, "ghi"), 0);
  /* The same where it is the first of a run. */
  send_lengths(short_ones, 8);
  EXPECT(beeline_window_drain_into(receiver, memory, 512, found, 20, &taken), BEELINE_OK);
  send_lengths(long_first, 8);
  EXPECT(beeline_window_drain_into(receiver, memory, 512, found, 20, &taken), BEELINE_NO_SPACE);
  EXPECT(taken, 0);
  EXPECT(found[0].length, 900);
  EXPECT(beeline_window_drain_into(receiver, memory, sizeof memory, found, 20, &taken), BEELINE_OK);
  EXPECT(taken, 8);
  EXPECT(memory[found[0].offset + 899], 'a');
  EXPECT(memory[found[7].offset], 'h');
  EXPECT(beeline_window_drain(receiver, 20, note, &end, &taken), BEELINE_EMPTY);
}

static void descriptors(void) {
  struct rlimit limit, no_more;
  uint64_t at_most_ns = 7;
  int descriptor = 7, again = 7;

  EXPECT(beeline_window_receiver_descriptor(receiver, NULL), BEELINE_INVALID);
  EXPECT(beeline_window_receiver_arm(receiver, NULL), BEELINE_INVALID);
  EXPECT_SAID("at_most_ns is NULL");
  EXPECT(beeline_window_receiver_disarm(receiver), BEELINE_OK);
  EXPECT(getrlimit(RLIMIT_NOFILE, &limit), 0);
  no_more = limit;
  no_more.rlim_cur = 0;
  EXPECT(setrlimit(RLIMIT_NOFILE, &no_more), 0);
  EXPECT(beeline_window_receiver_descriptor(receiver, &descriptor), BEELINE_REFUSED);
  EXPECT_SAID("raise the limit");
  EXPECT(beeline_window_receiver_arm(receiver, &at_most_ns), BEELINE_REFUSED);
  EXPECT(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT(descriptor, -1);
  EXPECT(beeline_window_receiver_descriptor(receiver, &descriptor), BEELINE_OK);
  EXPECT(beeline_window_receiver_descriptor(receiver, &again), BEELINE_OK);
  EXPECT(descriptor >= 0 && descriptor == again, 1);
  EXPECT(beeline_window_receiver_arm(receiver, &at_most_ns), BEELINE_EMPTY);
  EXPECT(at_most_ns > 0, 1);
  /* What a wait has found, and what was sent, is there without a wait. */
  EXPECT(beeline_window_send(sender, "found", 5, 0), BEELINE_OK);
  EXPECT(beeline_window_receiver_arm(receiver, &at_most_ns), BEELINE_OK);
  EXPECT(beeline_window_wait(receiver, WATCHDOG_NS), BEELINE_OK);
  EXPECT(beeline_window_receiver_arm(receiver, &at_most_ns), BEELINE_OK);
  EXPECT(at_most_ns, 0);
  EXPECT(beeline_window_drain(receiver, 1, ignore, NULL, NULL), BEELINE_OK);
  EXPECT(beeline_window_receiver_arm(receiver, &at_most_ns), BEELINE_EMPTY);
}

/* An error that comes behind messages is given by the next call. */
static void end_of_sender(void) {
  beeline_window_span found[4];
  unsigned char memory[128];
  size_t taken = 7, bytes = 0;

  EXPECT(beeline_window_send(sender, "last", 4, 0), BEELINE_OK);
  EXPECT(beeline_window_reserve(sender, 100, 0), BEELINE_OK);
  EXPECT(beeline_window_sender_close(&sender), BEELINE_OK);
  while (beeline_window_drain(receiver, 4, count, &bytes, &taken) == BEELINE_EMPTY)
    EXPECT(beeline_window_wait(receiver, WATCHDOG_NS), BEELINE_OK);
  EXPECT(taken, 1);
  EXPECT(bytes, 4);
  EXPECT(beeline_window_wait(receiver, WATCHDOG_NS), BEELINE_OK);
  EXPECT(beeline_window_drain_into(receiver, memory, sizeof memory, found, 4, &taken), BEELINE_SENDER_GONE);
  EXPECT_SAID("the sender is gone; receive again to wait for the next sender");
  EXPECT(taken, 0);
  EXPECT(beeline_window_drain(receiver, 4, count, &bytes, &taken), BEELINE_EMPTY);
  EXPECT(beeline_window_receiver_sender(receiver), BEELINE_EMPTY);
}

int main(int argc, char **argv) {
  beeline_window_receiver_options options = BEELINE_WINDOW_RECEIVER_OPTIONS_INIT;
  beeline_domain *domain;

  if (argc < 2)
    return EXIT_FAILURE;
  EXPECT(beeline_domain_open("default", argv[1], &domain), BEELINE_OK);
  options.lines = LINES;
  EXPECT(beeline_window_receiver_offer(domain, "reading", &options, &receiver), BEELINE_OK);
  EXPECT(beeline_window_sender_connect(domain, "reading", NULL, &sender), BEELINE_OK);
  EXPECT(beeline_window_wait(receiver, 0), BEELINE_EMPTY);
  held();
  spans();
  runs();
  descriptors();
  end_of_sender();
  EXPECT(beeline_window_receiver_close(&receiver), BEELINE_OK);
  EXPECT(beeline_domain_close(&domain), BEELINE_OK);
  printf("%d failures\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
