// C = A B: A in CSR, B and C dense by rows with n columns, f32.
#include <stdint.h>

enum { TILE = 64 };

void spmm(int64_t rows, int64_t n, const uint32_t *restrict pos, const uint32_t *restrict crd,
          const float *restrict val, const float *restrict b, float *restrict c) {
    for (int64_t i = 0; i < rows; i++) {
        int64_t start = pos[i], end = pos[i + 1], k = 0;
        // A tile of the row of C stays in vector registers while the row of A is read.
        for (; k + TILE <= n; k += TILE) {
            float sum[TILE] = {0};
            for (int64_t q = start; q < end; q++) {
                const float a = val[q], *restrict row = b + (int64_t)crd[q] * n + k;
                for (int t = 0; t < TILE; t++) {
                    sum[t] += a * row[t];
                }
            }
            for (int t = 0; t < TILE; t++) {
                c[i * n + k + t] = sum[t];
            }
        }
        for (int64_t t = k; t < n; t++) {
            c[i * n + t] = 0;
        }
        for (int64_t q = start; q < end; q++) {
            const float a = val[q], *restrict row = b + (int64_t)crd[q] * n;
            for (int64_t t = k; t < n; t++) {
                c[i * n + t] += a * row[t];
            }
        }
    }
}
