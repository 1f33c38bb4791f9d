#!/usr/bin/env python3
"""Description: the list of the driver's entries agrees with a toolkit's headers and libcuda, where one is.

Each entry that the toolkit's stub of libcuda exports stands in the list, with as many arguments as
cudaTypedefs.h gives the form that has this name.
"""

import os
import re
import subprocess
import sys

SOURCE = os.environ["STASIS_SOURCE_DIR"]
CUDA = os.environ.get("CUDA_HOME", "/usr/local/cuda")
BY_VALUE = {"CUipcMemHandle": "IPC_MEMORY", "CUipcEventHandle": "IPC_EVENT"}


def listed():
    """{ELF name: signature}"""
    found = {}
    for part in ("memory", "state", "work"):
        path = os.path.join(SOURCE, "src", "interpose", f"symbols_{part}.h")
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                match = re.match(r"\s*X\((\w+), (\w+), (\w+)\)", line)
                if match:
                    if match[1] in found:
                        sys.exit(f"{path}: {match[1]} stands there twice")
                    found[match[1]] = match[3]
    return found


def signature(arguments):
    """What symbols.h calls a function with these parameters."""
    for name, value in BY_VALUE.items():
        if any(re.match(rf"{name}\w*\b(?! *\*)", a) for a in arguments):
            return value
    floats = [a for a in arguments if re.match(r"(float|double)\b(?! *\*)", a)]
    words = f"W{len(arguments) - len(floats)}"
    return words + (f"F{len(floats)}" if floats else "")


def typedefs():
    """{ELF name: signature}, the ELF name counted up over the versions of a name."""
    with open(os.path.join(CUDA, "include", "cudaTypedefs.h"), encoding="utf-8") as file:
        text = file.read()
    pattern = r"typedef CUresult \(CUDAAPI \*PFN_(cu\w+?)_v(\d+)(?:_(ptsz|ptds))?\)\((.*?)\);"
    forms = re.findall(pattern, text, re.S)
    versions = {}
    for name, version, per_thread, _arguments in forms:
        if not per_thread:
            versions.setdefault(name, set()).add(int(version))
    found = {}
    for name, version, per_thread, arguments in forms:
        number = sum(v <= int(version) for v in versions.get(name, ()))
        elf = name + (f"_v{number}" if number > 1 else "") + (f"_{per_thread}" if per_thread else "")
        parts = [] if arguments.strip() in ("", "void") else [a.strip() for a in arguments.split(",")]
        found[elf] = signature(parts)
    return found


def main():
    stub = os.path.join(CUDA, "lib64", "stubs", "libcuda.so")
    if not os.path.exists(stub):
        print(f"needs a CUDA toolkit: no '{stub}'")
        return 77
    ours = listed()
    output = subprocess.run(["nm", "-D", "--defined-only", stub], check=True, stdout=subprocess.PIPE,
                            text=True).stdout
    exported = {line.split()[-1] for line in output.splitlines() if line.split()[-1].startswith("cu")}
    faults = [f"{name}: exported by libcuda and not listed" for name in sorted(exported - set(ours))]
    theirs = typedefs()
    for name, wanted in sorted(theirs.items()):
        if name in ours and ours[name] != wanted:
            faults.append(f"{name}: listed as {ours[name]}, the header says {wanted}")
    compared = len(set(theirs) & set(ours))
    if compared < 400:
        faults.append(f"only {compared} entries could be compared")
    print("\n".join(faults) or f"{len(exported)} exported, {compared} signatures compared")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
