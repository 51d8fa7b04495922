/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One thread receives what many programs send, each through a window of its own, with one wait for all of them; sender.c is
 * each of them, with the names NAME-0 to NAME-(COUNT - 1). Ends when every sender has. Usage: fan_in NAME ROOT COUNT.
 *
 *   cc fan_in.c $(pkg-config --cflags --libs beeline) -o fan_in
 */
#include <beeline_window.h>

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1024 };

/* What came of each member, by its place here. */
static uint64_t members[MOST], sums[MOST], counts[MOST];
static size_t members_count;

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "fan_in: %s\n", beeline_last_error());
    exit(EXIT_FAILURE);
  }
}

static size_t place_of(uint64_t member) {
  for (size_t at = 0; at < members_count; at++) {
    if (members[at] == member)
      return at;
  }
  exit(EXIT_FAILURE);
}

static void each(void *context, uint64_t member, beeline_window_message *message, size_t length) {
  size_t at = place_of(member);

  (void)context, (void)length;
  sums[at] += beeline_window_message_word(message, 0);
  counts[at]++;
}

int main(int argc, char **argv) {
  beeline_window_receiver_options options = BEELINE_WINDOW_RECEIVER_OPTIONS_INIT;
  beeline_window_set *set;
  beeline_domain *domain;
  uint64_t failed, messages = 0, sum = 0;
  size_t wanted, ended = 0;
  char name[64];

  if (argc < 4 || (wanted = (size_t)strtoul(argv[3], NULL, 10)) > MOST) {
    fprintf(stderr, "usage: %s NAME ROOT COUNT\n", argv[0]);
    return EXIT_FAILURE;
  }
  options.lines = 128;
  check(beeline_domain_open("default", argv[2], &domain));
  check(beeline_window_set_open(0, BEELINE_WAIT_SLEEP, &set));
  for (; members_count < wanted; members_count++) {
    snprintf(name, sizeof name, "%.40s-%zu", argv[1], members_count);
    check(beeline_window_set_offer(set, domain, name, &options, &members[members_count]));
  }
  printf("%zu names are offered\n", wanted);
  fflush(stdout);
  while (ended < wanted) {
    int status = beeline_window_set_drain(set, 1024, BEELINE_NEVER, each, NULL, NULL, &failed);

    if (status == BEELINE_SENDER_GONE) {
      check(beeline_window_set_remove(set, failed));
      ended++;
    } else {
      check(status);
    }
  }
  for (size_t at = 0; at < wanted; at++) {
    messages += counts[at];
    sum += sums[at];
  }
  printf("%llu messages of %zu senders, sum %llu\n", (unsigned long long)messages, wanted, (unsigned long long)sum);
  check(beeline_window_set_close(&set));
  check(beeline_domain_close(&domain));
  return EXIT_SUCCESS;
}
