#include "answers.h"

#include <string.h>

#include "compiler.h"
#include "config.h"

/* clang-format off */
#define ANSWER_ROW(name, call, from, to) {#name, #call, from, to},
static const struct {
	const char *name;
	const char *call;
	CUresult from;
	CUresult to;
} answers[] = {SIM_BREAK_ANSWERS(ANSWER_ROW)};
/* clang-format on */

CUresult sim_answer(const char *call, size_t call_bytes, CUresult result)
{
	if (!sim_breaks_something())
		return result;
	for (size_t i = 0; i < ARRAY_COUNT(answers); i++) {
		if (answers[i].from != result || strlen(answers[i].call) != call_bytes ||
		    memcmp(answers[i].call, call, call_bytes) != 0)
			continue;
		if (sim_breaks(answers[i].name))
			return answers[i].to;
	}
	return result;
}
