/*
 * The exported dlsym. glibc takes the scope of a lookup with RTLD_NEXT or RTLD_DEFAULT from the return
 * address of dlsym's caller, so such a lookup must reach the real one by a jump, with the stack as it
 * was. No compiler promises that in C (gcc 12 has no musttail, clang's does not hold under TSan), hence
 * assembly, in a file of its own that is built without sanitizers, coverage and profiling.
 *
 * A lookup with a real handle goes on to stasis_resolve_handle(), whose return address is then the
 * application's too.
 */

#include "interpose/resolve.h"

#ifndef __x86_64__
#error "the interposer's dlsym is written for x86-64"
#endif

/* clang-format off */
__asm__(
	"	.text\n"
	"	.p2align 4\n"
	"	.globl dlsym\n"
	"	.type dlsym, @function\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	leaq 1(%rdi), %rax\n"          /* RTLD_NEXT (-1) and RTLD_DEFAULT (0) become 0 and 1 */
	"	cmpq $1, %rax\n"
	"	ja stasis_resolve_handle\n"
	"	movq stasis_resolve_real_dlsym(%rip), %rax\n"
	"	testq %rax, %rax\n"
	"	je 1f\n"
	"	jmp *%rax\n"
	"1:	pushq %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	subq $8, %rsp\n"               /* calls are made with the stack aligned to 16 */
	"	.cfi_adjust_cfa_offset 8\n"
	"	call stasis_resolve_dlsym\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	"	.size dlsym, . - dlsym\n");
/* clang-format on */
