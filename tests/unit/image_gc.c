/*
 * Description: gc removes the partial directories that nobody needs, and never one whose capture runs,
 * whose process is suspended, or of which it cannot tell.
 */

#include "unit.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/process.h"
#include "image/owner.h"
#include "image_fixture.h"

/* Leaves a staged partial of process `pid` by a capturer that ends at once; `finish` may change it. */
static void partial_leave(const char *path, pid_t pid, uint64_t start_ticks)
{
	int status = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		struct stasis_image_writer *writer = t_image_staged(path);
		struct stasis_image_process process = t_image_process(pid);
		struct stasis_error err = STASIS_ERROR_INIT;
		uint32_t index = 0;

		process.start_ticks = start_ticks;
		_exit(stasis_image_writer_process_add(writer, &process, &index, &err) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

struct collected {
	struct stasis_image_partial *partials;
	size_t count;
};

static void cleanup_collected(struct collected *collected)
{
	free(collected->partials);
}

static void collect(const char *folder, const struct stasis_image_gc_options *options,
		    struct collected *ret_collected)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_done(stasis_image_gc(folder, options, &ret_collected->partials,
				    &ret_collected->count, &err),
		    &err);
}

/* The answer of a driver, and what it was asked about. */
struct driver {
	bool answer;
	pid_t asked_pid;
	uint64_t asked_start_ticks;
	int asked_count;
};

static bool driver_ask(void *context, pid_t pid, uint64_t start_ticks)
{
	struct driver *driver = context;

	driver->asked_pid = pid;
	driver->asked_start_ticks = start_ticks;
	driver->asked_count++;
	return driver->answer;
}

static uint64_t own_start_ticks(void)
{
	uint64_t ticks = 0;

	assert_true(stasis_process_start_ticks(getpid(), &ticks));
	return ticks;
}

static void garbage_is_removed_and_nothing_else(void **state)
{
	static const struct stasis_image_gc_options options = {.is_dry_run = false};
	const char *folder = t_image_folder();
	const char *path = t_image_path(folder, "image");
	CLEANUP(collected) struct collected found = {0};

	(void)state;
	/* A process of that pid lives, but started at another time. */
	partial_leave(path, getpid(), own_start_ticks() + 1);
	t_image_publish(path);
	assert_int_equal(mkdir(t_image_path(folder, "other.partial-123"), 0700), 0);
	assert_int_equal(mkdir(t_image_path(folder, ".partial-0123456789abcdef"), 0700), 0);
	assert_int_equal(mkdir(t_image_path(folder, "x.partial-0123456789abcdeF"), 0700), 0);
	assert_int_equal(symlink(path, t_image_path(folder, "l.partial-0123456789abcdef")), 0);
	t_file_store(folder, "f.partial-0123456789abcdef", "x", 1);
	assert_int_equal(t_folder_count(folder, ""), 7);
	collect(folder, &options, &found);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.partials[0].state, STASIS_IMAGE_PARTIAL_GARBAGE);
	assert_true(found.partials[0].was_removed);
	assert_true(found.partials[0].bytes > 3 * T_IMAGE_CHUNK_BYTES);
	assert_int_equal(t_folder_count(folder, "image.partial-"), 0);
	assert_int_equal(t_folder_count(folder, ""), 6);
	t_image_accepted(path);
}

static void a_dry_run_removes_nothing(void **state)
{
	static const struct stasis_image_gc_options options = {.is_dry_run = true,
							       .can_remove_unjudged = true};
	const char *folder = t_image_folder();
	CLEANUP(collected) struct collected found = {0};

	(void)state;
	partial_leave(t_image_path(folder, "image"), 1, 1);
	collect(folder, &options, &found);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.partials[0].state, STASIS_IMAGE_PARTIAL_GARBAGE);
	assert_false(found.partials[0].was_removed);
	assert_int_equal(t_folder_count(folder, "image.partial-"), 1);
}

static void the_only_copy_of_a_suspended_process_stays(void **state)
{
	struct driver driver = {.answer = true};
	const struct stasis_image_gc_options options = {
		.can_remove_unjudged = true,
		.is_still_suspended = driver_ask,
		.context = &driver,
	};
	const char *folder = t_image_folder();
	CLEANUP(collected) struct collected suspended = {0};
	CLEANUP(collected) struct collected running = {0};

	(void)state;
	partial_leave(t_image_path(folder, "image"), getpid(), own_start_ticks());
	collect(folder, &options, &suspended);
	assert_int_equal(suspended.count, 1);
	assert_int_equal(suspended.partials[0].state, STASIS_IMAGE_PARTIAL_SUSPENDED);
	assert_int_equal(suspended.partials[0].pid, getpid());
	assert_false(suspended.partials[0].was_removed);
	assert_int_equal(driver.asked_pid, getpid());
	assert_int_equal(driver.asked_start_ticks, own_start_ticks());
	/* Process 1234 of the fixture is dead or another one: nobody is asked about it. */
	assert_int_equal(driver.asked_count, 1);
	driver.answer = false;
	collect(folder, &options, &running);
	assert_true(running.partials[0].was_removed);
	assert_int_equal(t_folder_count(folder, ""), 0);
}

