/*
 * Description: every system call of the transfer engine may fail, at the first, a middle and the last chunk, in
 * every store: the error names the file, says which side it was, leaves nothing behind, and what was to be
 * saved can still be saved into host memory.
 *
 * A process reads its fault plan once, so every case runs in a child of its own; this process passes no fault
 * point.
 */

#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "transfer_rig.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "transfer/codec.h"

#define KIB64 STASIS_CHUNK_BYTES_MIN

/* The plain shape has 41 chunks, of which 31 are stored, each by one call. */
#define PASSAGES "1", "16", "31"

struct fault_case {
	enum stasis_transfer_store store;
	int code;          /* 0: the fault is to be survived */
	const char *codec; /* NULL: nothing is compressed */
};

/* 0: all as it should be; else the line where it was not. */
typedef int case_function(const struct fault_case *fault);

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return __LINE__;                                                           \
	} while (0)

NORETURN static void case_main(const char *plan, const char *log, case_function *body,
			       const struct fault_case *fault)
{
	int line;

	(void)alarm(20);
	(void)setenv("STASIS_FAULT", plan, 1);
	(void)setenv("STASIS_FAULT_LOG", log, 1);
	line = body(fault);
	if (line)
		(void)dprintf(STDERR_FILENO, "plan '%s', store '%s': line %d does not hold\n", plan,
			      stasis_transfer_store_name(fault->store), line);
	_exit(line != 0);
}

/* The part of all cases that is drawn; slow builds run a part. */
static double fraction = 1;
static uint64_t draw_state = 1;

static bool is_drawn(void)
{
	draw_state = draw_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (double)(draw_state >> 11) / (double)(UINT64_C(1) << 53) < fraction;
}

static void draw_prepare(void)
{
	const char *fraction_text = secure_getenv("STASIS_TEST_FRACTION");
	const char *seed_text = secure_getenv("STASIS_TEST_SEED");

	if (fraction_text)
		fraction = strtod(fraction_text, NULL);
	if (seed_text)
		draw_state = strtoull(seed_text, NULL, 10) * 2 + 1;
	print_message("fraction %.2f of the cases, seed %s\n", fraction,
		      seed_text ? seed_text : "none");
}

/* Runs `body` in a child under this plan, if the case is drawn; the fault must have been reached. */
static void planned_run(const char *plan, case_function *body, const struct fault_case *fault)
{
	const char *folder = secure_getenv("TMPDIR");
	char log[4096];
	int log_fd;
	int status = 0;
	char byte;
	pid_t pid;

	if (!is_drawn())
		return;
	(void)snprintf(log, sizeof(log), "%s/transfer-fault-XXXXXX", folder ? folder : "/tmp");
	log_fd = mkstemp(log);
	assert_true(log_fd >= 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		case_main(plan, log, body, fault);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(log_fd, &byte, 1), 1);
	assert_int_equal(unlink(log) + close(log_fd), 0);
}

static struct t_rig *rig_make(const struct fault_case *fault)
{
	struct stasis_transfer_options options = {
		.store = fault->store,
		.chunk_bytes = KIB64,
		.workers = 3,
		.codec = fault->codec ? stasis_transfer_codec_find(fault->codec) : NULL,
	};
	struct t_shape shape = t_shape_plain;
	CLEANUP(fd) int dir = -1;
	struct t_rig *rig;

	if (fault->store == STASIS_TRANSFER_STORE_DIRECT)
		dir = unit_folder_make();
	rig = t_rig_new(&options);
	shape.packed_every = fault->codec ? 2 : 0;
	(void)t_rig_extent_add(rig, &shape, dir);
	/* The rig counted the folder's descriptor. */
	rig->fd_count -= dir >= 0;
	return rig;
}

