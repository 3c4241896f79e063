# A two-dimensional convolution with a sparse result: each row is accumulated from the rows in the reach of the filter.
#   tamis run examples/convolution_rows.py "I=rand(200,200; 0.01)" "F=ones(3,3)" -f I=csr

def convolution_rows(I, F):
    O = tensor("csr")
    for y in _:
        row = tensor("bytemap")
        for r, x, q in _:
            row[x] += I[y+r, x+q] * F[r,q]
        for x in _:
            O[y,x] = row[x]
    return O
