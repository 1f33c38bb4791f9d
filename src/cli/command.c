/*
 * See command.h.
 */

#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

bool stasis_cli_session_begin(struct stasis_cli_session *session,
			      const struct stasis_cli_common *common)
{
	if (common->is_verbose)
		stasis_log_set_level(STASIS_LOG_DEBUG);
	session->library = stasis_library_new();
	if (!session->library) {
		(void)fputs("stasis: error: out of memory\n", stderr);
		return false;
	}
	stasis_cli_output_init(&session->output, common->is_json);
	stasis_library_set_events(session->library, stasis_cli_output_event, &session->output);
	return true;
}

int stasis_cli_session_end(struct stasis_cli_session *session, enum stasis_status status)
{
	int exit_status = stasis_cli_output_finish(&session->output, status,
						   stasis_library_error(session->library));

	stasis_library_free(session->library);
	session->library = NULL;
	return exit_status;
}

/* Read apart from the options, which may be what is wrong. No option takes a value that begins like this. */
static bool json_is_wanted(int argument_count, char **arguments)
{
	for (int i = 0; i < argument_count && strcmp(arguments[i], "--") != 0; i++) {
		if (strcmp(arguments[i], "--json") == 0)
			return true;
	}
	return false;
}

int stasis_cli_refuse(int argument_count, char **arguments, const struct stasis_error *err)
{
	struct stasis_cli_output output;

	stasis_cli_output_init(&output, json_is_wanted(argument_count, arguments));
	return stasis_cli_output_finish(&output, err->status, err->text);
}
