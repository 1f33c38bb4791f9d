#!/usr/bin/env python3
"""Description: the checks of tools/check_includes and tools/check_text find what they are there to find,
and are content with what is right."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
HEAD = "/*\n * What this is.\n */\n"
OWNERS = "* @x\n/tools/ @x\n/src/ @x\n/src/base/ @x\n/src/image/ @x\n/src/cli/ @x\n/src/interpose/ @x\n/sim/ @x\n"


class LintTest(unittest.TestCase):
    """A small tree, no git checkout, with the project's own checks in it."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        os.mkdir(os.path.join(self.folder.name, "tools"))
        for name in ("check_includes", "check_text", "sources"):
            shutil.copy(os.path.join(ROOT, "tools", name), os.path.join(self.folder.name, "tools"))
        self.write("CODEOWNERS", OWNERS)
        self.write("src/base/a.c", HEAD + '#include "base/a.h"\n')
        self.write("src/base/a.h", HEAD)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        path = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)

    def check(self, name):
        return subprocess.run([sys.executable, os.path.join(self.folder.name, "tools", name)],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def assert_found(self, tool, path, text, words):
        self.write(path, text)
        result = self.check(tool)
        self.assertEqual(result.returncode, 1, f"{path}: nothing was found in {text!r}")
        self.assertIn(words, result.stdout)

    def test_a_clean_tree_passes(self):
        for tool in ("check_includes", "check_text"):
            result = self.check(tool)
            self.assertEqual((result.returncode, result.stdout), (0, ""))

    def test_upward_includes(self):
        self.assert_found("check_includes", "src/base/b.c", HEAD + '#include "image/image.h"\n',
                          "'base' must not include 'image/image.h'")
        self.write("src/base/b.c", HEAD)
        self.assert_found("check_includes", "src/cli/c.c", HEAD + '#  include "image/image.h"\n',
                          "'cli' must not include")

    def test_the_simulator_knows_only_the_abi(self):
        self.write("sim/s.c", HEAD + '#include "driver/abi.h"\n')
        self.assertEqual(self.check("check_includes").returncode, 0)
        self.assert_found("check_includes", "sim/s.c", HEAD + '#include "driver/driver.h"\n', "'sim'")
        self.assert_found("check_includes", "sim/s.c", HEAD + '#include "base/a.h"\n', "'sim'")

    def test_unknown_folders(self):
        self.assert_found("check_includes", "src/stray/s.c", HEAD + "\n", "not in the table")

    def test_text(self):
        for text, words in (
                (HEAD + "int a; \n", "blank at the end"),
                (HEAD + "int a;\r\n", "carriage return"),
                (HEAD + "int a;", "no newline"),
                (HEAD + "int a;\n\n", "empty lines at the end"),
                (HEAD + "int a; // why\n", "// comment"),
                ("int a;\n", "no comment at its head"),
                (HEAD + "int a;\n" * 600, "at most 600"),
                (HEAD + 'void f(void) { printf("x"); }\n', "printf"),
                (HEAD + "void f(void) { exit(1); }\n", "exit"),
                (HEAD + "/* TO" + "DO */\n", "unfinished")):
            self.assert_found("check_text", "src/image/b.c", text, words)

    def test_what_only_looks_wrong(self):
        self.write("src/image/b.c", HEAD + 'const char *u = "http://x"; /* printf( // */ int exits(int);\n')
        result = self.check("check_text")
        self.assertEqual((result.returncode, result.stdout), (0, ""))

    def test_the_command_line_prints(self):
        self.write("src/cli/c.c", HEAD + 'void f(void) { printf("x"); }\n')
        self.assertEqual(self.check("check_text").returncode, 0)

    def test_the_interposer_allocates_nothing(self):
        for call in ('getenv("X")', "malloc(1)", 'snprintf(0, 0, "x")'):
            self.assert_found("check_text", "src/interpose/i.c", HEAD + f"void f(void) {{ {call}; }}\n",
                              "not in the interposer")

    def test_owners(self):
        self.assert_found("check_text", "docs/x.md", "# x\n", "'/docs/'")


if __name__ == "__main__":
    unittest.main()
