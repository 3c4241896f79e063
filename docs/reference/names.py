"""The table of names: for each public name of SciPy, pydata/sparse and PyTorch, the name here; writes ``names.md``.

``python docs/reference/names.py`` imports the libraries that are installed, and writes the page. A name that is neither a name of
the package nor in :data:`INSTEAD` is an error. SciPy and pydata/sparse must be installed; the names of PyTorch, if it is not, are
those in :data:`KNOWN`.
"""

from __future__ import annotations

import importlib
import pathlib
import re
import types
from typing import Any, Iterable, NamedTuple

import tamis as tm

PAGE = pathlib.Path(__file__).with_name("names.md")

#: A function of SciPy's that takes what has `matvec`, so tensors as they are.
TAKES = "the same function takes tensors"
#: A function of SciPy's that takes its own arrays.
VIEW = "the same function of `A.to_scipy(copy=False)`"


class Library(NamedTuple):
    """A module or a class whose names are listed."""

    title: str
    #: Where it is imported from; the last part may be a class.
    source: str
    #: What has the same names here: an object, and how it is written.
    ours: Any
    prefix: str


LIBRARIES = [
    Library("scipy.sparse", "scipy.sparse", tm, "tm."),
    Library("Methods and attributes of SciPy's sparse arrays", "scipy.sparse:csr_array csc_array coo_array bsr_array dia_array", tm.Tensor, "t."),
    Library("Methods and attributes of `lil_array` and `dok_array`", "scipy.sparse:lil_array dok_array", tm.Tensor, "t."),
    Library("Methods of SciPy's sparse matrices", "scipy.sparse:csr_matrix", tm.Tensor, "t."),
    Library("scipy.sparse.linalg", "scipy.sparse.linalg", tm.linalg, "tm.linalg."),
    Library("scipy.sparse.csgraph", "scipy.sparse.csgraph", tm.graph, "tm.graph."),
    Library("pydata/sparse", "sparse", tm, "tm."),
    Library("Methods and attributes of `COO`, `GCXS` and `DOK`", "sparse:COO GCXS DOK", tm.Tensor, "t."),
    Library("torch.sparse", "torch.sparse", tm, "tm."),
    Library("Sparse methods of `torch.Tensor`", "torch:sparse methods", tm.Tensor, "t."),
]

#: Names of a library that may not be installed.
KNOWN = {
    "torch.sparse": (
        "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS addmm "
        "as_sparse_gradcheck check_sparse_tensor_invariants log_softmax mm sampled_addmm softmax spdiags spsolve sum "
        "to_sparse_semi_structured"
    ).split(),
    "torch:sparse methods": (
        "ccol_indices coalesce col_indices crow_indices dense_dim indices is_coalesced is_sparse is_sparse_csr row_indices "
        "sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ to_dense to_sparse to_sparse_bsc to_sparse_bsr "
        "to_sparse_coo to_sparse_csc to_sparse_csr values"
    ).split(),
}

