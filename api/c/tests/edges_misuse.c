/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a program can do wrong with byte streams, notifications and sets that the headers say is a code, in one process that has
 * both ends; then everything is opened and closed ROUNDS times. Usage: edges_misuse ROOT ROUNDS. Also C++17.
 */
#include <beeline_bytes.h>
#include <beeline_notify.h>

#include "expect.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t WATCHDOG_NS = UINT64_C(60000000000);

static beeline_domain *domain;
static beeline_window_set *used_set;
static beeline_subscription *shared;
static beeline_notifier *telling;

static void in_thread(void *(*work)(void *), void *argument) {
  pthread_t thread;

  EXPECT(pthread_create(&thread, NULL, work, argument), 0);
  pthread_join(thread, NULL);
}

static size_t open_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  size_t count = 0;

  EXPECT(folder != NULL, 1);
  while (readdir(folder) != NULL)
    count++;
  closedir(folder);
  return count;
}

/* ------------------------------------------------------------------ bytes */

static void *read_elsewhere(void *reader) {
  size_t count = 7;

  EXPECT(beeline_bytes_try_read((beeline_bytes_reader *)reader, NULL, 0, &count), BEELINE_WRONG_THREAD);
  return NULL;
}

static void no_streams(void) {
  unsigned char memory[8];
  uint64_t bytes = 7;
  size_t count = 7;
  int descriptor = 7;
  beeline_bytes_reader *reader = (beeline_bytes_reader *)memory;
  beeline_bytes_writer *writer = (beeline_bytes_writer *)memory;

  EXPECT(beeline_bytes_reader_offer(NULL, "x", NULL, &reader), BEELINE_INVALID);
  EXPECT(reader == NULL, 1);
  EXPECT(beeline_bytes_reader_offer(domain, "x", NULL, NULL), BEELINE_INVALID);
  EXPECT(beeline_bytes_reader_offer(domain, "not a name", NULL, &reader), BEELINE_REFUSED);
  EXPECT(beeline_bytes_writer_connect(domain, NULL, NULL, &writer), BEELINE_INVALID);
  EXPECT(writer == NULL, 1);
  reader = (beeline_bytes_reader *)memory;
  writer = (beeline_bytes_writer *)memory;
  EXPECT(beeline_bytes_try_read(reader, memory, 8, &count), BEELINE_INVALID);
  EXPECT(count, 0);
  EXPECT_SAID("reader is no open reader");
  EXPECT(beeline_bytes_read(NULL, memory, 8, 0, &count), BEELINE_INVALID);
  EXPECT(beeline_bytes_peek(NULL, 0, memory, 8, &count), BEELINE_INVALID);
  EXPECT(beeline_bytes_queued(NULL, &bytes), BEELINE_INVALID);
  EXPECT(bytes, 0);
  EXPECT(beeline_bytes_next_stream(NULL), BEELINE_INVALID);
  EXPECT(beeline_bytes_reader_descriptor(NULL, &descriptor), BEELINE_INVALID);
  EXPECT(descriptor, -1);
  EXPECT(beeline_bytes_reader_arm(NULL, &bytes), BEELINE_INVALID);
  EXPECT(beeline_bytes_reader_disarm(NULL), BEELINE_INVALID);
  EXPECT(beeline_bytes_reader_release(NULL), BEELINE_INVALID);
  EXPECT(beeline_bytes_reader_close(NULL), BEELINE_OK);
  EXPECT(beeline_bytes_reader_close(&reader), BEELINE_INVALID);
  EXPECT(beeline_bytes_try_write(writer, memory, 8, &count), BEELINE_INVALID);
  EXPECT(beeline_bytes_write(NULL, memory, 8, 0, NULL), BEELINE_INVALID);
  EXPECT(beeline_bytes_write_more(NULL, memory, 8, &count), BEELINE_INVALID);
  EXPECT(beeline_bytes_send_kept(NULL), BEELINE_INVALID);
  EXPECT(beeline_bytes_room(NULL, &bytes), BEELINE_INVALID);
  EXPECT(beeline_bytes_unacknowledged(NULL, &bytes), BEELINE_INVALID);
  EXPECT(beeline_bytes_wait_acknowledged(NULL, 0), BEELINE_INVALID);
  EXPECT(beeline_bytes_shut_down(NULL), BEELINE_INVALID);
  EXPECT(beeline_bytes_writer_reader(NULL), BEELINE_INVALID);
  EXPECT(beeline_bytes_writer_release(NULL), BEELINE_INVALID);
  EXPECT(beeline_bytes_writer_close(&writer), BEELINE_INVALID);
}

