/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sends the numbers from 1 to COUNT, many at once. Usage: sender NAME [ROOT [COUNT]]; waits for the receiver to come.
 *
 *   cc sender.c $(pkg-config --cflags --libs beeline) -o sender
 */
#include <beeline_window.h>

#include <stdio.h>
#include <stdlib.h>

enum { AT_ONCE = 64 };

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "sender: %s\n", beeline_last_error());
    exit(EXIT_FAILURE);
  }
}

int main(int argc, char **argv) {
  beeline_window_sender_options options = BEELINE_WINDOW_SENDER_OPTIONS_INIT;
  unsigned long long count = argc > 3 ? strtoull(argv[3], NULL, 10) : 1000000, number = 1;
  unsigned char bytes[AT_ONCE][8];
  beeline_window_bytes messages[AT_ONCE];
  beeline_domain *domain;
  beeline_window_sender *sender;

  if (argc < 2) {
    fprintf(stderr, "usage: %s NAME [ROOT [COUNT]]\n", argv[0]);
    return EXIT_FAILURE;
  }
  options.traffic = BEELINE_WINDOW_STREAM;
  check(beeline_domain_open("default", argc > 2 ? argv[2] : NULL, &domain));
  check(beeline_window_sender_connect(domain, argv[1], &options, &sender));
  while (number <= count) {
    size_t filled = 0;

    for (; filled < AT_ONCE && number <= count; filled++, number++) {
      /* Little-endian, whatever this machine is. */
      for (int byte = 0; byte < 8; byte++)
        bytes[filled][byte] = (unsigned char)(number >> (8 * byte));
      messages[filled].start = bytes[filled];
      messages[filled].length = sizeof bytes[filled];
    }
    check(beeline_window_send_all(sender, messages, filled, BEELINE_NEVER, NULL));
  }
  printf("%llu messages sent\n", count);
  /* What was sent stays for the receiver. */
  check(beeline_window_sender_close(&sender));
  check(beeline_domain_close(&domain));
  return EXIT_SUCCESS;
}