static void without_a_driver_a_living_process_counts_as_suspended(void **state)
{
	static const struct stasis_image_gc_options options = {.can_remove_unjudged = true};
	const char *folder = t_image_folder();
	CLEANUP(collected) struct collected found = {0};

	(void)state;
	partial_leave(t_image_path(folder, "image"), getpid(), own_start_ticks());
	collect(folder, &options, &found);
	assert_int_equal(found.partials[0].state, STASIS_IMAGE_PARTIAL_SUSPENDED);
	assert_int_equal(t_folder_count(folder, "image.partial-"), 1);
}

static void a_running_capture_stays(void **state)
{
	static const struct stasis_image_gc_options options = {.can_remove_unjudged = true};
	const char *folder = t_image_folder();
	const char *path = t_image_path(folder, "image");
	struct stasis_image_writer *writer = t_image_filled(path);
	CLEANUP(collected) struct collected found = {0};
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	collect(folder, &options, &found);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.partials[0].state, STASIS_IMAGE_PARTIAL_RUNNING);
	assert_int_equal(found.partials[0].pid, getpid());
	assert_false(found.partials[0].was_removed);
	assert_done(stasis_image_writer_seal(writer, &err), &err);
	assert_done(stasis_image_writer_stage(writer, &err), &err);
	assert_done(stasis_image_writer_publish(writer, &err), &err);
	stasis_image_writer_close(writer);
	t_image_accepted(path);
}

/* A capturer that was killed and not yet reaped lives no more. */
static void a_dead_capturers_zombie_does_not_count(void **state)
{
	struct stasis_image_owner_process process = {0};
	int ready[2];
	char byte = 0;
	siginfo_t ended;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)close(ready[1]);
		_exit(read(ready[0], &byte, 1) == 0 ? 0 : 1);
	}
	(void)close(ready[0]);
	process.pid = child;
	assert_true(stasis_process_start_ticks(child, &process.start_ticks));
	assert_true(stasis_image_owner_process_lives(&process));
	(void)close(ready[1]);
	assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
	assert_false(stasis_image_owner_process_lives(&process));
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(stasis_image_owner_process_lives(&process));
}

/* Replaces one text of a partial's owner record by another of the same length. */
static void owner_change(const char *folder, const char *key)
{
	CLEANUP(free) char *text = NULL;
	CLEANUP(dir) DIR *dir = opendir(folder);
	const char *partial = NULL;
	size_t bytes = 0;
	char *at;

	assert_non_null(dir);
	for (struct dirent *entry = stasis_dir_next(dir); entry; entry = stasis_dir_next(dir)) {
		if (strstr(entry->d_name, ".partial-"))
			partial = t_image_path(folder, entry->d_name);
	}
	assert_non_null(partial);
	text = t_file_load(partial, "owner.json", &bytes);
	at = strstr(text, key);
	assert_non_null(at);
	at += strlen(key) + strlen("\": \"");
	*at = *at == 'X' ? 'Y' : 'X';
	t_file_store(partial, "owner.json", text, bytes);
}

static void unjudged_stays(const char *folder, enum stasis_image_partial_state wanted)
{
	static const struct stasis_image_gc_options careful = {.can_remove_unjudged = false};
	static const struct stasis_image_gc_options forced = {.can_remove_unjudged = true};
	CLEANUP(collected) struct collected kept = {0};
	CLEANUP(collected) struct collected removed = {0};

	collect(folder, &careful, &kept);
	assert_int_equal(kept.count, 1);
	assert_int_equal(kept.partials[0].state, wanted);
	assert_false(kept.partials[0].was_removed);
	collect(folder, &forced, &removed);
	assert_int_equal(removed.partials[0].state, wanted);
	assert_true(removed.partials[0].was_removed);
	assert_int_equal(t_folder_count(folder, ""), 0);
}

static void what_cannot_be_judged_stays(void **state)
{
	static const char *const foreign[] = {"boot_id", "pid_namespace"};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(foreign); i++) {
		const char *folder = t_image_folder();

		partial_leave(t_image_path(folder, "image"), 1, 1);
		owner_change(folder, foreign[i]);
		unjudged_stays(folder, STASIS_IMAGE_PARTIAL_FOREIGN);
	}
}

static void damaged_owner_records_are_unknown(void **state)
{
#define OWNER(version, capturer, processes)                                                        \
	"{\"format\":\"stasis-partial\",\"format_version\":" version                               \
	",\"boot_id\":\"b\",\"pid_namespace\":\"p\",\"capturer\":" capturer                        \
	",\"processes\":" processes "}"
#define CAPTURER "{\"pid\":1,\"start_ticks\":0}"
	static const char *const records[] = {
		"",
		"{}",
		"[]",
		"{\"format\": \"stasis-partial\"}",
		"\x01",
		OWNER("2", CAPTURER, "[]"),
		OWNER("\"1\"", CAPTURER, "[]"),
		OWNER("1", "null", "[]"),
		OWNER("1", "{\"pid\":0,\"start_ticks\":0}", "[]"),
		OWNER("1", CAPTURER, "{}"),
		OWNER("1", CAPTURER, "[1]"),
		OWNER("1", CAPTURER, "[{\"pid\":1}]"),
		OWNER("1", CAPTURER, "[],\"processes\":[]"),
		OWNER("1", CAPTURER, "[],\"more\":1"),
		OWNER("1", CAPTURER, "[]") "]",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(records); i++) {
		const char *folder = t_image_folder();
		const char *partial = t_image_path(folder, "i.partial-0123456789abcdef");

		assert_int_equal(mkdir(partial, 0700), 0);
		t_file_store(partial, "owner.json", records[i], strlen(records[i]));
		unjudged_stays(folder, STASIS_IMAGE_PARTIAL_UNKNOWN);
	}
}

