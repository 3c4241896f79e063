# A masked histogram of brightness in 16 bins, over run-length encoded images: it counts intersections of runs, not pixels.
#   tamis run examples/histogram_runs.py I=grey.pgm M=image.pbm -f "I=dense, runs" -f "M=dense, sparse_runs; pattern"

def histogram_runs(I, M):
    H = tensor("dense", shape=(16,))
    for y, x in _:
        if M[y,x]:
            H[i64(I[y,x]) // 16] += 1
    return H
