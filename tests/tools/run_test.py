#!/usr/bin/env python3
"""Description: tests/run counts, skips, ends what runs too long with all its processes, notices what a
test leaves running, and exits as its counts say."""

import os
import stat
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
RUN = os.path.join(ROOT, "tests", "run")

PROGRAMS = {
    "good": "exit 0",
    "bad": "echo details of the fault; exit 3",
    "killed": "kill -SEGV $$",
    "skip": "echo noise; echo 'needs criu: it is not here'; exit 77",
    "skip_silent": "exit 77",
    # the grandchild leaves the group, and so would outlive a plain kill of it
    "slow": "setsid sleep 1000 & echo started; sleep 1000",
    "leaver": "setsid sleep 1000 & exit 0",
    # whose environment cannot be read half of the time
    "changer": 'test -n "$AGAIN" || { AGAIN=1 setsid "$0" & exit 0; }; exec "$0"',
    "environment": 'test -d "$TMPDIR" && test "$PWD" = "$TMPDIR" && test -d "$STASIS_SIM_DIR" && '
                   'test -z "$STASIS_FAULT" && case "$STASIS_LIBCUDA" in */sim/libcuda.so.1) ;; '
                   '*) exit 1;; esac',
    "suppressions": 'case "$TSAN_OPTIONS" in "suppressions=\'$STASIS_SOURCE_DIR/tests/tsan.supp\':a=1") ;; '
                    '*) exit 1;; esac && test -s "$STASIS_SOURCE_DIR/tests/tsan.supp"',
    "arguments": 'test "$1" = "$STASIS_SOURCE_DIR/x" && test "$2" = "$STASIS_BUILD_DIR/y"',
    "stubborn": 'mkdir "$TMPDIR/d" && touch "$TMPDIR/d/f" && chmod 0 "$TMPDIR/d"; exit 0',
}


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.build = self.folder.name
        os.mkdir(os.path.join(self.build, "tests"))
        for name, body in PROGRAMS.items():
            path = os.path.join(self.build, "tests", name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\n{body}\n")
            os.chmod(path, stat.S_IRWXU)

    def tearDown(self):
        self.folder.cleanup()

    def list_write(self, lines):
        with open(os.path.join(self.build, "tests", "tests.list"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def run_tests(self, names, options=(), env=None, seconds=30):
        self.list_write([f"suite {name} {seconds} tests/{name}" for name in names])
        return self.run_list(options, env)

    def run_list(self, options=(), env=None):
        temporary = os.path.join(self.build, "tmp")
        os.makedirs(temporary, exist_ok=True)
        environment = dict(os.environ, TMPDIR=temporary, **(env or {}))
        for name in ("STASIS_REQUIRE", "STASIS_TEST_TIMEOUT_SCALE", "STASIS_TEST_TOKEN"):
            if not env or name not in env:
                environment.pop(name, None)
        return subprocess.run([sys.executable, RUN, "--build-dir", self.build, *options],
                              env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=100, check=False)

    def closing(self, result):
        return result.stdout.rstrip("\n").split("\n")[-1]

    def test_counts_and_status(self):
        result = self.run_tests(["good", "bad", "killed", "skip"])
        self.assertEqual(self.closing(result), "1 passed, 2 failed, 1 skipped")
        self.assertEqual(result.returncode, 1)
        self.assertIn("details of the fault", result.stdout)
        self.assertIn("exit status 3", result.stdout)
        self.assertIn("SIGSEGV", result.stdout)
        self.assertIn("needs criu: it is not here", result.stdout)
        self.assertNotIn("suite/good", result.stdout.split("slowest")[0])

    def test_all_good(self):
        result = self.run_tests(["good", "skip"], ["--verbose"])
        self.assertEqual(self.closing(result), "1 passed, 0 failed, 1 skipped")
        self.assertEqual(result.returncode, 0)
        self.assertIn("passed  suite/good", result.stdout)

    def test_required_skip_fails(self):
        result = self.run_tests(["good", "skip"], env={"STASIS_REQUIRE": "root,criu"})
        self.assertEqual(self.closing(result), "1 passed, 1 failed, 0 skipped")
        result = self.run_tests(["good", "skip"], env={"STASIS_REQUIRE": "root"})
        self.assertEqual(self.closing(result), "1 passed, 0 failed, 1 skipped")

    def test_silent_skip_is_told(self):
        self.assertIn("no reason given", self.run_tests(["skip_silent"]).stdout)

    def test_time_limit_ends_every_process(self):
        started = time.monotonic()
        result = self.run_tests(["slow"], seconds=1)
        self.assertEqual(self.closing(result), "0 passed, 1 failed, 0 skipped")
        self.assertIn("still running after 1 seconds", result.stdout)
        self.assertIn("sleep 1000", result.stdout)
        self.assertLess(time.monotonic() - started, 60)
        self.assert_nothing_left()

    def test_leftover_process_fails(self):
        for name in ("leaver", "changer"):
            result = self.run_tests([name])
            self.assertEqual(self.closing(result), "0 passed, 1 failed, 0 skipped", result.stdout)
            self.assertIn("left processes running", result.stdout)
            self.assert_nothing_left()

    def assert_nothing_left(self):
        needle = f"TMPDIR={self.build}".encode()
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    self.assertNotIn(needle, environ.read(), f"process {entry} is left")
            except OSError:
                continue

    def test_environment_is_the_runners(self):
        env = {"STASIS_FAULT": "x=EIO", "STASIS_LIBCUDA": "/elsewhere", "STASIS_SIM_DIR": "/elsewhere"}
        result = self.run_tests(["environment"], env=env)
        self.assertEqual(self.closing(result), "1 passed, 0 failed, 0 skipped", result.stdout)

    def test_suppressions_are_given(self):
        env = {"STASIS_TEST_SANITIZER": "thread", "TSAN_OPTIONS": "a=1"}
        result = self.run_tests(["suppressions"], env=env)
        self.assertEqual(self.closing(result), "1 passed, 0 failed, 0 skipped", result.stdout)

    def test_arguments_are_filled_in(self):
        self.list_write(["suite arguments 30 tests/arguments @source@/x @build@/y"])
        result = self.run_list()
        self.assertEqual(self.closing(result), "1 passed, 0 failed, 0 skipped", result.stdout)

    def test_folders_are_removed(self):
        self.run_tests(["good", "bad", "stubborn"])
        self.assertEqual(os.listdir(os.path.join(self.build, "tmp")), [])

    def test_selection(self):
        self.list_write(["one good 30 tests/good", "two bad 30 tests/bad", "two good 30 tests/good"])
        chosen = {("--suite", "one"): 1, ("--test", "good"): 2, ("--test", "two/good"): 1,
                  ("--test", "*/g*"): 2, ("--exclude-suite", "two"): 1}
        for options, count in chosen.items():
            result = self.run_list(options)
            self.assertEqual(self.closing(result), f"{count} passed, 0 failed, 0 skipped", options)

    def test_nothing_ran_is_a_failure(self):
        result = self.run_tests(["good"], ["--test", "nonesuch"])
        self.assertEqual(self.closing(result), "0 passed, 0 failed, 0 skipped")
        self.assertEqual(result.returncode, 1)

    def test_missing_program_fails(self):
        result = self.run_tests(["good", "absent"])
        self.assertEqual(self.closing(result), "1 passed, 1 failed, 0 skipped")

    def test_bad_lists_are_refused(self):
        for lines in (["suite good 30"], ["suite good soon tests/good"],
                      ["suite good 30 tests/good", "suite good 30 tests/good"]):
            self.list_write(lines)
            self.assertEqual(self.run_list().returncode, 2, lines)


if __name__ == "__main__":
    unittest.main()
