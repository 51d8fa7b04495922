/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A subscription is closed while its callback waits in a function of it: for a notification that nobody sends, and for an answer of a
 * notifier that gives none before the close has returned. A notifier is closed while it answers a subscriber that waits, and one that
 * has gone. A handler of a signal that interrupts a function closes nothing. Usage: closing ROOT ROUNDS. Also C++17.
 */
#include <beeline_notify.h>
#include <beeline_segment.h>

#include "expect.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t WATCHDOG_NS = UINT64_C(60000000000);

/* What the callback is in. */
enum { OUTSIDE, INSIDE };
enum { MAX_ROUNDS = 100 };

static beeline_subscription *used;
static int place, calls;

static int is(const int *variable, int value) {
  return __atomic_load_n(variable, __ATOMIC_SEQ_CST) == value;
}

static int answer_late(void *context, uint64_t subscriber, const beeline_parcel *request, beeline_space *answer) {
  (void)subscriber;
  (void)answer;
  /* The first request is the subscription itself. */
  while (request->length > 0 && !is((const int *)context, 1))
    usleep(100);
  return 0;
}

static void begins(int status, const beeline_parcel *told) {
  EXPECT(status == BEELINE_OK && told != NULL, 1);
  __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  __atomic_store_n(&place, INSIDE, __ATOMIC_SEQ_CST);
}

static void ends(int status, int wanted) {
  /* INVALID: the close came first. */
  EXPECT(status == wanted || status == BEELINE_INVALID, 1);
  __atomic_store_n(&place, OUTSIDE, __ATOMIC_SEQ_CST);
}

static void wait_for_more(void *subscription, int status, const beeline_parcel *told) {
  beeline_space space;

  memset(&space, 0, sizeof space);
  begins(status, told);
  ends(beeline_subscription_next((beeline_subscription *)subscription, BEELINE_NEVER, &space), BEELINE_NOTIFIER_GONE);
}

static void wait_for_answer(void *subscription, int status, const beeline_parcel *told) {
  beeline_parcel ask = {"?", 1, NULL, 0};
  beeline_space space;

  memset(&space, 0, sizeof space);
  begins(status, told);
  ends(beeline_subscription_call((beeline_subscription *)subscription, &ask, BEELINE_NEVER, &space), BEELINE_REFUSED);
}

/* `is_closed` is 0: the notifier answers when it is 1. */
static void close_while(const beeline_domain *domain, beeline_subscription_told callback, int *is_closed) {
  beeline_notifier *notifier;
  beeline_notifier_event event;

  __atomic_store_n(&calls, 0, __ATOMIC_SEQ_CST);
  EXPECT(beeline_notifier_offer(domain, "late", NULL, answer_late, is_closed, &notifier), BEELINE_OK);
  EXPECT(beeline_subscription_open(domain, "late", NULL, 0, &used), BEELINE_OK);
  EXPECT(beeline_notifier_next_event(notifier, WATCHDOG_NS, &event), BEELINE_OK);
  EXPECT(beeline_subscription_deliver_to(used, callback, used), BEELINE_OK);
  EXPECT(beeline_notifier_notify(notifier, event.subscriber, NULL), BEELINE_OK);
  while (!is(&place, INSIDE))
    usleep(100);
  /* In the function, mostly. */
  usleep(5000);
  EXPECT(beeline_subscription_close(&used), BEELINE_OK);
  EXPECT(used == NULL, 1);
  /* The callback has ended, and was not called for the end. */
  EXPECT(is(&place, OUTSIDE), 1);
  EXPECT(is(&calls, 1), 1);
  __atomic_store_n(is_closed, 1, __ATOMIC_SEQ_CST);
  EXPECT(beeline_notifier_close(&notifier), BEELINE_OK);
}

static beeline_notifier *answering;

/* Tells the subscriber something all the time, so that the close finds it in a function of the notifier, too. */
static int answer_slowly(void *context, uint64_t subscriber, const beeline_parcel *request, beeline_space *answer) {
  (void)context;
  (void)answer;
  if (request->length == 0)
    return 0;
  __atomic_store_n(&place, INSIDE, __ATOMIC_SEQ_CST);
  for (int at = 0; at < 20; at++) {
    beeline_notifier *notifier = __atomic_load_n(&answering, __ATOMIC_SEQ_CST);

    (void)beeline_notifier_notify(notifier, subscriber, NULL);
    usleep(1000);
  }
  __atomic_store_n(&place, OUTSIDE, __ATOMIC_SEQ_CST);
  return 0;
}

static void *ask(void *subscription) {
  beeline_parcel request = {"?", 1, NULL, 0};
  beeline_space space;

  memset(&space, 0, sizeof space);
  EXPECT(beeline_subscription_call((beeline_subscription *)subscription, &request, BEELINE_NEVER, &space), BEELINE_REFUSED);
  return NULL;
}

