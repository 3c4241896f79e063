// y = A x: A in CSR, f64.
#include <stdint.h>

// Rows are short: gathering eight elements at a time, as gcc would, is slower than reading them one by one.
__attribute__((optimize("no-tree-vectorize")))
void spmv(int64_t rows, const uint32_t *restrict pos, const uint32_t *restrict crd, const double *restrict val,
          const double *restrict x, double *restrict y) {
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t q = pos[i], end = pos[i + 1]; q < end; q++) {
            sum += val[q] * x[crd[q]];
        }
        y[i] = sum;
    }
}
