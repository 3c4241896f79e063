# Symmetric matrix times vector, of which only the triangle below the diagonal and the diagonal are stored: each entry is used twice.
#   tamis run examples/spmv_triangle.py "L=laplacian(20)" "d=rand(400)" x=ones -f L=csr
# That `j` is below `i` is said so that it is known: `y[j]` is then another element than `y[i]`, whose sum stays in a register, and no row before `i`
# has added to `y[i]`, so that nothing has to be cleared before.

def spmv_triangle(L, d, x):
    y = tensor("dense")
    for i in _:
        for j in _:
            if j < i:
                y[i] += L[i,j] * x[j]
                y[j] += L[i,j] * x[i]
        y[i] += d[i] * x[i]
    return y