static void streams(void) {
  beeline_window_receiver_options options = BEELINE_WINDOW_RECEIVER_OPTIONS_INIT;
  static unsigned char memory[8192];
  beeline_bytes_reader *reader, *closed;
  beeline_bytes_writer *writer;
  uint64_t bytes = 7, room = 7, at_most_ns = 7;
  size_t count = 7, all = 0;
  int status;

  options.lines = 64;
  EXPECT(beeline_bytes_reader_offer(domain, "stream", &options, &reader), BEELINE_OK);
  EXPECT(beeline_bytes_try_read(reader, memory, 8, &count), BEELINE_EMPTY);
  EXPECT(beeline_bytes_writer_connect(domain, "stream", NULL, &writer), BEELINE_OK);
  in_thread(read_elsewhere, reader);
  EXPECT(beeline_bytes_try_read(reader, NULL, 1, &count), BEELINE_INVALID);
  EXPECT(beeline_bytes_try_read(reader, memory, 8, NULL), BEELINE_INVALID);
  EXPECT(beeline_bytes_try_read(reader, NULL, 0, &count), BEELINE_OK);
  EXPECT(beeline_bytes_read(reader, NULL, 0, BEELINE_NEVER, &count), BEELINE_OK);
  EXPECT(beeline_bytes_read(reader, memory, 8, 1000, &count), BEELINE_EMPTY);
  EXPECT(beeline_bytes_try_write(writer, NULL, 1, &count), BEELINE_INVALID);
  EXPECT(beeline_bytes_try_write(writer, NULL, 0, &count), BEELINE_OK);
  /* Small writes are kept until they are sent. */
  EXPECT(beeline_bytes_write_more(writer, "abc", 3, &count), BEELINE_OK);
  EXPECT(count, 3);
  EXPECT(beeline_bytes_queued(reader, &bytes), BEELINE_OK);
  EXPECT(bytes, 0);
  EXPECT(beeline_bytes_send_kept(writer), BEELINE_OK);
  EXPECT(beeline_bytes_write(writer, "defgh", 5, 0, &count), BEELINE_OK);
  EXPECT(beeline_bytes_queued(reader, &bytes), BEELINE_OK);
  EXPECT(bytes, 8);
  EXPECT(beeline_bytes_peek(reader, 2, memory, 4, &count), BEELINE_OK);
  EXPECT(count == 4 && memcmp(memory, "cdef", 4) == 0, 1);
  EXPECT(beeline_bytes_peek(reader, 8, memory, 4, &count), BEELINE_EMPTY);
  EXPECT(beeline_bytes_unacknowledged(writer, &bytes), BEELINE_OK);
  EXPECT(bytes, 8);
  EXPECT(beeline_bytes_wait_acknowledged(writer, 1000), BEELINE_FULL);
  EXPECT(beeline_bytes_reader_arm(reader, &at_most_ns), BEELINE_OK);
  EXPECT(at_most_ns, 0);
  EXPECT(beeline_bytes_try_read(reader, memory, 5, &count), BEELINE_OK);
  EXPECT(count == 5 && memcmp(memory, "abcde", 5) == 0, 1);
  EXPECT(beeline_bytes_try_read(reader, memory, 5, &count), BEELINE_OK);
  EXPECT(count, 3);
  EXPECT(beeline_bytes_reader_arm(reader, &at_most_ns), BEELINE_EMPTY);
  EXPECT(beeline_bytes_reader_disarm(reader), BEELINE_OK);
  EXPECT(beeline_bytes_unacknowledged(writer, &bytes), BEELINE_OK);
  EXPECT(bytes, 0);
  EXPECT(beeline_bytes_wait_acknowledged(writer, 0), BEELINE_OK);
  /* As much as there is room for, then nothing. */
  EXPECT(beeline_bytes_room(writer, &room), BEELINE_OK);
  while ((status = beeline_bytes_try_write(writer, memory, sizeof memory, &count)) == BEELINE_OK)
    all += count;
  EXPECT(status, BEELINE_FULL);
  EXPECT(all, room);
  EXPECT(beeline_bytes_write(writer, memory, 8, 1000, &count), BEELINE_FULL);
  EXPECT(count, 0);
  /* One direction ends, and says so after every byte. */
  EXPECT(beeline_bytes_shut_down(writer), BEELINE_OK);
  EXPECT(beeline_bytes_shut_down(writer), BEELINE_OK);
  EXPECT(beeline_bytes_try_write(writer, memory, 8, &count), BEELINE_SHUT_DOWN);
  EXPECT_SAID("shut down");
  EXPECT(beeline_bytes_room(writer, &room), BEELINE_SHUT_DOWN);
  EXPECT(beeline_bytes_writer_reader(writer), BEELINE_OK);
  while ((status = beeline_bytes_read(reader, memory, sizeof memory, WATCHDOG_NS, &count)) == BEELINE_OK)
    all -= count;
  EXPECT(status, BEELINE_END);
  EXPECT(all, 0);
  EXPECT(beeline_bytes_try_read(reader, memory, 8, &count), BEELINE_END);
  EXPECT(beeline_bytes_peek(reader, 0, memory, 8, &count), BEELINE_END);
  EXPECT(beeline_bytes_next_stream(reader), BEELINE_OK);
  EXPECT(beeline_bytes_try_read(reader, memory, 8, &count), BEELINE_EMPTY);
  EXPECT(beeline_bytes_writer_close(&writer), BEELINE_OK);
  EXPECT(writer == NULL, 1);
  /* A close ends a stream as well; the other way round the writer is told. */
  EXPECT(beeline_bytes_writer_connect(domain, "stream", NULL, &writer), BEELINE_OK);
  EXPECT(beeline_bytes_write(writer, "last", 4, 0, NULL), BEELINE_OK);
  EXPECT(beeline_bytes_writer_close(&writer), BEELINE_OK);
  EXPECT(beeline_bytes_read(reader, memory, 8, WATCHDOG_NS, &count), BEELINE_OK);
  EXPECT(count, 4);
  EXPECT(beeline_bytes_read(reader, memory, 8, WATCHDOG_NS, &count), BEELINE_END);
  EXPECT(beeline_bytes_next_stream(reader), BEELINE_OK);
  EXPECT(beeline_bytes_writer_connect(domain, "stream", NULL, &writer), BEELINE_OK);
  EXPECT(beeline_bytes_read(reader, memory, 8, 1000, &count), BEELINE_EMPTY);
  closed = reader;
  EXPECT(beeline_bytes_reader_close(&reader), BEELINE_OK);
  EXPECT(beeline_bytes_try_read(closed, memory, 8, &count), BEELINE_INVALID);
  while ((status = beeline_bytes_write(writer, memory, sizeof memory, WATCHDOG_NS, NULL)) == BEELINE_OK)
    ;
  EXPECT(status, BEELINE_RECEIVER_GONE);
  EXPECT(beeline_bytes_writer_reader(writer), BEELINE_RECEIVER_GONE);
  EXPECT(beeline_bytes_writer_close(&writer), BEELINE_OK);
}

