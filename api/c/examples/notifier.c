/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Waits for SUBSCRIBERS, tells each the numbers from 1 to COUNT, and answers each request with what was asked. Usage:
 * notifier NAME ROOT SUBSCRIBERS COUNT; see subscriber.c.
 *
 *   cc notifier.c $(pkg-config --cflags --libs beeline) -o notifier
 */
#include <beeline_notify.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };
static const uint64_t WATCHDOG_NS = UINT64_C(60000000000);

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "notifier: %s\n", beeline_last_error());
    exit(EXIT_FAILURE);
  }
}

static void fail(const char *why) {
  fprintf(stderr, "notifier: %s\n", why);
  exit(EXIT_FAILURE);
}

/* Runs on threads of the library. */
static int answer(void *context, uint64_t subscriber, const beeline_parcel *request, beeline_space *answered) {
  (void)context, (void)subscriber;
  answered->length = request->length < answered->capacity ? request->length : answered->capacity;
  if (answered->length > 0)
    memcpy(answered->bytes, request->bytes, answered->length);
  return 0;
}

/* Waits until something has happened; a subscriber that leaves early ends this program. */
static beeline_notifier_event wait_for_event(const beeline_notifier *notifier) {
  beeline_notifier_event event;
  int status = beeline_notifier_next_event(notifier, WATCHDOG_NS, &event);

  check(status);
  if (status == BEELINE_EMPTY || event.kind == BEELINE_SUBSCRIBER_LEFT)
    fail("nobody comes, takes anything, or stays");
  return event;
}

int main(int argc, char **argv) {
  uint64_t subscribers[MOST];
  beeline_notifier *notifier;
  beeline_domain *domain;
  size_t count = 0, wanted;
  unsigned long long last;

  if (argc < 5) {
    fprintf(stderr, "usage: %s NAME ROOT SUBSCRIBERS COUNT\n", argv[0]);
    return EXIT_FAILURE;
  }
  wanted = (size_t)strtoul(argv[3], NULL, 10);
  last = strtoull(argv[4], NULL, 10);
  if (wanted > MOST)
    fail("too many subscribers");
  check(beeline_domain_open("default", argv[2], &domain));
  check(beeline_notifier_offer(domain, argv[1], NULL, answer, NULL, &notifier));
  while (count < wanted) {
    beeline_notifier_event event = wait_for_event(notifier);

    if (event.kind == BEELINE_SUBSCRIBER_JOINED)
      subscribers[count++] = event.subscriber;
  }
  for (unsigned long long number = 1; number <= last; number++) {
    uint64_t bytes = number;
    beeline_parcel told = {&bytes, sizeof bytes, NULL, 0};

    for (size_t at = 0; at < count; at++) {
      int status;

      /* One that is slow is waited for; another program would leave it out. */
      while ((status = beeline_notifier_notify(notifier, subscribers[at], &told)) == BEELINE_FULL)
        wait_for_event(notifier);
      check(status);
    }
  }
  printf("%llu notifications for each of %zu subscribers\n", last, count);
  check(beeline_notifier_close(&notifier));
  check(beeline_domain_close(&domain));
  return EXIT_SUCCESS;
}
