# Sums of five adjacent pixels, on runs: inside of a long run the sum is constant, and computed once.
#   tamis run examples/stencil_runs.py "I=rand(50,400; 0.05)" -f "I=dense, sparse_runs"

def stencil_runs(I):
    O = tensor("dense, sparse_runs")
    for y, x in _:
        for k in range(5):
            O[y,x] += coalesce(I[y, ~(x+k-2)], 0)
    return O