#: What to write where there is no such name here, or another meaning.
INSTEAD: dict[str, dict[str, str]] = {
    "scipy.sparse": {
        **{f"{f}_{kind}": f'`tm.tensor(x, "{f}")`' for f in ("csr", "csc", "coo") for kind in ("array", "matrix")},
        **{f"bsr_{kind}": '`tm.tensor(x, "bsr(2,2)")`' for kind in ("array", "matrix")},
        **{f"dia_{kind}": "`tm.diags(...)`, or `t.todia()`" for kind in ("array", "matrix")},
        **{f"{f}_{kind}": "tensors are immutable: `tm.tensor((coords, values, shape))`, `tm.at(t)`" for f in ("lil", "dok") for kind in ("array", "matrix")},
        **{f"isspmatrix_{f}": f'`t.format == "{f}"`' for f in ("csr", "csc", "coo")},
        "isspmatrix_bsr": '`t.format.startswith("bsr")`',
        **{f"isspmatrix_{f}": "not a format of its own: look at `t.format`" for f in ("dia", "dok", "lil")},
        "SparseWarning": "`tm.SparseEfficiencyWarning`",
        "diags_array": "`tm.diags`",
        "eye_array": "`tm.eye`, with `format=`",
        "get_index_dtype": "chosen automatically; `sparse[u64,u32]` in a format fixes it",
        "isspmatrix": "`tm.issparse`",
        "load_npz": '`tm.read("a.npz")`',
        "rand": "`tm.random`",
        "safely_cast_index_arrays": "`t.indptr` and `t.indices` have SciPy's types",
        "save_npz": '`tm.write("a.npz", t)`',
        "sparray": "`tm.Tensor`",
        "spmatrix": "`tm.Tensor`",
    },
    "scipy.sparse:csr_array csc_array coo_array bsr_array dia_array": {
        "resize": "immutable: `tm.pad(t, widths)`, `t[:rows, :columns]`",
        "setdiag": "immutable: `tm.at(t).diagonal(k).set(values)`",
        "todok": "immutable: `tm.at(t)`",
        "tolil": "immutable: `tm.at(t)`",
        "blocksize": "in `t.format`, such as `bsr(2,2)`",
        "offsets": "`t.level_arrays(0)` of `t.todia()`",
    },
    "scipy.sparse:lil_array dok_array": {
        "getrow": "`t[i]`",
        "getrowview": "`t[i]`",
        "rows": "`t.level_arrays(1)`",
        "resize": "immutable: `tm.pad(t, widths)`, `t[:rows, :columns]`",
        "setdiag": "immutable: `tm.at(t).diagonal(k).set(values)`",
        "todok": "immutable: `tm.at(t)`",
        "tolil": "immutable: `tm.at(t)`",
        "clear": '`tm.zeros(t.shape, format="csr")`',
        "fromkeys": "`tm.tensor((coords, value, shape))`",
        "get": "`t[i, j]`",
        "items": "`zip(zip(*t.coords), t.values)`",
        "keys": "`zip(*t.coords)`",
        "values": "`t.values`: an array, not a method",
        "pop": "immutable: `tm.at(t)[i, j].set(0)`",
        "popitem": "immutable: `tm.at(t)[i, j].set(0)`",
        "setdefault": "immutable: `tm.at(t)[i, j].set(v)`",
        "update": "immutable: `tm.at(t)[rows, columns].set(values)`",
    },
    "scipy.sparse:csr_matrix": {
        "asfptype": "`t.astype(float)`",
        "getH": "`t.H`",
        "get_shape": "`t.shape`",
        "getcol": "`t[:, j]`",
        "getformat": "`t.format`",
        "getmaxprint": "six rows are printed",
        "getrow": "`t[i]`",
        "set_shape": "`t.reshape(shape)`",
        "resize": "immutable: `tm.pad(t, widths)`, `t[:rows, :columns]`",
        "setdiag": "immutable: `tm.at(t).diagonal(k).set(values)`",
        "todok": "immutable: `tm.at(t)`",
        "tolil": "immutable: `tm.at(t)`",
    },
    "scipy.sparse.linalg": {
        "ArpackError": "raised by `tm.linalg.eigsh` as it is",
        "ArpackNoConvergence": "raised by `tm.linalg.eigsh` as it is",
        "LaplacianNd": '`-tm.gallery.laplacian(n)` or `-tm.gallery.laplacian3(n)`, for `boundary_conditions="dirichlet"`',
        "LinearOperator": "tensors are such: `t.matvec`, `t.rmatvec`, `t.matmat`, `t.rmatmat`, `t.adjoint()`",
        "MatrixRankWarning": "raised by `tm.linalg.spsolve` as it is",
        "SuperLU": "what `tm.linalg.splu` gives",
        "aslinearoperator": TAKES,
        **dict.fromkeys("bicg cgs gcrotmk lgmres lsmr minres qmr tfqmr onenormest".split(), TAKES),
        **dict.fromkeys("expm factorized funm_multiply_krylov is_sptriangular spbandwidth spilu".split(), VIEW),
        "inv": "`tm.linalg.inv` of dense matrices; `tm.linalg.spsolve(A, B)` needs no inverse",
        "use_solver": "`tm.linalg.spsolve(A, b, use_umfpack=...)`",
    },
    "scipy.sparse.csgraph": {
        "NegativeCycleError": VIEW,
        **dict.fromkeys(("maximum_flow", "yen"), "the same function of `A.to_scipy()`, which it may write"),
        "breadth_first_order": "`tm.graph.bfs`",
        "breadth_first_tree": "`tm.graph.bfs(G, source).predecessors`",
        "dijkstra": "`tm.graph.shortest_paths`",
        "shortest_path": "`tm.graph.shortest_paths`, from one node or several",
        "reconstruct_path": "`tm.graph.shortest_paths(G, source).predecessors`",
        "csgraph_from_dense": "`tm.graph.adjacency`",
        "csgraph_from_masked": "`tm.graph.adjacency(array.filled(0))`",
        "csgraph_masked_from_dense": "`tm.graph.adjacency`",
        "csgraph_to_dense": "`t.to_numpy()`",
        "csgraph_to_masked": "`t.to_numpy()`",
        "laplacian": '`tm.diags(tm.graph.degrees(G)) - G`',
        **dict.fromkeys(
            (
                "bellman_ford construct_dist_matrix depth_first_order depth_first_tree floyd_warshall johnson "
                "maximum_bipartite_matching min_weight_full_bipartite_matching minimum_spanning_tree "
                "reverse_cuthill_mckee structural_rank"
            ).split(),
            VIEW,
        ),
    },
    "sparse": {
        "COO": '`tm.tensor((coords, values, shape), "coo")`; `tm.asarray(x)`, `t.to_pydata()`',
        "DOK": "immutable: `tm.at(t)`",
        "GCXS": '`tm.tensor(x, "csr")`, `"csf"`, or any format',
        "SparseArray": "`tm.Tensor`",
        "asCOO": '`tm.asarray(x).convert("coo")`',
        "as_coo": '`tm.asarray(x).convert("coo")`',
        "asnumpy": "`t.to_numpy()`",
        "bitwise_not": "`tm.bitwise_invert`",
        "broadcast_shapes": "`numpy.broadcast_shapes`",
        "concatenate": "`tm.concat`",
        "diagonalize": "`tm.diag`, of vectors",
        "dot": "`tm.matmul`, `t.dot(x)`",
        "elemwise": "functions of elements are operators and `tm.*`; `tm.op` defines more",
        "float16": "not a type here",
        "interp": "`tm.einsum`, or `numpy.interp` of dense tensors",
        "isneginf": "`t == -tm.inf`",
        "isposinf": "`t == tm.inf`",
        "load_npz": '`tm.read("a.npz")`',
        "nanreduce": "`tm.nansum`, `tm.nanmin`, ...",
        "nextafter": "`numpy.nextafter` of dense tensors",
        "save_npz": '`tm.write("a.npz", t)`',
    },
    "sparse:COO GCXS DOK": {
        "amax": "`t.max`",
        "amin": "`t.min`",
        "broadcast_to": "`tm.broadcast_to`",
        "change_compressed_axes": "`t.convert(format)`",
        "compressed_axes": "`t.format`",
        "density": "`t.nnz / t.size`",
        "enable_caching": "not needed",
        **dict.fromkeys("from_coo from_numpy from_scipy_sparse".split(), "`tm.tensor(x, format)`"),
        "from_iter": "`tm.tensor((coords, values, shape))`",
        "from_nodes": "not supported",
        "get_nodes": "not supported",
        "isinf": "`tm.isinf`",
        "isnan": "`tm.isnan`",
        "linear_loc": "`numpy.ravel_multi_index(t.coords, t.shape)`",
        "maybe_densify": "`t.to_numpy()`",
        "reduce": "`numpy.add.reduce(t, axis=0)`, `tm.sum`, ...",
        "round_": "`t.round`",
        "to_scipy_sparse": "`t.to_scipy()`",
    },
    "torch.sparse": {
        **dict.fromkeys(
            "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS to_sparse_semi_structured".split(),
            "not supported: 2:4 sparsity of GPUs",
        ),
        "addmm": '`tm.einsum("D[i,k] = C[i,k] + A[i,j] * B[j,k]", C=C, A=A, B=B)`',
        "as_sparse_gradcheck": "not needed",
        "check_sparse_tensor_invariants": "always checked",
        "log_softmax": "`tm.einsum`, of the stored elements",
        "mm": "`A @ B`",
        "sampled_addmm": '`tm.einsum("D[i,j] = S[i,j] * A[i,k] * B[k,j]", S=S, A=A, B=B)`',
        "softmax": "`tm.einsum`, of the stored elements",
        "spsolve": "`tm.linalg.spsolve`",
    },
    "torch:sparse methods": {
        "ccol_indices": "`t.indptr` of CSC",
        "coalesce": "`t.sum_duplicates()`: always done",
        "col_indices": "`t.indices` of CSR",
        "crow_indices": "`t.indptr` of CSR",
        "dense_dim": "the `dense` levels at the end of `t.levels`",
        "indices": "`t.to_coo()[0]`; `t.indices` is SciPy's attribute",
        "is_coalesced": "always true",
        "is_sparse": "`tm.issparse(t)`",
        "is_sparse_csr": '`t.format == "csr"`',
        "row_indices": "`t.indices` of CSC",
        "sparse_dim": "the other levels of `t.levels`",
        "sparse_mask": "`tm.where(mask, t, 0)`",
        "sparse_resize_": "immutable: `tm.pad(t, widths)`",
        "sparse_resize_and_clear_": "immutable: `tm.zeros(shape)`",
        "to_dense": '`t.convert("dense")`, `t.to_numpy()`',
        "to_sparse": '`t.convert("coo")`',
        "to_sparse_bsc": '`t.convert("csc")`',
        "to_sparse_bsr": '`t.tobsr((2, 2))`',
        "to_sparse_coo": '`t.convert("coo")`',
        "to_sparse_csc": '`t.convert("csc")`',
        "to_sparse_csr": '`t.convert("csr")`',
        "values": "`t.values`: an array, not a method",
    },
}


