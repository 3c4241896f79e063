# The maximum of each row, stored for nonempty rows.
#   tamis run examples/row_maxima.py "A=rmat(6,1)" -f A=dcsr

def row_maxima(A):
    y = tensor("sparse")
    for i in _:
        m = sparse_scalar(0)
        for j in _:
            m = max(m, A[i,j])
        y[i] = m
    return y