/* ------------------------------------------------------------------- sets */

static void *drain_elsewhere(void *set) {
  uint64_t failed = 7;

  EXPECT(beeline_window_set_drain((beeline_window_set *)set, 1, 0, NULL, NULL, NULL, &failed), BEELINE_WRONG_THREAD);
  return NULL;
}

static void each(void *context, uint64_t member, beeline_window_message *message, size_t length) {
  uint64_t failed, *last = (uint64_t *)context;

  EXPECT(beeline_window_set_drain(used_set, 1, 0, each, NULL, NULL, &failed), BEELINE_BUSY);
  EXPECT(beeline_window_message_length(message), length);
  *last = member;
}

static void sets(void) {
  beeline_window_set *set = (beeline_window_set *)&failures;
  beeline_window_sender *sender;
  uint64_t red = 7, blue = 7, failed = 7, last = 0, at_most_ns = 7;
  size_t taken = 7;
  int descriptor = 7;

  EXPECT(beeline_window_set_drain(set, 1, 0, each, NULL, &taken, &failed), BEELINE_INVALID);
  EXPECT(taken == 0 && failed == 0, 1);
  EXPECT(beeline_window_set_offer(NULL, domain, "x", NULL, &red), BEELINE_INVALID);
  EXPECT(red, 0);
  EXPECT(beeline_window_set_open(0, 2, &set), BEELINE_INVALID);
  EXPECT(beeline_window_set_open(0, BEELINE_WAIT_SLEEP, NULL), BEELINE_INVALID);
  EXPECT(beeline_window_set_open(2, BEELINE_WAIT_SLEEP, &set), BEELINE_OK);
  used_set = set;
  EXPECT(beeline_window_set_offer(set, domain, NULL, NULL, &red), BEELINE_INVALID);
  EXPECT(beeline_window_set_offer(set, domain, "red", NULL, NULL), BEELINE_INVALID);
  EXPECT(beeline_window_set_offer(set, domain, "red", NULL, &red), BEELINE_OK);
  EXPECT(beeline_window_set_offer(set, domain, "red", NULL, &blue), BEELINE_REFUSED);
  EXPECT(beeline_window_set_offer(set, domain, "blue", NULL, &blue), BEELINE_OK);
  EXPECT(red != 0 && blue != 0 && red != blue, 1);
  in_thread(drain_elsewhere, set);
  EXPECT(beeline_window_set_drain(set, 1, 0, NULL, NULL, &taken, &failed), BEELINE_INVALID);
  EXPECT_SAID("each is NULL");
  EXPECT(beeline_window_set_drain(set, 0, 0, each, NULL, &taken, &failed), BEELINE_INVALID);
  EXPECT(beeline_window_set_drain(set, 1, 0, each, NULL, &taken, NULL), BEELINE_INVALID);
  EXPECT(beeline_window_set_drain(set, 1, 1000, each, NULL, &taken, &failed), BEELINE_EMPTY);
  EXPECT(beeline_window_set_descriptor(set, &descriptor), BEELINE_OK);
  EXPECT(beeline_window_set_arm(set, &at_most_ns), BEELINE_EMPTY);
  EXPECT(beeline_window_sender_connect(domain, "blue", NULL, &sender), BEELINE_OK);
  EXPECT(beeline_window_send(sender, "message", 7, 0), BEELINE_OK);
  EXPECT(beeline_window_set_arm(set, &at_most_ns), BEELINE_OK);
  EXPECT(beeline_window_set_drain(set, 8, WATCHDOG_NS, each, &last, &taken, &failed), BEELINE_OK);
  EXPECT(taken == 1 && last == blue && failed == 0, 1);
  EXPECT(beeline_window_sender_close(&sender), BEELINE_OK);
  EXPECT(beeline_window_set_drain(set, 8, WATCHDOG_NS, each, &last, &taken, &failed), BEELINE_SENDER_GONE);
  EXPECT(taken == 0 && failed == blue, 1);
  EXPECT(beeline_window_set_drain(set, 8, 0, each, &last, &taken, &failed), BEELINE_EMPTY);
  EXPECT(beeline_window_set_disarm(set), BEELINE_OK);
  EXPECT(beeline_window_set_remove(set, red), BEELINE_OK);
  EXPECT(beeline_window_set_remove(set, red), BEELINE_INVALID);
  EXPECT_SAID("the set has none of that number");
  EXPECT(beeline_window_set_release(set), BEELINE_OK);
  EXPECT(beeline_window_set_close(&set), BEELINE_OK);
  EXPECT(beeline_window_set_release(used_set), BEELINE_INVALID);
}

