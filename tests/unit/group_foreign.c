/*
 * Description: what a descriptor of a process is, by its link or its device.
 */

#include "unit.h"

#include "group/foreign.h"

static void kinds_by_link_or_device(void **state)
{
	static const struct {
		const char *link;
		const char *device;
		enum stasis_foreign_kind kind;
	} cases[] = {
		{"/dev/nvidiactl", "nvidia", STASIS_FOREIGN_DRIVER},
		{"/dev/nvidia0", "", STASIS_FOREIGN_DRIVER},
		{"/dev/nvidia-uvm", "nvidia-uvm", STASIS_FOREIGN_DRIVER},
		/* of a container, whose /dev is not ours */
		{"/", "nvidia", STASIS_FOREIGN_DRIVER},
		{"/nvidiactl", "nvidiactl", STASIS_FOREIGN_DRIVER},
		{"/dev/infiniband/uverbs0", "infiniband_verbs", STASIS_FOREIGN_RDMA},
		{"/uverbs11", "infiniband_verbs", STASIS_FOREIGN_RDMA},
		{"/dev/gdrdrv", "", STASIS_FOREIGN_RDMA},
		{"/", "gdrdrv", STASIS_FOREIGN_RDMA},
		{"/dev/null", "mem", STASIS_FOREIGN_NONE},
		{"/dev/infiniband/rdma_cm", "misc", STASIS_FOREIGN_NONE},
		{"/home/dev/nvidiactl", "", STASIS_FOREIGN_NONE},
		{"socket:[4711]", "", STASIS_FOREIGN_NONE},
		{"/memfd:nvidia (deleted)", "", STASIS_FOREIGN_NONE},
		{"", "", STASIS_FOREIGN_NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (stasis_foreign_kind(cases[i].link, cases[i].device) != cases[i].kind)
			fail_msg("'%s', device '%s'", cases[i].link, cases[i].device);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_by_link_or_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
