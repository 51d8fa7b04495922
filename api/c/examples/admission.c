/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Two programs, of whatever users, that share a connection of TCP and no list: the server lets in the process at its other end and no
 * other, and COUNT numbers come through a window. Usage: admission serve NAME COUNT, which says its port; then
 * admission call NAME COUNT PORT
 *
 *   cc admission.c $(pkg-config --cflags --libs beeline) -o admission
 */
#include <beeline_admission.h>
#include <beeline_window.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint64_t TIME_NS = UINT64_C(30000000000);

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "admission: %s\n", beeline_last_error());
    exit(EXIT_FAILURE);
  }
}

static int check_system(const char *what, int result) {
  if (result < 0) {
    perror(what);
    exit(EXIT_FAILURE);
  }
  return result;
}

/* A socket of TCP, and an address on this machine. */
static int tcp(unsigned long port, struct sockaddr_in *address) {
  memset(address, 0, sizeof *address);
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address->sin_port = htons((uint16_t)port);
  return check_system("socket", socket(AF_INET, SOCK_STREAM, 0));
}

static void serve(const char *name, unsigned long count) {
  beeline_window_receiver_options options = BEELINE_WINDOW_RECEIVER_OPTIONS_INIT;
  struct sockaddr_in address;
  socklen_t length = sizeof address;
  beeline_domain *domain;
  beeline_admissions *admissions;
  beeline_admitted *admitted;
  beeline_window_receiver *receiver;
  int connection, listener = tcp(0, &address);
  uint64_t sum = 0;

  /* The two share no folder: they meet in the network namespace. */
  check(beeline_domain_open(name, "@net", &domain));
  check(beeline_admissions_open(&admissions));
  options.admissions = admissions;
  check(beeline_window_receiver_offer(domain, "numbers", &options, &receiver));
  check_system("bind", bind(listener, (struct sockaddr *)&address, length));
  check_system("listen", listen(listener, 1));
  check_system("getsockname", getsockname(listener, (struct sockaddr *)&address, &length));
  printf("port %u\n", (unsigned)ntohs(address.sin_port));
  fflush(stdout);
  connection = check_system("accept", accept(listener, NULL, NULL));
  /* From here on whoever is at the other end may connect. */
  check(beeline_admissions_admit_other_side(admissions, connection, TIME_NS, &admitted));
  for (unsigned long at = 0; at < count; at++) {
    beeline_window_message *message;
    int status;

    while ((status = beeline_window_poll(receiver, &message, NULL)) == BEELINE_EMPTY)
      check(beeline_window_wait(receiver, BEELINE_NEVER));
    check(status);
    sum += beeline_window_message_word(message, 0);
  }
  printf("%lu numbers, sum %llu\n", count, (unsigned long long)sum);
  check(beeline_window_receiver_close(&receiver));
  check(beeline_admitted_close(&admitted));
  check(beeline_admissions_close(&admissions));
  check(beeline_domain_close(&domain));
  close(connection);
  close(listener);
}

static void call(const char *name, unsigned long count, unsigned long port) {
  beeline_window_sender_options options = BEELINE_WINDOW_SENDER_OPTIONS_INIT;
  struct sockaddr_in address;
  beeline_domain *domain;
  beeline_token *token;
  beeline_window_sender *sender;
  uint32_t owner;
  int connection = tcp(port, &address);

  check_system("connect", connect(connection, (struct sockaddr *)&address, sizeof address));
  check(beeline_token_exchange(connection, TIME_NS, &token, &owner));
  check(beeline_domain_open_foreign(name, "@net", owner, &domain));
  options.token = token;
  check(beeline_window_sender_connect(domain, "numbers", &options, &sender));
  for (uint64_t number = 1; number <= count; number++)
    check(beeline_window_send(sender, &number, sizeof number, BEELINE_NEVER));
  check(beeline_window_sender_close(&sender));
  check(beeline_token_close(&token));
  check(beeline_domain_close(&domain));
  close(connection);
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "serve") == 0) {
    serve(argv[2], strtoul(argv[3], NULL, 10));
  } else if (argc == 5 && strcmp(argv[1], "call") == 0) {
    call(argv[2], strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10));
  } else {
    fprintf(stderr, "usage: %s serve NAME COUNT | call NAME COUNT PORT\n", argv[0]);
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