static void one_without_a_record_is_unknown_unless_empty(void **state)
{
	static const struct stasis_image_gc_options careful = {.can_remove_unjudged = false};
	const char *folder = t_image_folder();
	const char *partial = t_image_path(folder, "i.partial-0123456789abcdef");
	CLEANUP(collected) struct collected empty = {0};
	CLEANUP(collected) struct collected begun = {0};

	(void)state;
	assert_int_equal(mkdir(partial, 0700), 0);
	t_file_store(partial, "photo.jpg", "x", 1);
	unjudged_stays(folder, STASIS_IMAGE_PARTIAL_UNKNOWN);
	assert_int_equal(mkdir(partial, 0700), 0);
	collect(folder, &careful, &empty);
	assert_true(empty.partials[0].was_removed);
	/* Killed while the first owner record was written. */
	assert_int_equal(mkdir(partial, 0700), 0);
	t_file_store(partial, ".owner.json-01234567", "{", 1);
	collect(folder, &careful, &begun);
	assert_true(begun.partials[0].was_removed);
}

/* As another user: 0 where the one partial was left alone in the wanted state. */
static int child_sees(const char *folder, enum stasis_image_partial_state wanted)
{
	static const struct stasis_image_gc_options options = {.is_dry_run = false};
	struct collected found = {0};
	struct stasis_error err = STASIS_ERROR_INIT;

	if (chdir(folder) != 0 || setresuid(65534, 65534, 65534) != 0)
		return 2;
	if (stasis_image_gc(".", &options, &found.partials, &found.count, &err) != 0)
		return 3;
	if (found.count != 1 || found.partials[0].was_removed)
		return 4;
	return found.partials[0].state == wanted ? 0 : 5;
}

static void other_users_partials_are_left_alone(void **state)
{
	/* One that may not be looked into, and one that may. */
	static const struct {
		mode_t mode;
		enum stasis_image_partial_state wanted;
	} cases[] = {
		{0700, STASIS_IMAGE_PARTIAL_UNKNOWN},
		{0777, STASIS_IMAGE_PARTIAL_FOREIGN},
	};
	const char *folder = t_image_folder();
	const char *partial = t_image_path(folder, "i.partial-0123456789abcdef");

	(void)state;
	if (geteuid() != 0)
		skip();
	/* Empty: of one's own it would be garbage. */
	assert_int_equal(mkdir(partial, 0700), 0);
	assert_int_equal(chmod(folder, 0777), 0);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		int status = 0;
		pid_t child;

		assert_int_equal(chmod(partial, cases[i].mode), 0);
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
			_exit(child_sees(folder, cases[i].wanted));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	assert_int_equal(t_folder_count(folder, "i.partial-"), 1);
}

static void places_that_cannot_be_listed_are_named(void **state)
{
	static const struct stasis_image_gc_options options = {.is_dry_run = false};
	struct stasis_error err = STASIS_ERROR_INIT;
	struct collected found = {0};

	(void)state;
	assert_refused(
		stasis_image_gc("/nowhere/at/all", &options, &found.partials, &found.count, &err),
		&err, STASIS_REFUSED, "open the directory '/nowhere/at/all'");
	assert_null(found.partials);
	assert_int_equal(found.count, 0);
}

static void states_have_names(void **state)
{
	(void)state;
	assert_string_equal(stasis_image_partial_state_name(STASIS_IMAGE_PARTIAL_GARBAGE),
			    "garbage");
	assert_string_equal(stasis_image_partial_state_name(STASIS_IMAGE_PARTIAL_UNKNOWN),
			    "unknown");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage_is_removed_and_nothing_else),
		cmocka_unit_test(a_dry_run_removes_nothing),
		cmocka_unit_test(the_only_copy_of_a_suspended_process_stays),
		cmocka_unit_test(without_a_driver_a_living_process_counts_as_suspended),
		cmocka_unit_test(a_running_capture_stays),
		cmocka_unit_test(a_dead_capturers_zombie_does_not_count),
		cmocka_unit_test(what_cannot_be_judged_stays),
		cmocka_unit_test(damaged_owner_records_are_unknown),
		cmocka_unit_test(one_without_a_record_is_unknown_unless_empty),
		cmocka_unit_test(other_users_partials_are_left_alone),
		cmocka_unit_test(places_that_cannot_be_listed_are_named),
		cmocka_unit_test(states_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
