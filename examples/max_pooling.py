# 2x2 max pooling; empty windows are not visited.
#   tamis run examples/max_pooling.py "I=rand(100,100; 0.02)" -f I=csr

def max_pooling(I):
    O = tensor("dense")
    for y in _:
        for r in range(2):
            for x in _:
                for q in range(2):
                    O[y,x] max= I[2*y + r, 2*x + q]
    return O
