#ifndef TESTS_LIB_BEHAVIOUR_H
#define TESTS_LIB_BEHAVIOUR_H

/*
 * A conformance program is a table of behaviours of one topic and this main. `program NAME` runs one of
 * them in this process, which has not touched CUDA yet; `program --list` prints name, source and statement
 * of each, separated by tabs.
 */

#include <stddef.h>

/* Where a statement about hardware comes from. */
enum t_source {
	T_MEASURED,   /* seen on an NVIDIA H200 with driver 580 */
	T_DOCUMENTED, /* NVIDIA's driver API reference says so */
	T_REPORTED,   /* seen by others on such hardware, or common knowledge of the API */
};

struct t_behaviour {
	const char *name;
	enum t_source source;
	const char *states; /* one line: what a driver does */
	void (*run)(void);
};

int t_behaviours_main(int argc, char **argv, const struct t_behaviour *table, size_t count);

/* For the end of a program, after `static const struct t_behaviour behaviours[]`. */
#define T_BEHAVIOURS_MAIN(table)                                                                   \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return t_behaviours_main(argc, argv, table, sizeof(table) / sizeof((table)[0]));   \
	}

#endif
