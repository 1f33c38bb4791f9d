/*
 * Description: whatever system call of ours fails, stops half way or is the last one before a SIGKILL, there
 * is afterwards either a whole image or none, a partial that may be the only copy is still there and can
 * be restored from, and the next capture works.
 *
 * Every passage through every fault point is tried with every kind of fault. The plan of faults is read once
 * a process, so that each attempt, and each look at what it left, is a child of its own.
 */

#include "unit.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "image_fixture.h"

/* How an attempt ended. */
enum outcome {
	OUTCOME_PUBLISHED,
	OUTCOME_REFUSED, /* and removed */
	OUTCOME_KEPT,    /* refused after it was staged, and kept */
	OUTCOME_BROKEN,  /* it did something that it must not */
	OUTCOME_KILLED,
};

struct point {
	const char *name;
	const char *kinds; /* beside EIO and kill */
	bool can_be_interrupted;
};

/* All points that a capture passes, ours and those of the helpers that it uses. */
static const struct point points[] = {
	{"image_mkdir", "ENOSPC", true},       {"image_open", "EMFILE", true},
	{"image_truncate", "ENOSPC", true},    {"image_sync", "ENOSPC", true},
	{"image_sums_write", "ENOSPC", true},  {"image_shared_write", "ENOSPC", true},
	{"image_owner_write", "ENOSPC", true}, {"image_manifest_write", "ENOSPC", true},
	{"image_rename", "EACCES", true},      {"image_parent_sync", "ENOSPC", true},
	{"file_write", "ENOSPC", true},        {"file_sync", "ENOSPC", true},
	{"file_rename", "EACCES", false},      {"dir_sync", "EIO", true},
	{"dir_rename", "EACCES", false},
};

struct attempt {
	const char *folder;
	const char *path;
	const char *log;
	char fault[64];
};

/* One capture as the library makes it; the error must be one of a target that runs on. */
static int capture(const char *path)
{
	static const struct stasis_image_origin origin = {.tool_version = "0.1.0"};
	static const char text[] = "{}";
	const struct stasis_image_process process = t_image_process(1234);
	const struct stasis_image_extent_plan plan = t_image_plan(0);
	const struct stasis_image_gpu gpu = t_image_gpu(0);
	CLEANUP(image_writer) struct stasis_image_writer *writer = NULL;
	struct stasis_image_output *output = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	uint32_t index = 0;

	if (stasis_image_writer_open(path, &origin, &writer, &err) != 0 ||
	    stasis_image_writer_gpu_add(writer, &gpu, &err) != 0 ||
	    stasis_image_writer_process_add(writer, &process, &index, &err) != 0 ||
	    stasis_image_writer_extent_add(writer, &plan, &output, &err) != 0 ||
	    stasis_image_writer_shared_set(writer, text, sizeof(text) - 1, &err) != 0)
		return err.status == STASIS_REFUSED ? OUTCOME_REFUSED : OUTCOME_BROKEN;
	t_image_fill(output);
	if (stasis_image_writer_seal(writer, &err) != 0 ||
	    stasis_image_writer_stage(writer, &err) != 0) {
		if (stasis_image_writer_publish(writer, NULL) == 0)
			return OUTCOME_BROKEN;
		return err.status == STASIS_REFUSED ? OUTCOME_REFUSED : OUTCOME_BROKEN;
	}
	if (stasis_image_writer_publish(writer, &err) == 0)
		return OUTCOME_PUBLISHED;
	stasis_image_writer_keep(writer, &err);
	if (!strstr(err.text, stasis_image_writer_partial_path(writer)))
		return OUTCOME_BROKEN;
	return err.status == STASIS_REFUSED ? OUTCOME_KEPT : OUTCOME_BROKEN;
}

static int attempt_child(const struct attempt *attempt)
{
	if (setenv("STASIS_FAULT", attempt->fault, 1) != 0 ||
	    setenv("STASIS_FAULT_LOG", attempt->log, 1) != 0)
		return OUTCOME_BROKEN;
	return capture(attempt->path);
}

static int image_opens(const char *path, bool is_partial)
{
	const struct stasis_image_open_options options = {.is_partial = is_partial};
	struct stasis_image *image = NULL;
	int result = stasis_image_open(path, &options, &image, NULL);

	stasis_image_close(image);
	return result;
}

/* The partial's path, or NULL. */
static const char *partial_find(const char *folder)
{
	CLEANUP(dir) DIR *dir = opendir(folder);

	for (struct dirent *entry = dir ? stasis_dir_next(dir) : NULL; entry;
	     entry = stasis_dir_next(dir)) {
		if (strstr(entry->d_name, ".partial-"))
			return t_image_path(folder, entry->d_name);
	}
	return NULL;
}

