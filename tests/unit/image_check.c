/*
 * Description: an image is held against the GPUs of the machine and against what the driver gave, and every
 * difference is named before a byte is copied.
 */

#include "unit.h"

#include "base/cleanup.h"
#include "image_fixture.h"

struct comparison {
	struct stasis_image_view views[3];
	size_t count;
	const char *wanted; /* NULL: accepted */
};

static struct stasis_image_view view(uint8_t gpu_number, uint64_t bytes)
{
	return (struct stasis_image_view){t_image_gpu(gpu_number).uuid, bytes};
}

/* Two extents of process 0, one on each GPU, and process 1 with none. */
static void manifest_make(struct stasis_image_manifest *ret_manifest)
{
	struct stasis_image_extent *extents;

	t_image_manifest_make(ret_manifest);
	extents = reallocarray(ret_manifest->extents, 2, sizeof(*extents));
	assert_non_null(extents);
	extents[1] = extents[0];
	extents[1].gpu_index = 1;
	extents[1].logical_bytes = 4096;
	ret_manifest->extents = extents;
	ret_manifest->extent_count = 2;
}

static void machine_is_compared(void **state)
{
	const uint64_t enough = T_IMAGE_BYTES;
	const struct comparison cases[] = {
		{{view(0, enough), view(1, 4096)}, 2, NULL},
		{{view(1, 4096), view(2, 1), view(0, enough)}, 3, NULL},
		{{view(0, enough)},
		 1,
		 "GPU GPU-11111111-1111-1111-1111-111111111111 (Test GPU), "
		 "which is not among the 1 GPUs here"},
		{{view(2, enough), view(1, enough)}, 2, "GPU-10101010"},
		{{view(0, 1)}, 0, "not among the 0 GPUs here"},
		{{view(0, enough - 1), view(1, 4096)},
		 2,
		 "the image needs 262244 bytes on GPU GPU-10101010-1010-1010-1010-101010101010, "
		 "which has 262243"},
	};
	CLEANUP(image_manifest) struct stasis_image_manifest manifest = {0};

	(void)state;
	manifest_make(&manifest);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct stasis_error err = STASIS_ERROR_INIT;
		int result =
			stasis_image_check_gpus(&manifest, cases[i].views, cases[i].count, &err);

		if (cases[i].wanted)
			assert_refused(result, &err, STASIS_BAD_IMAGE, cases[i].wanted);
		else
			assert_done(result, &err);
	}
}

static void extents_of_one_gpu_are_added_up(void **state)
{
	CLEANUP(image_manifest) struct stasis_image_manifest manifest = {0};
	const struct stasis_image_view gpus[] = {view(0, T_IMAGE_BYTES + 4095)};
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	manifest_make(&manifest);
	manifest.extents[1].gpu_index = 0;
	manifest.extents[1].process_index = 1;
	assert_refused(stasis_image_check_gpus(&manifest, gpus, 1, &err), &err, STASIS_BAD_IMAGE,
		       "needs 266340 bytes");
}

static void views_are_compared(void **state)
{
	const struct comparison cases[] = {
		{{view(0, T_IMAGE_BYTES)},
		 1,
		 "the driver wants 1 extents of process 0, the image "
		 "has 2"},
		{{view(0, T_IMAGE_BYTES), view(1, 4096), view(2, 1)}, 3, "wants 3 extents"},
		{{view(0, 1)}, 0, "wants 0 extents"},
		{{view(0, T_IMAGE_BYTES), view(0, T_IMAGE_BYTES)}, 2, "two extents of process 0"},
		{{view(0, T_IMAGE_BYTES), view(2, 4096)},
		 2,
		 "GPU GPU-12121212-1212-1212-1212-121212121212, of which the image has none"},
		{{view(0, T_IMAGE_BYTES + 1), view(1, 4096)},
		 2,
		 "the driver wants 262245 bytes of process 0, the image has 262244"},
	};
	CLEANUP(image_manifest) struct stasis_image_manifest manifest = {0};

	(void)state;
	manifest_make(&manifest);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct stasis_error err = STASIS_ERROR_INIT;
		size_t extents[3] = {77, 77, 77};

		assert_refused(stasis_image_check_views(&manifest, 0, cases[i].views,
							cases[i].count, extents, &err),
			       &err, STASIS_BAD_IMAGE, cases[i].wanted);
		assert_int_equal(extents[0], 77);
	}
}

static void views_are_matched_by_uuid_and_not_by_order(void **state)
{
	CLEANUP(image_manifest) struct stasis_image_manifest manifest = {0};
	const struct stasis_image_view views[] = {view(1, 4096), view(0, T_IMAGE_BYTES)};
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t extents[2] = {77, 77};

	(void)state;
	manifest_make(&manifest);
	assert_done(stasis_image_check_views(&manifest, 0, views, 2, extents, &err), &err);
	assert_int_equal(extents[0], 1);
	assert_int_equal(extents[1], 0);
	/* A process without device memory has no views. */
	assert_done(stasis_image_check_views(&manifest, 1, NULL, 0, extents, &err), &err);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(machine_is_compared),
		cmocka_unit_test(extents_of_one_gpu_are_added_up),
		cmocka_unit_test(views_are_compared),
		cmocka_unit_test(views_are_matched_by_uuid_and_not_by_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