#: Functions that are the package's, and take dense tensors only.
_DENSE = set("argsort searchsorted cumulative_sum cumulative_prod unique_all unique_inverse".split())


def names(library: Library) -> list[str]:
    """The public names of a library, or those that are known if it is not installed."""
    module, _, classes = library.source.partition(":")
    known = set(KNOWN.get(library.source, ()))
    if "methods" in classes:
        return sorted(known)
    try:
        found = importlib.import_module(module)
    except ImportError:
        return sorted(known)
    if not classes:
        return sorted(known | {name for name in getattr(found, "__all__", None) or dir(found) if _is_public(found, name)})
    return sorted({name for one in classes.split() for name in dir(getattr(found, one)) if not name.startswith("_")})


def _is_public(module: Any, name: str) -> bool:
    return not name.startswith("_") and not isinstance(getattr(module, name, None), types.ModuleType)


def resolved(library: Library) -> tuple[list[str], dict[str, str]]:
    """The names that are the same here, and what to write instead of the others; an error for a name that is neither."""
    instead = INSTEAD.get(library.source, {})
    same = [name for name in names(library) if name not in instead]
    lost = [name for name in same if not hasattr(library.ours, name)]
    if lost:
        raise LookupError(f"{library.title}: no name and no equivalent for {', '.join(lost)}")
    return same, {name: instead[name] for name in names(library) if name in instead}


