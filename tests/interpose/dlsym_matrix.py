#!/usr/bin/env python3
"""Description: dlsym keeps each caller's scope, however the interposer and the program were compiled.

Compiles both with gcc and clang at -O0, -O1 and -O2, the program also with ASan and TSan, and compares what
a program with three libraries finds by RTLD_NEXT, RTLD_DEFAULT and handle with what it must find. One level
for each compiler, drawn by STASIS_TEST_SEED; all of them with STASIS_TEST_WHOLE=1.
"""

import os
import random
import shutil
import subprocess
import sys

SOURCE = os.environ["STASIS_SOURCE_DIR"]
SEED = os.environ.get("STASIS_TEST_SEED", "1")
INCLUDES = ["-I" + os.path.join(SOURCE, "src"), "-I" + os.path.join(SOURCE, "include")]
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-g", "-fPIC", "-fvisibility=hidden"]
SANITIZERS = {"plain": [], "asan": ["-fsanitize=address"], "tsan": ["-fsanitize=thread"]}

LIBRARY = """
#include <dlfcn.h>
#define API __attribute__((visibility("default")))
API int which(void);
API int which(void) { return NUMBER; }
static int call(void *found) { return found ? ((int (*)(void))found)() : -1; }
#define FIND(name, handle) API int name(void); API int name(void) { \\
    int result = call(dlsym(handle, "which")); __asm__ volatile(""); return result; }
#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)
FIND(NAME(next, NUMBER), RTLD_NEXT)
FIND(NAME(any, NUMBER), RTLD_DEFAULT)
"""
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int next1(void), next2(void), next3(void), any1(void), any3(void);
int main(void)
{
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    void *local = dlopen("./liblocal.so", RTLD_NOW);
    void *by_handle = dlsym(libcuda, "cuMemAlloc_v2");
    Dl_info info = {0};
    if (!libcuda || !local || !by_handle || !dladdr(by_handle, &info))
        return 1;
    printf("%d %d %d %d %d %d %d %d\\n", next1(), next2(), next3(), any1(), any3(),
           ((int (*)(void))dlsym(local, "next4"))(), ((int (*)(void))dlsym(local, "any4"))(),
           strstr(info.dli_fname, "interposer.so") != NULL);
    return 0;
}
"""
# libraries 1, 2, 3 in the program's scope, 4 local: behind itself it has none; the wrapper is ours
WANTED = "2 3 -1 1 1 -1 1 1"
LIBCUDA = "__attribute__((visibility(\"default\"))) int cuMemAlloc_v2(void); int cuMemAlloc_v2(void) { return 0; }\n"


def run(folder, *command, env=None):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120, check=False, env=env)
    return done.returncode, done.stdout


def build(folder, *command):
    status, output = run(folder, *command)
    if status != 0:
        sys.exit(f"{' '.join(command)}: {output}")


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
        out.write(text)


def interposer_build(folder, compiler, level):
    """Without sanitizers, as src/interpose/meson.build does: they are not up yet when dlsym is first called."""
    sources = os.path.join(SOURCE, "src", "interpose")
    objects = []
    for name in sorted(os.listdir(sources)):
        if not name.endswith(".c"):
            continue
        objects.append(name[:-2] + ".o")
        build(folder, compiler, *FLAGS, *INCLUDES, level, "-c", os.path.join(sources, name), "-o", objects[-1])
    build(folder, compiler, "-shared", *objects, "-o", "interposer.so", "-Wl,-Bsymbolic-functions",
          "-Wl,--version-script=" + os.path.join(sources, "interpose.map"))


def program_build(folder, compiler, level, sanitizer):
    write(folder, "library.c", LIBRARY)
    write(folder, "program.c", PROGRAM)
    write(folder, "libcuda.c", LIBCUDA)
    common = [compiler, *FLAGS, level, *sanitizer]
    for number in "1234":
        name = "local" if number == "4" else number
        build(folder, *common, "-shared", f"-DNUMBER={number}", "library.c", "-o", f"lib{name}.so")
    build(folder, *common, "-shared", "libcuda.c", "-o", "libcuda.so.1", "-Wl,-soname,libcuda.so.1")
    build(folder, *common, "program.c", "-o", "program", "-L.", "-Wl,--no-as-needed", "-l1", "-l2", "-l3",
          "-Wl,-rpath,.")


def try_configuration(interposer, compiler, level, kind):
    """"" or what is wrong."""
    folder = os.path.join(os.environ["TMPDIR"], f"{compiler}{level}-{kind}")
    os.mkdir(folder)
    program_build(folder, compiler, level, SANITIZERS[kind])
    env = dict(os.environ, LD_PRELOAD=interposer, LD_LIBRARY_PATH=folder,
               ASAN_OPTIONS="detect_leaks=0:verify_asan_link_order=0")
    # TSan does not get along with every layout of the address space
    command = ["setarch", "-R"] if kind == "tsan" and shutil.which("setarch") else []
    status, output = run(folder, *command, "./program", env=env)
    return "" if status == 0 and output.strip() == WANTED else f"status {status}: {output.strip()[-400:]}"


def main():
    compilers = [c for c in ("gcc", "clang") if shutil.which(c)]
    if not compilers:
        print("needs gcc or clang")
        return 77
    levels = {c: ["-O0", "-O1", "-O2"] for c in compilers}
    if os.environ.get("STASIS_TEST_WHOLE") != "1":
        draw = random.Random(SEED)
        levels = {c: [draw.choice(levels[c])] for c in compilers}
    chosen = [(c, level, k) for c in compilers for level in levels[c] for k in SANITIZERS]
    built = {}
    faults = 0
    for compiler, level, kind in chosen:
        if (compiler, level) not in built:
            folder = os.path.join(os.environ["TMPDIR"], f"interposer-{compiler}{level}")
            os.mkdir(folder)
            interposer_build(folder, compiler, level)
            built[compiler, level] = os.path.join(folder, "interposer.so")
        fault = try_configuration(built[compiler, level], compiler, level, kind)
        faults += bool(fault)
        print(f"{compiler} {level} {kind}: {fault or 'as it should be'}", flush=True)
    print(f"seed {SEED}: {len(chosen) - faults} of {len(chosen)} configurations as they should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
