# Symmetric matrix times vector, of which only one triangle and the diagonal are stored: half the memory to read, each entry used twice.
#   tamis run examples/spmv_triangle.py "U=triangular(20)" "d=rand(20)" x=ones -f U=csr

def spmv_triangle(U, d, x):
    y = tensor("dense")
    for i in _:
        s = scalar(0.0)
        for j in _:
            s += U[i,j] * x[j]
            y[j] += U[i,j] * x[i]
        y[i] += s + d[i] * x[i]
    return y
