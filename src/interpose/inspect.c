/*
 * See inspect.h. The numbers of the notes follow on those of the registry's records. Every count that goes into
 * the generation only grows, so the sum tells any change.
 */

#include "interpose/inspect.h"

#include <string.h>

#include "interpose/notes.h"
#include "interpose/peer.h"
#include "interpose/phases.h"

#define SECOND_DRIVER "second libcuda"

struct notes_view {
	uint32_t names; /* in the table */
	uint32_t lost;
	bool has_fault;
	struct stasis_error fault;
};

static void note_set(struct stasis_wire_record *record, uint32_t kind, uint64_t count,
		     const char *text)
{
	struct stasis_wire_note *note = &record->note;

	memset(record, 0, sizeof(*record));
	record->type = STASIS_WIRE_NOTE;
	note->kind = kind;
	note->count = count;
	if (!memccpy(note->text, text, '\0', sizeof(note->text)))
		note->text[sizeof(note->text) - 1] = '\0';
	/* A program may look up any string. */
	for (char *at = note->text; *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	}
	if (note->text[0] == '\0')
		note->text[0] = '?';
}

static void name_set(struct stasis_wire_record *record, uint32_t index)
{
	char name[64] = "(being noted)";

	(void)stasis_notes_get(index, name);
	if (strcmp(name, SECOND_DRIVER) == 0)
		note_set(record, STASIS_WIRE_NOTE_UNSUPPORTED, 1,
			 "a second libcuda is loaded, and calls into it are not seen");
	else
		note_set(record, STASIS_WIRE_NOTE_UNKNOWN_FUNCTION, 1, name);
}

static struct notes_view notes_look(void)
{
	struct notes_view view = {
		.names = stasis_notes_count(),
		.lost = stasis_notes_lost(),
		.fault = STASIS_ERROR_INIT,
	};

	view.has_fault = stasis_peer_fault(&view.fault);
	return view;
}

static uint64_t notes_total(const struct notes_view *view)
{
	return (uint64_t)view->names + (view->lost > 0) + view->has_fault;
}

static void note_write(const struct notes_view *view, uint64_t number,
		       struct stasis_wire_record *record)
{
	if (number < view->names) {
		name_set(record, (uint32_t)number);
		return;
	}
	number -= view->names;
	if (view->lost > 0 && number-- == 0)
		note_set(record, STASIS_WIRE_NOTE_UNKNOWN_FUNCTION, view->lost,
			 "more unknown functions than are kept by name");
	else
		note_set(record, STASIS_WIRE_NOTE_UNSUPPORTED, 1, view->fault.text);
}

void stasis_inspect_page(const struct stasis_wire_inspect_request *request,
			 struct stasis_wire_inspect_page *ret_page, bool *ret_has_more)
{
	struct notes_view view = notes_look();
	struct stasis_phase_records info = {0};

	ret_page->first = request->first;
	stasis_phase_records(request->first, STASIS_WIRE_RECORDS_MAX, ret_page->records, &info);
	ret_page->generation = info.generation + view.names + view.lost + stasis_peer_changes() + 1;
	ret_page->total = info.total + notes_total(&view);
	ret_page->count = info.count;
	/* What was asked for is gone: an empty last page, whose generation says so. */
	if (ret_page->first > ret_page->total)
		ret_page->first = ret_page->total;
	for (uint64_t at = ret_page->first + ret_page->count;
	     at >= info.total && at < ret_page->total && ret_page->count < STASIS_WIRE_RECORDS_MAX;
	     at++)
		note_write(&view, at - info.total, &ret_page->records[ret_page->count++]);
	*ret_has_more = ret_page->first + ret_page->count < ret_page->total;
}
