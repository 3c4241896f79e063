# The rows with an element above 2; a row ends at the first one.
#   tamis run examples/reached.py "A=laplacian(20)" -f A=csr

def reached(A):
    rows = tensor("sparse; pattern")
    for i in _:
        found = short_circuit_scalar(False)
        for j in _:
            found |= A[i,j] > 2
        rows[i] = found
    return rows
