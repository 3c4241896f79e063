"""The count of Array API tests: runs data-apis/array-api-tests on the package, and counts outcomes by file.

``python docs/reference/array_api.py CHECKOUT [TEST...]`` takes a checkout of the suite with its submodule, and the packages that the
suite needs. Random numbers are fixed (``--derandomize``), so the count of one version of the suite is reproducible. The page
``python.md`` has the count.
"""

from __future__ import annotations

import collections
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

#: The version of the standard whose tests are run.
VERSION = "2023.12"


def run(checkout: pathlib.Path, tests: list[str]) -> xml.etree.ElementTree.Element:
    """The report of the suite, in the form of JUnit."""
    environment = {**os.environ, "ARRAY_API_TESTS_MODULE": "tamis", "ARRAY_API_TESTS_VERSION": VERSION}
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.xml")
        options = ["-q", "--derandomize", "--disable-deadline", "--tb=no", f"--junitxml={report}"]
        command = [sys.executable, "-m", "pytest", *options, *(tests or ["array_api_tests"])]
        subprocess.run(command, cwd=checkout, env=environment, check=False, stdout=subprocess.DEVNULL)
        return xml.etree.ElementTree.parse(report).getroot()


def outcome(case: xml.etree.ElementTree.Element) -> str:
    """What became of a test."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def main() -> None:
    report = run(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:])
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    failures = []
    for case in report.iter("testcase"):
        file = case.get("classname", "").split(".")[1]
        counts[file][outcome(case)] += 1
        if outcome(case) == "failed":
            failures.append(f"{file}::{case.get('name')}")
    counts["all"] = sum(counts.values(), collections.Counter())
    for file, found in counts.items():
        print(f"{file}: {found['passed']} passed, {found['skipped']} skipped, {found['failed']} failed")
    print(*failures, sep="\n")


if __name__ == "__main__":
    main()
