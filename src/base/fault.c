/*
 * See fault.h. The plan is read once, on the first passage; passages are counted under a mutex, which
 * only a process with a plan ever takes.
 */

#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mutex.h"

enum fault_kind { FAULT_ERRNO, FAULT_SHORT, FAULT_KILL, FAULT_HANG, FAULT_STOP, FAULT_MARK };

struct fault_word {
	const char *word;
	enum fault_kind kind;
	int code;
};

struct fault_rule {
	char name[48];
	uint64_t first; /* the passages that fail: from first to last */
	uint64_t last;
	uint64_t passages;
	const struct fault_word *word;
};

static const struct fault_word words[] = {
	{"ENOSPC", FAULT_ERRNO, ENOSPC}, {"EIO", FAULT_ERRNO, EIO},
	{"EINTR", FAULT_ERRNO, EINTR},   {"EAGAIN", FAULT_ERRNO, EAGAIN},
	{"EMFILE", FAULT_ERRNO, EMFILE}, {"ENOMEM", FAULT_ERRNO, ENOMEM},
	{"EACCES", FAULT_ERRNO, EACCES}, {"short", FAULT_SHORT, 0},
	{"kill", FAULT_KILL, 0},         {"hang", FAULT_HANG, 0},
	{"stop", FAULT_STOP, 0},         {"mark", FAULT_MARK, 0},
};

static struct stasis_mutex plan_mutex = STASIS_MUTEX_INITIALIZER;
static struct fault_rule rules[8] GUARDED_BY(plan_mutex);
static size_t rule_count GUARDED_BY(plan_mutex);
static pthread_once_t plan_once = PTHREAD_ONCE_INIT;
static bool plan_is_present; /* both written once, by plan_read */
static bool trace_is_wanted;

static const struct fault_word *word_find(const char *text)
{
	for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
		if (strcmp(words[i].word, text) == 0)
			return &words[i];
	}
	return NULL;
}

/* A wrong plan would make a test pass for nothing: it ends the process at once. */
NORETURN static void plan_refuse(const char *item)
{
	static const char head[] = "stasis: error: fault: STASIS_FAULT is not name[:N]=kind near: ";

	(void)!write(STDERR_FILENO, head, sizeof(head) - 1);
	(void)!write(STDERR_FILENO, item, strlen(item));
	(void)!write(STDERR_FILENO, "\n", 1);
	_exit(70);
}

/* "3", "3-40" or "*". */
static bool passages_parse(const char *text, struct fault_rule *rule)
{
	char *end = NULL;

	rule->first = 1;
	rule->last = UINT64_MAX;
	if (strcmp(text, "*") == 0)
		return true;
	rule->first = strtoull(text, &end, 10);
	rule->last = *end == '-' ? strtoull(end + 1, &end, 10) : rule->first;
	return *end == '\0' && rule->first > 0 && rule->last >= rule->first;
}

static void rule_parse(char *item) REQUIRES(plan_mutex)
{
	struct fault_rule *rule = &rules[rule_count];
	char *kind = strchr(item, '=');
	char *number;

	if (!kind || rule_count == ARRAY_COUNT(rules))
		plan_refuse(item);
	*kind++ = '\0';
	number = strchr(item, ':');
	if (number)
		*number++ = '\0';
	rule->word = word_find(kind);
	if (!rule->word || !*item || strlen(item) >= sizeof(rule->name) ||
	    !passages_parse(number ? number : "1", rule))
		plan_refuse(item);
	memcpy(rule->name, item, strlen(item) + 1);
	rule_count++;
}

static void plan_read(void)
{
	const char *plan = secure_getenv("STASIS_FAULT");
	char *copy;
	char *rest = NULL;

	trace_is_wanted = secure_getenv("STASIS_FAULT_TRACE") != NULL;
	if (!plan || !*plan)
		return;
	copy = strdup(plan);
	if (!copy)
		plan_refuse(plan);
	stasis_mutex_lock(&plan_mutex);
	for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
		rule_parse(item);
	stasis_mutex_unlock(&plan_mutex);
	free(copy);
	plan_is_present = true;
}

static const struct fault_word *passage_count(const char *name, uint64_t *ret_passage)
{
	const struct fault_word *hit = NULL;

	stasis_mutex_lock(&plan_mutex);
	for (size_t i = 0; i < rule_count; i++) {
		struct fault_rule *rule = &rules[i];

		if (strcmp(rule->name, name) != 0)
			continue;
		rule->passages++;
		if (!hit && rule->passages >= rule->first && rule->passages <= rule->last) {
			hit = rule->word;
			*ret_passage = rule->passages;
		}
	}
	stasis_mutex_unlock(&plan_mutex);
	return hit;
}

/* One line at the end of the file that the environment names, whole even when processes share it. */
FORMAT(2, 3) static void line_append(const char *variable, const char *format, ...)
{
	const char *path = secure_getenv(variable);
	char line[96];
	va_list arguments;
	int fd;

	if (!path)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	va_start(arguments, format);
	(void)vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	(void)!write(fd, line, strlen(line));
	(void)close(fd);
}

static int fault_do(const struct fault_word *word, size_t *io_bytes)
{
	switch (word->kind) {
	case FAULT_ERRNO:
		return word->code;
	case FAULT_SHORT:
		if (io_bytes && *io_bytes > 1)
			*io_bytes = *io_bytes / 2;
		return 0;
	case FAULT_MARK:
		return 0;
	case FAULT_STOP:
		(void)kill(getpid(), SIGSTOP);
		return 0;
	case FAULT_KILL:
		(void)kill(getpid(), SIGKILL);
		break;
	case FAULT_HANG:
		break;
	}
	for (;;)
		(void)pause();
}

/* The first of all processes to ask makes the point's file. */
static bool has_acted(const char *name)
{
	const char *once = secure_getenv("STASIS_FAULT_ONCE");
	char path[4096];
	int fd;

	if (!once)
		return false;
	(void)snprintf(path, sizeof(path), "%s.%s", once, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)close(fd);
	return fd < 0;
}

int stasis_fault_point_io(const char *name, size_t *io_bytes)
{
	const struct fault_word *word;
	uint64_t passage = 0;

	(void)pthread_once(&plan_once, plan_read);
	if (trace_is_wanted)
		line_append("STASIS_FAULT_TRACE", "%d point %s\n", (int)getpid(), name);
	if (!plan_is_present)
		return 0;
	word = passage_count(name, &passage);
	if (!word || has_acted(name))
		return 0;
	line_append("STASIS_FAULT_LOG", "%s:%llu=%s\n", name, (unsigned long long)passage,
		    word->word);
	return fault_do(word, io_bytes);
}

int stasis_fault_point(const char *name)
{
	return stasis_fault_point_io(name, NULL);
}
