/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls a server until it has been lost and found again as often as asked, and checks every answer. Usage: endure NAME
 * ROOT TIMES. Says "calling" when answers come, "lost" when they do not.
 */
#include <beeline_rpc.h>

#include <stdio.h>
#include <stdlib.h>

enum { ADD = 1 };

static void say(const char *what) {
  printf("%s\n", what);
  fflush(stdout);
}

int main(int argc, char **argv) {
  beeline_rpc_domain *domain;
  beeline_rpc_client *client;
  beeline_rpc_completion completion;
  uint64_t started = 0, ended = 0, answered = 0;
  long losses = 0, times;
  int is_lost = 1;

  if (argc < 4)
    return EXIT_FAILURE;
  times = strtol(argv[3], NULL, 10);
  if (beeline_rpc_domain_open("default", argv[2], &domain) < 0 ||
      beeline_rpc_client_connect(domain, argv[1], NULL, &client) < 0) {
    fprintf(stderr, "%s\n", beeline_rpc_last_error());
    return EXIT_FAILURE;
  }
  while (losses < times || is_lost || answered < 1000) {
    unsigned char request[8] = {7, 0, 0, 0, 0, 0, 0, 0};
    int status = started - ended < 64
                     ? beeline_rpc_start(client, ADD, request, sizeof request, BEELINE_RPC_NEVER, NULL)
                     : BEELINE_RPC_FULL;

    if (status == BEELINE_RPC_OK)
      started++;
    else if (status != BEELINE_RPC_FULL && status != BEELINE_RPC_NOT_CONNECTED)
      return 2;
    while (beeline_rpc_poll(client, &completion) == BEELINE_RPC_OK) {
      ended++;
      if (completion.status == BEELINE_RPC_OK) {
        if (beeline_rpc_answer_word(client, 0) != 7)
          return 3;
        answered++;
        if (is_lost)
          say("calling");
        is_lost = 0;
      } else if (completion.status == BEELINE_RPC_SERVER_GONE || completion.status == BEELINE_RPC_SERVER_GONE_UNSENT) {
        if (!is_lost) {
          losses++;
          answered = 0;
          say("lost");
        }
        is_lost = 1;
      } else {
        fprintf(stderr, "%s\n", beeline_rpc_status_text(completion.status));
        return 4;
      }
    }
  }
  while (ended < started) {
    if (beeline_rpc_poll(client, &completion) == BEELINE_RPC_OK)
      ended++;
  }
  if (beeline_rpc_poll(client, &completion) != BEELINE_RPC_EMPTY)
    return 5;
  beeline_rpc_client_close(&client);
  beeline_rpc_domain_close(&domain);
  say("every call ended once");
  return EXIT_SUCCESS;
}
