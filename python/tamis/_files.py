"""File input and output: Matrix Market, FROSTT, SciPy archives and others, optionally compressed."""

from __future__ import annotations

import os
from typing import Any, Iterable, Sequence

from . import _tamis
from ._construct import asarray
from ._tensor import Tensor


def read(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    shape: Sequence[int] | None = None,
    duplicates: str = "error",
) -> Tensor:
    """Reads a tensor from a file, whose extension determines its type.

    ``.mtx`` (Matrix Market), ``.tns`` (FROSTT), ``.npz`` (as ``scipy.sparse.save_npz`` writes it), ``.bsp.npz`` (Binsparse), ``.npy``, ``.smtx``, ``.pbm``, ``.pgm``,
    ``.txt`` and the files of MNIST, each also with ``.gz``. ``format`` is the one to convert to, ``shape`` is for ``.tns`` files, which do not
    state theirs, and ``duplicates`` says what becomes of entries with the same coordinates, as in :func:`tamis.tensor`.

    >>> import tamis as tm, tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.mtx")
    ...     size = tm.write(path, tm.gallery.laplacian(3))
    ...     tm.read(path, "csr").nnz
    33
    """
    return _tamis.read(os.fspath(path), format, None if shape is None else list(shape), duplicates)


def write(
    path: str | os.PathLike[str],
    t: Any,
    *,
    comments: Iterable[str] = (),
    header: bool = False,
    compress: bool = True,
    symmetric: bool = False,
) -> int:
    """Writes a tensor (or what can be made one) to a file, whose extension determines its type; returns its size in bytes.

    A file that is there is replaced when all is written, or left as it is. ``comments`` and ``symmetric`` (one triangle only) are for
    ``.mtx``, ``header`` is for ``.tns`` (without it trailing empty slices are lost), ``compress`` for archives.
    """
    return _tamis.write(os.fspath(path), asarray(t), list(comments), header, compress, symmetric)
