#!/usr/bin/env python3
"""Holds our declarations of the CUDA ABI against every real cuda.h at hand, each by its CUDA_VERSION.

usage: headers.py all|custom-storage

all compares everything that a header knows; custom-storage does so with headers of 13.4 or newer only and
lets nothing be missing. Headers are taken from CUDA_HOME, /usr/local/cuda*, STASIS_CUDA_HEADERS (folders,
separated by colons) and .deps/cuda-headers, which `make deps` fills. Exit status 77 where there is none.

For each header a C file is written and compiled, of nothing but static assertions: the lists of
src/driver/abi_layout.h against the header; the size of each member against ours, whose declarations are
in the same file under other names; each prototype of src/driver/abi_functions.h against the header's and
against the type that cudaTypedefs.h has for that name and version; each ELF name against what the
header's macros make of it.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("STASIS_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
CUSTOM_STORAGE = 13040
NEWEST_KNOWN = 13050  # the version that the lists were made from: nothing of them is unknown to it
SKIPPED = 77

# When the driver gained what an older header cannot have; anything else may be missing from a header older
# than the lists. A missing member's bytes must in any case be among the reserved ones.
SINCE = {
    "type CUcheckpointCustomStoragePerDeviceData": CUSTOM_STORAGE,
    "type CUcheckpointCustomStorageInfo": CUSTOM_STORAGE,
    "member CUcheckpointCheckpointArgs.customStorageInfo_out": CUSTOM_STORAGE,
    "member CUcheckpointRestoreArgs.customStorageInfo_out": CUSTOM_STORAGE,
    "member CUcheckpointRestoreArgs.gpuPairs": 13000,
    "member CUcheckpointRestoreArgs.gpuPairsCount": 13000,
}


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def list_rows(text, name):
    """The rows X(a, b, …) of an X-macro list, as tuples of texts."""
    body = re.search(r"#define %s\(X\)((?:.*\\\n)*.*)" % name, text).group(1)
    return [tuple(part.strip() for part in row.split(",")) for row in
            re.findall(r"X\(([^)]*)\)", body)]


class Ours:
    def __init__(self):
        driver = os.path.join(SOURCE, "src", "driver")
        layout = read(os.path.join(driver, "abi_layout.h"))
        functions = without_comments(read(os.path.join(driver, "abi_functions.h")))
        self.sizes = list_rows(layout, "STASIS_ABI_SIZES")
        self.offsets = list_rows(layout, "STASIS_ABI_OFFSETS")
        self.values = list_rows(layout, "STASIS_ABI_VALUES")
        self.functions = [(query, int(version), elf) for query, version, elf in
                          list_rows(functions, "STASIS_ABI_FUNCTIONS")]
        self.prototypes = dict((name, " ".join(arguments.split())) for name, arguments in
                               re.findall(r"CUresult CUDAAPI (\w+)\(([^;]*)\);", functions))
        self.declarations = "\n".join(self.renamed(driver, name) for name in
                                      ("abi_enums.h", "abi_types.h"))

    @staticmethod
    def renamed(driver, name):
        """Our header with every name of CUDA's under the prefix ours_."""
        text = without_comments(read(os.path.join(driver, name)))
        text = re.sub(r"^\s*#.*(?:\\\n.*)*$", "", text, flags=re.M)
        text = text.replace("CU_IPC_HANDLE_SIZE", "64")
        return re.sub(r"\b(CU[A-Za-z_]\w*|cu[A-Z]\w*|cuuint\w+|cudaError_enum)\b", r"ours_\1", text)


class Header:
    def __init__(self, folder):
        self.folder = folder
        text = without_comments(read(os.path.join(folder, "cuda.h")))
        self.version = int(re.search(r"#define CUDA_VERSION (\d+)", text).group(1))
        self.text = text
        self.words = set(re.findall(r"\w+", text))
        typedefs = os.path.join(folder, "cudaTypedefs.h")
        self.typedefs = set(re.findall(r"\bPFN_\w+", read(typedefs))) \
            if os.path.exists(typedefs) else set()
        self.declared = set()
        self.structures = self.structures_read()

    def structures_read(self):
        """The text of each structure by the name that its typedef gives it."""
        structures = {}
        for start in re.finditer(r"typedef (?:struct|union) \w+\s*\{", self.text):
            depth, at = 1, start.end()
            while depth:
                depth += {"{": 1, "}": -1}.get(self.text[at], 0)
                at += 1
            name = re.match(r"\s*(\w+)\s*;", self.text[at:])
            if name:
                structures[name.group(1)] = self.text[start.end():at - 1]
        for old, new in re.findall(r"typedef (\w+) (\w+);", self.text):
            if old in structures:
                structures.setdefault(new, structures[old])
        return structures

    def struct_has(self, type_name, member):
        """Whether a structure of the header has a member; names of nested ones stand with their dots."""
        words = set(re.findall(r"\w+", self.structures[type_name]))
        return all(part in words for part in member.split("."))

    def reserved(self, type_name):
        return re.findall(r"\breserved\w*", self.structures[type_name])