/* ---------------------------------------------------------- notifications */

/*
 * Refuses a request that begins with `n`, claims too much for one with `l`, gives back the descriptor of one with `d`, tells
 * something before the answer to one with `t`.
 */
static int answer(void *context, uint64_t subscriber, const beeline_parcel *request, beeline_space *answered) {
  char first = request->length > 0 ? *(const char *)request->bytes : 'e';

  (void)context;
  EXPECT(answered->capacity >= BEELINE_MAX_ANSWER_BYTES && answered->fd_capacity >= BEELINE_MAX_ANSWER_FDS, 1);
  if (first == 'l')
    answered->length = answered->capacity + 1;
  if (first == 'd' && request->fd_count == 1) {
    answered->fds[0] = request->fds[0];
    answered->fd_count = 1;
  }
  if (first == 't')
    EXPECT(beeline_notifier_notify(telling, subscriber, request), BEELINE_OK);
  if (first != 'n')
    return 0;
  memcpy(answered->bytes, "not today", 9);
  answered->length = 9;
  return 1;
}

static void *call_elsewhere(void *argument) {
  beeline_space space;

  (void)argument;
  memset(&space, 0, sizeof space);
  EXPECT(beeline_subscription_call(shared, NULL, WATCHDOG_NS, &space), BEELINE_OK);
  return NULL;
}

