# Erosion of a binary image by a 3x3 square, on runs: a run of pixels costs as much as one pixel, however long it is.
#   tamis run examples/erosion_runs.py I=image.pbm -f "I=dense, sparse_runs; pattern" -o O=runs.pbm
# Outside of the image everything counts as set. A pixel of T stays if those beside it are set, one of O if those above and below are, too.

def erosion_runs(I):
    T = tensor("dense, sparse_runs; pattern")
    O = tensor("dense, sparse_runs; pattern")
    for y, x in _:
        T[y,x] = coalesce(I[y, ~(x-1)], True) and I[y,x] and coalesce(I[y, ~(x+1)], True)
    for y, x in _:
        O[y,x] = coalesce(T[~(y-1), x], True) and T[y,x] and coalesce(T[~(y+1), x], True)
    return O
