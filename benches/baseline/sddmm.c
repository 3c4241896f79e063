// X[i,j] = S[i,j] * sum over k of A[i,k] * B[k,j]: S and X in CSR with the same structure, A dense by rows, B dense by
// columns, f64.
#include <stdint.h>

void sddmm(int64_t rows, int64_t n, const uint32_t *restrict pos, const uint32_t *restrict crd,
           const double *restrict s, const double *restrict a, const double *restrict b, uint32_t *restrict x_pos,
           uint32_t *restrict x_crd, double *restrict x) {
    x_pos[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        const double *restrict a_row = a + i * n;
        for (int64_t q = pos[i], end = pos[i + 1]; q < end; q++) {
            const double *restrict b_column = b + (int64_t)crd[q] * n;
            double sum = 0;
            for (int64_t k = 0; k < n; k++) {
                sum += a_row[k] * b_column[k];
            }
            x_crd[q] = crd[q];
            x[q] = s[q] * sum;
        }
        x_pos[i + 1] = pos[i + 1];
    }
}