/* A destination that failed is not the end: the same bytes go into host memory and come back. */
static int redirected(struct t_rig *rig)
{
	struct stasis_transfer_options options = {.driver = rig->driver, .workers = 2};
	struct stasis_transfer_extent *extent = &rig->extents[0];
	struct stasis_transfer_memory memory = STASIS_TRANSFER_MEMORY_EMPTY;
	struct stasis_transfer *engine = rig->engine;

	if (stasis_transfer_new(&options, &rig->engine, NULL) != 0 ||
	    stasis_transfer_memory_open(
		    stasis_transfer_reserve_bytes(extent->bytes, extent->chunk_bytes, 1, 0),
		    &memory, NULL) != 0)
		return -1;
	for (uint32_t s = 1; s < extent->stripe_count; s++)
		(void)close(extent->stripe_fds[s]);
	extent->stripe_count = 1;
	extent->memory = &memory;
	t_rig_round_trip(rig);
	stasis_transfer_memory_close(&memory);
	stasis_transfer_free(engine);
	return 0;
}

static int save_fails(const struct fault_case *fault)
{
	struct t_rig *rig = rig_make(fault);
	struct stasis_error err = STASIS_ERROR_INIT;

	EXPECT(t_rig_run(rig, NULL, &err) == -1);
	EXPECT(err.status == STASIS_REFUSED && err.os_errno == fault->code);
	EXPECT(rig->result.failed_side == STASIS_TRANSFER_FILE_SIDE);
	EXPECT(rig->result.pinned_leaked_bytes == 0);
	EXPECT(strstr(err.text, "'e0.") || strstr(err.text, "'extent'"));
	EXPECT(redirected(rig) == 0);
	t_rig_free(rig);
	return 0;
}

static int round_trip_survives(const struct fault_case *fault)
{
	struct t_rig *rig = rig_make(fault);

	t_rig_round_trip(rig);
	t_rig_free(rig);
	return 0;
}

static int load_fails(const struct fault_case *fault)
{
	struct t_rig *rig = rig_make(fault);
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error none = STASIS_ERROR_INIT;

	EXPECT(t_rig_run(rig, NULL, &none) == 0);
	t_rig_direct(rig, STASIS_TRANSFER_LOAD);
	EXPECT(t_rig_run(rig, NULL, &err) == -1);
	EXPECT(err.status == STASIS_REFUSED && err.os_errno == fault->code);
	EXPECT(strstr(err.text, "read 'e0."));
	EXPECT(rig->result.failed_side == STASIS_TRANSFER_FILE_SIDE);
	EXPECT(!rig->result.has_damage);
	/* What failed once may work the next time. */
	t_rig_spoil(rig);
	EXPECT(t_rig_run(rig, NULL, &none) == 0);
	EXPECT(t_rig_holds(rig, 0));
	t_rig_free(rig);
	return 0;
}

static int verify_fails(const struct fault_case *fault)
{
	struct t_rig *rig = rig_make(fault);
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error none = STASIS_ERROR_INIT;

	EXPECT(t_rig_run(rig, NULL, &none) == 0);
	EXPECT(stasis_transfer_verify(rig->extents, 1, NULL, &rig->result, &err) == -1);
	EXPECT(err.status == STASIS_REFUSED && err.os_errno == fault->code);
	EXPECT(!rig->result.has_damage);
	t_rig_free(rig);
	return 0;
}

static int sync_fails(const struct fault_case *fault)
{
	struct t_rig *rig = rig_make(fault);
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error none = STASIS_ERROR_INIT;

	EXPECT(t_rig_run(rig, NULL, &none) == 0);
	EXPECT(stasis_transfer_sync(rig->extents, 1, NULL, &rig->result, &err) == -1);
	EXPECT(err.status == STASIS_REFUSED && err.os_errno == fault->code);
	EXPECT(rig->result.failed_side == STASIS_TRANSFER_FILE_SIDE);
	EXPECT(strstr(err.text, "'e0."));
	t_rig_free(rig);
	return 0;
}

static int preparation_fails(const struct fault_case *fault)
{
	struct t_rig *rig = rig_make(fault);
	struct stasis_error err = STASIS_ERROR_INIT;

	EXPECT(stasis_transfer_prepare(rig->engine, t_fake_context(0), 0, &err) == -1);
	EXPECT(err.status == STASIS_REFUSED);
	EXPECT(t_fake_pinned_bytes() == 0);
	t_rig_free(rig);
	return 0;
}