def _wrapped(words: Iterable[str]) -> str:
    lines, line = [], ""
    for word in words:
        if line and len(line) + len(word) + 1 > 98:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return "\n".join([*lines, line])


def page() -> str:
    """The text of the page."""
    parts = [
        "# The table of names",
        "",
        "What each public name of SciPy's sparse arrays, pydata/sparse and `torch.sparse` is called in Tamis.",
        "A name under *the same name* means here what it means there, for every format, with two differences:",
        "tensors are immutable, and have a fill value. [Python](python.md#coming-from-another-library) has an",
        "overview. NumPy's functions on tensors are in [their own table](#functions-of-numpy).",
        "",
        "Written by `docs/reference/names.py`, which imports the libraries; a test compares.",
    ]
    for library in LIBRARIES:
        same, instead = resolved(library)
        parts += ["", f"## {library.title}", ""]
        if same:
            parts += [f"The same name, `{library.prefix}NAME`:", "", _wrapped(f"`{name}`" for name in same), ""]
        if instead:
            parts += ["| there | here |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in sorted(instead.items())), ""]
        if not parts[-1]:
            parts.pop()
    from tamis import _numpy_functions as functions

    answered = sorted({*functions._SAME, *functions._RENAMED, *functions._SPECIAL} - _DENSE)
    parts += [
        "",
        "## Functions of NumPy",
        "",
        "These answer for tensors without making them dense, as `numpy.NAME`. So do all functions of elements",
        "(`numpy.exp`, `numpy.add`), `numpy.add.reduce` and its like, and `norm`, `solve` and `lstsq` of",
        "`numpy.linalg`. Every other function takes dense tensors, and refuses sparse ones with their size.",
        "",
        _wrapped(f"`{name}`" for name in answered),
    ]
    return "\n".join(parts) + "\n"


def covered(text: str) -> set[str]:
    """The names that a page has an answer for."""
    return set(re.findall(r"`(?:numpy\.)?(\w+)`", text))


if __name__ == "__main__":
    for needed in ("scipy", "sparse"):
        importlib.import_module(needed)  # Without them their names would be lost from the page.
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