/* After a SIGKILL: gc finds nobody who needs the partial, and takes it away. */
static bool gc_cleans(const char *folder)
{
	static const struct stasis_image_gc_options options = {.is_dry_run = false};
	struct collected {
		struct stasis_image_partial *partials;
		size_t count;
	} found = {0};
	int result = stasis_image_gc(folder, &options, &found.partials, &found.count, NULL);

	free(found.partials);
	return result == 0 && !partial_find(folder);
}

/* What must hold in the folder, by how the attempt ended; NULL, or what does not. */
static const char *verdict(const struct attempt *attempt, enum outcome outcome)
{
	const char *partial = partial_find(attempt->folder);
	struct stat info;
	bool is_there = lstat(attempt->path, &info) == 0;

	if (outcome == OUTCOME_BROKEN)
		return "the attempt broke its word";
	if (is_there && image_opens(attempt->path, false) != 0)
		return "an image is there that does not validate";
	if (is_there != (outcome == OUTCOME_PUBLISHED) && outcome != OUTCOME_KILLED)
		return is_there ? "refused, and yet there is an image" : "published, but not there";
	if (partial && image_opens(partial, false) == 0)
		return "a partial passes as an image";
	if (outcome == OUTCOME_KEPT && (!partial || image_opens(partial, true) != 0))
		return "the only copy is not there or cannot be read";
	if ((outcome == OUTCOME_PUBLISHED || outcome == OUTCOME_REFUSED) && partial)
		return "a partial was left";
	if (!gc_cleans(attempt->folder))
		return "gc did not clean up";
	/* The next run works, there too where none was published. */
	if (capture(is_there ? t_image_path(attempt->folder, "next") : attempt->path) !=
	    OUTCOME_PUBLISHED)
		return "the next capture failed";
	return NULL;
}

static int verdict_child(const struct attempt *attempt, enum outcome outcome)
{
	const char *wrong = verdict(attempt, outcome);

	if (wrong)
		print_error("%s: outcome %d: %s\n", attempt->fault, (int)outcome, wrong);
	return wrong ? 1 : 0;
}

static int child_wait(pid_t child)
{
	int status = 0;

	assert_true(child >= 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGKILL ? OUTCOME_KILLED : OUTCOME_BROKEN;
	return WEXITSTATUS(status);
}

/* Returns how it ended, after the verdict; *ret_was_reached tells whether the fault came. */
static enum outcome attempt_run(const char *fault, bool *ret_was_reached)
{
	const char *folder = t_image_folder();
	struct attempt attempt = {
		.folder = t_image_path(folder, "place"),
		.path = t_image_path(folder, "place/image"),
		.log = t_image_path(folder, "log"),
	};
	enum outcome outcome;
	pid_t child;

	(void)snprintf(attempt.fault, sizeof(attempt.fault), "%s", fault);
	assert_int_equal(mkdir(attempt.folder, 0700), 0);
	child = fork();
	if (child == 0)
		_exit(attempt_child(&attempt));
	outcome = (enum outcome)child_wait(child);
	child = fork();
	if (child == 0)
		_exit(verdict_child(&attempt, outcome));
	if (child_wait(child) != 0)
		fail_msg("%s: see above", fault);
	*ret_was_reached = access(attempt.log, F_OK) == 0;
	return outcome;
}

/* Tries one kind at the first, second, … passage, until the point is not passed so often. */
static unsigned int passages_try(const struct point *point, const char *kind)
{
	for (unsigned int passage = 1;; passage++) {
		char fault[64];
		bool was_reached = false;
		enum outcome outcome;

		(void)snprintf(fault, sizeof(fault), "%s:%u=%s", point->name, passage, kind);
		outcome = attempt_run(fault, &was_reached);
		if (!was_reached) {
			assert_int_equal(outcome, OUTCOME_PUBLISHED);
			return passage - 1;
		}
		if (strcmp(kind, "kill") == 0)
			assert_int_equal(outcome, OUTCOME_KILLED);
		else if (strcmp(kind, "EINTR") == 0 || strcmp(kind, "short") == 0)
			assert_int_equal(outcome, OUTCOME_PUBLISHED);
		else if (outcome != OUTCOME_REFUSED && outcome != OUTCOME_KEPT)
			fail_msg("%s: outcome %d", fault, (int)outcome);
	}
}

static void every_failure_leaves_a_whole_image_or_none(void **state)
{
	unsigned int rows = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(points); i++) {
		unsigned int passages = passages_try(&points[i], "EIO");

		if (passages == 0)
			fail_msg("%s is never passed", points[i].name);
		assert_int_equal(passages_try(&points[i], points[i].kinds), passages);
		rows += 2 * passages;
	}
	print_message("%u failures\n", rows);
}

