/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Commands of the player that are no functions of SISCI. */
#ifndef PLAYER_OWN_H
#define PLAYER_OWN_H

#define THREADS 8

struct thread {
  char name[32];
  pthread_t thread;
  struct call call;
  /* Stored by the thread, loaded by who waits for it to settle. */
  int id;
  int has_ended;
};

static struct thread threads[THREADS];

static void read_words(struct call *call, const char *line);
static void make(struct call *call);

/* The number of this thread as /proc has it, which may be that of other namespaces than the player's. */
static pid_t own_id(void)
{
  char path[64];
  int id = 0;
  ssize_t bytes = readlink("/proc/thread-self", path, sizeof(path) - 1);

  path[bytes > 0 ? bytes : 0] = '\0';
  if (sscanf(path, "%*d/task/%d", &id) != 1)
    fail("no number of a thread", path);
  return id;
}

static void *run(void *arg)
{
  struct thread *thread = (struct thread *)arg;

  __atomic_store_n(&thread->id, (int)own_id(), __ATOMIC_RELAXED);
  make(&thread->call);
  __atomic_store_n(&thread->has_ended, 1, __ATOMIC_RELAXED);
  return NULL;
}

static int is_asleep(int id)
{
  char path[64], state = 0;
  FILE *file;

  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", id);
  file = fopen(path, "r");
  if (!file)
    return 0;
  if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
    state = 0;
  fclose(file);
  return state == 'S';
}

/* Waits until a thread has slept for some looks, so that it waits inside its call, or has ended. One that works whenever it is looked at,
 * as with the checks of a compiler, is in its call after so many looks. */
static void settle(struct thread *thread)
{
  int looks = 0, all = 0, id;

  while (looks < 5 && all++ < 500 && !__atomic_load_n(&thread->has_ended, __ATOMIC_RELAXED)) {
    id = __atomic_load_n(&thread->id, __ATOMIC_RELAXED);
    looks = id && is_asleep(id) ? looks + 1 : 0;
    usleep(1000);
  }
}

/* `thread T LINE`, `join T`, `child LINE`: what needs a line within the line. */
static int own_line(char *line)
{
  char name[32];
  int start = 0, at;

  if (sscanf(line, "thread %31s %n", name, &start) == 1 && start) {
    for (at = 0; threads[at].name[0]; at++)
      if (at == THREADS - 1)
        fail("too many threads", name);
    snprintf(threads[at].name, sizeof(threads[at].name), "%s", name);
    read_words(&threads[at].call, line + start);
    threads[at].id = threads[at].has_ended = 0;
    if (pthread_create(&threads[at].thread, NULL, run, &threads[at]))
      fail("no thread", name);
    settle(&threads[at]);
    printf("started\n");
  } else if (sscanf(line, "join %31s", name) == 1) {
    for (at = 0; strcmp(threads[at].name, name) != 0; at++)
      if (at == THREADS - 1)
        fail("no such thread", name);
    pthread_join(threads[at].thread, NULL);
    threads[at].name[0] = '\0';
    printf("%s\n", threads[at].call.answer);
  } else if (strncmp(line, "child ", 6) == 0) {
    struct call call;
    int status;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
      read_words(&call, line + 6);
      make(&call);
      printf("%s\n", call.answer);
      fflush(stdout);
      _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
      printf("the child failed\n");
  } else {
    return 0;
  }
  fflush(stdout);
  return 1;
}

static void copy_text(struct call *call)
{
  volatile unsigned char *to = (volatile unsigned char *)memory(call);
  const char *text = word(call);

  for (; *text; text++)
    *to++ = (unsigned char)*text;
  add(call, "done");
}

static void show_text(struct call *call)
{
  const volatile unsigned char *from = (const volatile unsigned char *)memory(call);
  size_t at, length = number(call);
  char text[TEXT];

  for (at = 0; at < length && at < sizeof(text) - 1; at++)
    text[at] = from[at] >= ' ' && from[at] < 127 ? (char)from[at] : '.';
  text[at] = '\0';
  add(call, text);
}

/* `allocate NAME KIND BYTES`: `pages` that begin at a page, `bytes` that do not, `source` that is not stored to, `gap` whose second page
 * nobody may access: one that is not there could be mapped again by the library, for something of its own. */
static void allocate(struct call *call)
{
  const char *name = word(call), *kind = word(call);
  size_t bytes = number(call);
  char *start = NULL;
  int at;

  for (at = 0; allocations[at].name[0]; at++)
    if (at == ALLOCATIONS - 1)
      fail("too many allocations", name);
  if (strcmp(kind, "pages") == 0 || strcmp(kind, "bytes") == 0) {
    if (posix_memalign((void **)&start, 4096, bytes + 64))
      fail("no memory", name);
    memset(start, '.', bytes + 64);
    start += kind[0] == 'b' ? 8 : 0;
  } else {
    start = (char *)mmap(NULL, bytes, PROT_READ | (kind[0] == 'g' ? PROT_WRITE : 0), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == (char *)MAP_FAILED || (kind[0] == 'g' && mprotect(start + 4096, 4096, PROT_NONE)))
      fail("no memory", name);
  }
  snprintf(allocations[at].name, sizeof(allocations[at].name), "%s", name);
  allocations[at].start = start;
  add(call, "done");
}

