/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Tokens that connect by every kind of offer, connections that prove nothing, and what a program does wrong. Usage: admission ROOT
 * ROUNDS, or admission unproved NAME OWNER_UID: a process that nothing admits says how it is refused. Also C++17.
 */
#include <beeline_admission.h>
#include <beeline_arena.h>
#include <beeline_bytes.h>
#include <beeline_notify.h>
#include <beeline_rpc.h>

#include "expect.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint64_t WATCHDOG_NS = UINT64_C(60000000000);

static beeline_domain *domain;
static beeline_admissions *admissions, *others;

struct exchange {
  int connection;
  beeline_token *token;
};

static void *exchange(void *given) {
  struct exchange *mine = (struct exchange *)given;
  uint32_t uid = 0;

  EXPECT(beeline_token_exchange(mine->connection, WATCHDOG_NS, &mine->token, &uid), BEELINE_OK);
  EXPECT(uid, geteuid());
  return NULL;
}

/* A token that `by` admits, as long as what is put at `admitted` is open. */
static beeline_token *exchanged(beeline_admissions *by, beeline_admitted **admitted) {
  struct exchange theirs = {-1, NULL};
  pthread_t thread;
  int ends[2];

  EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  theirs.connection = ends[1];
  EXPECT(pthread_create(&thread, NULL, exchange, &theirs), 0);
  EXPECT(beeline_admissions_admit_other_side(by, ends[0], WATCHDOG_NS, admitted), BEELINE_OK);
  pthread_join(thread, NULL);
  close(ends[0]);
  close(ends[1]);
  return theirs.token;
}

/* ------------------------------------------------- by every kind of offer */

static void offer_all(beeline_window_receiver **receiver, beeline_bytes_reader **reader, beeline_arena_receiver **arena,
                      beeline_notifier **notifier, beeline_rpc_server **server) {
  beeline_window_receiver_options window = BEELINE_WINDOW_RECEIVER_OPTIONS_INIT;
  beeline_arena_options windows = BEELINE_ARENA_OPTIONS_INIT;
  beeline_notifier_options telling = BEELINE_NOTIFIER_OPTIONS_INIT;
  beeline_rpc_server_options calls = BEELINE_RPC_SERVER_OPTIONS_INIT;

  window.admissions = windows.admissions = telling.admissions = calls.admissions = admissions;
  EXPECT(beeline_window_receiver_offer(domain, "window", &window, receiver), BEELINE_OK);
  EXPECT(beeline_bytes_reader_offer(domain, "bytes", &window, reader), BEELINE_OK);
  EXPECT(beeline_arena_offer(domain, "arena", &windows, arena), BEELINE_OK);
  EXPECT(beeline_notifier_offer(domain, "news", &telling, NULL, NULL, notifier), BEELINE_OK);
  EXPECT(beeline_rpc_server_offer(domain, "calls", &calls, server), BEELINE_OK);
}

/* Connects to what `kind` names, and closes; the status. */
static int connect_by(int kind, const beeline_token *token) {
  beeline_window_sender_options sending = BEELINE_WINDOW_SENDER_OPTIONS_INIT;
  beeline_rpc_client_options calling = BEELINE_RPC_CLIENT_OPTIONS_INIT;
  beeline_window_sender *sender = NULL;
  beeline_bytes_writer *writer = NULL;
  beeline_arena_sender *arena = NULL;
  beeline_subscription *subscription = NULL;
  beeline_rpc_client *client = NULL;
  int status;

  sending.token = calling.token = token;
  sending.store_kernel = "cached";
  switch (kind) {
  case 0:
    status = beeline_window_sender_connect(domain, "window", &sending, &sender);
    break;
  case 1:
    status = beeline_bytes_writer_connect(domain, "bytes", &sending, &writer);
    break;
  case 2:
    status = beeline_arena_join(domain, "arena", 8, &sending, &arena);
    break;
  case 3:
    status = beeline_subscription_open_proving(domain, "news", token, NULL, WATCHDOG_NS, &subscription);
    break;
  default:
    status = beeline_rpc_client_connect(domain, "calls", &calling, &client);
    break;
  }
  EXPECT(sender || writer || arena || subscription || client, status == BEELINE_OK);
  EXPECT(beeline_window_sender_close(&sender), BEELINE_OK);
  EXPECT(beeline_bytes_writer_close(&writer), BEELINE_OK);
  EXPECT(beeline_arena_sender_close(&arena), BEELINE_OK);
  EXPECT(beeline_subscription_close(&subscription), BEELINE_OK);
  EXPECT(beeline_rpc_client_close(&client), BEELINE_OK);
  return status;
}

