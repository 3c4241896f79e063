// A[i,j] = sum over k, l of B[i,k,l] * C[k,j] * D[l,j]: B in CSF, the others dense by rows with r columns, f64.
#include <stdint.h>
#include <string.h>

static inline __attribute__((always_inline))
void columns(int64_t rows, int64_t r, const uint32_t *restrict pos0, const uint32_t *restrict crd0,
            const uint32_t *restrict pos1, const uint32_t *restrict crd1, const uint32_t *restrict pos2,
            const uint32_t *restrict crd2, const double *restrict val, const double *restrict c,
            const double *restrict d, double *restrict a) {
    memset(a, 0, (size_t)(rows * r) * sizeof *a);
    for (int64_t q0 = pos0[0]; q0 < pos0[1]; q0++) {
        double *restrict row = a + (int64_t)crd0[q0] * r;
        for (int64_t q1 = pos1[q0]; q1 < pos1[q0 + 1]; q1++) {
            const double *restrict c_row = c + (int64_t)crd1[q1] * r;
            // Fibers are short, so that multiplying what their entries share only once would not pay.
            for (int64_t q2 = pos2[q1]; q2 < pos2[q1 + 1]; q2++) {
                const double b = val[q2], *restrict d_row = d + (int64_t)crd2[q2] * r;
                for (int64_t j = 0; j < r; j++) {
                    row[j] += b * c_row[j] * d_row[j];
                }
            }
        }
    }
}

void mttkrp(int64_t rows, int64_t r, const uint32_t *restrict pos0, const uint32_t *restrict crd0,
            const uint32_t *restrict pos1, const uint32_t *restrict crd1, const uint32_t *restrict pos2,
            const uint32_t *restrict crd2, const double *restrict val, const double *restrict c,
            const double *restrict d, double *restrict a) {
    // The usual rank has code of its own, whose inner loop is unrolled and has no tail.
    if (r == 32) {
        columns(rows, 32, pos0, crd0, pos1, crd1, pos2, crd2, val, c, d, a);
    } else {
        columns(rows, r, pos0, crd0, pos1, crd1, pos2, crd2, val, c, d, a);
    }
}
