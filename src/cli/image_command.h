#ifndef STASIS_CLI_IMAGE_COMMAND_H
#define STASIS_CLI_IMAGE_COMMAND_H

/*
 * What the commands share that do one thing to an image, or to a directory of images: inspect, verify, gc.
 */

#include <stasis.h>

#include "cli/command.h"

struct stasis_cli_image_options {
	struct stasis_cli_common common;
	struct stasis_image_options image; /* its path is the operand */
};

typedef enum stasis_status stasis_cli_image_function(struct stasis_library *library,
						     const struct stasis_image_options *options);

/* Parses, prints help where it is wanted, and calls `function`; returns the exit status. */
NODISCARD int stasis_cli_image_run(const struct stasis_cli_syntax *syntax, const char *summary,
				   int argument_count, char **arguments,
				   stasis_cli_image_function *function);

#endif
