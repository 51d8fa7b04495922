/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client that only waits by descriptor, of a server that is ended and started again meanwhile. Usage: sleeping NAME
 * ROOT. Says "waiting" when it is about to wait, "lost" when the server went, "found" when the next one has answered, and
 * "timed out" when a call's deadline ended one more wait. Also C++17.
 */
#include <beeline_rpc.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { ADD = 1, LOST_AFTER_MS = 60000 };

static beeline_rpc_client *client;
static struct pollfd set;

static void check(int is_so, const char *what) {
  if (!is_so) {
    fprintf(stderr, "%s (%s)\n", what, beeline_rpc_last_error());
    exit(EXIT_FAILURE);
  }
}

static void say(const char *what) {
  printf("%s\n", what);
  fflush(stdout);
}

/* Arms and waits, unless something has come. */
static void arm_and_wait(void) {
  uint64_t at_most_ns = 7, at_most_ms;
  int status = beeline_rpc_client_arm(client, &at_most_ns);

  check(status == BEELINE_RPC_OK ? at_most_ns == 0 : status == BEELINE_RPC_EMPTY, "not armed");
  at_most_ms = at_most_ns / 1000000 + (at_most_ns % 1000000 != 0);
  if (at_most_ms < LOST_AFTER_MS)
    check(poll(&set, 1, (int)at_most_ms) >= 0, "no poll");
  else
    check(poll(&set, 1, LOST_AFTER_MS) == 1, "a wake-up is lost");
}

/* Waits until there is, or is no, server. */
static void until(int wanted) {
  beeline_rpc_completion completion;

  for (;;) {
    check(beeline_rpc_poll(client, &completion) == BEELINE_RPC_EMPTY, "the end of a call that was not begun");
    if (beeline_rpc_client_server(client, NULL) == wanted)
      return;
    arm_and_wait();
  }
}

/* Makes a call, waiting by descriptor; its status. */
static int call(uint64_t timeout_ns) {
  static const unsigned char request[8] = {7, 0, 0, 0, 0, 0, 0, 0};
  beeline_rpc_completion completion;

  check(beeline_rpc_start(client, ADD, request, sizeof request, timeout_ns, NULL) == BEELINE_RPC_OK, "not begun");
  while (beeline_rpc_poll(client, &completion) == BEELINE_RPC_EMPTY)
    arm_and_wait();
  return completion.status;
}

int main(int argc, char **argv) {
  beeline_rpc_domain *domain;
  uint64_t at_most_ns = 0;

  if (argc < 3)
    return EXIT_FAILURE;
  check(beeline_rpc_domain_open("default", argv[2], &domain) == BEELINE_RPC_OK, "no domain");
  check(beeline_rpc_client_connect(domain, argv[1], NULL, &client) == BEELINE_RPC_OK, "no client");
  check(beeline_rpc_client_descriptor(client, &set.fd) == BEELINE_RPC_OK, "no descriptor");
  set.events = POLLIN;
  check(poll(&set, 1, 0) == 1, "a descriptor that is not armed is not readable");
  check(call(BEELINE_RPC_NEVER) == BEELINE_RPC_OK, "no answer");
  while (beeline_rpc_client_arm(client, &at_most_ns) == BEELINE_RPC_OK)
    until(BEELINE_RPC_OK);
  check(at_most_ns == BEELINE_RPC_NEVER, "a client without calls has something due");
  check(poll(&set, 1, 0) == 0, "a descriptor that is armed is readable, with nothing there");
  check(beeline_rpc_client_disarm(client) == BEELINE_RPC_OK, "not disarmed");
  check(poll(&set, 1, 0) == 1, "a descriptor that was disarmed is not readable");
  say("waiting");
  until(BEELINE_RPC_NOT_CONNECTED);
  say("lost");
  until(BEELINE_RPC_OK);
  check(call(BEELINE_RPC_NEVER) == BEELINE_RPC_OK, "no answer of the next server");
  say("found");
  /* From here on the server is stopped. */
  check(getchar() == '\n', "nothing to go on for");
  check(call(UINT64_C(50000000)) == BEELINE_RPC_TIMED_OUT, "the deadline was not met");
  say("timed out");
  check(beeline_rpc_client_close(&client) == BEELINE_RPC_OK, "not closed");
  check(beeline_rpc_domain_close(&domain) == BEELINE_RPC_OK, "not closed");
  return EXIT_SUCCESS;
}
