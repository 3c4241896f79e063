# SpGEMM by rows (Gustavson), with a workspace for one row.
#   tamis run examples/gustavson.py "A=rmat(6,4)" "B=rmat(6,4,7)" -f A=csr -f B=csr -o C=product.mtx

def gustavson(A, B):
    C = tensor("csr")
    for i in _:
        w = tensor("bytemap")
        for j in _:
            for k in _:
                w[k] += A[i,j] * B[j,k]
        for k in _:
            C[i,k] = w[k]
    return C
