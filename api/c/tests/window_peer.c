/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One side of a window whose other side is killed, or comes late. Usage:
 *
 *   window_peer receive ROOT WAIT TIMES   receives until TIMES senders have ended; says "receiving" after the first message
 *                                         of each, "lost" at its end
 *   window_peer send ROOT                 sends until the receiver ends; says "sending" when the first message was received,
 *                                         "lost" at the end of the receiver
 *   window_peer begin ROOT                sends one message, opens another, says "open" and stops there
 *
 * WAIT is wait, epoll or spin: how the receiver waits. Also C++17.
 */
#include <beeline_window.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { LOST_AFTER_MS = 60000 };
static const uint64_t WATCHDOG_NS = UINT64_C(60000000000);

static void check(int is_so, const char *what) {
  if (!is_so) {
    fprintf(stderr, "%s (%s)\n", what, beeline_last_error());
    exit(EXIT_FAILURE);
  }
}

static void say(const char *what) {
  printf("%s\n", what);
  fflush(stdout);
}

/* Arms, and waits in the set if nothing is there. */
static void wait_in_set(beeline_window_receiver *receiver, int set) {
  uint64_t at_most_ns = 7;
  struct epoll_event event;
  int status = beeline_window_receiver_arm(receiver, &at_most_ns);

  if (status == BEELINE_OK) {
    check(at_most_ns == 0 && epoll_wait(set, &event, 1, 0) == 1, "something is there and the descriptor is not readable");
    return;
  }
  check(status == BEELINE_EMPTY && at_most_ns > 0, "not armed");
  check(epoll_wait(set, &event, 1, LOST_AFTER_MS) == 1, "a wake-up is lost");
}

static void wait_for(beeline_window_receiver *receiver, const char *how, int set) {
  if (strcmp(how, "epoll") == 0)
    wait_in_set(receiver, set);
  else if (strcmp(how, "wait") == 0)
    check(beeline_window_wait(receiver, WATCHDOG_NS) == BEELINE_OK, "nothing came");
}

static void receive(beeline_domain *domain, const char *how, long times) {
  beeline_window_receiver_options options = BEELINE_WINDOW_RECEIVER_OPTIONS_INIT;
  beeline_window_receiver *receiver;
  struct epoll_event event;
  int set = epoll_create1(EPOLL_CLOEXEC), descriptor = -1, is_receiving = 0;

  options.lines = 64;
  check(beeline_window_receiver_offer(domain, "peer", &options, &receiver) == BEELINE_OK, "no receiver");
  check(beeline_window_receiver_descriptor(receiver, &descriptor) == BEELINE_OK, "no descriptor");
  memset(&event, 0, sizeof event);
  event.events = EPOLLIN;
  check(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0, "no set");
  check(epoll_wait(set, &event, 1, 0) == 1, "a descriptor that is not armed is not readable");
  say("offered");
  while (times > 0) {
    beeline_window_span spans[8];
    unsigned char memory[512];
    size_t taken = 77;
    int status = beeline_window_drain_into(receiver, memory, sizeof memory, spans, 8, &taken);

    switch (status) {
    case BEELINE_OK:
      for (size_t at = 0; at < taken; at++)
        check(spans[at].length == 7 && memcmp(memory + spans[at].offset, "message", 7) == 0, "another message");
      if (!is_receiving)
        say("receiving");
      is_receiving = 1;
      break;
    case BEELINE_EMPTY:
      wait_for(receiver, how, set);
      break;
    case BEELINE_SENDER_GONE:
    case BEELINE_TORN:
      check(taken == 0, "an error with messages");
      check(strstr(beeline_last_error(), "receive again") != NULL, "no remedy");
      if (status == BEELINE_TORN && strstr(beeline_last_error(), "the sender closed the window") != NULL)
        say("torn by closing");
      else
        say(status == BEELINE_TORN ? "torn" : "lost");
      is_receiving = 0;
      times--;
      break;
    default:
      check(0, "another error");
    }
  }
  check(beeline_window_receiver_close(&receiver) == BEELINE_OK, "not closed");
  close(set);
}

static beeline_window_sender *connect_peer(beeline_domain *domain) {
  beeline_window_sender_options options = BEELINE_WINDOW_SENDER_OPTIONS_INIT;
  beeline_window_sender *sender;

  options.connect_timeout_ns = WATCHDOG_NS;
  check(beeline_window_sender_connect(domain, "peer", &options, &sender) == BEELINE_OK, "no sender");
  return sender;
}

static void send(beeline_domain *domain) {
  beeline_window_sender *sender = connect_peer(domain);
  int status;

  check(beeline_window_send(sender, "message", 7, WATCHDOG_NS) == BEELINE_OK, "not sent");
  check(beeline_window_flush(sender, WATCHDOG_NS) == BEELINE_OK, "not received");
  check(beeline_window_sender_receiver(sender) == BEELINE_OK, "no receiver");
  say("sending");
  /* Every way to wait for room ends when the receiver has. */
  while ((status = beeline_window_send(sender, "message", 7, WATCHDOG_NS)) == BEELINE_OK)
    continue;
  check(status == BEELINE_RECEIVER_GONE, "another end than the receiver's");
  check(strstr(beeline_last_error(), "open the window again") != NULL, "no remedy");
  while ((status = beeline_window_try_send(sender, "message", 7)) == BEELINE_OK)
    continue;
  check(status == BEELINE_RECEIVER_GONE, "room is promised that will never be");
  check(beeline_window_sender_receiver(sender) == BEELINE_RECEIVER_GONE, "a receiver that was killed");
  check(beeline_window_reserve(sender, 7, WATCHDOG_NS) == BEELINE_RECEIVER_GONE, "room for a reservation");
  check(beeline_window_batch(sender, 70, 0) == BEELINE_RECEIVER_GONE, "room for a batch");
  check(beeline_window_flush(sender, WATCHDOG_NS) == BEELINE_RECEIVER_GONE, "everything was received");
  say("lost");
  check(beeline_window_sender_close(&sender) == BEELINE_OK, "not closed");
}

static void begin(beeline_domain *domain) {
  static const unsigned char long_message[512] = {0};
  beeline_window_sender *sender = connect_peer(domain);

  check(beeline_window_send(sender, "message", 7, WATCHDOG_NS) == BEELINE_OK, "not sent");
  check(beeline_window_flush(sender, WATCHDOG_NS) == BEELINE_OK, "not received");
  check(beeline_window_reserve(sender, 1000, WATCHDOG_NS) == BEELINE_OK, "no room");
  check(beeline_window_write(sender, long_message, sizeof long_message) == BEELINE_OK, "not written");
  say("open");
  getchar();
}

int main(int argc, char **argv) {
  beeline_domain *domain;

  if (argc < 3)
    return EXIT_FAILURE;
  check(beeline_domain_open("default", argv[2], &domain) == BEELINE_OK, "no domain");
  if (strcmp(argv[1], "send") == 0)
    send(domain);
  else if (strcmp(argv[1], "begin") == 0)
    begin(domain);
  else if (argc > 4)
    receive(domain, argv[3], strtol(argv[4], NULL, 10));
  check(beeline_domain_close(&domain) == BEELINE_OK, "not closed");
  return EXIT_SUCCESS;
}
