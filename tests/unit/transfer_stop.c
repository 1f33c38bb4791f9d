/*
 * Description: failing devices, cancelled and late transfers end with an error that says whose fault it was, and
 * with no thread, descriptor or pinned byte left that could be given back.
 */

#include "unit.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "transfer_rig.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"

#define KIB64 STASIS_CHUNK_BYTES_MIN

static void device_fault(const struct t_fake_faults *faults, bool is_load, bool is_leak,
			 CUresult result)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error none = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(NULL);

	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	assert_done(t_rig_run(rig, NULL, &none), &none);
	t_rig_direct(rig, is_load ? STASIS_TRANSFER_LOAD : STASIS_TRANSFER_SAVE);
	t_fake_set_faults(faults);
	assert_refused(t_rig_run(rig, NULL, &err), &err, STASIS_REFUSED, "GPU 0: copy chunk");
	assert_int_equal(err.cuda_result, result);
	assert_int_equal(rig->result.failed_side, STASIS_TRANSFER_DEVICE_SIDE);
	rig->leak_bytes = rig->result.pinned_leaked_bytes;
	assert_true((rig->leak_bytes > 0) == is_leak);
	/* The workers that are left do the work. */
	t_fake_set_faults(&(struct t_fake_faults){0});
	t_rig_round_trip(rig);
	t_rig_free(rig);
}

static void a_failing_copy_is_the_devices_fault(void **state)
{
	static const uint64_t places[] = {1, 20, 35};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
		struct t_fake_faults refused = {.copy_refused = places[i]};
		struct t_fake_faults unrecorded = {.record_refused = places[i]};
		struct t_fake_faults broken = {.copy_broken = places[i]};

		for (int is_load = 0; is_load < 2; is_load++) {
			device_fault(&refused, is_load, false, CUDA_ERROR_INVALID_VALUE);
			device_fault(&unrecorded, is_load, false, CUDA_ERROR_LAUNCH_FAILED);
			device_fault(&broken, is_load, true, CUDA_ERROR_ILLEGAL_ADDRESS);
		}
	}
}

/* Cancels when all is done but what the hung worker has in its two slots. */
static void cancel_at_the_rest(void *data, uint64_t done, uint64_t total)
{
	if (done + 2 * KIB64 >= total)
		atomic_store((atomic_bool *)data, true);
}

static void a_hung_copy_keeps_its_buffer(void **state)
{
	struct stasis_transfer_options options = {
		.chunk_bytes = KIB64,
		.workers = 2,
		.drain_ns = 30 * STASIS_NS_PER_MS,
	};
	atomic_bool cancel = false;
	struct stasis_transfer_watch watch = {
		.progress = cancel_at_the_rest,
		.progress_data = &cancel,
		.cancel = &cancel,
		.deadline_ns = STASIS_NO_DEADLINE,
	};
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error late = STASIS_ERROR_INIT;
	struct stasis_error gone = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(&options);

	(void)state;
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	t_fake_set_faults(&(struct t_fake_faults){.copy_hung = 1});
	assert_refused(t_rig_run(rig, &watch, &err), &err, STASIS_REFUSED, "cancelled");
	assert_int_equal(rig->result.failed_side, STASIS_TRANSFER_NO_SIDE);
	assert_true(rig->result.pinned_leaked_bytes == 2 * KIB64);
	/* The other worker goes on alone. */
	t_fake_set_faults(&(struct t_fake_faults){.copy_hung = 0});
	t_rig_round_trip(rig);
	assert_int_equal(rig->result.worker_count, 1);
	t_fake_set_faults(&(struct t_fake_faults){.copy_hung = 1});
	atomic_store(&cancel, false);
	watch.deadline_ns = stasis_deadline_after_ns(50 * STASIS_NS_PER_MS);
	assert_refused(t_rig_run(rig, &watch, &late), &late, STASIS_REFUSED, "the deadline passed");
	assert_true(rig->result.is_timed_out);
	assert_refused(t_rig_run(rig, NULL, &gone), &gone, STASIS_REFUSED, "no worker is left");
	assert_int_equal(rig->result.failed_side, STASIS_TRANSFER_DEVICE_SIDE);
	rig->leak_bytes = 4 * KIB64;
	t_rig_free(rig);
}

static void cancelled_at(struct t_rig *rig, const struct stasis_transfer_watch *watch,
			 atomic_bool *cancel, uint64_t copy)
{
	struct t_fake_faults faults = {.copy_cancels = copy, .cancel = cancel};
	struct stasis_error err = STASIS_ERROR_INIT;

	atomic_store(cancel, false);
	t_fake_set_faults(&faults);
	assert_refused(t_rig_run(rig, watch, &err), &err, STASIS_REFUSED, "cancelled");
	assert_true(rig->result.is_cancelled);
	assert_int_equal(rig->result.pinned_leaked_bytes, 0);
}

