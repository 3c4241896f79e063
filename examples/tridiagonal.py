# Three diagonals of a matrix times a vector; other elements are ignored.
#   tamis run examples/tridiagonal.py "A=laplacian(20)" x=ones -f A=csr

def tridiagonal(A, x):
    y = tensor("dense")
    for i, j in _:
        if i - 1 <= j <= i + 1:
            y[i] += A[i,j] * x[j]
    return y
