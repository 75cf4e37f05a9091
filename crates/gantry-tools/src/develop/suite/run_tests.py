"""Runs the tests in the current folder, and writes what came of them as one line of JSON to the standard error.

Arguments: a part of the names of the tests to run, which may be empty; then arguments for pytest, or names of modules
for unittest.
"""

import json
import os
import sys

MARK = "\x1egantry-tests:"
FAILURES = 100
MESSAGE_CHARS = 4096


class Report:
    def __init__(self, runner):
        self.counts = {"runner": runner, "passed": 0, "failed": 0, "skipped": 0, "failures": []}

    def add(self, outcome):
        self.counts[outcome] += 1

    def fail(self, name, message, file, line):
        self.add("failed")
        if len(self.counts["failures"]) < FAILURES:
            failure = {"name": name, "message": message[-MESSAGE_CHARS:], "file": file, "line": line}
            self.counts["failures"].append(failure)

    def write(self):
        sys.stdout.flush()
        sys.stderr.flush()
        line = f"\n{MARK}{json.dumps(self.counts)}\n".encode()
        while line:
            line = line[os.write(2, line) :]


class Listener:
    """A plugin of pytest."""

    def __init__(self, report):
        self.report = report

    def pytest_runtest_logreport(self, report):
        if report.failed:
            name = report.nodeid if report.when == "call" else f"{report.nodeid} ({report.when})"
            self.fail(name, report)
        elif report.skipped:
            self.report.add("skipped")
        # A passing part of a test is no test.
        elif report.when == "call" and not hasattr(report, "context"):
            self.report.add("passed")

    def pytest_collectreport(self, report):
        if report.failed:
            self.fail(report.nodeid, report)

    def fail(self, name, report):
        entries = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", [])
        place = next((place for entry in reversed(entries) if (place := getattr(entry, "reprfileloc", None))), None)
        file = getattr(place, "path", None) or report.nodeid.split("::")[0]
        self.report.fail(name, report.longreprtext, str(file), getattr(place, "lineno", None))


def with_pytest(pytest, pattern, arguments):
    report = Report("pytest")
    chosen = ["-k", pattern] if pattern else []
    code = pytest.main([*chosen, *arguments], plugins=[Listener(report)])
    # It was told something that it does not understand, or broke: what it says tells more than counts.
    if int(code) not in (3, 4):
        report.write()
    return int(code)


def with_unittest(pattern, names):
    import unittest

    report = Report("unittest")
    own = os.path.dirname(unittest.__file__)

    class Result(unittest.TextTestResult):
        def addSuccess(self, test):
            super().addSuccess(test)
            report.add("passed")

        def addFailure(self, test, err):
            super().addFailure(test, err)
            fail(self, test, err)

        def addError(self, test, err):
            super().addError(test, err)
            fail(self, test, err)

        def addSubTest(self, test, subtest, err):
            super().addSubTest(test, subtest, err)
            if err is not None:
                fail(self, subtest, err)

        def addSkip(self, test, reason):
            super().addSkip(test, reason)
            report.add("skipped")

        def addExpectedFailure(self, test, err):
            super().addExpectedFailure(test, err)
            report.add("passed")

        def addUnexpectedSuccess(self, test):
            super().addUnexpectedSuccess(test)
            report.fail(test.id(), "it was expected to fail, and passed", None, None)

    def fail(result, test, err):
        place, trace = None, err[2]
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if not file.startswith((own, "<")):
                place = (file, trace.tb_lineno)
            trace = trace.tb_next
        file, line = place or (None, None)
        report.fail(test.id(), result._exc_info_to_string(err, test), file, line)

    loader = unittest.TestLoader()
    if pattern:
        loader.testNamePatterns = [pattern if "*" in pattern else f"*{pattern}*"]
    if names:
        suite = loader.loadTestsFromNames(names)
    else:
        suite = loader.discover(".")
        # A folder of tests that is no package is not found from above it.
        for folder in ("tests", "test"):
            if suite.countTestCases() == 0 and os.path.isdir(folder):
                suite = unittest.TestLoader.discover(loader, folder, top_level_dir=folder)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(suite)
    report.write()
    if result.testsRun == 0 and result.wasSuccessful() and not result.skipped:
        return 5
    return 0 if result.wasSuccessful() else 1


def main():
    pattern, *rest = sys.argv[1:]
    sys.path[0] = os.getcwd()
    try:
        import pytest
    except ImportError:
        pytest = None
    return with_pytest(pytest, pattern, rest) if pytest else with_unittest(pattern, rest)


if __name__ == "__main__":
    sys.exit(main())
