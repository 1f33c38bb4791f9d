#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "log.h"
#include "result.h"

#define RULES_MAX 32
#define CALL_EVERY 0 /* '*' */

enum fault_kind {
	FAULT_RESULT,
	FAULT_HANG,
	FAULT_DELAY,
	FAULT_KILL,
	FAULT_KILL_TARGET,
};

struct fault_rule {
	char text[96];
	size_t name_bytes; /* of text: the call */
	enum sim_fault_when when;
	unsigned long call; /* CALL_EVERY or from 1 on */
	enum fault_kind kind;
	CUresult result;
	unsigned long delay_ms;
	atomic_ulong seen; /* only counts; nothing is ordered by it */
};

static struct {
	pthread_once_t once;
	size_t rule_count;
	struct fault_rule rules[RULES_MAX];
	const char *when_path; /* NULL, or the plan sleeps until this file exists */
	const char *once_path; /* NULL, or no fault acts while this file exists */
} plan = {.once = PTHREAD_ONCE_INIT};

static _Thread_local pid_t target_pid;

static bool parse_count(const char *text, unsigned long *ret_count)
{
	char *end = NULL;
	unsigned long count;

	errno = 0;
	count = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
		return false;
	*ret_count = count;
	return true;
}

static bool parse_kind(const char *text, struct fault_rule *rule)
{
	static const struct {
		const char *name;
		enum fault_kind kind;
	} kinds[] = {
		{"hang", FAULT_HANG},
		{"kill", FAULT_KILL},
		{"killtarget", FAULT_KILL_TARGET},
	};

	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
		if (strcmp(kinds[i].name, text) != 0)
			continue;
		rule->kind = kinds[i].kind;
		return true;
	}
	if (strncmp(text, "delay=", strlen("delay=")) == 0) {
		rule->kind = FAULT_DELAY;
		return parse_count(text + strlen("delay="), &rule->delay_ms);
	}
	rule->kind = FAULT_RESULT;
	return sim_result_parse(text, &rule->result) && rule->result != CUDA_SUCCESS;
}

/* name[!]:N=kind */
static bool parse_rule(struct fault_rule *rule)
{
	char copy[sizeof(rule->text)];
	char *call;
	char *kind;

	memcpy(copy, rule->text, sizeof(copy));
	call = strchr(copy, ':');
	kind = call ? strchr(call, '=') : NULL;
	if (kind == NULL || call == copy)
		return false;
	*call++ = '\0';
	*kind++ = '\0';
	rule->name_bytes = strlen(copy);
	rule->when = SIM_FAULT_BEFORE;
	if (copy[rule->name_bytes - 1] == '!') {
		rule->when = SIM_FAULT_AFTER;
		rule->name_bytes--;
	}
	rule->call = CALL_EVERY;
	if (strcmp(call, "*") != 0 && (!parse_count(call, &rule->call) || rule->call == 0))
		return false;
	return parse_kind(kind, rule);
}

static bool is_known_call(const struct fault_rule *rule)
{
	/* clang-format off */
#define QUERY_ROW(query, version, elf) #query,
	static const char *const queries[] = {STASIS_ABI_FUNCTIONS(QUERY_ROW)};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_COUNT(queries); i++)
		if (strlen(queries[i]) == rule->name_bytes &&
		    strncmp(queries[i], rule->text, rule->name_bytes) == 0)
			return true;
	return false;
}

static void add_rule(const char *text, size_t text_bytes)
{
	struct fault_rule *rule = &plan.rules[plan.rule_count];

	if (plan.rule_count == RULES_MAX)
		sim_die("STASIS_SIM_FAULT has more than %d faults", RULES_MAX);
	if (text_bytes >= sizeof(rule->text))
		sim_die("STASIS_SIM_FAULT: '%.*s' is too long", (int)text_bytes, text);
	memcpy(rule->text, text, text_bytes);
	if (!parse_rule(rule))
		sim_die("STASIS_SIM_FAULT: '%s' is not of the form cuName:N=RESULT (or hang, kill, "
			"killtarget, delay=MS)",
			rule->text);
	if (!is_known_call(rule))
		sim_die("STASIS_SIM_FAULT: '%s' names no call of the driver", rule->text);
	plan.rule_count++;
}