static void tokens_connect_once_by_every_kind_of_offer(void) {
  beeline_window_receiver *receiver;
  beeline_bytes_reader *reader;
  beeline_arena_receiver *arena;
  beeline_notifier *notifier;
  beeline_rpc_server *server;
  beeline_admitted *admitted;
  beeline_token *token;
  int kind;

  offer_all(&receiver, &reader, &arena, &notifier, &server);
  for (kind = 0; kind < 5; kind++) {
    /* Of admissions that this offer does not have. */
    token = exchanged(others, &admitted);
    EXPECT(connect_by(kind, token), BEELINE_REFUSED);
    EXPECT_SAID("token");
    EXPECT(beeline_token_close(&token), BEELINE_OK);
    EXPECT(beeline_admitted_close(&admitted), BEELINE_OK);
    /* Taken back. */
    token = exchanged(admissions, &admitted);
    EXPECT(beeline_admitted_close(&admitted), BEELINE_OK);
    EXPECT(connect_by(kind, token), BEELINE_REFUSED);
    EXPECT(beeline_token_close(&token), BEELINE_OK);
    token = exchanged(admissions, &admitted);
    EXPECT(connect_by(kind, token), BEELINE_OK);
    EXPECT(connect_by(kind, token), BEELINE_INVALID);
    EXPECT_SAID("token was used before");
    EXPECT(beeline_token_close(&token), BEELINE_OK);
    EXPECT(token == NULL, 1);
    EXPECT(beeline_admitted_close(&admitted), BEELINE_OK);
  }
  EXPECT(beeline_window_receiver_close(&receiver), BEELINE_OK);
  EXPECT(beeline_bytes_reader_close(&reader), BEELINE_OK);
  EXPECT(beeline_arena_receiver_close(&arena), BEELINE_OK);
  EXPECT(beeline_notifier_close(&notifier), BEELINE_OK);
  EXPECT(beeline_rpc_server_close(&server), BEELINE_OK);
}

/* ------------------------------------------- what connections prove or not */

static void kernel_names_the_user_at_the_other_end(void) {
  struct sockaddr_in address;
  socklen_t length = sizeof address;
  beeline_admitted *admitted;
  uint32_t uid = 7;
  int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), accepted;

  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT(bind(listener, (struct sockaddr *)&address, length), 0);
  EXPECT(listen(listener, 1), 0);
  EXPECT(getsockname(listener, (struct sockaddr *)&address, &length), 0);
  EXPECT(connect(client, (struct sockaddr *)&address, length), 0);
  EXPECT(beeline_connection_user(client, &uid), BEELINE_REFUSED);
  EXPECT_SAID("accepted");
  EXPECT(uid, 7);
  EXPECT(beeline_admissions_admit_user(admissions, client, &admitted), BEELINE_REFUSED);
  EXPECT(admitted == NULL, 1);
  accepted = accept(listener, NULL, NULL);
  EXPECT(beeline_connection_user(client, &uid), BEELINE_OK);
  EXPECT(uid, geteuid());
  EXPECT(beeline_admissions_admit_user(admissions, accepted, &admitted), BEELINE_OK);
  EXPECT(beeline_admitted_close(&admitted), BEELINE_OK);
  close(listener);
  close(client);
  close(accepted);
}

static void connection_without_a_token_is_a_code(void) {
  beeline_admitted *admitted = (beeline_admitted *)&failures;
  beeline_token *token = (beeline_token *)&failures;
  uint32_t uid = 7;
  char bytes[8] = "";
  int ends[2], file = open("/dev/null", O_RDWR);

  EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT(beeline_admissions_admit_other_side(admissions, ends[0], 1000000, &admitted), BEELINE_REFUSED);
  EXPECT_SAID("no token came in 1 ms");
  EXPECT(admitted == NULL, 1);
  EXPECT(write(ends[1], "GET / ..", 8), 8);
  EXPECT(beeline_admissions_admit_other_side(admissions, ends[0], WATCHDOG_NS, &admitted), BEELINE_NO_TOKEN);
  EXPECT(beeline_token_exchange(ends[0], WATCHDOG_NS, &token, &uid), BEELINE_NO_TOKEN);
  EXPECT(token == NULL && uid == 7, 1);
  EXPECT(read(ends[0], bytes, 8), 8);
  EXPECT(memcmp(bytes, "GET / ..", 8), 0);
  close(ends[1]);
  EXPECT(beeline_token_exchange(ends[0], WATCHDOG_NS, &token, NULL), BEELINE_REFUSED);
  EXPECT_SAID("closed");
  EXPECT(beeline_connection_user(ends[0], &uid), BEELINE_INVALID);
  close(ends[0]);
  EXPECT(beeline_token_exchange(file, WATCHDOG_NS, &token, NULL), BEELINE_INVALID);
  EXPECT(beeline_token_exchange(-1, WATCHDOG_NS, &token, NULL), BEELINE_INVALID);
  EXPECT_SAID("connection is the descriptor -1");
  EXPECT(beeline_admissions_admit_other_side(admissions, file, 0, &admitted), BEELINE_INVALID);
  EXPECT(beeline_admissions_admit_user(admissions, file, &admitted), BEELINE_INVALID);
  EXPECT(beeline_admissions_admit_user(admissions, -1, &admitted), BEELINE_INVALID);
  EXPECT(beeline_connection_user(file, NULL), BEELINE_INVALID);
  close(file);
}

