# Erosion of a binary image by a 3x3 square, on runs of equal rows of runs of pixels: repeated rows are processed once.
#   tamis run examples/erosion_rows.py I=image.pbm -f "I=runs, sparse_runs; pattern" -o O=rows.pbm
# The program is that of erosion_runs.py with other formats. Empty rows of T and O are not stored.

def erosion_rows(I):
    T = tensor("sparse_runs, sparse_runs; pattern")
    O = tensor("sparse_runs, sparse_runs; pattern")
    for y, x in _:
        T[y,x] = coalesce(I[y, ~(x-1)], True) and I[y,x] and coalesce(I[y, ~(x+1)], True)
    for y, x in _:
        O[y,x] = coalesce(T[~(y-1), x], True) and T[y,x] and coalesce(T[~(y+1), x], True)
    return O