static void *wait_elsewhere(void *argument) {
  beeline_space space;

  (void)argument;
  memset(&space, 0, sizeof space);
  EXPECT(beeline_subscription_next(shared, BEELINE_NEVER, &space), BEELINE_NOTIFIER_GONE);
  return NULL;
}

/* Until another thread closes the subscription, which may be before this one has begun to wait. */
static void *wait_for_close(void *subscription) {
  beeline_space space;
  int status;

  memset(&space, 0, sizeof space);
  status = beeline_subscription_next((beeline_subscription *)subscription, WATCHDOG_NS, &space);
  EXPECT(status == BEELINE_NOTIFIER_GONE || status == BEELINE_INVALID, 1);
  return NULL;
}

/* Begins when `*context` is 1, closes its own subscription, and is called no more. */
static void close_inside(void *context, int status, const beeline_parcel *told) {
  int *calls = (int *)context;
  beeline_subscription *closed = shared;

  EXPECT(status == BEELINE_OK && told != NULL, 1);
  while (__atomic_load_n(calls, __ATOMIC_SEQ_CST) == 0)
    usleep(100);
  EXPECT(beeline_subscription_close(&shared), BEELINE_OK);
  EXPECT(shared == NULL, 1);
  EXPECT(beeline_subscription_deliver_to(closed, close_inside, context), BEELINE_INVALID);
  __atomic_add_fetch(calls, 1, __ATOMIC_SEQ_CST);
}

static void count_told(void *context, int status, const beeline_parcel *told) {
  EXPECT(status == BEELINE_OK && told->length == 1, 1);
  __atomic_add_fetch((int *)context, 1, __ATOMIC_SEQ_CST);
}

static void no_notifications(void) {
  beeline_notifier_event event;
  beeline_space space;
  beeline_notifier *notifier = (beeline_notifier *)&space;
  beeline_subscription *subscription = (beeline_subscription *)&space;
  int descriptor = 7;

  memset(&space, 0, sizeof space);
  EXPECT(beeline_notifier_offer(NULL, "x", NULL, NULL, NULL, &notifier), BEELINE_INVALID);
  EXPECT(notifier == NULL, 1);
  EXPECT(beeline_notifier_offer(domain, NULL, NULL, NULL, NULL, &notifier), BEELINE_INVALID);
  EXPECT(beeline_notifier_next_event(NULL, 0, &event), BEELINE_INVALID);
  EXPECT(beeline_notifier_descriptor(NULL, &descriptor), BEELINE_INVALID);
  EXPECT(descriptor, -1);
  EXPECT(beeline_notifier_notify(NULL, 1, NULL), BEELINE_INVALID);
  EXPECT(beeline_notifier_disconnect(NULL, 1), BEELINE_INVALID);
  EXPECT(beeline_notifier_close(NULL), BEELINE_OK);
  EXPECT(beeline_subscription_open(domain, "nobody", NULL, 1000, &subscription), BEELINE_REFUSED);
  EXPECT_SAID("notifier `nobody`");
  EXPECT(subscription == NULL, 1);
  EXPECT(beeline_subscription_next(NULL, 0, &space), BEELINE_INVALID);
  EXPECT(beeline_subscription_call(NULL, NULL, 0, &space), BEELINE_INVALID);
  EXPECT(beeline_subscription_first_answer(NULL, &space), BEELINE_INVALID);
  EXPECT(beeline_subscription_deliver_to(NULL, count_told, NULL), BEELINE_INVALID);
  EXPECT(beeline_subscription_descriptor(NULL, &descriptor), BEELINE_INVALID);
  EXPECT(beeline_subscription_close(&subscription), BEELINE_OK);
}