static void a_transfer_is_cancelled_at_every_point(void **state)
{
	atomic_bool cancel = false;
	struct stasis_transfer_watch watch = {.cancel = &cancel, .deadline_ns = STASIS_NO_DEADLINE};
	struct stasis_error none = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(NULL);

	(void)state;
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	assert_done(t_rig_run(rig, &watch, &none), &none);
	for (int is_load = 0; is_load < 2; is_load++) {
		t_rig_direct(rig, is_load ? STASIS_TRANSFER_LOAD : STASIS_TRANSFER_SAVE);
		for (uint64_t copy = 1; copy <= 41; copy++)
			cancelled_at(rig, &watch, &cancel, copy);
		atomic_store(&cancel, false);
		t_fake_set_faults(&(struct t_fake_faults){0});
		assert_done(t_rig_run(rig, &watch, &none), &none);
	}
	assert_true(t_rig_holds(rig, 0));
	t_rig_free(rig);
}

static void what_is_cancelled_before_does_not_begin(void **state)
{
	atomic_bool cancel = true;
	struct stasis_transfer_watch watch = {.cancel = &cancel, .deadline_ns = STASIS_NO_DEADLINE};
	struct stasis_error save = STASIS_ERROR_INIT;
	struct stasis_error verify = STASIS_ERROR_INIT;
	struct stasis_error sync = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(NULL);

	(void)state;
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	assert_refused(t_rig_run(rig, &watch, &save), &save, STASIS_REFUSED, "save: cancelled");
	assert_int_equal(t_fake_copy_count(), 0);
	assert_done(t_rig_run(rig, NULL, &(struct stasis_error)STASIS_ERROR_INIT),
		    &(struct stasis_error)STASIS_ERROR_INIT);
	assert_refused(stasis_transfer_verify(rig->extents, 1, &watch, &rig->result, &verify),
		       &verify, STASIS_REFUSED, "verify: cancelled");
	assert_true(rig->result.is_cancelled);
	assert_refused(stasis_transfer_sync(rig->extents, 1, &watch, &rig->result, &sync), &sync,
		       STASIS_REFUSED, "sync: cancelled");
	t_rig_free(rig);
}

static void a_late_transfer_ends(void **state)
{
	struct stasis_transfer_watch watch = {.deadline_ns = 1};
	struct stasis_error err = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(NULL);

	(void)state;
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	assert_refused(t_rig_run(rig, &watch, &err), &err, STASIS_REFUSED,
		       "save: the deadline passed");
	assert_true(rig->result.is_timed_out);
	t_rig_free(rig);
}

static void want_of_memory_makes_a_ring_smaller(void **state)
{
	struct t_rig *rig = t_rig_new(NULL);
	struct stasis_error refused = STASIS_ERROR_INIT;

	(void)state;
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	t_fake_set_faults(&(struct t_fake_faults){.alloc_refused = 1});
	assert_refused(t_rig_run(rig, NULL, &refused), &refused, STASIS_REFUSED, "pin");
	assert_int_equal(rig->result.failed_side, STASIS_TRANSFER_DEVICE_SIDE);
	t_wait_for_threads(rig->thread_count);
	t_fake_set_faults(&(struct t_fake_faults){.alloc_refused = 3});
	t_rig_round_trip(rig);
	assert_int_equal(rig->result.worker_count, 2);
	t_rig_free(rig);
}

/* As where only memory of the driver's may be pinned. */
static void memory_that_cannot_be_registered_is_allocated(void **state)
{
	struct t_rig *rig = t_rig_new(NULL);

	(void)state;
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	t_fake_set_faults(&(struct t_fake_faults){.is_register_unsupported = true});
	t_rig_round_trip(rig);
	assert_int_equal(rig->result.worker_count, 3);
	t_rig_free(rig);
}

static void preparation_is_refused(const struct t_fake_faults *faults, const char *text)
{
	struct t_rig *rig = t_rig_new(NULL);
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error none = STASIS_ERROR_INIT;

	t_fake_set_faults(faults);
	assert_refused(stasis_transfer_prepare(rig->engine, t_fake_context(0), 0, &err), &err,
		       STASIS_REFUSED, text);
	t_wait_for_threads(rig->thread_count);
	assert_int_equal(t_fake_pinned_bytes(), 0);
	t_fake_set_faults(&(struct t_fake_faults){0});
	assert_done(stasis_transfer_prepare(rig->engine, t_fake_context(0), 0, &none), &none);
	t_rig_free(rig);
}

static void a_device_that_cannot_be_prepared_is_refused(void **state)
{
	(void)state;
	preparation_is_refused(&(struct t_fake_faults){.alloc_broken = 2}, "pin");
	preparation_is_refused(&(struct t_fake_faults){.stream_refused = 3}, "stream");
	preparation_is_refused(&(struct t_fake_faults){.event_refused = 2}, "event");
	preparation_is_refused(&(struct t_fake_faults){.context_refused = 1}, "context");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failing_copy_is_the_devices_fault),
		cmocka_unit_test(a_hung_copy_keeps_its_buffer),
		cmocka_unit_test(a_transfer_is_cancelled_at_every_point),
		cmocka_unit_test(what_is_cancelled_before_does_not_begin),
		cmocka_unit_test(a_late_transfer_ends),
		cmocka_unit_test(want_of_memory_makes_a_ring_smaller),
		cmocka_unit_test(memory_that_cannot_be_registered_is_allocated),
		cmocka_unit_test(a_device_that_cannot_be_prepared_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
