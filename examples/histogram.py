# A masked histogram of brightness: a scatter.
#   tamis run examples/histogram.py "I=rand(5,5)" M=image.pbm -f "M=csr; pattern"

def histogram(I, M):
    H = tensor("dense", shape=(16,))
    for y, x in _:
        if M[y,x]:
            H[i64(16 * I[y,x])] += 1
    return H