static void notifications(void) {
  beeline_notifier_options options = BEELINE_NOTIFIER_OPTIONS_INIT;
  unsigned char bytes[BEELINE_MAX_NOTIFICATION_BYTES + 1];
  beeline_parcel parcel = {bytes, 1, NULL, 0}, ask = {"n", 1, NULL, 0};
  beeline_space space = {bytes, sizeof bytes, 7, NULL, 0, 7};
  beeline_notifier *notifier;
  beeline_notifier_event event;
  pthread_t waiting;
  int ends[2], got = -1, told = 0;

  memset(bytes, 'x', sizeof bytes);
  options.size = 3;
  EXPECT(beeline_notifier_offer(domain, "told", &options, answer, NULL, &notifier), BEELINE_INVALID);
  options.size = sizeof options;
  options.max_subscribers = 8;
  EXPECT(beeline_notifier_offer(domain, "told", &options, answer, NULL, &notifier), BEELINE_OK);
  EXPECT(beeline_notifier_next_event(notifier, 0, NULL), BEELINE_INVALID);
  EXPECT(beeline_notifier_next_event(notifier, 1000, &event), BEELINE_EMPTY);
  EXPECT(beeline_subscription_open(domain, "told", &ask, 0, &shared), BEELINE_REFUSED);
  EXPECT_SAID("not today");
  EXPECT(beeline_subscription_open(domain, "told", NULL, 0, &shared), BEELINE_OK);
  EXPECT(beeline_subscription_first_answer(shared, NULL), BEELINE_INVALID);
  EXPECT(beeline_subscription_first_answer(shared, &space), BEELINE_OK);
  EXPECT(space.length == 0 && space.fd_count == 0, 1);
  EXPECT(beeline_subscription_first_answer(shared, &space), BEELINE_EMPTY);
  EXPECT(beeline_notifier_next_event(notifier, WATCHDOG_NS, &event), BEELINE_OK);
  EXPECT(event.kind == BEELINE_SUBSCRIBER_JOINED && event.pid == (uint32_t)getpid() && event.uid == geteuid(), 1);
  in_thread(call_elsewhere, NULL);
  /* Refused, wrongly answered, too large, no descriptor. */
  EXPECT(beeline_subscription_call(shared, &ask, WATCHDOG_NS, &space), BEELINE_REFUSED);
  EXPECT_SAID("not today");
  ask.bytes = "l";
  EXPECT(beeline_subscription_call(shared, &ask, WATCHDOG_NS, &space), BEELINE_REFUSED);
  ask.bytes = NULL;
  EXPECT(beeline_subscription_call(shared, &ask, WATCHDOG_NS, &space), BEELINE_INVALID);
  EXPECT_SAID("request->bytes is NULL");
  parcel.length = sizeof bytes;
  EXPECT(beeline_notifier_notify(notifier, event.subscriber, &parcel), BEELINE_TOO_LONG);
  EXPECT(beeline_notifier_notify(notifier, event.subscriber + 1000, NULL), BEELINE_SUBSCRIBER_GONE);
  parcel.length = 1;
  parcel.fds = &got;
  parcel.fd_count = 1;
  EXPECT(beeline_notifier_notify(notifier, event.subscriber, &parcel), BEELINE_INVALID);
  EXPECT_SAID("the descriptor -1");
  parcel.fd_count = 0;
  /* One that finds no space stays the next. */
  EXPECT(beeline_subscription_next(shared, 0, NULL), BEELINE_INVALID);
  EXPECT(beeline_subscription_next(shared, 0, &space), BEELINE_EMPTY);
  EXPECT(beeline_notifier_notify(notifier, event.subscriber, &parcel), BEELINE_OK);
  space.capacity = 0;
  EXPECT(beeline_subscription_next(shared, WATCHDOG_NS, &space), BEELINE_NO_SPACE);
  EXPECT(space.length, 1);
  space.capacity = sizeof bytes;
  EXPECT(beeline_subscription_next(shared, 0, &space), BEELINE_OK);
  EXPECT(space.length == 1 && bytes[0] == 'x', 1);
  /* Descriptors go there and back, and stay what they are. */
  EXPECT(pipe(ends), 0);
  ask.bytes = "d";
  ask.fds = &ends[1];
  ask.fd_count = 1;
  EXPECT(beeline_subscription_call(shared, &ask, WATCHDOG_NS, &space), BEELINE_NO_SPACE);
  EXPECT(space.fd_count, 1);
  space.fds = &got;
  space.fd_capacity = 1;
  EXPECT(beeline_subscription_call(shared, &ask, WATCHDOG_NS, &space), BEELINE_OK);
  EXPECT(got >= 0 && got != ends[1], 1);
  EXPECT(write(got, "back", 4), 4);
  EXPECT(read(ends[0], bytes, 8), 4);
  close(got);
  close(ends[0]);
  close(ends[1]);
  /* A callback, one at most; it ends with the subscription. */
  EXPECT(beeline_subscription_deliver_to(shared, NULL, NULL), BEELINE_INVALID);
  EXPECT(beeline_subscription_deliver_to(shared, count_told, &told), BEELINE_OK);
  EXPECT(beeline_subscription_deliver_to(shared, count_told, &told), BEELINE_INVALID);
  for (int times = 0; times < 10; times++)
    EXPECT(beeline_notifier_notify(notifier, event.subscriber, &parcel), BEELINE_OK);
  while (__atomic_load_n(&told, __ATOMIC_SEQ_CST) < 10)
    usleep(100);
  EXPECT(beeline_subscription_close(&shared), BEELINE_OK);
  EXPECT(beeline_notifier_next_event(notifier, WATCHDOG_NS, &event), BEELINE_OK);
  EXPECT(event.kind, BEELINE_SUBSCRIBER_LEFT);
  EXPECT(beeline_notifier_notify(notifier, event.subscriber, NULL), BEELINE_SUBSCRIBER_GONE);
  EXPECT(beeline_notifier_disconnect(notifier, event.subscriber), BEELINE_SUBSCRIBER_GONE);
  /* Who waits in another thread is told of a disconnection. */
  EXPECT(beeline_subscription_open(domain, "told", NULL, 0, &shared), BEELINE_OK);
  EXPECT(beeline_notifier_next_event(notifier, WATCHDOG_NS, &event), BEELINE_OK);
  EXPECT(pthread_create(&waiting, NULL, wait_elsewhere, NULL), 0);
  EXPECT(beeline_notifier_disconnect(notifier, event.subscriber), BEELINE_OK);
  pthread_join(waiting, NULL);
  EXPECT(beeline_subscription_close(&shared), BEELINE_OK);
  EXPECT(beeline_notifier_close(&notifier), BEELINE_OK);
}

