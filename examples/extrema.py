# The minimum and the maximum element; unstored elements count once.
#   tamis run examples/extrema.py "A=laplacian(20)" -f A=csr

def extrema(A):
    least = scalar(inf)
    greatest = scalar(-inf)
    for i, j in _:
        least min= A[i,j]
        greatest max= A[i,j]
    return least, greatest
