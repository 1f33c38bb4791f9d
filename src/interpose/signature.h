#ifndef STASIS_INTERPOSE_SIGNATURE_H
#define STASIS_INTERPOSE_SIGNATURE_H

/*
 * The signatures of symbols.h as parameters (STASIS_PARAMETERS_x) and arguments (STASIS_ARGUMENTS_x). An
 * argument of at most a word travels in a register or stack slot of a word of its own, whatever its type,
 * so that a wrapper need not know it; the bits that the type does not use travel too. A small structure
 * such as CUmemLocation is a word as well.
 */

typedef unsigned long stasis_word;

/* CUipcMemHandle, CUipcEventHandle: on the stack. */
struct stasis_handle_bytes {
	char bytes[64];
};

/* clang-format off */
#define STASIS_PARAMETERS_W0 void
#define STASIS_PARAMETERS_W1 stasis_word a
#define STASIS_PARAMETERS_W2 STASIS_PARAMETERS_W1, stasis_word b
#define STASIS_PARAMETERS_W3 STASIS_PARAMETERS_W2, stasis_word c
#define STASIS_PARAMETERS_W4 STASIS_PARAMETERS_W3, stasis_word d
#define STASIS_PARAMETERS_W5 STASIS_PARAMETERS_W4, stasis_word e
#define STASIS_PARAMETERS_W6 STASIS_PARAMETERS_W5, stasis_word f
#define STASIS_PARAMETERS_W7 STASIS_PARAMETERS_W6, stasis_word g
#define STASIS_PARAMETERS_W8 STASIS_PARAMETERS_W7, stasis_word h
#define STASIS_PARAMETERS_W9 STASIS_PARAMETERS_W8, stasis_word i
#define STASIS_PARAMETERS_W10 STASIS_PARAMETERS_W9, stasis_word j
#define STASIS_PARAMETERS_W11 STASIS_PARAMETERS_W10, stasis_word k
#define STASIS_PARAMETERS_W1F1 stasis_word a, float x
#define STASIS_PARAMETERS_W1F2 stasis_word a, float x, float y
#define STASIS_PARAMETERS_W2F1 stasis_word a, stasis_word b, float x
#define STASIS_PARAMETERS_IPC_MEMORY stasis_word a, struct stasis_handle_bytes s, stasis_word b
#define STASIS_PARAMETERS_IPC_EVENT stasis_word a, struct stasis_handle_bytes s

#define STASIS_ARGUMENTS_W0
#define STASIS_ARGUMENTS_W1 a
#define STASIS_ARGUMENTS_W2 STASIS_ARGUMENTS_W1, b
#define STASIS_ARGUMENTS_W3 STASIS_ARGUMENTS_W2, c
#define STASIS_ARGUMENTS_W4 STASIS_ARGUMENTS_W3, d
#define STASIS_ARGUMENTS_W5 STASIS_ARGUMENTS_W4, e
#define STASIS_ARGUMENTS_W6 STASIS_ARGUMENTS_W5, f
#define STASIS_ARGUMENTS_W7 STASIS_ARGUMENTS_W6, g
#define STASIS_ARGUMENTS_W8 STASIS_ARGUMENTS_W7, h
#define STASIS_ARGUMENTS_W9 STASIS_ARGUMENTS_W8, i
#define STASIS_ARGUMENTS_W10 STASIS_ARGUMENTS_W9, j
#define STASIS_ARGUMENTS_W11 STASIS_ARGUMENTS_W10, k
#define STASIS_ARGUMENTS_W1F1 a, x
#define STASIS_ARGUMENTS_W1F2 a, x, y
#define STASIS_ARGUMENTS_W2F1 a, b, x
#define STASIS_ARGUMENTS_IPC_MEMORY a, s, b
#define STASIS_ARGUMENTS_IPC_EVENT a, s
/* clang-format on */

#endif