static void close_while_it_answers(const beeline_domain *domain, int has_gone) {
  beeline_notifier *notifier;
  pthread_t asking;

  EXPECT(beeline_notifier_offer(domain, "slow", NULL, answer_slowly, NULL, &notifier), BEELINE_OK);
  __atomic_store_n(&answering, notifier, __ATOMIC_SEQ_CST);
  EXPECT(beeline_subscription_open(domain, "slow", NULL, 0, &used), BEELINE_OK);
  EXPECT(pthread_create(&asking, NULL, ask, used), 0);
  while (!is(&place, INSIDE))
    usleep(100);
  if (has_gone)
    EXPECT(beeline_subscription_close(&used), BEELINE_OK);
  EXPECT(beeline_notifier_close(&notifier), BEELINE_OK);
  /* The answer has ended, so its context may be freed. */
  EXPECT(is(&place, OUTSIDE), 1);
  pthread_join(asking, NULL);
  EXPECT(beeline_subscription_close(&used), BEELINE_OK);
}

static beeline_segment *mapped;
static int handled;

/* The thread sleeps in a function of the subscription, so whatever it could have locked is free. */
static void close_in_handler(int signal) {
  (void)signal;
  EXPECT(beeline_segment_close(&mapped), BEELINE_BUSY);
  EXPECT(mapped != NULL, 1);
  EXPECT(beeline_subscription_close(&used), BEELINE_BUSY);
  EXPECT(used != NULL, 1);
  __atomic_store_n(&handled, 1, __ATOMIC_SEQ_CST);
}

static void *wait_for_end(void *subscription) {
  beeline_space space;

  memset(&space, 0, sizeof space);
  __atomic_store_n(&place, INSIDE, __ATOMIC_SEQ_CST);
  EXPECT(beeline_subscription_next((beeline_subscription *)subscription, BEELINE_NEVER, &space), BEELINE_NOTIFIER_GONE);
  __atomic_store_n(&place, OUTSIDE, __ATOMIC_SEQ_CST);
  return NULL;
}

static void handler_closes_nothing(const beeline_domain *domain) {
  struct sigaction action;
  beeline_notifier *notifier;
  pthread_t waiting;
  size_t length;
  int descriptor;

  memset(&action, 0, sizeof action);
  action.sa_handler = close_in_handler;
  EXPECT(sigaction(SIGUSR1, &action, NULL), 0);
  EXPECT(beeline_segment_create("closed", 4096, 0, &descriptor), BEELINE_OK);
  EXPECT(beeline_segment_map(descriptor, NULL, &mapped), BEELINE_OK);
  EXPECT(close(descriptor), 0);
  EXPECT(beeline_notifier_offer(domain, "silent", NULL, NULL, NULL, &notifier), BEELINE_OK);
  EXPECT(beeline_subscription_open(domain, "silent", NULL, 0, &used), BEELINE_OK);
  EXPECT(pthread_create(&waiting, NULL, wait_for_end, used), 0);
  while (!is(&place, INSIDE))
    usleep(100);
  /* It sleeps. */
  usleep(200000);
  EXPECT(pthread_kill(waiting, SIGUSR1), 0);
  while (!is(&handled, 1))
    usleep(100);
  /* Both are open. */
  EXPECT(beeline_segment_length(mapped, &length), BEELINE_OK);
  EXPECT(is(&place, INSIDE), 1);
  EXPECT(beeline_segment_close(&mapped), BEELINE_OK);
  EXPECT(beeline_subscription_close(&used), BEELINE_OK);
  pthread_join(waiting, NULL);
  EXPECT(beeline_notifier_close(&notifier), BEELINE_OK);
}

int main(int argc, char **argv) {
  static int are_closed[2][MAX_ROUNDS];
  beeline_domain *domain;
  long rounds;

  if (argc < 3)
    return EXIT_FAILURE;
  rounds = strtol(argv[2], NULL, 10);
  EXPECT(rounds <= MAX_ROUNDS, 1);
  /* A close that waits for ever ends the test as a failure. */
  alarm(60);
  EXPECT(beeline_domain_open("default", argv[1], &domain), BEELINE_OK);
  for (long done = 0; done < rounds && done < MAX_ROUNDS; done++) {
    close_while(domain, wait_for_more, &are_closed[0][done]);
    close_while(domain, wait_for_answer, &are_closed[1][done]);
    close_while_it_answers(domain, 0);
    close_while_it_answers(domain, 1);
  }
  handler_closes_nothing(domain);
  EXPECT(beeline_domain_close(&domain), BEELINE_OK);
  printf("%d failures\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
