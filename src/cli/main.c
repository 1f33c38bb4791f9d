/*
 * The program stasis: finds the command that was asked for and runs it. All that it can do is in the
 * library (stasis.h); here are only options and output.
 */

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

struct command {
	const char *name;
	stasis_cli_command *run;
	const char *summary;
};

/* clang-format off */
static const struct command commands[] = {
	{"roundtrip", stasis_cli_roundtrip, "Capture a program's GPU state, restore it, prove every byte."},
	{"run",       stasis_cli_run,       "Start a command whose GPU memory, shared or not, can be captured."},
	{"suspend",   stasis_cli_suspend,   "Take the GPU away from running programs."},
	{"resume",    stasis_cli_resume,    "Give suspended programs their GPU back."},
	{"recover",   stasis_cli_recover,   "Settle what a suspend or resume that was killed has left."},
	{"inspect",   stasis_cli_inspect,   "Say what an image holds."},
	{"verify",    stasis_cli_verify,    "Compare every byte of an image with its digests."},
	{"reserve",   stasis_cli_reserve,   "Allocate room for the next capture ahead."},
	{"gc",        stasis_cli_gc,        "Remove what unfinished captures left in a directory."},
	{"status",    stasis_cli_status,    "Say what state the driver has a process in."},
	{"bench",     stasis_cli_bench,     "Measure transfers beside the limits of this machine."},
	{"doctor",    stasis_cli_doctor,    "Say what this machine can do, and what stands in the way."},
};
/* clang-format on */

/* Of SIGPIPE, before we changed it. */
static void (*sigpipe_before)(int) = SIG_DFL;

void stasis_cli_signals_restore(void)
{
	(void)signal(SIGPIPE, sigpipe_before);
}

static void usage_print(FILE *stream)
{
	(void)fputs("usage: stasis COMMAND [OPTIONS] [ARGUMENT]\n\n", stream);
	for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
		(void)fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].summary);
	(void)fputs("\n'stasis COMMAND --help' lists a command's options. Exit status: 0 done;\n"
		    "1 failed or refused, programs run as before; 2 wrong usage; 3 programs are\n"
		    "suspended and intact; 4 a program was lost or its fate is unknown; 5 the\n"
		    "image is bad; 70 a bug of stasis.\n",
		    stream);
}

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

int main(int argument_count, char **arguments)
{
	const struct command *command;
	struct stasis_error err = STASIS_ERROR_INIT;

	/* A reader of our output that goes away must not end us between two steps of a capture. */
	sigpipe_before = signal(SIGPIPE, SIG_IGN);
	if (argument_count < 2) {
		usage_print(stderr);
		return STASIS_USAGE;
	}
	if (strcmp(arguments[1], "--help") == 0 || strcmp(arguments[1], "help") == 0) {
		usage_print(stdout);
		return STASIS_OK;
	}
	if (strcmp(arguments[1], "--version") == 0) {
		(void)printf("stasis %s\n", stasis_version());
		return STASIS_OK;
	}
	command = command_find(arguments[1]);
	if (!command) {
		(void)stasis_fail(&err, STASIS_USAGE, "unknown command '%s'; see 'stasis --help'",
				  arguments[1]);
		return stasis_cli_refuse(argument_count - 1, arguments + 1, &err);
	}
	return command->run(command->summary, argument_count - 2, arguments + 2);
}