def compiler():
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and shutil.which(name.split()[0]):
            return name.split()
    return None


def folders():
    found = []
    homes = [os.environ.get("CUDA_HOME")] + sorted(glob.glob("/usr/local/cuda*"))
    found += [os.path.join(home, "include") for home in homes if home]
    found += [folder for folder in os.environ.get("STASIS_CUDA_HEADERS", "").split(":") if folder]
    for pattern in ("", "/include"):
        found += sorted(glob.glob(SOURCE + "/.deps/cuda-headers/*" + pattern))
    unique = {}
    for folder in found:
        path = os.path.join(folder, "cuda.h")
        if os.path.isfile(path):
            unique.setdefault(os.path.realpath(path), folder)
    return list(unique.values())


class Check:
    """The assertions for one header, and what of our lists it does not know."""

    def __init__(self, ours, header):
        self.ours = ours
        self.header = header
        self.lines = []
        self.typedef_lines = []
        self.missing = []
        self.problems = []
        self.count = 0

    def claim(self, condition, text):
        self.count += 1
        self.lines.append('_Static_assert(%s, "%s");' % (condition, text))

    def skip(self, what, since):
        """Something that the header does not have; allowed only where it is older than the thing."""
        if self.header.version >= since:
            self.problems.append("%s is in our lists and not in this header" % what)
        self.missing.append(what)

    def sizes(self):
        for name, size in self.ours.sizes:
            if name in self.header.words:
                self.claim("sizeof(%s) == %s" % (name, size), "size of " + name)
            else:
                self.skip("type " + name, SINCE.get("type " + name, NEWEST_KNOWN))

    def offsets(self):
        for type_name, member, offset in self.ours.offsets:
            what = "member %s.%s" % (type_name, member)
            if type_name not in self.header.structures:
                self.skip(what, SINCE.get("type " + type_name, NEWEST_KNOWN))
            elif self.header.struct_has(type_name, member):
                self.claim("offsetof(%s, %s) == %s" % (type_name, member, offset),
                           "offset of %s.%s" % (type_name, member))
                self.claim("sizeof(((%s *)0)->%s) == sizeof(((ours_%s *)0)->%s)"
                           % (type_name, member, type_name, member),
                           "size of %s.%s" % (type_name, member))
            else:
                self.skip(what, SINCE.get(what, NEWEST_KNOWN))
                self.lies_in_reserved(type_name, member, int(offset))

    def lies_in_reserved(self, type_name, member, offset):
        size = "sizeof(((ours_%s *)0)->%s)" % (type_name, member)
        inside = ["(offsetof({t}, {r}) <= {o} && {o} + {s} <= offsetof({t}, {r}) + "
                  "sizeof((({t} *)0)->{r}))".format(t=type_name, r=name, o=offset, s=size)
                  for name in self.header.reserved(type_name)]
        self.claim(" || ".join(inside) or "0",
                   "%s.%s lies in this header's reserved bytes" % (type_name, member))

    def values(self):
        for name, value in self.ours.values:
            if name not in self.header.words:
                self.skip("enumerator " + name, NEWEST_KNOWN)
                continue
            self.claim("(int)(%s) == %s" % (name, value), "value of " + name)
            self.claim("(int)(%s) == (int)(ours_%s)" % (name, name), "our own value of " + name)

    def functions(self):
        for query, version, elf in self.ours.functions:
            if elf not in self.ours.prototypes:
                self.problems.append("abi_functions.h lists %s and has no prototype of it" % elf)
                continue
            if version > self.header.version:
                self.skip("entry %s at %d" % (query, version), version)
                continue
            typedef = "PFN_%s_v%d" % (query, version)
            if typedef in self.header.typedefs:
                self.same_type(self.typedef_lines, typedef, elf,
                               "%s at %d is %s" % (query, version, elf))
            elif self.header.typedefs:
                self.problems.append("cudaTypedefs.h has no %s: is %d a version of %s?"
                                     % (typedef, version, query))
            if elf in self.header.declared:
                self.same_type(self.lines, "__typeof__(&(%s))" % elf, elf, "prototype of " + elf)
            elif typedef not in self.header.typedefs:
                self.problems.append("%s is declared nowhere in this header" % elf)

    def same_type(self, lines, theirs, elf, text):
        self.count += 1
        lines.append('_Static_assert(__builtin_types_compatible_p(%s, CUresult (*)(%s)), "%s");'
                     % (theirs, self.ours.prototypes[elf], text))

    def names(self):
        """What cuda.h's macros make of a name is a form that we list; so a 32-bit relic cannot slip in."""
        forms = {}
        for query, version, elf in self.ours.functions:
            forms.setdefault(query, []).append((version, elf))
        for query, version, elf in self.ours.functions:
            self.expands(query, {form for _, form in forms[query]}, query + " means a form we list")
            self.expands(elf, {elf} | {form for newer, form in forms[query] if newer > version},
                         elf + " is the entry's own name, or that of an older form")

    def expands(self, name, allowed, text):
        self.claim(" || ".join('same(EXPANDED(%s), "%s")' % (name, form)
                               for form in sorted(allowed)), text)

    def sources(self):
        self.sizes()
        self.offsets()
        self.values()
        self.functions()
        self.names()
        yield PRELUDE + self.ours.declarations + "\n" + "\n".join(self.lines) + "\n"
        if self.typedef_lines:
            yield TYPEDEFS + "\n".join(self.typedef_lines) + "\n"


