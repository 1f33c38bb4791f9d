/*
 * Description: what a caller writes at a custom restore is what the target gets: a wrong byte of the
 * application's is a wrong byte there, and a wrong byte of the driver's own state kills the process.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "custom.h"
#include "device.h"
#include "witness.h"

#define LOAD_BYTES (4 * T_MIB)
#define PAGE_BYTES ((size_t)4096)
#define PAGE_WORDS (PAGE_BYTES / sizeof(uint32_t))

/* Whether a page of an extent is one of the workload's memory. */
static bool is_application(const unsigned char *page)
{
	for (size_t index = 0; index * sizeof(uint32_t) < LOAD_BYTES; index += PAGE_WORDS) {
		uint32_t first = t_load_word(0, index);
		uint32_t last = t_load_word(0, index + PAGE_WORDS - 1);

		if (memcmp(page, &first, sizeof(first)) == 0 &&
		    memcmp(page + PAGE_BYTES - sizeof(last), &last, sizeof(last)) == 0)
			return true;
	}
	return false;
}

static void damage_first(struct t_extent *extent, bool of_application)
{
	size_t at = 0;

	while (at + PAGE_BYTES <= extent->bytes &&
	       is_application(extent->copy + at) != of_application)
		at += PAGE_BYTES;
	T_TRUE(at + PAGE_BYTES <= extent->bytes);
	extent->copy[at + PAGE_BYTES / 2] ^= 1;
}

int main(void)
{
	struct t_load load = {.devices = 1, .bytes = LOAD_BYTES};
	struct t_child child = t_child_start(t_load_run, &load);
	CUcheckpointCustomStorageInfo *info = NULL;
	struct t_store store;
	int status;

	t_hear(child.fd, 'R');
	t_custom_init();
	t_custom_suspend(child.pid, &store);
	damage_first(&store.extents[0], true);
	t_custom_resume(child.pid, &store);
	t_say(child.fd, 'V');
	t_hear(child.fd, 'N');
	t_custom_free(&store);

	t_custom_suspend(child.pid, &store);
	damage_first(&store.extents[0], false);
	T_OK(t_custom_begin_restore(child.pid, &info));
	t_custom_load(info, &store);
	T_REFUSED(t_custom_complete(info->handle));
	T_SYS(waitpid(child.pid, &status, 0));
	T_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	T_WITNESS(child.pid, "NONE");
	t_custom_free(&store);
	return 0;
}
