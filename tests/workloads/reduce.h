#ifndef TESTS_WORKLOADS_REDUCE_H
#define TESTS_WORKLOADS_REDUCE_H

/*
 * A kernel that reads as many do of a multicast object, as PTX for GPUs from sm_90 on; the simulated driver has a
 * built-in one of this name. One block, whose threads take elements in turn.
 *
 *     stasis_multimem_add_u32(u32 *to, const u32 *from, u64 count)
 *                              of each element, the sum over all that is bound there
 */

/* clang-format off */
static const char reduce_ptx[] =
	".version 8.1\n"
	".target sm_90\n"
	".address_size 64\n"
	".visible .entry stasis_multimem_add_u32(\n"
	"\t.param .u64 to,\n"
	"\t.param .u64 from,\n"
	"\t.param .u64 count\n"
	")\n"
	"{\n"
	"\t.reg .pred %done;\n"
	"\t.reg .b32 %r<4>;\n"
	"\t.reg .b64 %rd<8>;\n"
	"\tld.param.u64 %rd1, [to];\n"
	"\tld.param.u64 %rd2, [from];\n"
	"\tld.param.u64 %rd3, [count];\n"
	"\tcvta.to.global.u64 %rd1, %rd1;\n"
	"\tcvta.to.global.u64 %rd2, %rd2;\n"
	"\tmov.u32 %r1, %tid.x;\n"
	"\tmov.u32 %r2, %ntid.x;\n"
	"\tcvt.u64.u32 %rd4, %r1;\n"
	"\tcvt.u64.u32 %rd5, %r2;\n"
	"again:\n"
	"\tsetp.ge.u64 %done, %rd4, %rd3;\n"
	"\t@%done bra end;\n"
	"\tshl.b64 %rd6, %rd4, 2;\n"
	"\tadd.s64 %rd7, %rd2, %rd6;\n"
	"\tmultimem.ld_reduce.relaxed.sys.global.add.u32 %r3, [%rd7];\n"
	"\tadd.s64 %rd7, %rd1, %rd6;\n"
	"\tst.global.u32 [%rd7], %r3;\n"
	"\tadd.s64 %rd4, %rd4, %rd5;\n"
	"\tbra again;\n"
	"end:\n"
	"\tret;\n"
	"}\n";
/* clang-format on */

#endif
