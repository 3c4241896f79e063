"""The book: every code block of every page runs, and prints what the page says.

- ``python`` blocks of a page run one after the other in one namespace. A block that defines a loop program is read by
  :func:`tamis.program`, too. A block of prompts (``>>>``) is a doctest.
- ``sh`` blocks run line by line, with the command that was built last. Lines that build, test or measure are not run: their
  sub-commands and crates must exist.
- A ``text`` or ``c`` block that follows directly is what the block above it prints; ``...`` stands for anything.
- ``rust`` blocks are compiled and run by ``tests/tests/book.rs``; the blocks of the pages about levels by its filetests.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import os
import pathlib
import re
import runpy
import shlex
import subprocess
import types
from typing import Any, Iterator, NamedTuple

import numpy as np
import pytest

import tamis as tm

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"

#: Written by programs, each with a test of its own.
WRITTEN = {"diagnostics.md", "mistakes.md", "operators.md"}
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), ROOT / "python" / "README.md", *DOCS.rglob("*.md")]
    if path.name not in WRITTEN and not {"api", "benchmarks"} & set(path.parts)
)
#: What a fenced block may be. The last row is of the pages about levels.
LANGUAGES = {"python", "sh", "text", "c", "rust", "rust,ignore", "toml", "markdown", "eval-rst"} | {
    "inputs", "program", "storage", "result", "",
}
#: Blocks that import PyTorch are only compiled where it is not installed.
TORCH = importlib.util.find_spec("torch") is not None
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A fenced block: its language, its text, its first line, and what it must print."""

    language: str
    text: str
    line: int
    expected: str | None


def blocks(path: pathlib.Path) -> list[Block]:
    """The fenced blocks of a page."""
    found: list[Block] = []
    language, start, end, text = "", 0, -1, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            if start:
                block = Block(language, "\n".join(text) + "\n", start, None)
                if language in ("text", "c") and found and found[-1].language in ("python", "sh") and before(path, end, start):
                    found[-1] = found[-1]._replace(expected=block.text)
                found.append(block)
                start, end = 0, number
            else:
                language, start, text = line.strip().strip("`{}"), number, []
        elif start:
            text.append(line)
    assert not start, f"{path}:{start}: the block does not end"
    return found


def before(path: pathlib.Path, end: int, start: int) -> bool:
    """Whether nothing stands between the end of a block and the start of the next one."""
    return end > 0 and not any(line.strip() for line in path.read_text().splitlines()[end : start - 1])


def name(path: pathlib.Path) -> str:
    return str(path.relative_to(ROOT))


@contextlib.contextmanager
def workshop(folder: pathlib.Path) -> Iterator[None]:
    """A folder with the files that the pages speak of, as the current one."""
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "docs").symlink_to(DOCS)
    tm.write(folder / "matrix.mtx", tm.gallery.laplacian(8))
    tm.write(folder / "graph.mtx", tm.gallery.rmat(5, 4, seed=1))
    (folder / "nearer.py").write_text("@op(commutative, associative, identity=inf)\ndef nearer(a, b):\n    return min(a, b)\n")
    old = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(old)


def agrees(expected: str | None, printed: str, where: str) -> None:
    """The printed output equals that of the page."""
    if expected is None:
        assert not printed.strip(), f"{where} prints\n{printed}\nand no block of text says so"
        return
    # Lines of ellipses and borders may stand for several lines, or for none.
    matches = doctest.OutputChecker().check_output(expected, printed, FLAGS)
    assert matches, f"{where} says\n{expected}\nbut this is printed:\n{printed}"


def is_program(text: str) -> bool:
    """Whether a block is one loop program in Tamis' own language, not a script."""
    lines = [line for line in text.splitlines() if line and not line.startswith((" ", "#", "@op"))]
    return bool(lines) and all(line.startswith("def ") for line in lines) and (" in _" in text or "tensor(" in text)


def run_python(block: Block, names: dict[str, Any], where: str) -> None:
    """Runs a block in a namespace, and compares what it prints."""
    if ">>>" in block.text:
        case = doctest.DocTestParser().get_doctest(block.text, names, where, where, block.line)
        report = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=FLAGS)
        runner.run(case, out=report.write, clear_globs=False)
        assert not runner.failures, report.getvalue()
        names.update(case.globs)
        return
    if is_program(block.text):
        names[re.findall(r"^def (\w+)", block.text, re.M)[-1]] = tm.program(block.text)
        return
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        # The file is named, so that functions find their own text.
        source = pathlib.Path(f"block{block.line}.py")
        source.write_text(block.text)
        exec(compile(block.text, str(source.resolve()), "exec"), names)
    agrees(block.expected, printed.getvalue(), where)