static void forget_counts(void)
{
	for (size_t i = 0; i < plan.rule_count; i++)
		atomic_store_explicit(&plan.rules[i].seen, 0, memory_order_relaxed);
}

static void read_plan(void)
{
	const char *text = secure_getenv("STASIS_SIM_FAULT");
	const char *process = secure_getenv("STASIS_SIM_FAULT_PROCESS");

	while (text != NULL && *text != '\0') {
		size_t rule_bytes = strcspn(text, ",");

		add_rule(text, rule_bytes);
		text += rule_bytes;
		text += *text == ',';
	}
	plan.when_path = secure_getenv("STASIS_SIM_FAULT_WHEN");
	plan.once_path = secure_getenv("STASIS_SIM_FAULT_ONCE");
	if (process != NULL && strcmp(process, sim_log_executable()) != 0)
		plan.rule_count = 0;
	if (pthread_atfork(NULL, NULL, forget_counts) != 0)
		sim_die("pthread_atfork failed");
}

void sim_fault_init(void)
{
	(void)pthread_once(&plan.once, read_plan);
}

void sim_fault_set_target(pid_t pid)
{
	target_pid = pid;
}

static void sleep_ms(unsigned long milliseconds)
{
	struct timespec left = {
		.tv_sec = (time_t)(milliseconds / 1000),
		.tv_nsec = (long)(milliseconds % 1000) * 1000000,
	};

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

/* Comes back once the target is dead, so that what follows meets a dead process for certain. */
static void kill_target(const struct fault_rule *rule)
{
	CLEANUP(fd) int pidfd = -1;
	struct pollfd death = {.events = POLLIN};

	if (target_pid <= 0)
		sim_die("STASIS_SIM_FAULT: '%s': this call names no process", rule->text);
	pidfd = (int)syscall(SYS_pidfd_open, target_pid, 0);
	if (pidfd < 0 || kill(target_pid, SIGKILL) != 0)
		return;
	death.fd = pidfd;
	while (poll(&death, 1, -1) < 0 && errno == EINTR)
		;
}

/* The first of all processes to ask makes the file. */
static bool has_acted(void)
{
	CLEANUP(fd) int fd = -1;

	if (plan.once_path == NULL)
		return false;
	fd = open(plan.once_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0;
}

static CUresult act(const struct fault_rule *rule, CUresult result)
{
	if (has_acted())
		return result;
	sim_log_line("fault %s", rule->text);
	switch (rule->kind) {
	case FAULT_RESULT:
		return rule->result;
	case FAULT_HANG:
		for (;;)
			sleep_ms(1000UL * 3600);
	case FAULT_DELAY:
		sleep_ms(rule->delay_ms);
		return result;
	case FAULT_KILL:
		(void)kill(getpid(), SIGKILL);
		for (;;)
			sleep_ms(1000);
	case FAULT_KILL_TARGET:
		kill_target(rule);
		return result;
	}
	return result;
}

CUresult sim_fault_reach(const char *name, size_t name_bytes, enum sim_fault_when when,
			 CUresult result)
{
	if (plan.rule_count != 0 && plan.when_path != NULL && access(plan.when_path, F_OK) != 0)
		return result;
	for (size_t i = 0; i < plan.rule_count; i++) {
		struct fault_rule *rule = &plan.rules[i];
		unsigned long call;

		if (rule->when != when || rule->name_bytes != name_bytes ||
		    memcmp(rule->text, name, name_bytes) != 0)
			continue;
		call = atomic_fetch_add_explicit(&rule->seen, 1, memory_order_relaxed) + 1;
		if (rule->call == CALL_EVERY || rule->call == call)
			result = act(rule, result);
	}
	return result;
}