# gcc and clang fold this comparison of string literals into a constant.
PRELUDE = """
#include <stddef.h>
#include <stdint.h>
#include <cuda.h>
#define TEXT(x) #x
#define EXPANDED(x) TEXT(x)
#define same(a, b) (sizeof(a) == sizeof(b) && __builtin_memcmp(a, b, sizeof(b)) == 0)
"""

# In a file of its own: the older forms are given only to those who ask for all of them, and then the names
# are not those that a program sees.
TYPEDEFS = """
#define __CUDA_API_VERSION_INTERNAL
#include <cudaTypedefs.h>
"""


def declared_names(cc, folder):
    result = subprocess.run(cc + ["-E", "-P", "-I", folder, "-include", "cuda.h", "-x", "c",
                                  "/dev/null"], capture_output=True, text=True, check=True)
    return set(re.findall(r"\bCUresult\s+(cu\w+)\s*\(", result.stdout))


def compile_check(cc, header, source, scratch):
    """What the compiler has against the file; empty: nothing."""
    path = os.path.join(scratch, "check.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    result = subprocess.run(cc + ["-std=gnu11", "-fsyntax-only", "-Wno-deprecated-declarations",
                                  "-I", header.folder, path], capture_output=True, text=True,
                            check=False)
    return (result.stderr or "no reason given") if result.returncode else ""


def check_header(cc, ours, header, scratch, let_missing):
    header.declared = declared_names(cc, header.folder)
    check = Check(ours, header)
    for source in list(check.sources()):
        output = compile_check(cc, header, source, scratch)
        if output:
            check.problems.append("does not agree:\n" + output)
    if not let_missing:
        check.problems += ["%s is missing" % what for what in check.missing
                           if "CustomStorage" in what or "customStorage" in what
                           or "cuCheckpoint" in what]
    print("%s: CUDA %d.%d: %d comparisons, %d of our declarations not in it%s"
          % (header.folder, header.version // 1000, header.version % 1000 // 10, check.count,
             len(check.missing), "" if header.typedefs else " (no cudaTypedefs.h)"))
    for what in check.missing:
        print("    skipped: " + what)
    for problem in check.problems:
        print("    wrong: " + problem)
    return not check.problems


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in ("all", "custom-storage"):
        sys.exit(__doc__)
    cc = compiler()
    if not cc:
        print("needs a C compiler (cc, gcc, clang or CC)")
        return SKIPPED
    headers = [Header(folder) for folder in folders()]
    if sys.argv[1] == "custom-storage":
        headers = [header for header in headers if header.version >= CUSTOM_STORAGE]
    if not headers:
        print("needs cuda.h%s: none in CUDA_HOME, /usr/local/cuda*, STASIS_CUDA_HEADERS or .deps "
              "(make deps)" % (" of CUDA 13.4 or newer" if sys.argv[1] == "custom-storage" else ""))
        return SKIPPED
    ours = Ours()
    with tempfile.TemporaryDirectory() as scratch:
        good = [check_header(cc, ours, header, scratch, sys.argv[1] == "all")
                for header in headers]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
