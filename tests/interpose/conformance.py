#!/usr/bin/env python3
"""Description: the conformance tests give the same answers with the interposer preloaded.

A fifth of them, another for each STASIS_TEST_SEED; all of them with STASIS_TEST_WHOLE=1. Those that the interposer
changes on purpose are listed, always run, and must pass without it and fail with it.
"""

import collections
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import zlib

BUILD = os.environ["STASIS_BUILD_DIR"]
SEED = os.environ.get("STASIS_TEST_SEED", "1")
INTERPOSER = os.path.join(BUILD, "src", "interpose", "libstasis-interpose.so")
SECONDS = 60
# What an application gets for an export is a ticket, not the driver's descriptor (docs/design.md): a sealed
# memory file that keeps no memory alive, and that imports can be exported by.
CHANGED_BY_TICKETS = {
    "export_import.export_is_descriptor",
    "export_import.import_exports_no_more",
    "export_import.descriptor_holds_memory",
    "export_import.keeper_without_cuda",
    "checkpoint_memory.open_export_splits",
    "checkpoint_shared.released_memory_comes_back",
}


def behaviours():
    """(name, command) of each line of the suite."""
    found = []
    with open(os.path.join(BUILD, "tests", "tests.list"), encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if words[:1] == ["conformance"]:
                found.append((words[1], [os.path.join(BUILD, words[3])] + words[4:]))
    return found


def is_chosen(name):
    """Whether this run looks at it."""
    return (os.environ.get("STASIS_TEST_WHOLE") == "1" or name in CHANGED_BY_TICKETS
            or zlib.crc32(f"{SEED} {name}".encode()) % 5 == 0)


def answer(command, is_preloaded):
    """(exit status, what the test says when it ends)"""
    with tempfile.TemporaryDirectory(prefix="stasis-i-") as directory:
        sim = os.path.join(directory, "sim")
        os.mkdir(sim, 0o700)
        env = dict(os.environ, STASIS_SIM_DIR=sim, TMPDIR=directory, STASIS_TEST_DRIVER="sim",
                   LD_LIBRARY_PATH=os.path.join(BUILD, "sim"))
        if is_preloaded:
            env["LD_PRELOAD"] = INTERPOSER
            env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, cwd=directory, text=True, env=env,
                                  timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return -1, f"still running after {SECONDS} seconds"
        return done.returncode, done.stdout.strip().split("\n")[-1]


def compare(behaviour):
    """(what it is, or "" for a fault; what is wrong)"""
    name, command = behaviour
    with_it = answer(command, True)
    if name not in CHANGED_BY_TICKETS and with_it[0] == 0:
        return "unchanged", ""
    without = answer(command, False)
    said = f"{with_it[1]} (status {with_it[0]}; without: {without[0]})"
    if name in CHANGED_BY_TICKETS:
        if (with_it[0], without[0]) == (1, 0):
            return "changed", ""
        return "", f"{name}: listed as changed by tickets, and it is not: {said}"
    if without != with_it:
        return "", f"{name}: {said}"
    return ("skipped" if with_it[0] == 77 else "unchanged"), ""


def main():
    every = behaviours()
    chosen = [behaviour for behaviour in every if is_chosen(behaviour[0])]
    if not chosen:
        sys.exit("no conformance test was chosen")
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(compare, chosen))
    faults = [fault for _, fault in found if fault]
    faults += [f"{name}: listed as changed by tickets, and there is no such test"
               for name in sorted(CHANGED_BY_TICKETS - {name for name, _ in every})]
    counts = collections.Counter(word for word, _ in found)
    print("\n".join(faults + [
        f"seed {SEED}: {len(chosen)} of {len(every)} compared: unchanged {counts['unchanged']}, changed as listed "
        f"{counts['changed']}, skipped {counts['skipped']}, faults {len(faults)}"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