/* Refused ahead, and tried again when it is needed. */
static int packing_fails(const struct fault_case *fault)
{
	struct t_rig *rig = rig_make(fault);
	struct stasis_error err = STASIS_ERROR_INIT;

	EXPECT(stasis_transfer_prepare(rig->engine, t_fake_context(0), 0, &err) == -1);
	EXPECT(err.status == STASIS_REFUSED && err.os_errno == fault->code);
	EXPECT(strstr(err.text, "memory to compress"));
	t_rig_round_trip(rig);
	t_rig_free(rig);
	return 0;
}

static int reserve_fails(const struct fault_case *fault)
{
	struct stasis_transfer_memory memory = STASIS_TRANSFER_MEMORY_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;

	EXPECT(stasis_transfer_memory_open(KIB64, &memory, &err) == -1);
	EXPECT(err.status == STASIS_REFUSED && err.os_errno == fault->code);
	EXPECT(memory.fd == -1);
	return 0;
}

/* A storm without end is not waited out: the deadline ends it. */
static int endless_storm_times_out(const struct fault_case *fault)
{
	struct t_rig *rig = rig_make(fault);
	struct stasis_transfer_watch watch = {.deadline_ns = STASIS_NO_DEADLINE};
	struct stasis_error err = STASIS_ERROR_INIT;

	EXPECT(stasis_transfer_prepare(rig->engine, t_fake_context(0), 0, &err) == 0);
	watch.deadline_ns = stasis_deadline_after_ns(500 * STASIS_NS_PER_MS);
	EXPECT(t_rig_run(rig, &watch, &err) == -1);
	EXPECT(rig->result.is_timed_out);
	t_rig_free(rig);
	return 0;
}

static const enum stasis_transfer_store stores[] = {
	STASIS_TRANSFER_STORE_STRIPES,
	STASIS_TRANSFER_STORE_MAPPING,
	STASIS_TRANSFER_STORE_DIRECT,
	STASIS_TRANSFER_STORE_PLAIN,
};

static const char *const passages[] = {PASSAGES};

/* One case for each store and each of three passages through `point`. */
static void run_everywhere(const char *point, const char *kind, int code, case_function *body)
{
	for (size_t s = 0; s < ARRAY_COUNT(stores); s++) {
		struct fault_case fault = {.store = stores[s], .code = code};

		for (size_t i = 0; i < ARRAY_COUNT(passages); i++) {
			char plan[64];

			(void)snprintf(plan, sizeof(plan), "%s:%s=%s", point, passages[i], kind);
			planned_run(plan, body, &fault);
		}
	}
}

static void failing_writes_are_redirected(void **state)
{
	(void)state;
	run_everywhere("transfer_write", "ENOSPC", ENOSPC, save_fails);
	run_everywhere("transfer_write", "EIO", EIO, save_fails);
}

static void short_and_interrupted_writes_are_survived(void **state)
{
	(void)state;
	run_everywhere("transfer_write", "short", 0, round_trip_survives);
	run_everywhere("transfer_write", "EINTR", 0, round_trip_survives);
}

static void failing_reads_are_named(void **state)
{
	(void)state;
	run_everywhere("transfer_read", "EIO", EIO, load_fails);
	run_everywhere("transfer_read", "EIO", EIO, verify_fails);
}

static void short_and_interrupted_reads_are_survived(void **state)
{
	(void)state;
	run_everywhere("transfer_read", "short", 0, round_trip_survives);
	run_everywhere("transfer_read", "EINTR", 0, round_trip_survives);
}

static void storms_are_survived(void **state)
{
	static const char write_storm[] =
		"transfer_write:7=EINTR,transfer_write:8=EINTR,transfer_write:9=EINTR,"
		"transfer_write:10=short,transfer_write:11=short,transfer_write:12=EINTR";
	static const char read_storm[] =
		"transfer_read:7=EINTR,transfer_read:8=EINTR,transfer_read:9=EINTR,"
		"transfer_read:10=short,transfer_read:11=short,transfer_read:12=EINTR";

	(void)state;
	for (size_t s = 0; s < ARRAY_COUNT(stores); s++) {
		struct fault_case fault = {.store = stores[s]};

		planned_run(write_storm, round_trip_survives, &fault);
		planned_run(read_storm, round_trip_survives, &fault);
		planned_run("transfer_write:*=short", round_trip_survives, &fault);
		planned_run("transfer_write:*=EINTR", endless_storm_times_out, &fault);
	}
}

