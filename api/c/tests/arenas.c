/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Arenas: windows by the hundred that are accepted one by one and by a set, and what a program does wrong. Usage: arenas ROOT
 * ROUNDS. Also C++17.
 */
#include <beeline_arena.h>

#include "expect.h"

#include <stdlib.h>
#include <unistd.h>

enum { WINDOWS = 300 };

static const uint64_t WATCHDOG_NS = UINT64_C(60000000000);

static beeline_domain *domain;

static void each(void *context, uint64_t member, beeline_window_message *message, size_t length) {
  uint64_t number = 0;

  (void)member;
  EXPECT(length, 8);
  EXPECT(beeline_window_message_copy(message, 0, &number, 8), 8);
  *(uint64_t *)context += number;
}

static void set_takes_in_what_is_opened(void) {
  static beeline_window_sender *senders[WINDOWS];
  beeline_arena_sender *arena;
  beeline_window_set *set;
  uint64_t number, failed, sum = 0;
  size_t taken, all = 0, ended = 0;

  EXPECT(beeline_window_set_open(0, BEELINE_WAIT_SLEEP, &set), BEELINE_OK);
  EXPECT(beeline_arena_offer_to_set(set, domain, "set", NULL), BEELINE_OK);
  EXPECT(beeline_arena_offer_to_set(set, domain, "other", NULL), BEELINE_INVALID);
  EXPECT_SAID("has an arena already");
  EXPECT(beeline_arena_join(domain, "set", 8, NULL, &arena), BEELINE_OK);
  for (number = 0; number < WINDOWS && failures == 0; number++) {
    EXPECT(beeline_arena_open(arena, 0, &senders[number]), BEELINE_OK);
    EXPECT(beeline_window_send(senders[number], &number, sizeof number, WATCHDOG_NS), BEELINE_OK);
  }
  while (all < WINDOWS && failures == 0) {
    EXPECT(beeline_window_set_drain(set, 64, WATCHDOG_NS, each, &sum, &taken, &failed), BEELINE_OK);
    all += taken;
  }
  EXPECT(sum, WINDOWS * (WINDOWS - 1) / 2);
  for (number = 0; number < WINDOWS; number++)
    EXPECT(beeline_window_sender_close(&senders[number]), BEELINE_OK);
  for (; ended < WINDOWS && failures == 0; ended++) {
    EXPECT(beeline_window_set_drain(set, 64, WATCHDOG_NS, each, &sum, &taken, &failed), BEELINE_SENDER_GONE);
    EXPECT(failed != 0, 1);
    EXPECT(beeline_window_set_remove(set, failed), BEELINE_INVALID);
  }
  EXPECT(beeline_window_set_drain(set, 64, 0, each, &sum, &taken, &failed), BEELINE_EMPTY);
  EXPECT(beeline_arena_sender_close(&arena), BEELINE_OK);
  EXPECT(beeline_window_set_close(&set), BEELINE_OK);
}

static void windows_are_accepted_one_by_one(void) {
  beeline_arena_options options = BEELINE_ARENA_OPTIONS_INIT;
  beeline_window_message *message;
  beeline_window_receiver *receiver;
  beeline_window_sender *sender, *second;
  beeline_arena_receiver *offered;
  beeline_arena_sender *joined;
  size_t length;
  int i;

  options.windows = 1;
  options.lines = 64;
  EXPECT(beeline_arena_offer(domain, "one", &options, &offered), BEELINE_OK);
  EXPECT(beeline_arena_accept(offered, 0, &receiver), BEELINE_EMPTY);
  EXPECT(receiver == NULL, 1);
  EXPECT(beeline_arena_join(domain, "one", 8, NULL, &joined), BEELINE_OK);
  EXPECT(beeline_arena_open(joined, 64, &sender), BEELINE_OK);
  EXPECT(beeline_arena_open(joined, 128, &second), BEELINE_INVALID);
  EXPECT(second == NULL, 1);
  EXPECT(beeline_arena_open(joined, 0, &second), BEELINE_REFUSED);
  EXPECT_SAID("drop windows that are not needed");
  EXPECT(beeline_arena_accept(offered, WATCHDOG_NS, &receiver), BEELINE_OK);
  /* What is open goes on without its arena. */
  EXPECT(beeline_arena_sender_close(&joined), BEELINE_OK);
  EXPECT(beeline_arena_receiver_close(&offered), BEELINE_OK);
  EXPECT(beeline_window_send(sender, "message", 7, WATCHDOG_NS), BEELINE_OK);
  EXPECT(beeline_window_sender_close(&sender), BEELINE_OK);
  EXPECT(beeline_window_wait(receiver, WATCHDOG_NS), BEELINE_OK);
  EXPECT(beeline_window_poll(receiver, &message, &length), BEELINE_OK);
  EXPECT(length, 7);
  EXPECT(beeline_window_wait(receiver, WATCHDOG_NS), BEELINE_OK);
  for (i = 0; i < 3; i++)
    EXPECT(beeline_window_poll(receiver, &message, &length), BEELINE_SENDER_GONE);
  EXPECT(beeline_window_receiver_close(&receiver), BEELINE_OK);
}

