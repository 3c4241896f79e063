# Erosion of a binary image by a 3x3 square, on runs: a run of pixels costs as much as one pixel, whatever its length.
#   tamis run examples/erosion_runs.py I=image.pbm -f "I=dense, sparse_runs; pattern" -o O=runs.pbm
# Outside of the image everything counts as set. A pixel of T stays if its neighbours above and below do, one of O if those beside it do, too.

def erosion_runs(I):
    O = tensor("dense, sparse_runs; pattern")
    for y in _:
        T = tensor("sparse_runs; pattern")
        for x in _:
            T[x] = coalesce(I[~(y-1), x], True) and I[y,x] and coalesce(I[~(y+1), x], True)
        for x in _:
            O[y,x] = coalesce(T[~(x-1)], True) and T[x] and coalesce(T[~(x+1)], True)
    return O