/* What is told before an answer is in front of it, also of the first one; a subscription is closed while it is in use. */
static void notifications_in_use(void) {
  beeline_parcel tell = {"told", 4, NULL, 0};
  unsigned char bytes[8];
  beeline_space space = {bytes, sizeof bytes, 0, NULL, 0, 0};
  beeline_notifier_event event;
  pthread_t waiting;
  int calls = 0;

  EXPECT(beeline_notifier_offer(domain, "used", NULL, answer, NULL, &telling), BEELINE_OK);
  EXPECT(beeline_subscription_open(domain, "used", &tell, 0, &shared), BEELINE_OK);
  EXPECT(beeline_subscription_next(shared, 0, &space), BEELINE_OK);
  EXPECT(space.length == 4 && memcmp(bytes, "told", 4) == 0, 1);
  EXPECT(beeline_subscription_call(shared, &tell, WATCHDOG_NS, &space), BEELINE_OK);
  EXPECT(beeline_subscription_next(shared, 0, &space), BEELINE_OK);
  /* By its callback. */
  EXPECT(beeline_notifier_next_event(telling, WATCHDOG_NS, &event), BEELINE_OK);
  EXPECT(beeline_subscription_deliver_to(shared, close_inside, &calls), BEELINE_OK);
  EXPECT(beeline_notifier_notify(telling, event.subscriber, NULL), BEELINE_OK);
  EXPECT(beeline_notifier_notify(telling, event.subscriber, NULL), BEELINE_OK);
  __atomic_store_n(&calls, 1, __ATOMIC_SEQ_CST);
  EXPECT(beeline_notifier_next_event(telling, WATCHDOG_NS, &event), BEELINE_OK);
  EXPECT(event.kind, BEELINE_SUBSCRIBER_LEFT);
  while (__atomic_load_n(&calls, __ATOMIC_SEQ_CST) < 2)
    usleep(100);
  /* While another thread waits in it. */
  EXPECT(beeline_subscription_open(domain, "used", NULL, 0, &shared), BEELINE_OK);
  EXPECT(pthread_create(&waiting, NULL, wait_for_close, shared), 0);
  usleep(20000);
  EXPECT(beeline_subscription_close(&shared), BEELINE_OK);
  pthread_join(waiting, NULL);
  EXPECT(calls, 2);
  EXPECT(beeline_notifier_close(&telling), BEELINE_OK);
}

