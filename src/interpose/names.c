/* See names.h. */

#include "interpose/names.h"

#include "interpose/symbols.h"

#define NAME(elf, class, signature) [STASIS_ENTRY_##elf] = #elf,
static const char *const names[STASIS_ENTRY_COUNT] = {STASIS_SYMBOLS(NAME)};

const char *stasis_entry_name(uint32_t entry)
{
	return entry < STASIS_ENTRY_COUNT ? names[entry] : "?";
}
