/*
 * See cuda_error.h. The names are those of abi_layout.h, whose list tests/abi holds against cuda.h.
 */

#include "driver/cuda_error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "driver/abi_layout.h"

struct enumerator {
	const char *name;
	int value;
};

#define ENUMERATOR(enumerator, value) {#enumerator, value},
static const struct enumerator enumerators[] = {STASIS_ABI_VALUES(ENUMERATOR)};

static bool is_result_name(const char *name)
{
	return strncmp(name, "CUDA_ERROR_", strlen("CUDA_ERROR_")) == 0 ||
	       strcmp(name, "CUDA_SUCCESS") == 0;
}

const char *stasis_cuda_result_name(CUresult result)
{
	for (size_t i = 0; i < ARRAY_COUNT(enumerators); i++) {
		if (enumerators[i].value == (int)result && is_result_name(enumerators[i].name))
			return enumerators[i].name;
	}
	return NULL;
}

int stasis_fail_cuda(struct stasis_error *err, enum stasis_status status, CUresult result,
		     const char *format, ...)
{
	int saved = errno;
	const char *name = stasis_cuda_result_name(result);
	bool is_first = err && !stasis_error_is_set(err);
	char text[STASIS_ERROR_TEXT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	(void)stasis_fail(err, status, "%s: %s (%d)", text, name ? name : "unknown CUDA result",
			  (int)result);
	if (is_first)
		err->cuda_result = (int32_t)result;
	errno = saved;
	return -1;
}