/* Opens and closes one of each; nothing of it may stay. */
static void round_trip(void) {
  beeline_window_receiver_options options = BEELINE_WINDOW_RECEIVER_OPTIONS_INIT;
  beeline_bytes_reader *reader;
  beeline_bytes_writer *writer;
  beeline_window_set *set;
  beeline_notifier *notifier;
  beeline_subscription *subscription;
  unsigned char bytes[8];
  uint64_t member;
  size_t count;
  int told = 0;

  options.lines = 64;
  EXPECT(beeline_bytes_reader_offer(domain, "round", &options, &reader), BEELINE_OK);
  EXPECT(beeline_bytes_writer_connect(domain, "round", NULL, &writer), BEELINE_OK);
  EXPECT(beeline_bytes_write(writer, "round", 5, 0, NULL), BEELINE_OK);
  EXPECT(beeline_bytes_read(reader, bytes, 8, WATCHDOG_NS, &count), BEELINE_OK);
  EXPECT(beeline_window_set_open(0, BEELINE_WAIT_SPIN, &set), BEELINE_OK);
  EXPECT(beeline_window_set_offer(set, domain, "member", &options, &member), BEELINE_OK);
  EXPECT(beeline_notifier_offer(domain, "notes", NULL, NULL, NULL, &notifier), BEELINE_OK);
  EXPECT(beeline_subscription_open(domain, "notes", NULL, 0, &subscription), BEELINE_OK);
  EXPECT(beeline_subscription_deliver_to(subscription, count_told, &told), BEELINE_OK);
  EXPECT(beeline_subscription_close(&subscription), BEELINE_OK);
  EXPECT(beeline_notifier_close(&notifier), BEELINE_OK);
  EXPECT(beeline_window_set_close(&set), BEELINE_OK);
  EXPECT(beeline_bytes_reader_close(&reader), BEELINE_OK);
  EXPECT(beeline_bytes_writer_close(&writer), BEELINE_OK);
}

int main(int argc, char **argv) {
  long rounds;
  size_t before = 0;

  if (argc < 3)
    return EXIT_FAILURE;
  /* Threads and callbacks that wait for what does not come end the test as a failure. */
  alarm(300);
  rounds = strtol(argv[2], NULL, 10);
  EXPECT(beeline_domain_open("default", argv[1], &domain), BEELINE_OK);
  no_streams();
  streams();
  sets();
  no_notifications();
  notifications();
  notifications_in_use();
  for (long done = 0; done < rounds; done++) {
    round_trip();
    if (done == rounds / 2)
      before = open_descriptors();
  }
  /* What peers of this process leave is closed by threads of the library, which may not have come to the last ones. */
  for (int tries = 0; open_descriptors() > before && tries < 6000; tries++)
    usleep(10000);
  EXPECT(open_descriptors() <= before, 1);
  EXPECT(beeline_domain_close(&domain), BEELINE_OK);
  printf("%d failures\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