@pytest.mark.filterwarnings("ignore::tamis.SparseEfficiencyWarning")
@pytest.mark.parametrize("path", PAGES, ids=name)
def test_python_runs(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    found = [block for block in blocks(path) if block.language == "python"]
    # What the pages take for granted: the imports, and a matrix of SciPy's.
    names: dict[str, Any] = {"tm": tm, "np": np, "__name__": "page"}
    with workshop(tmp_path):
        for block in found:
            if "import torch" in block.text and not TORCH:
                compile(block.text, name(path), "exec")
                continue
            run_python(block, names, f"{name(path)}:{block.line}")


#: Lines that build, test, measure or install: they must name what exists, and are not run.
NOT_RUN = ("cargo", "pip", "git", "python", ".venv/bin/", "TAMIS_", "INSTA_", "cd", "apt", "rustup", "curl", "cc", "perf", "gdb")


def commands(text: str) -> list[str]:
    """The lines of a block of commands, without comments."""
    joined = text.replace("\\\n", " ")
    lines = [shlex.join(shlex.split(line, comments=True)) if "#" in line else line for line in joined.splitlines()]
    return [line.strip() for line in lines if line.strip()]


def sub_commands() -> set[str]:
    """The sub-commands of `./dev`."""
    return set(re.findall(r"^([a-z]+)\)$", (ROOT / "dev").read_text(), re.M))


def test_commands_name_what_exists() -> None:
    crates = {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")} | {"tamis-tests", "tamis-benches"}
    seen = 0
    for path in PAGES:
        for block in blocks(path):
            for line in commands(block.text) if block.language == "sh" else []:
                where = f"{name(path)}:{block.line}: {line}"
                words = shlex.split(line)
                command = next((word for word in words if "=" not in word), "")
                seen += 1
                if command == "./dev":
                    assert words[words.index("./dev") + 1] in sub_commands(), where
                else:
                    assert command == "tamis" or line.startswith(NOT_RUN), where
                for flag, value in zip(words, words[1:]):
                    assert command != "cargo" or flag != "-p" or value in crates, where
    assert seen > 20


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_commands_run(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binaries = [target / profile / "tamis" for profile in ("debug", "release")]
    binary = next((path for path in binaries if path.exists()), None)
    if binary is None:
        pytest.skip("the command is not built: `cargo build -p tamis-cli`")
    with workshop(tmp_path):
        for block in blocks(path):
            if block.language != "sh":
                continue
            printed = ""
            for line in commands(block.text):
                line = re.sub(r"^\./dev run ", "tamis ", line)
                if not line.startswith("tamis "):
                    continue
                environment = {**os.environ, "PATH": f"{binary.parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
                done = subprocess.run(line, shell=True, capture_output=True, text=True, env=environment, timeout=120)
                assert done.returncode == 0, f"{name(path)}:{block.line}: {line}\n{done.stdout}{done.stderr}"
                printed += done.stdout
            if block.expected is not None:
                agrees(block.expected, printed, f"{name(path)}:{block.line}")


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_blocks_are_of_a_kind_that_is_tested(path: pathlib.Path) -> None:
    for block in blocks(path):
        assert block.language in LANGUAGES, f"{name(path)}:{block.line}: a block of `{block.language}`"
    fenced, previous = False, ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        is_code = line.startswith("    ") and not previous.strip() and not fenced
        assert not is_code, f"{name(path)}:{number}: indented code has no language; fence it"
        previous = line if line.strip() else ""


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_lines_are_short(path: pathlib.Path) -> None:
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        # Rows of tables cannot be broken; nor can links.
        if len(line) > 100 and not fenced and not line.lstrip().startswith("|") and "](" not in line:
            pytest.fail(f"{name(path)}:{number} has {len(line)} columns")


def test_api_pages_list_every_name() -> None:
    page = (REFERENCE / "api.md").read_text()
    listed = set(re.findall(r"^   ([A-Za-z]\w*(?:\.\w+)?)$", page, re.M))
    listed |= set(re.findall(r"`(\w+)`", page.split("## Types and constants")[1]))
    missing = {name for name in tm.__all__ if not name.startswith("_")} - listed
    assert not missing, f"docs/reference/api.md lacks {sorted(missing)}"
    for entry in listed:
        thing: Any = tm
        for part in entry.split("."):
            thing = getattr(thing, part)


def test_every_public_name_has_documentation() -> None:
    """Functions, classes, and the methods and properties of classes; slots are described by their class."""
    missing = []
    for name in tm.__all__:
        thing = getattr(tm, name)
        if callable(thing) and not (thing.__doc__ or "").strip():
            missing.append(name)
        for attribute in dir(thing) if isinstance(thing, type) and thing.__module__.startswith("tamis") else []:
            owner = next(base for base in thing.__mro__ if attribute in vars(base))
            is_slot = isinstance(vars(owner)[attribute], types.MemberDescriptorType)
            if attribute.startswith("_") or owner.__module__ == "builtins" or is_slot:
                continue
            if not (getattr(thing, attribute).__doc__ or "").strip():
                missing.append(f"{name}.{attribute}")
    assert not missing, missing


def test_pictures_are_up_to_date() -> None:
    made = runpy.run_path(str(DOCS / "pictures.py"))
    for file, picture in made["PICTURES"].items():
        assert picture() == (DOCS / "pictures" / file).read_text(), f"{file}: run `./dev docs`"


def test_mistakes_are_up_to_date() -> None:
    made = runpy.run_path(str(REFERENCE / "mistakes.py"))
    assert len(made["MISTAKES"]) == 15
    page = made["page"]()
    assert page == (REFERENCE / "mistakes.md").read_text(), "run `python docs/reference/mistakes.py`"


def test_every_mistake_has_help() -> None:
    made = runpy.run_path(str(REFERENCE / "mistakes.py"))
    for _, code in made["MISTAKES"]:
        assert made["run"](code).help, code
