#!/usr/bin/env python3
"""Description: the interposer exports exactly the golden list, needs libc 2.34 alone, and binds to itself.

usage: exports.py [--write]   --write makes the golden list anew, to be read before it is committed
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
GOLDEN = os.path.join(HERE, "exports.golden")
LIBRARY = os.path.join(os.environ["STASIS_BUILD_DIR"], "src", "interpose", "libstasis-interpose.so")
CEILING = (2, 34)
# What would drag in, or change, things of the program that is not ours.
FORBIDDEN = {"exit", "_exit", "abort", "signal", "sigaction", "printf", "fprintf", "getenv", "setenv",
             "pthread_once", "pthread_join", "dlsym"}


def readelf(*options):
    return subprocess.run(["readelf", "-W", *options, LIBRARY], check=True, stdout=subprocess.PIPE,
                          text=True).stdout


def symbols():
    """(name without version, version or "", is it defined here) of each dynamic symbol."""
    found = []
    for line in readelf("--dyn-syms").splitlines():
        words = line.split()
        if len(words) < 8 or not words[0].rstrip(":").isdigit():
            continue
        name, _, version = words[7].replace("@@", "@").partition("@")
        found.append((name, version, words[6] != "UND"))
    return found


def faults_find():
    faults = []
    found = symbols()
    exported = sorted(name for name, _version, defined in found if defined)
    with open(GOLDEN, encoding="utf-8") as lines:
        golden = lines.read().split()
    faults += [f"exported, and not in the golden list: {name}" for name in exported if name not in golden]
    faults += [f"in the golden list, and not exported: {name}" for name in golden if name not in exported]
    for name, version, defined in found:
        if not defined and name in FORBIDDEN:
            faults.append(f"{name} must not be used in other people's processes")
        match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version)
        if match and (int(match[1]), int(match[2])) > CEILING:
            faults.append(f"{name} needs {version}; the ceiling is glibc {CEILING[0]}.{CEILING[1]}")
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d"))
    if needed != ["libc.so.6"]:
        faults.append(f"needs {needed}; only libc.so.6 is allowed")
    if ".gnu.version_d" in readelf("-S"):
        faults.append("has versions of its own (.gnu.version_d): callers of a versioned dlsym go past it")
    if re.search(r"GNU_STACK.*RWE", readelf("-l")):
        faults.append("has an executable stack")
    for line in readelf("-r").splitlines():
        words = line.split()
        if len(words) > 4 and words[4].split("@")[0] in exported:
            faults.append(f"refers to its own export {words[4]} by a relocation that others can preempt")
    return faults


def main():
    if sys.argv[1:] == ["--write"]:
        with open(GOLDEN, "w", encoding="utf-8") as out:
            out.writelines(f"{name}\n" for name in sorted(n for n, _v, defined in symbols() if defined))
        return 0
    faults = faults_find()
    print("\n".join(faults) or "exports, needs and relocations are as they should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
