"""Makes the .npz and .npy fixtures of this directory: python3 make_npz.py"""
import io
import zipfile

import numpy as np
import scipy.sparse as sp

A = np.array([[1, 0, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0], [0, 5, 0, 6]])


def save(name, matrix, **options):
    sp.save_npz(name + ".npz", matrix, **options)


for form in ["csr", "csc", "coo", "bsr", "dia"]:
    save(form + "-f64", getattr(sp, form + "_matrix")(A.astype(float)))
save("bsr-2x2", sp.bsr_matrix(A.astype(float), blocksize=(2, 2)))
save("csr-stored", sp.csr_matrix(A.astype(float)), compressed=False)
for dtype in ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
              "complex64", "complex128"]:
    a = A.astype(dtype)
    save("csr-" + dtype, sp.csr_matrix((a * 1j).astype(dtype) if dtype.startswith("complex") else a))
wide = sp.csr_matrix(A.astype(float))
wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
save("csr-int64-indices", wide)
save("csr-array", sp.csr_array(A.astype(float)))
save("csr-empty", sp.csr_matrix((0, 5)))
save("csr-no-entries", sp.csr_matrix((3, 5)))
save("coo-3d", sp.coo_array(([1.0, 2.0, 3.0], ([0, 1, 1], [0, 2, 3], [4, 0, 1])), shape=(2, 4, 5)))
save("coo-1d", sp.coo_array(([1.0, 2.0], ([0, 3],)), shape=(6,)))
save("csr-1d", sp.csr_array(np.array([0.0, 1, 0, 2])))
save("coo-duplicates", sp.coo_matrix(([1.0, 2.0, 4.0], ([0, 1, 0], [1, 0, 1])), shape=(2, 2)))
save("csr-unsorted", sp.csr_matrix(([1.0, 2.0, 3.0], [2, 0, 1], [0, 2, 3]), shape=(2, 3)))
save("csr-duplicates", sp.csr_matrix(([1.0, 2.0, 3.0], [2, 2, 1], [0, 2, 3]), shape=(2, 3)))
save("dia-offsets", sp.dia_matrix((np.array([[1.0, 2, 3, 4], [5, 6, 7, 8], [0, 9, 0, 9]]), [0, -1, 2]), shape=(4, 4)))
np.savez("plain-array.npz", x=A)
np.savez("two-arrays.npz", x=A, y=A)

# Big-endian arrays, and a format in Unicode, as other writers may do.
with zipfile.ZipFile("csr-big-endian.npz", "w") as archive:
    c = sp.csr_matrix(A.astype(float))
    for key, value in dict(indices=c.indices.astype(">i4"), indptr=c.indptr.astype(">i8"), data=c.data.astype(">f8"),
                           shape=np.array(c.shape, dtype=">i8"), format=np.array("csr")).items():
        buffer = io.BytesIO()
        np.save(buffer, value)
        archive.writestr(key + ".npy", buffer.getvalue())

np.save("c-order.npy", np.arange(24.0).reshape(2, 3, 4))
np.save("fortran.npy", np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)))
np.save("fortran-2d.npy", np.asfortranarray(np.arange(6).reshape(2, 3)))
np.save("scalar.npy", np.array(2.5))
np.save("big-endian.npy", np.arange(3, dtype=">i2"))
np.save("half.npy", np.array([0.5, -2.0, np.inf], dtype=np.float16))
np.save("complex-big.npy", np.array([1 + 2j], dtype=">c16"))
np.save("empty.npy", np.zeros((0, 3), dtype=np.float32))
np.save("text.npy", np.array(["a"]))
np.save("records.npy", np.zeros(2, dtype=[("a", "f8")]))
