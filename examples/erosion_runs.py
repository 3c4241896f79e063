# Erosion of a binary image by a 3x3 square, on runs: the cost of a run does not depend on its length.
#   tamis run examples/erosion_runs.py I=image.pbm -f "I=dense, sparse_runs; pattern" -o O=runs.pbm
# Pixels outside of the image count as set. A pixel of T is set if its horizontal neighbours are, one of O if the vertical ones are, too.

def erosion_runs(I):
    T = tensor("dense, sparse_runs; pattern")
    O = tensor("dense, sparse_runs; pattern")
    for y, x in _:
        T[y,x] = coalesce(I[y, ~(x-1)], True) and I[y,x] and coalesce(I[y, ~(x+1)], True)
    for y, x in _:
        O[y,x] = coalesce(T[~(y-1), x], True) and T[y,x] and coalesce(T[~(y+1), x], True)
    return O