/* ------------------------------------------------------------------ handles */

static void handles_that_are_none_are_refused(void) {
  beeline_window_receiver_options offering = BEELINE_WINDOW_RECEIVER_OPTIONS_INIT;
  beeline_window_sender_options sending = BEELINE_WINDOW_SENDER_OPTIONS_INIT;
  beeline_admissions *closed, *copy;
  beeline_admitted *admitted;
  beeline_token *token;
  beeline_window_receiver *receiver;
  beeline_window_sender *sender;

  EXPECT(beeline_admissions_open(NULL), BEELINE_INVALID);
  EXPECT(beeline_admissions_admit_other_side(NULL, 0, 0, &admitted), BEELINE_INVALID);
  EXPECT(beeline_admissions_admit_user(admissions, 0, NULL), BEELINE_INVALID);
  EXPECT(beeline_token_exchange(0, 0, NULL, NULL), BEELINE_INVALID);
  EXPECT(beeline_subscription_open_proving(domain, "news", NULL, NULL, 0, NULL), BEELINE_INVALID);
  EXPECT(beeline_admissions_open(&closed), BEELINE_OK);
  copy = closed;
  offering.admissions = closed;
  EXPECT(beeline_window_receiver_offer(domain, "goes-on", &offering, &receiver), BEELINE_OK);
  /* The offer goes by what was admitted, though the handle is closed. */
  token = exchanged(closed, &admitted);
  EXPECT(beeline_admissions_close(&closed), BEELINE_OK);
  EXPECT(beeline_admissions_close(&closed), BEELINE_OK);
  EXPECT(beeline_admissions_close(&copy), BEELINE_INVALID);
  sending.token = token;
  EXPECT(beeline_window_sender_connect(domain, "goes-on", &sending, &sender), BEELINE_OK);
  EXPECT(beeline_window_sender_close(&sender), BEELINE_OK);
  EXPECT(beeline_window_receiver_close(&receiver), BEELINE_OK);
  /* The options have the closed one. */
  EXPECT(beeline_window_receiver_offer(domain, "closed", &offering, &receiver), BEELINE_INVALID);
  EXPECT_SAID("admissions is no open admissions");
  /* A program that was compiled before there were admissions has nothing there. */
  offering.size = offsetof(beeline_window_receiver_options, admissions);
  EXPECT(beeline_window_receiver_offer(domain, "older", &offering, &receiver), BEELINE_OK);
  EXPECT(beeline_token_close(&token), BEELINE_OK);
  EXPECT(beeline_window_sender_connect(domain, "older", &sending, &sender), BEELINE_INVALID);
  EXPECT_SAID("token is no open token");
  sending.size = offsetof(beeline_window_sender_options, token);
  EXPECT(beeline_window_sender_connect(domain, "older", &sending, &sender), BEELINE_OK);
  EXPECT(beeline_window_sender_close(&sender), BEELINE_OK);
  EXPECT(beeline_window_receiver_close(&receiver), BEELINE_OK);
  EXPECT(beeline_admitted_close(&admitted), BEELINE_OK);
}

static int unproved(const char *name, uint32_t owner) {
  beeline_window_sender_options options = BEELINE_WINDOW_SENDER_OPTIONS_INIT;
  beeline_window_sender *sender;

  options.store_kernel = "cached";
  EXPECT(beeline_domain_open_foreign(name, "@net", owner, &domain), BEELINE_OK);
  EXPECT(beeline_window_sender_connect(domain, "numbers", &options, &sender), BEELINE_REFUSED);
  EXPECT_SAID("is not on the offer's list");
  EXPECT(beeline_domain_close(&domain), BEELINE_OK);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv) {
  int rounds;

  if (argc == 4 && strcmp(argv[1], "unproved") == 0)
    return unproved(argv[2], (uint32_t)strtoul(argv[3], NULL, 10));
  if (argc != 3)
    return EXIT_FAILURE;
  /* Calls that wait for what does not come, each for WATCHDOG_NS, end the test as a failure. */
  alarm(120);
  EXPECT(beeline_domain_open("admission", argv[1], &domain), BEELINE_OK);
  for (rounds = atoi(argv[2]); rounds > 0 && failures == 0; rounds--) {
    EXPECT(beeline_admissions_open(&admissions), BEELINE_OK);
    EXPECT(beeline_admissions_open(&others), BEELINE_OK);
    tokens_connect_once_by_every_kind_of_offer();
    kernel_names_the_user_at_the_other_end();
    connection_without_a_token_is_a_code();
    handles_that_are_none_are_refused();
    EXPECT(beeline_admissions_close(&admissions), BEELINE_OK);
    EXPECT(beeline_admissions_close(&others), BEELINE_OK);
  }
  EXPECT(beeline_domain_close(&domain), BEELINE_OK);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