static void every_kill_leaves_a_whole_image_or_none(void **state)
{
	unsigned int rows = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(points); i++)
		rows += passages_try(&points[i], "kill");
	print_message("%u kills\n", rows);
}

static void interrupts_and_short_writes_change_nothing(void **state)
{
	static const struct point writes[] = {{"image_sums_write", NULL, true},
					      {"file_write", NULL, true}};
	unsigned int rows = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(points); i++) {
		if (points[i].can_be_interrupted)
			rows += passages_try(&points[i], "EINTR");
	}
	for (size_t i = 0; i < ARRAY_COUNT(writes); i++)
		rows += passages_try(&writes[i], "short");
	print_message("%u interrupts\n", rows);
}

/* A child that looks at a good image under a fault; its exit status is the status of the error. */
static int reading_status(const char *path, const char *fault)
{
	pid_t child = fork();

	if (child == 0) {
		struct stasis_error err = STASIS_ERROR_INIT;
		struct stasis_image *image = NULL;

		if (setenv("STASIS_FAULT", fault, 1) != 0)
			_exit(99);
		_exit(stasis_image_open(path, NULL, &image, &err) == 0 ? 0 : (int)err.status);
	}
	return child_wait(child);
}

static void a_read_that_fails_refuses_the_image(void **state)
{
	static const struct {
		const char *fault;
		int status;
	} cases[] = {
		{"none=EIO", STASIS_OK},
		{"image_read_open:1=EIO", STASIS_BAD_IMAGE},
		{"image_read_open:4=EACCES", STASIS_BAD_IMAGE},
		{"image_read_open:2=EMFILE", STASIS_REFUSED},
		{"image_read_open:5=EACCES", STASIS_BAD_IMAGE},
		/* Manifest, two stripes, sums, shared.json: no sixth. */
		{"image_read_open:6=EIO", STASIS_OK},
		{"image_read:1=EIO", STASIS_BAD_IMAGE},
		{"image_read:2=EIO", STASIS_BAD_IMAGE},
		{"image_read:3=EIO", STASIS_BAD_IMAGE},
		{"image_read:1=EINTR", STASIS_OK},
		{"image_read:*=short", STASIS_OK},
	};
	const char *path = t_image_path(t_image_folder(), "image");
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(capture(path) == OUTCOME_PUBLISHED ? 0 : 1);
	assert_int_equal(child_wait(child), 0);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		if (reading_status(path, cases[i].fault) != cases[i].status)
			fail_msg("%s: not status %d", cases[i].fault, cases[i].status);
	}
}

/* Two partials, of which the first cannot be removed; the second goes all the same. */
static int gc_child(const char *folder)
{
	static const struct stasis_image_gc_options options = {.is_dry_run = false};
	struct stasis_image_partial *partials = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t count = 0;

	if (setenv("STASIS_FAULT", "image_gc_remove:1=EACCES", 1) != 0)
		return 2;
	if (stasis_image_gc(folder, &options, &partials, &count, &err) == 0 || count != 2)
		return 3;
	if (err.os_errno != EACCES || !strstr(err.text, partials[0].name))
		return 4;
	return !partials[0].was_removed && partials[1].was_removed ? 0 : 5;
}

static void gc_goes_on_after_one_that_it_cannot_remove(void **state)
{
	const char *folder = t_image_folder();
	pid_t child;

	(void)state;
	assert_int_equal(mkdir(t_image_path(folder, "a.partial-0123456789abcdef"), 0700), 0);
	assert_int_equal(mkdir(t_image_path(folder, "b.partial-0123456789abcdef"), 0700), 0);
	child = fork();
	if (child == 0)
		_exit(gc_child(folder));
	assert_int_equal(child_wait(child), 0);
	assert_int_equal(t_folder_count(folder, ""), 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failure_leaves_a_whole_image_or_none),
		cmocka_unit_test(every_kill_leaves_a_whole_image_or_none),
		cmocka_unit_test(interrupts_and_short_writes_change_nothing),
		cmocka_unit_test(a_read_that_fails_refuses_the_image),
		cmocka_unit_test(gc_goes_on_after_one_that_it_cannot_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
