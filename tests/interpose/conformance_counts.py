#!/usr/bin/env python3
"""Description: the comparison with the interposer counts what changes as listed apart, and fails where it does not.

It is run over small programs that take the conformance tests' place.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
COMPARISON = os.path.join(HERE, "conformance.py")

SAME = "exit 0"
CHANGES = '[ -z "$LD_PRELOAD" ] || { echo "with it"; exit 1; }'
FAILS = "echo always; exit 1"
SKIPS = "echo needs something; exit 77"


def listed():
    """The names that the comparison has listed."""
    spec = importlib.util.spec_from_file_location("conformance", COMPARISON)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return sorted(module.CHANGED_BY_TICKETS)


class Counts(unittest.TestCase):
    """What the last line says, and the exit status."""

    def compare(self, programs):
        """(exit status, lines of output) over programs by name."""
        with tempfile.TemporaryDirectory(prefix="stasis-i-") as build:
            os.mkdir(os.path.join(build, "tests"))
            with open(os.path.join(build, "tests", "tests.list"), "w", encoding="utf-8") as tests:
                for name, text in programs.items():
                    tests.write(f"conformance {name} 30 {name}\n")
                    with open(os.path.join(build, name), "w", encoding="utf-8") as program:
                        program.write(f"#!/bin/sh\n{text}\n")
                    os.chmod(os.path.join(build, name), 0o700)
            env = dict(os.environ, STASIS_BUILD_DIR=build, STASIS_TEST_WHOLE="1")
            done = subprocess.run([sys.executable, COMPARISON], env=env, stdout=subprocess.PIPE, text=True,
                                  timeout=60, check=False)
            return done.returncode, done.stdout.strip().split("\n")

    def programs(self, **others):
        """All that are listed change; `others` by name, "__" for the dot."""
        found = {name: CHANGES for name in listed()}
        found.update({name.replace("__", "."): text for name, text in others.items()})
        return found

    def test_counts_apart(self):
        count = len(listed())
        status, lines = self.compare(self.programs(a__same=SAME, a__fails=FAILS, a__skips=SKIPS))
        self.assertEqual(status, 0, lines)
        self.assertIn(f"{count + 3} of {count + 3} compared: unchanged 2, changed as listed {count}, skipped 1, "
                      "faults 0", lines[-1])

    def test_change_that_is_not_listed(self):
        status, lines = self.compare(self.programs(a__same=SAME, a__changes=CHANGES))
        self.assertEqual(status, 1, lines)
        self.assertIn("a.changes: with it (status 1; without: 0)", lines)
        self.assertIn("unchanged 1,", lines[-1])
        self.assertIn("faults 1", lines[-1])

    def test_listed_change_that_is_not_seen(self):
        for text in (SAME, FAILS, SKIPS):
            programs = self.programs(a__same=SAME)
            programs[listed()[0]] = text
            status, lines = self.compare(programs)
            self.assertEqual(status, 1, lines)
            self.assertIn(f"{listed()[0]}: listed as changed by tickets, and it is not", lines[0])
            self.assertIn(f"changed as listed {len(listed()) - 1},", lines[-1])

    def test_listed_change_without_a_test(self):
        programs = self.programs(a__same=SAME)
        del programs[listed()[-1]]
        status, lines = self.compare(programs)
        self.assertEqual(status, 1, lines)
        self.assertIn(f"{listed()[-1]}: listed as changed by tickets, and there is no such test", lines)


if __name__ == "__main__":
    unittest.main()
