/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A window for each of COUNT sessions of one program with another, all in memory that either has mapped once. One thread receives
 * from all with one wait. Start both, in any order. Usage: arena receive|send ROOT COUNT
 *
 *   cc arena.c $(pkg-config --cflags --libs beeline) -o arena
 */
#include <beeline_arena.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As many windows as a process has by default, see struct beeline_arena_options. */
enum { MOST = 4096, LINES = 16 };

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "arena: %s\n", beeline_last_error());
    exit(EXIT_FAILURE);
  }
}

static void each(void *sum, uint64_t member, beeline_window_message *message, size_t length) {
  uint64_t number = 0;

  (void)member, (void)length;
  beeline_window_message_copy(message, 0, &number, sizeof number);
  *(uint64_t *)sum += number;
}

static void receive(const beeline_domain *domain, size_t count) {
  beeline_window_set *set;
  uint64_t failed, sum = 0;
  size_t ended = 0;

  check(beeline_window_set_open(0, BEELINE_WAIT_SLEEP, &set));
  check(beeline_arena_offer_to_set(set, domain, "sessions", NULL));
  while (ended < count) {
    int status = beeline_window_set_drain(set, 1024, BEELINE_NEVER, each, &sum, NULL, &failed);

    /* A session has ended, and its window is in the set no more. */
    if (status == BEELINE_SENDER_GONE)
      ended++;
    else
      check(status);
  }
  printf("%zu sessions, sum %llu\n", count, (unsigned long long)sum);
  check(beeline_window_set_close(&set));
}

static void send_all(const beeline_domain *domain, size_t count) {
  static beeline_window_sender *sessions[MOST];
  beeline_arena_sender *arena;

  check(beeline_arena_join(domain, "sessions", LINES, NULL, &arena));
  for (uint64_t number = 0; number < count; number++) {
    check(beeline_arena_open(arena, 0, &sessions[number]));
    check(beeline_window_send(sessions[number], &number, sizeof number, BEELINE_NEVER));
  }
  /* What was sent stays for the receiver. */
  for (size_t at = 0; at < count; at++)
    check(beeline_window_sender_close(&sessions[at]));
  check(beeline_arena_sender_close(&arena));
}

int main(int argc, char **argv) {
  beeline_domain *domain;
  size_t count;

  if (argc < 4 || (count = (size_t)strtoul(argv[3], NULL, 10)) > MOST) {
    fprintf(stderr, "usage: %s receive|send ROOT COUNT\n", argv[0]);
    return EXIT_FAILURE;
  }
  check(beeline_domain_open("default", argv[2], &domain));
  if (strcmp(argv[1], "receive") == 0)
    receive(domain, count);
  else
    send_all(domain, count);
  check(beeline_domain_close(&domain));
  return EXIT_SUCCESS;
}
