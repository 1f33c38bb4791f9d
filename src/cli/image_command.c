/*
 * See image_command.h.
 */

#include "cli/image_command.h"

int stasis_cli_image_run(const struct stasis_cli_syntax *syntax, const char *summary,
			 int argument_count, char **arguments, stasis_cli_image_function *function)
{
	struct stasis_cli_image_options options = {.image = STASIS_IMAGE_OPTIONS_INIT};
	struct stasis_cli_session session;
	struct stasis_error err = STASIS_ERROR_INIT;

	if (stasis_cli_parse(syntax, argument_count, arguments, sizeof(options), &options, &err) !=
	    0)
		return stasis_cli_refuse(argument_count, arguments, &err);
	if (options.common.is_help) {
		stasis_cli_help_print(syntax, summary);
		return STASIS_OK;
	}
	if (!stasis_cli_session_begin(&session, &options.common))
		return STASIS_REFUSED;
	return stasis_cli_session_end(&session, function(session.library, &options.image));
}
