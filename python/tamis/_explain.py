"""Explanations: the stages of notation and programs on their way to machine code."""

from __future__ import annotations

from typing import Any

from . import _subscripts, _tamis
from ._program import Program


class Explanation:
    """The stages of compiling something, as text; made by :func:`explain`.

    ``schedule`` (what was decided, why, and what else could have been), ``program`` (the loops), ``looplets`` (the structure of each
    access), ``kernel``, ``c``, ``llvm`` and ``asm`` are texts; ``cost`` is what the schedule is expected to cost, in steps; ``passes`` are the
    compiler's passes with their seconds, and ``warnings`` what works, but not well.
    """

    #: The names of the texts, in the order of the stages.
    STAGES = ("schedule", "program", "looplets", "kernel", "c", "llvm", "asm")

    __slots__ = ("_inner", "_note")

    def __init__(self, inner: _tamis.Explanation, note: str = "") -> None:
        self._inner, self._note = inner, note

    @property
    def subject(self) -> str:
        """The explained notation or program."""
        return self._inner.subject

    @property
    def schedule(self) -> str:
        """The scheduling decisions and the resulting loops, with their workspaces."""
        return self._note + self._inner.schedule

    @property
    def program(self) -> str:
        """The loop program."""
        return self._inner.program

    @property
    def looplets(self) -> str:
        """The structure of each access along each loop."""
        return self._inner.looplets

    @property
    def kernel(self) -> str:
        """The kernel: typed scalars, buffers and loops."""
        return self._inner.kernel

    def after(self, pass_name: str) -> list[str]:
        """The kernel after each run of a pass: ``"lower"``, or a pass of the optimiser.

        >>> import tamis as tm
        >>> e = tm.explain("y[i] = A[i,j] * x[j]", A=tm.gallery.laplacian(10), x=tm.tensor([1.0] * 100))
        >>> len(e.after("const_prop")), e.after("compact_ids") == [e.kernel]
        (3, True)
        """
        return self._inner.after(pass_name)

    @property
    def c(self) -> str:
        """The kernel as C source, which compiles unchanged."""
        return self._inner.c

    @property
    def llvm(self) -> str:
        """LLVM's code after all passes."""
        return self._inner.llvm

    @property
    def asm(self) -> str:
        """Assembly for this machine."""
        return self._inner.asm

    @property
    def cost(self) -> float | None:
        """The predicted cost of the schedule, in steps; ``None`` for loop programs, which are not scheduled."""
        return self._inner.cost

    @property
    def passes(self) -> list[tuple[str, float]]:
        """The passes, with their seconds."""
        return self._inner.passes

    @property
    def warnings(self) -> list[str]:
        """Performance warnings."""
        return self._inner.warnings

    def _repr_html_(self) -> str:
        from ._display import tabs

        return tabs(self)

    def __repr__(self) -> str:
        warnings = "".join(f"\n{text}" for text in self.warnings)
        return f"{self.subject.strip()}\n\n{self.schedule.rstrip()}\n{warnings}"


def explain(subject: Any, /, *operands: Any, **options: Any) -> Explanation:
    """Explains what :func:`tamis.einsum` or a program does with these arguments, without running it.

    >>> import tamis as tm
    >>> A = tm.gallery.laplacian(10)
    >>> e = tm.explain("y[i] = A[i,j] * x[j]", A=A, x=tm.tensor([1.0] * 100))
    >>> "A1_pos" in e.c and "for i" in e.program
    True
    """
    if isinstance(subject, _tamis.Program):
        return Explanation(_tamis.explain_program(subject, *operands, **options))
    if not isinstance(subject, str) and hasattr(subject, "__tamis_program__"):
        return Explanation(_tamis.explain_program(subject.__tamis_program__, *operands, **options))
    if hasattr(subject, "__tamis_notation__"):
        text, tensors = subject.__tamis_notation__(*operands, **options)
        # A derivative reports what its forward pass saves.
        note = subject.__tamis_saved__(*operands, **options) if hasattr(subject, "__tamis_saved__") else ""
        return Explanation(_tamis.explain_notation(text, **tensors), note)
    if isinstance(subject, str) and subject.lstrip().startswith(("def ", "@op")) and "return" in subject:
        return Explanation(_tamis.explain_program(Program(subject), *operands, **options))
    if operands and _subscripts.is_subscripts(subject):
        return Explanation(_subscripts.einsum(_tamis.explain_notation, subject, operands, options))
    return Explanation(_tamis.explain_notation(subject, *operands, **options))