/* `free NAME BYTES`: what `allocate NAME pages BYTES` has given. Then something else is allocated, filled and freed in its place. */
static void free_pages(struct call *call)
{
  const char *name = word(call);
  size_t bytes = number(call);
  void *next;
  int at;

  free(allocation(name));
  for (at = 0; strcmp(allocations[at].name, name) != 0; at++)
    ;
  allocations[at].name[0] = '\0';
  for (at = 0; at < 8; at++) {
    next = malloc(bytes);
    if (!next)
      fail("no memory", name);
    memset(next, at, bytes);
    free(next);
  }
  add(call, "done");
}

#ifdef HAS_SCIRegisterSegmentMemory
/* `on_stack SEGMENT`: registers a page of the stack. */
static void on_stack(struct call *call)
{
  sci_local_segment_t segment = (sci_local_segment_t)handle(call);
  char bytes[3 * 4096];
  char *page = bytes + 4096 - (uintptr_t)bytes % 4096;

  memset(bytes, 0, sizeof(bytes));
  SCIRegisterSegmentMemory(page, 4096, segment, 0, code(call));
  add(call, name_of_code(call->error));
}
#endif

static int by_text(const void *one, const void *other)
{
  return strcmp((const char *)one, (const char *)other);
}

/* `events`: what callbacks were told since the last such call. `events N`: none as long as they are fewer than N; then in the order of
 * their texts, for those that come in any order. */
static void show_events(struct call *call)
{
  int at, least = call->next < call->count ? (int)number(call) : 0;

  pthread_mutex_lock(&lock);
  if (event_count < least) {
    add(call, "none");
    pthread_mutex_unlock(&lock);
    return;
  }
  if (least)
    qsort(events, (size_t)event_count, sizeof(events[0]), by_text);
  for (at = 0; at < event_count; at++)
    add(call, events[at]);
  if (event_count == 0)
    add(call, "none");
  event_count = 0;
  pthread_mutex_unlock(&lock);
}

static void set_vector(struct call *call)
{
  size_t count = 0;

  while (call->next < call->count && count < sizeof(vector) / sizeof(vector[0])) {
    vector[count].size = (unsigned int)number(call);
    vector[count].local_offset = (unsigned int)number(call);
    vector[count].remote_offset = (unsigned int)number(call);
    vector[count++].flags = 0;
  }
  add(call, "done");
}

#ifdef HAS_SCIQuery
/* `query_adapter ADAPTER SUBCOMMAND`: what SCIQuery(SCI_Q_ADAPTER) answers. */
static void query_adapter(struct call *call)
{
  unsigned int answer = 0x5a5a5a5au;
  sci_query_adapter_t query = { 0, 0, 0, &answer };

  query.localAdapterNo = (unsigned int)number(call);
  query.subcommand = (unsigned int)number(call);
  SCIQuery(SCI_Q_ADAPTER, &query, 0, code(call));
  add(call, name_of_code(call->error));
  if (call->error == SCI_ERR_OK)
    add_number(call, answer);
}

/* `query_dma ADAPTER SUBCOMMAND`: channels, pieces, whether devices are reached and alignment, as SCIQuery(SCI_Q_DMA) answers. */
static void query_dma(struct call *call)
{
  sci_dma_capabilities_t answer;
  sci_query_dma_t query = { 0, 0, &answer };

  memset(&answer, 0x5a, sizeof(answer));
  query.localAdapterNo = (unsigned int)number(call);
  query.subcommand = (unsigned int)number(call);
  SCIQuery(SCI_Q_DMA, &query, 0, code(call));
  add(call, name_of_code(call->error));
  if (call->error == SCI_ERR_OK) {
    add_number(call, answer.num_channels);
    add_number(call, answer.max_vector_length);
    add_number(call, answer.support_mem2io | answer.support_io2mem | answer.support_io2io);
    add_number(call, answer.min_align_bytes);
  }
}

/* `query_string COMMAND`: the first letters of what it answers. */
static void query_string(struct call *call)
{
  char text[8] = "";
  sci_query_string_t query = { text, sizeof(text) };

  SCIQuery((unsigned int)number(call), &query, 0, code(call));
  add(call, name_of_code(call->error));
  if (call->error == SCI_ERR_OK)
    add(call, strlen(text) < sizeof(text) && text[0] ? "text" : "no text");
}

#endif

/* `why`: what the library says of the last failure of this thread. */
static void show_why(struct call *call)
{
  add(call, beeline_sisci_last_error());
}

/* Commands, by name: whether it was one. */
static int own(struct call *call)
{
  static const struct entry commands[] = {
    { "text", copy_text },       { "show", show_text },
    { "events", show_events },   { "vector", set_vector },
    { "allocate", allocate },    { "free", free_pages },
    { "why", show_why },
#ifdef HAS_SCIRegisterSegmentMemory
    { "on_stack", on_stack },
#endif
#ifdef HAS_SCIQuery
    { "query_adapter", query_adapter }, { "query_string", query_string }, { "query_dma", query_dma },
#endif
  };
  size_t at;

  if (strcmp(call->words[0], "copy_handle") == 0) {
    void *from = handle(call);

    *slot(word(call)) = from;
    add(call, "done");
    return 1;
  }
  if (strcmp(call->words[0], "cancel_callbacks") == 0) {
    callback_action = SCI_CALLBACK_CANCEL;
    add(call, "done");
    return 1;
  }
  for (at = 0; at < sizeof(commands) / sizeof(commands[0]); at++)
    if (strcmp(commands[at].name, call->words[0]) == 0) {
      commands[at].make(call);
      return 1;
    }
  return 0;
}

#endif
