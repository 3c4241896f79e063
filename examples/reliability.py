# Two links may fail, with probabilities that are 1 unless stored: the probability that both do, and that a whole row does.
#   tamis run examples/reliability.py "A=rand(20,20)" "B=rand(20,20; 1; 7)"

def reliability(A, B):
    both = tensor("csr", fill=1)
    row = tensor("dense", fill=1)
    for i, j in _:
        both[i,j] = A[i,j] * B[i,j]
        row[i] *= A[i,j] * B[i,j]
    return both, row
