# Symmetric SpMV from a stored lower triangle and diagonal: each entry is used twice.
#   tamis run examples/spmv_triangle.py "L=laplacian(20)" "d=rand(400)" x=ones -f L=csr
# The condition `j < i` tells the compiler that `y[j]` does not alias `y[i]`, whose sum stays in a register, and that no row before `i`
# has added to `y[i]`, so that `y` needs no initialisation.

def spmv_triangle(L, d, x):
    y = tensor("dense")
    for i in _:
        for j in _:
            if j < i:
                y[i] += L[i,j] * x[j]
                y[j] += L[i,j] * x[i]
        y[i] += d[i] * x[i]
    return y
