/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One thread waits in one epoll for a worker, a client and a pipe. A number goes round: out of the pipe into a call, from
 * the worker's answer back into the pipe, one larger each time; each is looked at when it woke the thread, and only then.
 * Usage: readiness [ROOT [TURNS]].
 *
 *   cc readiness.c $(pkg-config --cflags --libs beeline_rpc) -o readiness
 */
#include <beeline_rpc.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { NEXT = 1 };
enum { WORKER, CLIENT, PIPE, SOURCES };
/* Only a lost wake-up takes as long. */
enum { LOST_AFTER_MS = 60000 };

static const char *const names[SOURCES] = {"worker", "client", "pipe"};

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "readiness: %s\n", beeline_rpc_last_error());
    exit(EXIT_FAILURE);
  }
}

static void check_system(int is_done, const char *what) {
  if (!is_done) {
    fprintf(stderr, "readiness: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
  }
}

static void answer(void *context, beeline_rpc_request *request) {
  uint64_t next = beeline_rpc_request_word(request, 0) + 1;
  unsigned char bytes[8];

  (void)context;
  /* Little-endian, whatever this machine is. */
  for (int byte = 0; byte < 8; byte++)
    bytes[byte] = (unsigned char)(next >> (8 * byte));
  beeline_rpc_reply_send(request, bytes, sizeof bytes);
}

static void add(int set, int source, int descriptor) {
  struct epoll_event event;

  memset(&event, 0, sizeof event);
  event.events = EPOLLIN;
  event.data.fd = source;
  check_system(epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
}

/* Waits at most so long; rounded up, because a wait that is too short finds nothing and is repeated at once. */
static int wait_for(int set, uint64_t at_most_ns, struct epoll_event *events) {
  uint64_t at_most_ms = at_most_ns / 1000000 + (at_most_ns % 1000000 != 0);
  int timeout_ms = at_most_ms < LOST_AFTER_MS ? (int)at_most_ms : LOST_AFTER_MS;
  int count = epoll_wait(set, events, SOURCES, timeout_ms);

  check_system(count >= 0 || errno == EINTR, "epoll_wait");
  if (count == 0 && timeout_ms == LOST_AFTER_MS) {
    fprintf(stderr, "readiness: a wake-up is lost\n");
    exit(EXIT_FAILURE);
  }
  return count < 0 ? 0 : count;
}

/* Takes the answers that have come, and puts the number of each into the pipe. */
static void take_answers(beeline_rpc_client *client, int pipe_end) {
  beeline_rpc_completion completion;
  uint64_t number;
  int status;

  while ((status = beeline_rpc_poll(client, &completion)) == BEELINE_RPC_OK) {
    check(completion.status);
    number = beeline_rpc_answer_word(client, 0);
    check_system(write(pipe_end, &number, sizeof number) == sizeof number, "write");
  }
  check(status);
}

int main(int argc, char **argv) {
  uint64_t turns = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
  uint64_t number = 0, woken[SOURCES] = {0, 0, 0};
  uint64_t worker_ns = BEELINE_RPC_NEVER, client_ns = BEELINE_RPC_NEVER;
  beeline_rpc_domain *domain;
  beeline_rpc_server *server;
  beeline_rpc_worker *worker;
  beeline_rpc_client *client;
  int set = epoll_create1(EPOLL_CLOEXEC), ends[2], descriptor;

  check(beeline_rpc_domain_open("default", argc > 1 ? argv[1] : NULL, &domain));
  check(beeline_rpc_server_offer(domain, "numbers", NULL, &server));
  check(beeline_rpc_server_worker(server, 0, &worker));
  check(beeline_rpc_client_connect(domain, "numbers", NULL, &client));
  check_system(set >= 0 && pipe(ends) == 0, "epoll or pipe");
  check(beeline_rpc_worker_descriptor(worker, &descriptor));
  add(set, WORKER, descriptor);
  check(beeline_rpc_client_descriptor(client, &descriptor));
  add(set, CLIENT, descriptor);
  add(set, PIPE, ends[0]);
  check_system(write(ends[1], &number, sizeof number) == sizeof number, "write");
  while (number < turns) {
    /* Neither is armed before its first event: until then its descriptor is readable. */
    struct epoll_event events[SOURCES];
    int count = wait_for(set, worker_ns < client_ns ? worker_ns : client_ns, events);

    for (int at = 0; at < count; at++) {
      woken[events[at].data.fd]++;
      switch (events[at].data.fd) {
      case WORKER:
        check(beeline_rpc_worker_poll(worker, answer, NULL, NULL));
        check(beeline_rpc_worker_arm(worker, &worker_ns));
        break;
      case CLIENT:
        take_answers(client, ends[1]);
        check(beeline_rpc_client_arm(client, &client_ns));
        break;
      default:
        check_system(read(ends[0], &number, sizeof number) == sizeof number, "read");
        if (number < turns)
          check(beeline_rpc_start(client, NEXT, &number, sizeof number, BEELINE_RPC_NEVER, NULL));
      }
    }
    /* Nobody signals a time that is over: armed again, both look. */
    if (count == 0) {
      check(beeline_rpc_worker_arm(worker, &worker_ns));
      check(beeline_rpc_client_arm(client, &client_ns));
    }
  }
  for (int source = 0; source < SOURCES; source++) {
    if (woken[source] < turns) {
      fprintf(stderr, "readiness: the %s woke %llu times in %llu turns\n", names[source],
              (unsigned long long)woken[source], (unsigned long long)turns);
      return EXIT_FAILURE;
    }
  }
  printf("%llu turns\n", (unsigned long long)number);
  check(beeline_rpc_client_close(&client));
  check(beeline_rpc_worker_close(&worker));
  check(beeline_rpc_server_close(&server));
  check(beeline_rpc_domain_close(&domain));
  close(ends[0]);
  close(ends[1]);
  close(set);
  return EXIT_SUCCESS;
}
