#ifndef STASIS_INTERPOSE_BUSY_H
#define STASIS_INTERPOSE_BUSY_H

/*
 * Refusals that name what the gate waited for: a thread in a call, a stream that is being captured, a stream whose
 * work does not end. Each fills *err and returns -1.
 */

#include "base/error.h"
#include "interpose/calls.h"
#include "interpose/gate.h"
#include "interpose/streams.h"

/* `code` is what stasis_gate_close() returned. */
int stasis_busy_gate(int code, const struct stasis_gate_busy *busy, struct stasis_error *err);

int stasis_busy_capture(const struct stasis_stream_record *capture, CUstreamCaptureStatus status,
			struct stasis_error *err);

/* Asks the streams of the context for the one that is busy; the context is current. */
int stasis_busy_context(const struct stasis_calls *calls, CUcontext context,
			struct stasis_error *err);

#endif
