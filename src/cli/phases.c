/*
 * See phases.h. docs/stasis.1.scd lists the same phases.
 */

#include "cli/phases.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"

struct phase_sentence {
	const char *phase;
	const char *sentence;
};

/* clang-format off */
static const struct phase_sentence sentences[] = {
	{"inspect",             "ask the programs what memory they hold and share"},
	{"preflight",           "see that there is room for everything"},
	{"gate",                "hold the programs' CUDA calls back, and wait for their GPU work"},
	{"inspect_again",       "ask once more, now that nothing changes"},
	{"save_allocations",    "copy the memory that they share to files"},
	{"seal",                "make files and temporary manifest durable"},
	{"arm",                 "have the programs wait, whatever becomes of this process"},
	{"prepare_multicast",   "have the programs take multicast apart"},
	{"prepare_unicast",     "have the programs let go of the memory that they share"},
	{"commit",              "let the GPU's memory go"},
	{"load_allocations",    "copy the files back to the memory that they share"},
	{"restore_unicast",     "have the programs share their memory again"},
	{"restore_multicast",   "have the programs put multicast together again"},
	{"compare_topology",    "see that the programs hold what they held"},
	{"open",                "let the programs' CUDA calls go on"},
	{"prepare",             "check the artifact directory"},
	{"start_workload",      "start the program whose state will be captured"},
	{"fill_workload",       "let it fill its device memory with the pattern"},
	{"open_driver",         "load the driver and take a context on each device needed"},
	{"confirm_running",     "ask the driver for the program's state"},
	{"reserve",             "set aside memory and files before the program is paused"},
	{"lock",                "hold back its GPU work"},
	{"checkpoint",          "have the driver let go of its device memory"},
	{"save",                "copy its device memory to files"},
	{"manifest",            "make files and temporary manifest durable"},
	{"complete_checkpoint", "tell the driver that every byte is safe"},
	{"confirm_checkpointed", "ask the driver for the program's state"},
	{"publish",             "give the image its name"},
	{"damage",              "damage the image, as was asked for"},
	{"validate",            "check manifest, sizes, devices, extents"},
	{"verify",              "compare every byte with its digest"},
	{"expect_refusal",      "see that the damaged image was refused"},
	{"repair",              "undo the damage, so that the program can have its memory back"},
	{"restore",             "have the driver make room on the device"},
	{"load",                "copy the files back to its device memory"},
	{"complete_restore",    "tell the driver that every byte is back"},
	{"confirm_locked",      "ask the driver for the program's state"},
	{"unlock",              "let its GPU work go on"},
	{"confirm_resumed",     "ask the driver for the program's state"},
	{"compare",             "let the program compare every byte of its memory"},
	{"operate",             "let the program use the device again"},
	{"finish",              "let the program end"},
	{"undo",                "something failed: bring the program back to where it was"},
	{"rescue",              "the worker was lost: bring the program back to where it was"},
};
/* clang-format on */

const char *stasis_cli_phase_sentence(const char *phase)
{
	for (size_t i = 0; i < ARRAY_COUNT(sentences); i++) {
		if (strcmp(sentences[i].phase, phase) == 0)
			return sentences[i].sentence;
	}
	return "";
}