static void other_file_calls_fail_by_name(void **state)
{
	struct fault_case mapping = {.store = STASIS_TRANSFER_STORE_MAPPING, .code = ENOSPC};
	struct fault_case plain = {.store = STASIS_TRANSFER_STORE_PLAIN, .code = EIO};

	(void)state;
	planned_run("transfer_open=EIO", save_fails, &plain);
	planned_run("transfer_truncate:1=EIO", save_fails, &plain);
	planned_run("transfer_truncate:3=EIO", save_fails, &plain);
	planned_run("transfer_allocate:1=ENOSPC", save_fails, &mapping);
	planned_run("transfer_allocate:16=ENOSPC", save_fails, &mapping);
	planned_run("transfer_allocate:31=ENOSPC", save_fails, &mapping);
	planned_run("transfer_truncate:2=EINTR", round_trip_survives, &plain);
	planned_run("transfer_allocate:16=EINTR", round_trip_survives, &mapping);
	planned_run("transfer_sync:1=EIO", sync_fails, &plain);
	planned_run("transfer_sync:2=EIO", sync_fails, &plain);
	planned_run("transfer_sync:3=EIO", sync_fails, &plain);
}

static void want_of_memory_and_threads(void **state)
{
	struct fault_case fault = {.store = STASIS_TRANSFER_STORE_PLAIN, .code = ENOMEM};
	struct fault_case threads = {.store = STASIS_TRANSFER_STORE_PLAIN, .code = EAGAIN};

	(void)state;
	planned_run("transfer_alloc:*=ENOMEM", preparation_fails, &fault);
	planned_run("transfer_alloc:1=ENOMEM", round_trip_survives, &fault);
	planned_run("transfer_thread:*=EAGAIN", preparation_fails, &threads);
	planned_run("transfer_thread:1=EAGAIN", preparation_fails, &threads);
	planned_run("transfer_thread:2=EAGAIN", round_trip_survives, &threads);
	/* The first thread of the verification, which follows three workers. */
	planned_run("transfer_thread:4=EAGAIN", verify_fails, &threads);
	planned_run("transfer_buffer:1=ENOMEM", verify_fails, &fault);
	planned_run("transfer_reserve=ENOMEM", reserve_fails, &fault);
}

/* Chunks by turns compressed and not: the same faults, and want of memory for the codec. */
static void compressed_chunks_fail_as_others(void **state)
{
	static const char *const codecs[] = {"lz4", "zstd"};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(codecs) * ARRAY_COUNT(stores); i++) {
		struct fault_case fault = {.store = stores[i / ARRAY_COUNT(codecs)],
					   .codec = codecs[i % ARRAY_COUNT(codecs)]};

		planned_run("transfer_write:*=short", round_trip_survives, &fault);
		planned_run("transfer_read:*=short", round_trip_survives, &fault);
		planned_run("transfer_read:7=EINTR", round_trip_survives, &fault);
		fault.code = ENOSPC;
		planned_run("transfer_write:1=ENOSPC", save_fails, &fault);
		planned_run("transfer_write:16=ENOSPC", save_fails, &fault);
		fault.code = EIO;
		planned_run("transfer_read:16=EIO", load_fails, &fault);
		planned_run("transfer_read:16=EIO", verify_fails, &fault);
		fault.code = ENOMEM;
		planned_run("transfer_packing:1=ENOMEM", packing_fails, &fault);
		planned_run("transfer_packing:3=ENOMEM", packing_fails, &fault);
		/* The first thread of the verification, which follows three workers. */
		planned_run("transfer_packing:4=ENOMEM", verify_fails, &fault);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failing_writes_are_redirected),
		cmocka_unit_test(short_and_interrupted_writes_are_survived),
		cmocka_unit_test(failing_reads_are_named),
		cmocka_unit_test(short_and_interrupted_reads_are_survived),
		cmocka_unit_test(storms_are_survived),
		cmocka_unit_test(other_file_calls_fail_by_name),
		cmocka_unit_test(want_of_memory_and_threads),
		cmocka_unit_test(compressed_chunks_fail_as_others),
	};

	draw_prepare();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
