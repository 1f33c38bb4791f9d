/*
 * The main of the conformance programs. One behaviour a process: what one of them breaks (a context with a
 * sticky error, a lost target) must not colour the next.
 */
#include "behaviour.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

/* A behaviour that hangs ends itself, also where no runner watches over it. */
#define BEHAVIOUR_SECONDS 50

static const char *source_name(enum t_source source)
{
	static const char *const names[] = {
		[T_MEASURED] = "measured",
		[T_DOCUMENTED] = "documented",
		[T_REPORTED] = "reported",
	};

	return names[source];
}

static int list(const struct t_behaviour *table, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)printf("%s\t%s\t%s\n", table[i].name, source_name(table[i].source),
			     table[i].states);
	return fflush(stdout) == 0 ? 0 : 1;
}

int t_behaviours_main(int argc, char **argv, const struct t_behaviour *table, size_t count)
{
	if (argc != 2) {
		(void)fprintf(stderr, "usage: %s NAME | --list\n", argv[0]);
		return 2;
	}
	if (!strcmp(argv[1], "--list"))
		return list(table, count);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(argv[1], table[i].name) != 0)
			continue;
		(void)alarm(BEHAVIOUR_SECONDS);
		table[i].run();
		(void)printf("%s: %s\n", table[i].name, table[i].states);
		return fflush(stdout) == 0 ? 0 : 1;
	}
	(void)fprintf(stderr, "%s: there is no behaviour '%s'; --list names them\n", argv[0],
		      argv[1]);
	return 2;
}
