# First differences: the result is one element shorter than the vector.
#   tamis run examples/differences.py "x=rand(100)"

def differences(x):
    d = tensor("dense")
    for i in range(0, x.shape[0] - 1):
        d[i] = x[i+1] - x[i]
    return d
