# The sum of all entries, of each row and of each column, in one pass.
#   tamis run examples/sums.py "A=rmat(6,4)" -f A=csr

def sums(A):
    total = scalar(0)
    rows = tensor("dense")
    columns = tensor("dense")
    for i, j in _:
        total += A[i,j]
        rows[i] += A[i,j]
        columns[j] += A[i,j]
    return total, rows, columns