static void what_cannot_be_is_a_code(void) {
  beeline_arena_options options = BEELINE_ARENA_OPTIONS_INIT;
  beeline_window_sender_options sending = BEELINE_WINDOW_SENDER_OPTIONS_INIT;
  beeline_window_receiver *receiver = (beeline_window_receiver *)&failures;
  beeline_window_sender *sender = (beeline_window_sender *)&failures;
  beeline_arena_receiver *offered, *no_arena = (beeline_arena_receiver *)&failures;
  beeline_arena_sender *joined, *copy;

  EXPECT(beeline_arena_offer(NULL, "x", NULL, &offered), BEELINE_INVALID);
  EXPECT(offered == NULL, 1);
  EXPECT(beeline_arena_offer(domain, "x", NULL, NULL), BEELINE_INVALID);
  options.lines = 3;
  EXPECT(beeline_arena_offer(domain, "x", &options, &offered), BEELINE_INVALID);
  options.lines = 0;
  options.windows = 20000;
  EXPECT(beeline_arena_offer(domain, "x", &options, &offered), BEELINE_INVALID);
  options.windows = 0;
  options.bytes = 5;
  EXPECT(beeline_arena_offer(domain, "x", &options, &offered), BEELINE_INVALID);
  options.bytes = 0;
  options.wait = 7;
  EXPECT(beeline_arena_offer(domain, "x", &options, &offered), BEELINE_INVALID);
  EXPECT(beeline_arena_offer_to_set(NULL, domain, "x", NULL), BEELINE_INVALID);
  EXPECT(beeline_arena_accept(no_arena, 0, &receiver), BEELINE_INVALID);
  EXPECT(receiver == NULL, 1);
  EXPECT_SAID("arena is no open arena");
  sending.connect_timeout_ns = 1;
  EXPECT(beeline_arena_join(domain, "nobody", 8, &sending, &joined), BEELINE_REFUSED);
  EXPECT(joined == NULL, 1);
  EXPECT(beeline_arena_offer(domain, "x", NULL, &offered), BEELINE_OK);
  EXPECT(beeline_arena_join(domain, "x", 3, NULL, &joined), BEELINE_INVALID);
  sending.flags = BEELINE_WINDOW_LOCKED;
  EXPECT(beeline_arena_join(domain, "x", 8, &sending, &joined), BEELINE_INVALID);
  EXPECT(beeline_arena_join(domain, "x", 8, NULL, &joined), BEELINE_OK);
  EXPECT(beeline_arena_open(joined, 0, NULL), BEELINE_INVALID);
  copy = joined;
  EXPECT(beeline_arena_sender_close(&joined), BEELINE_OK);
  EXPECT(beeline_arena_open(copy, 0, &sender), BEELINE_INVALID);
  EXPECT(sender == NULL, 1);
  EXPECT(beeline_arena_sender_close(&copy), BEELINE_INVALID);
  EXPECT(beeline_arena_receiver_close(&offered), BEELINE_OK);
}

int main(int argc, char **argv) {
  int rounds;

  if (argc != 3)
    return EXIT_FAILURE;
  /* Calls that wait for what does not come, each for WATCHDOG_NS, end the test as a failure. */
  alarm(60);
  EXPECT(beeline_domain_open("arenas", argv[1], &domain), BEELINE_OK);
  for (rounds = atoi(argv[2]); rounds > 0 && failures == 0; rounds--) {
    set_takes_in_what_is_opened();
    windows_are_accepted_one_by_one();
    what_cannot_be_is_a_code();
  }
  EXPECT(beeline_domain_close(&domain), BEELINE_OK);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
