#ifndef STASIS_INTERPOSE_SYMBOLS_H
#define STASIS_INTERPOSE_SYMBOLS_H

/*
 * The one list of the driver's entries under their ELF names: exports, tables and checks are made from it.
 * X(elf, class, signature), where cuda.h may call the entry something else (cuMemAlloc is cuMemAlloc_v2).
 *
 *     class      PURE     passed through as it is: tells names, versions, properties of devices, the present
 *                         context, or acts on another process
 *                GATED    passes the gate
 *                HANDLED  passes the gate, and its handler (handlers.h) calls the driver
 *                CAPTURE  begins a stream capture: as HANDLED, and the gate holds it first
 *                LOOKUP   finds other entries; never held
 *     signature  Wn: n arguments of at most a word each, whatever their types; WnFm: m floats behind them;
 *                IPC_MEMORY, IPC_EVENT: a handle of 64 bytes is passed by value
 *
 * What a driver has and this list has not is passed through, and noted.
 */

#include "interpose/symbols_memory.h"
#include "interpose/symbols_state.h"
#include "interpose/symbols_work.h"

#define STASIS_SYMBOLS(X)                                                                          \
	STASIS_SYMBOLS_MEMORY(X)                                                                   \
	STASIS_SYMBOLS_STATE(X)                                                                    \
	STASIS_SYMBOLS_WORK(X)

/* The runtime library's own ways to an entry: X(elf, signature). */
#define STASIS_RUNTIME_SYMBOLS(X)                                                                  \
	X(cudaGetDriverEntryPoint, W4)                                                             \
	X(cudaGetDriverEntryPoint_ptsz, W4)                                                        \
	X(cudaGetDriverEntryPointByVersion, W5)                                                    \
	X(cudaGetDriverEntryPointByVersion_ptsz, W5)

#define STASIS_SYMBOL_NUMBER(elf, class, signature) STASIS_ENTRY_##elf,
enum stasis_entry { STASIS_SYMBOLS(STASIS_SYMBOL_NUMBER) STASIS_ENTRY_COUNT };
#undef STASIS_SYMBOL_NUMBER

#endif
