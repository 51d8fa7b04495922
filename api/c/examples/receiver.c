/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Receives numbers of one sender and adds them up; ends when the sender does. Usage: receiver NAME [ROOT].
 *
 *   cc receiver.c $(pkg-config --cflags --libs beeline) -o receiver
 */
#include <beeline_window.h>

#include <stdio.h>
#include <stdlib.h>

/* As many as are copied at once: 64 bytes for each let them be read in runs. */
enum { MESSAGES = 256, MEMORY_BYTES = 64 * MESSAGES };

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "receiver: %s\n", beeline_last_error());
    exit(EXIT_FAILURE);
  }
}

/* Little-endian, whatever this machine is. */
static uint64_t number_at(const unsigned char *bytes) {
  uint64_t number = 0;

  for (int byte = 0; byte < 8; byte++)
    number |= (uint64_t)bytes[byte] << (8 * byte);
  return number;
}

int main(int argc, char **argv) {
  static unsigned char memory[MEMORY_BYTES];
  static beeline_window_span spans[MESSAGES];
  beeline_domain *domain;
  beeline_window_receiver *receiver;
  uint64_t sum = 0, count = 0;
  size_t taken;
  int status;

  if (argc < 2) {
    fprintf(stderr, "usage: %s NAME [ROOT]\n", argv[0]);
    return EXIT_FAILURE;
  }
  check(beeline_domain_open("default", argc > 2 ? argv[2] : NULL, &domain));
  check(beeline_window_receiver_offer(domain, argv[1], NULL, &receiver));
  printf("%s is offered\n", argv[1]);
  fflush(stdout);
  for (;;) {
    status = beeline_window_drain_into(receiver, memory, sizeof memory, spans, MESSAGES, &taken);
    if (status == BEELINE_SENDER_GONE)
      break;
    check(status);
    for (size_t at = 0; at < taken; at++) {
      if (spans[at].length == 8)
        sum += number_at(memory + spans[at].offset);
    }
    count += taken;
    if (status == BEELINE_EMPTY)
      check(beeline_window_wait(receiver, BEELINE_NEVER));
  }
  printf("%llu messages, sum %llu\n", (unsigned long long)count, (unsigned long long)sum);
  check(beeline_window_receiver_close(&receiver));
  check(beeline_domain_close(&domain));
  return EXIT_SUCCESS;
}
