/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Takes what notifier.c tells until that ends, and checks that nothing is missing. HOW is wait, poll or callback: how it
 * waits. Usage: subscriber NAME ROOT HOW.
 *
 *   cc subscriber.c $(pkg-config --cflags --libs beeline) -lpthread -o subscriber
 */
#include <beeline_notify.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t WATCHDOG_NS = UINT64_C(60000000000);

/* What was told so far; a callback and the main thread share it. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t last;
  int status;
} told = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, BEELINE_OK};

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "subscriber: %s\n", beeline_last_error());
    exit(EXIT_FAILURE);
  }
}

static void take(const void *bytes, size_t length) {
  uint64_t number = 0;

  if (length == sizeof number)
    memcpy(&number, bytes, sizeof number);
  if (number != told.last + 1) {
    fprintf(stderr, "subscriber: %llu after %llu\n", (unsigned long long)number, (unsigned long long)told.last);
    exit(EXIT_FAILURE);
  }
  told.last = number;
}

/* Runs on a thread of the library. */
static void called(void *context, int status, const beeline_parcel *parcel) {
  (void)context;
  pthread_mutex_lock(&told.lock);
  if (status == BEELINE_OK)
    take(parcel->bytes, parcel->length);
  told.status = status;
  pthread_cond_signal(&told.changed);
  pthread_mutex_unlock(&told.lock);
}

/* Takes all, waiting as `how` says; gives the code that ends it. */
static int take_all(const beeline_subscription *subscription, const char *how) {
  unsigned char bytes[BEELINE_MAX_NOTIFICATION_BYTES];
  beeline_space space = {bytes, sizeof bytes, 0, NULL, 0, 0};
  int is_polled = strcmp(how, "poll") == 0, status;
  struct pollfd set;

  memset(&set, 0, sizeof set);
  set.events = POLLIN;
  check(beeline_subscription_descriptor(subscription, &set.fd));
  for (;;) {
    if (is_polled && poll(&set, 1, 60000) != 1)
      exit(EXIT_FAILURE);
    status = beeline_subscription_next(subscription, is_polled ? 0 : WATCHDOG_NS, &space);
    if (status == BEELINE_OK)
      take(bytes, space.length);
    else if (status < 0)
      return status;
  }
}

int main(int argc, char **argv) {
  unsigned char bytes[16];
  beeline_parcel request = {"who is there", 12, NULL, 0};
  beeline_space answer = {bytes, sizeof bytes, 0, NULL, 0, 0};
  beeline_subscription *subscription;
  beeline_domain *domain;
  int status;

  if (argc < 4) {
    fprintf(stderr, "usage: %s NAME ROOT wait|poll|callback\n", argv[0]);
    return EXIT_FAILURE;
  }
  check(beeline_domain_open("default", argv[2], &domain));
  check(beeline_subscription_open(domain, argv[1], NULL, WATCHDOG_NS, &subscription));
  check(beeline_subscription_call(subscription, &request, WATCHDOG_NS, &answer));
  if (answer.length != 12 || memcmp(bytes, "who is there", 12) != 0)
    return EXIT_FAILURE;
  if (strcmp(argv[3], "callback") == 0) {
    check(beeline_subscription_deliver_to(subscription, called, NULL));
    pthread_mutex_lock(&told.lock);
    while (told.status == BEELINE_OK)
      pthread_cond_wait(&told.changed, &told.lock);
    status = told.status;
    pthread_mutex_unlock(&told.lock);
  } else {
    status = take_all(subscription, argv[3]);
  }
  printf("%llu notifications, then: %s\n", (unsigned long long)told.last, beeline_status_text(status));
  check(beeline_subscription_close(&subscription));
  check(beeline_domain_close(&domain));
  return EXIT_SUCCESS;
}
