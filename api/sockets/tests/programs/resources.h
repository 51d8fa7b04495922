/* What a process has of the kernel's at the moment: descriptors, threads, memory, and how often its threads have gone to sleep. */
#ifndef RESOURCES_H
#define RESOURCES_H

#include "ground.h"
#include <dirent.h>
#include <sys/resource.h>

struct resources {
	long descriptors, threads, shared_kib, private_kib, mappings;
};

static inline long entries_of(const char *path)
{
	DIR *folder = opendir(path);
	long count = 0;

	if (!folder)
		exit(94);
	while (readdir(folder))
		count++;
	closedir(folder);
	/* Less itself and its parent. */
	return count - 2;
}

/* The number behind a word at the beginning of a line. */
static inline long value_of(const char *path, const char *word)
{
	FILE *file = fopen(path, "r");
	char line[512];
	long value = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof line, file))
		if (!strncmp(line, word, strlen(word)))
			value = atol(line + strlen(word));
	fclose(file);
	return value;
}

static inline long mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[1024];
	long count = 0;

	if (!file)
		exit(94);
	while (fgets(line, sizeof line, file))
		count += strstr(line, "/memfd:") || strstr(line, "/dev/shm");
	fclose(file);
	return count;
}

static inline struct resources resources(void)
{
	return (struct resources){
		/* Less the one by which they are counted. */
		.descriptors = entries_of("/proc/self/fd") - 1,
		.threads = entries_of("/proc/self/task"),
		.shared_kib = value_of("/proc/self/status", "RssShmem:"),
		.private_kib = value_of("/proc/self/status", "RssAnon:"),
		.mappings = mappings(),
	};
}

/* How often threads of this process went to sleep so far. */
static inline long sleeps(void)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *task;
	char path[300];
	long count = 0;

	if (!folder)
		exit(94);
	while ((task = readdir(folder))) {
		if (task->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
		count += value_of(path, "voluntary_ctxt_switches:");
	}
	closedir(folder);
	return count;
}

/* As many descriptors as the kernel lets a process have, and no locked memory. */
static inline void set_limits(void)
{
	struct rlimit files, none = { 0, 0 };

	MUST(getrlimit(RLIMIT_NOFILE, &files));
	files.rlim_cur = files.rlim_max;
	MUST(setrlimit(RLIMIT_NOFILE, &files));
	MUST(setrlimit(RLIMIT_MEMLOCK, &none));
}

static inline void say_resources(const char *who, const char *when, int round, struct resources of)
{
	printf("%s %s %d descriptors %ld threads %ld shared %ld private %ld mappings %ld\n", who, when, round,
	       of.descriptors, of.threads, of.shared_kib, of.private_kib, of.mappings);
	fflush(stdout);
}

#endif
