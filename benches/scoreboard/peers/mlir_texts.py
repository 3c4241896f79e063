"""Kernels for MLIR's sparse compiler as text: sizes are part of types, as `assemble` requires, so there is a text per input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

ENCODINGS = """#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
#CSF = #sparse_tensor.encoding<{ map = (d0, d1, d2) -> (d0 : compressed, d1 : compressed, d2 : compressed), posWidth = 32, crdWidth = 32 }>
"""


@dataclass(frozen=True)
class Sparse:
    """A sparse operand: its name, its sizes, and its number of compressed levels."""

    name: str
    shape: tuple[int, ...]
    number: str = "f64"

    @property
    def levels(self) -> int:
        return 1 if len(self.shape) == 2 else len(self.shape)

    @property
    def type(self) -> str:
        return f"tensor<{'x'.join(map(str, self.shape))}x{self.number}, #{'CSR' if len(self.shape) == 2 else 'CSF'}>"

    @property
    def parameters(self) -> list[str]:
        names = [f"%{self.name}_{part}{level}: tensor<?xi32>" for level in range(self.levels) for part in ("pos", "crd")]
        return [*names, f"%{self.name}_val: tensor<?x{self.number}>"]

    @property
    def assembled(self) -> str:
        arrays = [f"%{self.name}_{part}{level}" for level in range(self.levels) for part in ("pos", "crd")]
        types = ", ".join("tensor<?xi32>" for _ in arrays)
        return f"%{self.name} = sparse_tensor.assemble ({', '.join(arrays)}), %{self.name}_val : ({types}), tensor<?x{self.number}> to {self.type}"


@dataclass(frozen=True)
class Dense:
    """A dense operand or result."""

    name: str
    shape: tuple[int, ...]
    number: str = "f64"

    @property
    def type(self) -> str:
        return f"tensor<{'x'.join(map(str, self.shape))}x{self.number}>"

    @property
    def parameters(self) -> list[str]:
        return [f"%{self.name}: {self.type}"]


Operand = Sparse | Dense


def generic(loops: str, reduced: str, maps: Sequence[str], operands: Sequence[Operand], result: Operand, out: str, body: str) -> str:
    """One `linalg.generic`: `loops` in order, those of `reduced` as reductions, a map for each operand and for the result."""
    indices = ",".join(loops)
    texts = ", ".join(f"affine_map<({indices}) -> ({','.join(m)})>" for m in maps)
    kinds = ", ".join('"reduction"' if loop in reduced else '"parallel"' for loop in loops)
    inputs = ", ".join(f"%{o.name}" for o in operands)
    types = ", ".join(o.type for o in operands)
    block = ", ".join(f"%e{k}: {result.number}" for k in range(len(operands) + 1))
    return f"""  %result = linalg.generic {{ indexing_maps = [{texts}], iterator_types = [{kinds}] }} ins({inputs} : {types}) outs({out} : {result.type}) {{
    ^bb({block}):
{body}
  }} -> {result.type}
"""


def products(count: int, number: str, summed: bool) -> str:
    """The product of all operands, added to the accumulator in a reduction."""
    lines, last = [], "%e0"
    for k in range(1, count):
        lines.append(f"      %p{k} = arith.mulf {last}, %e{k} : {number}")
        last = f"%p{k}"
    if summed:
        lines.append(f"      %total = arith.addf %e{count}, {last} : {number}")
        last = "%total"
    return "\n".join([*lines, f"      linalg.yield {last} : {number}"])


def sums(count: int, number: str) -> str:
    lines, last = [], "%e0"
    for k in range(1, count):
        lines.append(f"      %p{k} = arith.addf {last}, %e{k} : {number}")
        last = f"%p{k}"
    return "\n".join([*lines, f"      linalg.yield {last} : {number}"])


def module(operands: Sequence[Operand], result: Operand, compute: str) -> str:
    """A function on arrays. A dense result is written into the last parameter; the arrays of a sparse one are returned."""
    parameters = [p for o in operands for p in o.parameters]
    lines = [f"  {o.assembled}" for o in operands if isinstance(o, Sparse)]
    if isinstance(result, Dense):
        # The caller has filled it with zeros: filling it here would make the compiler copy it.
        parameters += [f"%start: {result.type}"]
        end, types = f"  return %result : {result.type}", result.type
    else:
        lines += [f"  %start = tensor.empty() : {result.type}"]
        arrays = [("pos", "positions", " { level = 1 : index }", "i32"), ("crd", "coordinates", " { level = 1 : index }", "i32"), ("val", "values", "", result.number)]
        given = "".join(f"  %{name} = sparse_tensor.{op} %result{level} : {result.type} to memref<?x{kind}>\n" for name, op, level, kind in arrays)
        types = "(" + ", ".join(f"memref<?x{kind}>" for *_, kind in arrays) + ")"
        end = f"{given}  return %pos, %crd, %val : {types[1:-1]}"
    head = f"func.func @kernel({', '.join(parameters)}) -> {types} attributes {{ llvm.emit_c_interface }} {{"
    return "\n".join([ENCODINGS, head, *lines, compute + end, "}", ""])


def spmv(rows: int, columns: int) -> str:
    a, x, y = Sparse("a", (rows, columns)), Dense("x", (columns,)), Dense("y", (rows,))
    return module([a, x], y, generic("ij", "j", ["ij", "j", "i"], [a, x], y, "%start", products(2, "f64", True)))


def spmm(shape: tuple[int, int], n: int, number: str) -> str:
    rows, columns = shape
    a, d, c = Sparse("a", (rows, columns), number), Dense("d", (columns, n), number), Dense("c", (rows, n), number)
    return module([a, d], c, generic("ijk", "j", ["ij", "jk", "ik"], [a, d], c, "%start", products(2, number, True)))


def sddmm(shape: tuple[int, int], n: int) -> str:
    rows, columns = shape
    s, p, q, x = Sparse("s", (rows, columns)), Dense("p", (rows, n)), Dense("q", (columns, n)), Sparse("x", (rows, columns))
    return module([s, p, q], x, generic("ijk", "k", ["ij", "ik", "jk", "ij"], [s, p, q], x, "%start", products(3, "f64", True)))


def spgemm(rows: int, inner: int, columns: int) -> str:
    a, b, c = Sparse("a", (rows, inner)), Sparse("b", (inner, columns)), Sparse("c", (rows, columns))
    return module([a, b], c, generic("ijk", "j", ["ij", "jk", "ik"], [a, b], c, "%start", products(2, "f64", True)))


def element_by_element(shape: tuple[int, int], count: int, multiplied: bool) -> str:
    operands, result = [Sparse(name, shape) for name in "abcdef"[:count]], Sparse("r", shape)
    body = products(count, "f64", False) if multiplied else sums(count, "f64")
    return module(operands, result, generic("ij", "", ["ij"] * (count + 1), operands, result, "%start", body))


def mttkrp(shape: tuple[int, ...], rank: int) -> str:
    b, c, d = Sparse("b", shape), Dense("c", (shape[1], rank)), Dense("d", (shape[2], rank))
    a = Dense("a", (shape[0], rank))
    return module([b, c, d], a, generic("iklj", "kl", ["ikl", "kj", "lj", "ij"], [b, c, d], a, "%start", products(3, "f64", True)))
