/*
 * Description: what the memory of a group needs is added up by device and host: each content once, where its owner has
 * it.
 */

#include "base/cleanup.h"
#include "topology_fixture.h"

/* X and Z lie on g, W here on h; Y is the driver's, and M has no content. */
static void adds_up_by_device(void **state)
{
	CLEANUP(needs) struct stasis_needs needs = {.devices = NULL};
	struct stasis_id g = id_of('g');
	struct stasis_id h = id_of('h');

	(void)state;
	find(B, STASIS_WIRE_ALLOCATION, 'W')->allocation.device = h;
	assert_done(build(&topology), &err);
	assert_done(stasis_topology_needs(&topology, &needs, &err), &err);
	assert_int_equal(needs.device_count, 2);
	assert_true(stasis_id_equal(&needs.devices[0].device, &g));
	assert_int_equal(needs.devices[0].bytes, 4 * BLOCK);
	assert_int_equal(needs.devices[0].object_count, 2);
	assert_true(stasis_id_equal(&needs.devices[1].device, &h));
	assert_int_equal(needs.devices[1].bytes, 2 * BLOCK);
	assert_int_equal(needs.devices[1].object_count, 1);
	assert_int_equal(needs.host_bytes, 0);
	assert_int_equal(needs.bytes, 6 * BLOCK);
}

static void to_host(struct stasis_wire_allocation *allocation)
{
	memset(&allocation->device, 0, sizeof(allocation->device));
	allocation->location_type = 3;
	allocation->location_id = 0;
}

static void adds_up_host(void **state)
{
	CLEANUP(needs) struct stasis_needs needs = {.devices = NULL};

	(void)state;
	to_host(&find(A, STASIS_WIRE_ALLOCATION, 'X')->allocation);
	to_host(&find(B, STASIS_WIRE_ALLOCATION, 'X')->allocation);
	assert_done(build(&topology), &err);
	assert_done(stasis_topology_needs(&topology, &needs, &err), &err);
	assert_int_equal(needs.host_bytes, 2 * BLOCK);
	assert_int_equal(needs.host_object_count, 1);
	assert_int_equal(needs.device_count, 1);
	assert_int_equal(needs.devices[0].bytes, 4 * BLOCK);
	assert_int_equal(needs.bytes, 6 * BLOCK);
}

static void adds_up_nothing(void **state)
{
	CLEANUP(needs) struct stasis_needs needs = {.devices = NULL};

	(void)state;
	members[A].record_count = 0;
	members[B].record_count = 0;
	allocation_add(A, 'Y', 'A', 0);
	assert_done(build(&topology), &err);
	assert_done(stasis_topology_needs(&topology, &needs, &err), &err);
	assert_int_equal(needs.device_count, 0);
	assert_int_equal(needs.bytes, 0);
}

static void adds_up_too_much(void **state)
{
	CLEANUP(needs) struct stasis_needs needs = {.devices = NULL};

	(void)state;
	find(A, STASIS_WIRE_ALLOCATION, 'Z')->allocation.bytes = UINT64_MAX - 4 * BLOCK + 1;
	assert_done(build(&topology), &err);
	assert_refused(stasis_topology_needs(&topology, &needs, &err), &err, STASIS_REFUSED,
		       "exceed 64 bits");
	assert_null(needs.devices);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(adds_up_by_device),
		TEST(adds_up_host),
		TEST(adds_up_nothing),
		TEST(adds_up_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
